/** S-23, CVE-2026-0621: URIs of resources as an attacker would write them: nothing climbs out of its segment, and none takes long. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { parseTemplate } from '../../../src/core/protocol/uri-template.ts';
import { answered, send } from '../../core/http/modern.ts';
import { serving } from '../../core/http/session.ts';
import { openSession } from '../../core/http/support.ts';
import { grapheme } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';

const test = suite('hostile URIs');

test('S-23: an expansion of any value stays under its prefix, and is one segment of it', () => {
  const template = parseTemplate('files:///shared/{name}');
  const hostile = fc.constantFrom(
    '../',
    '..\\',
    '/etc/passwd',
    '%2e%2e%2f',
    '?',
    '#',
    '//evil.example.com',
    '\u0000',
    '\r\n',
    ':',
    '@',
  );
  const value = fc
    .array(fc.oneof(hostile, fc.string({ unit: grapheme })), { maxLength: 5 })
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(value, (name) => {
      const uri = template.expand({ name });
      assert.match(uri, /^files:\/\/\/shared\/(?:[\w\-.~]|%[0-9A-F]{2})*$/);
      if (name !== '') assert.equal({ ...template.match(uri) }, { name });
    }),
    { numRuns: 2_000 },
  );
});

test('S-23: a plain variable takes no slash, query or fragment, however a client writes its URI', () =>
  serving(
    async ({ url }) => {
      const read = (uri: string): ReturnType<typeof send> => send(url, 'resources/read', { params: { uri } });
      for (const uri of [
        'files:///shared/../secret',
        'files:///shared/a/../../secret',
        'files:///shared//etc/passwd',
        'files:///shared/a?b',
        'files:///shared/a#b',
        'files:///SHARED/a',
        'FILES:///shared/a',
        'http://169.254.169.254/latest/meta-data',
        'file:///etc/passwd',
        'files:///shared/%',
        'files:///shared/%zz',
        'files:///shared/%ff',
      ])
        assert.match((await (await read(uri)).json()).error?.message ?? '', 'not found', uri);
      // Decoded it may hold anything: whoever makes a path of it looks at it first.
      const { contents } = await answered(await read('files:///shared/..%2F..%2Fsecret'));
      assert.equal(contents, [{ uri: 'files:///shared/..%2F..%2Fsecret', text: '["../../secret"]' }]);
    },
    {},
    (server) => {
      server.resource('files:///shared/{name}', {}, ({ variables }) => JSON.stringify([variables.name]));
    },
  ));

test('CVE-2026-0621: a URI of 50 KB is refused as fast as any, by templates that explode lists', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url);
      for (const unit of [',', '/', '%2C', '&a=', ',,/', 'a,']) {
        const uri = `list://${unit.repeat(51_200 / unit.length)}`;
        const before = process.cpuUsage();
        const answer = await session.post({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri } });
        assert.match((await answer.json()).error?.message ?? '', 'not found', unit);
        const { user, system } = process.cpuUsage(before);
        assert.ok((user + system) / 1_000 < 200, `${unit}: ${(user + system) / 1_000} ms`);
      }
    },
    {},
    (server) => {
      for (const text of ['list://{a*,b*,c*}', 'list://{/a*}{/b*}', 'list://{?a*,b*}', 'list://{+a,b,c}'])
        server.resource(text, {}, () => 'x');
    },
  ));
