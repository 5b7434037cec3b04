/** What a registry keeps: order, versions, pages, sources. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { ProtocolError } from '../../../src/core/protocol/errors.ts';
import { Catalogue } from '../../../src/core/registry/catalogue.ts';
import { suite } from '../../harness/door.ts';

const test = suite('catalogue');
const all = (_: string): _ is string => true;
let ref = 0;
const offer = (key: string, source = 'code') => ({ key, definition: key, ref: ++ref, source });

function filled(...keys: string[]): Catalogue<string> {
  const catalogue = new Catalogue<string>('tool');
  for (const key of keys) catalogue.register(offer(key));
  return catalogue;
}

const keys = (catalogue: Catalogue<string>): readonly string[] => catalogue.slice(undefined, 1_000, all).items;

test('a name that is taken is refused, with who has it and what to do', () => {
  const catalogue = filled('a');
  const answer = catalogue.register(offer('a'));
  assert.is(answer.ok, false);
  assert.match(answer.ok ? '' : answer.why, /tool "a" is already registered \(by code\): choose another name/);
});

test('an element of another server yields its name to code and to a module, and takes none of theirs', () => {
  const upstream = (key: string) => ({ ...offer(key, 'mount up'), ofUpstream: 'private' as const });
  const catalogue = filled('own');
  const [a, b] = [upstream('a'), upstream('b')];
  assert.ok(catalogue.replaceSource('mount up', [a, b]).ok);
  assert.equal(catalogue.register(offer('a')), { ok: true, gone: [a.ref] });
  assert.equal(catalogue.replaceSource('module.ts', [offer('b', 'module.ts')]), { ok: true, gone: [b.ref] });
  assert.equal(
    keys(catalogue).map((key) => catalogue.get(key)?.source),
    ['code', 'code', 'module.ts'],
  );
  for (const name of ['own', 'a', 'b']) assert.is(catalogue.replaceSource('mount up', [upstream(name)]).ok, false);
  // Elements of two other servers do not displace each other.
  assert.ok(catalogue.replaceSource('mount up', [upstream('c')]).ok);
  assert.is(catalogue.replaceSource('mount two', [{ ...upstream('c'), source: 'mount two' }]).ok, false);
});

test('an update keeps the place, a removal and return does not', () => {
  const catalogue = filled('a', 'b', 'c');
  catalogue.update({ ...offer('a'), definition: 'a' });
  assert.equal(keys(catalogue), ['a', 'b', 'c']);
  catalogue.remove('a');
  catalogue.register(offer('a'));
  assert.equal(keys(catalogue), ['b', 'c', 'a']);
});

test('a disabled element is neither listed nor found, and comes back in its place', () => {
  const catalogue = filled('a', 'b');
  catalogue.setEnabled('a', false);
  assert.is(catalogue.get('a'), undefined);
  assert.equal(keys(catalogue), ['b']);
  catalogue.setEnabled('a', true);
  assert.equal(keys(catalogue), ['a', 'b']);
});

test('an element that its source drops and offers again is still disabled, until it is enabled', () => {
  const catalogue = new Catalogue<string>('tool');
  const offered = (source: string, ...names: string[]) =>
    catalogue.replaceSource(
      source,
      names.map((name) => offer(name, source)),
    );
  offered('up', 'a', 'b');
  catalogue.setEnabled('a', false);
  offered('up', 'b');
  offered('up');
  const { version } = catalogue;
  offered('up', 'a');
  assert.equal([keys(catalogue), catalogue.get('a')], [[], undefined]);
  assert.is(catalogue.version, version + 1);
  offered('up');
  // The element of another source is another one.
  offered('other', 'a');
  assert.equal(keys(catalogue), ['a']);
  offered('other');
  assert.is(catalogue.setEnabled('a', true).ok, true);
  assert.is(catalogue.setEnabled('a', true).ok, false);
  offered('up', 'a');
  assert.equal(keys(catalogue), ['a']);
  // What is removed by its name is forgotten.
  catalogue.setEnabled('a', false);
  catalogue.remove('a');
  offered('up', 'a');
  assert.equal(keys(catalogue), ['a']);
});

test('the version grows with each change and with nothing else', () => {
  const catalogue = filled('a');
  const { version } = catalogue;
  catalogue.setEnabled('a', true);
  catalogue.register(offer('a'));
  catalogue.remove('nobody');
  catalogue.replaceSource('dir', []);
  assert.is(catalogue.version, version);
  catalogue.clear();
  assert.is(catalogue.version, version + 1);
  catalogue.clear();
  assert.is(catalogue.version, version + 1);
});

test('an element that only the search finds is in no list, and its changes are none of a list', () => {
  const catalogue = filled('a');
  const { version, listVersion } = catalogue;
  catalogue.replaceSource('mount', [{ ...offer('b', 'mount'), listed: ['search'] }]);
  assert.equal(keys(catalogue), ['a']);
  assert.equal(catalogue.get('b')?.listed, ['search']);
  assert.is(catalogue.listVersion, listVersion);
  assert.is(catalogue.version, version + 1);
  catalogue.replaceSource('mount', [offer('b', 'mount')]);
  assert.is(catalogue.listVersion, listVersion + 1);
});

test('a source is replaced whole: what stays keeps its place, what went is let go of', () => {
  const catalogue = filled('mine');
  catalogue.replaceSource('dir', [offer('x', 'dir'), offer('y', 'dir')]);
  catalogue.setEnabled('y', false);
  const answer = catalogue.replaceSource('dir', [offer('z', 'dir'), offer('y', 'dir')]);
  assert.is(answer.ok && answer.gone.length, 2);
  assert.equal(keys(catalogue), ['mine', 'z']);
  catalogue.setEnabled('y', true);
  assert.equal(keys(catalogue), ['mine', 'y', 'z']);
});

test('a source that takes a name of another is refused whole', () => {
  const catalogue = filled('mine');
  const answer = catalogue.replaceSource('dir', [offer('x', 'dir'), offer('mine', 'dir')]);
  assert.is(answer.ok, false);
  assert.equal(keys(catalogue), ['mine']);
  assert.is(catalogue.replaceSource('dir', [offer('x', 'dir'), offer('x', 'dir')]).ok, false);
});

test('a cursor that was not given is refused with -32602', () => {
  for (const cursor of ['', 'x', 'o', 'o-1', 'oOO', '1', 'o1 ', `o${'9'.repeat(20)}`]) {
    assert.throws(
      () => filled('a').slice(cursor, 10, all),
      (error: unknown) => error instanceof ProtocolError && error.code === -32602,
    );
  }
});

test('pages hold every element once, in order, whatever their size, while others come and go behind the cursor', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: 1, max: 7 }),
      fc.boolean(),
      (count, size, removing) => {
        const names = Array.from({ length: count }, (_, i) => `t${i}`);
        const catalogue = filled(...names);
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const page = catalogue.slice(cursor, size, all);
          seen.push(...page.items);
          cursor = page.nextCursor;
          const last = page.items.at(-1);
          if (removing && last !== undefined) catalogue.remove(last);
        } while (cursor !== undefined);
        assert.equal(seen, names);
      },
    ),
  );
});
