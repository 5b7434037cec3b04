/** Names and URIs of mounts; of URIs, the way back is the inverse for whatever an upstream lists. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { JsonValue } from '../../../src/core/protocol/json.ts';
import { parseTemplate } from '../../../src/core/protocol/uri-template.ts';
import { checkMountName, matches, OfferedNames } from '../../../src/gateway/mounts/names.ts';
import { toOffered, toUpstream } from '../../../src/gateway/mounts/uri-names.ts';
import { rewriteUris } from '../../../src/gateway/mounts/uris.ts';
import { grapheme } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';

const names = suite('names of mounts');
const uris = suite('URIs of mounts');

const OURS = /^[A-Za-z0-9_.-]{1,64}$/;
/** `fc.webUrl()` makes a table of all characters. */
const url = fc
  .tuple(
    fc.stringMatching(/^[a-z]{1,8}(\.[a-z]{2,4}){1,2}$/),
    fc.array(fc.string({ unit: grapheme, maxLength: 6 }), { maxLength: 4 }),
    fc.constantFrom('', '?a=1&b=%20', '#part'),
  )
  .map(([host, path, end]) => `https://${host}/${path.map(encodeURIComponent).join('/')}${end}`);
const upstreamNames = fc.oneof(
  fc.stringMatching(/^[a-z_]{1,12}$/),
  fc.stringMatching(/^[A-Za-z0-9_.-]{40,140}$/),
  fc.string({ unit: grapheme, maxLength: 90 }),
);

names('accepts what can start a scheme and a name, and rejects the rest in words', () => {
  for (const name of ['a', 'gh', 'a-1', 'a'.repeat(24)]) assert.is(checkMountName(name), name);
  for (const name of ['', 'A', '1a', '-a', 'a_b', 'a.b', 'a+b', 'a b', 'a'.repeat(25)])
    assert.throws(() => checkMountName(name), /1 to 24 lower-case letters/);
  // `ui:` and `//gh/board` would be a view of the mount gh.
  for (const name of ['ui', 'skill']) assert.throws(() => checkMountName(name), /of other mounts/);
});

names('prefix, rename, only and except decide what is offered', () => {
  const plain = new OfferedNames('gh', {});
  assert.is(plain.offered('search'), 'gh_search');
  const bare = new OfferedNames('gh', { prefix: false, only: ['get_*', 'search'], except: ['*_secret'] });
  assert.is(bare.offered('get_issue'), 'get_issue');
  assert.is(bare.offered('get_secret'), undefined);
  assert.is(bare.offered('delete_repo'), undefined);
  const own = new OfferedNames('gh', { prefix: 'github.', rename: { search: 'find', b: 'github.c' } });
  assert.is(own.offered('get'), 'github.get');
  assert.is(own.offered('search'), 'find');
  assert.is(own.offered('b'), 'github.c');
  assert.match(own.offered('c') ?? '', /^github\.c_[0-9a-f]{8}$/);
});

names('a long name keeps its first 55 characters, and has the same digits after each start', () => {
  const long = `${'list_everything_that_is_in_'.repeat(3)}x`;
  const offered = new OfferedNames('gh', {}).offered(long);
  assert.is(offered, 'gh_list_everything_that_is_in_list_everything_that_is_i_578cbd7b');
  assert.is(new OfferedNames('gh', {}).offered('größe/в метрах'), 'gh_gr__e__________90b0791d');
});

names('each offered name fits, and no two names share one', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(upstreamNames, { maxLength: 30 }),
      fc.constantFrom<string | false | undefined>(undefined, false, 'x.'),
      (list, prefix) => {
        const table = new OfferedNames('gh', prefix === undefined ? {} : { prefix });
        const again = new OfferedNames('gh', prefix === undefined ? {} : { prefix });
        const offered = list.map((name) => table.offered(name) ?? '');
        assert.is(new Set(offered).size, list.length);
        for (const name of offered) assert.match(name, OURS);
        assert.equal(
          list.toReversed().map((name) => again.offered(name)),
          offered.toReversed(),
        );
      },
    ),
    { numRuns: random(200) },
  );
});

names('a pattern matches whole names, as the regular expression of the same meaning does', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[ab*?]{0,8}$/), fc.stringMatching(/^[ab]{0,8}$/), (pattern, name) => {
      const regex = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`);
      assert.is(matches(pattern, name), regex.test(name));
    }),
    { numRuns: random(500) },
  );
});

uris('the mount becomes part of the scheme, and the first segment where hosts look at the scheme', () => {
  const pairs = [
    ['file:///a', 'gh+file:///a'],
    ['git+https://x/y', 'gh+git+https://x/y'],
    ['file:///{+path}', 'gh+file:///{+path}'],
    ['{+url}', 'gh:{+url}'],
    ['readme', 'gh:readme'],
    ['ui://board/main', 'ui://gh/board/main'],
    ['skill://refunds/SKILL.md', 'skill://gh/refunds/SKILL.md'],
    ['ui:board', 'gh+ui:board'],
  ] as const;
  for (const [upstream, offered] of pairs) {
    assert.is(toOffered('gh', upstream), offered);
    assert.is(toUpstream('gh', offered), upstream);
    assert.is(toOffered(false, upstream), upstream);
  }
  for (const other of ['file:///a', 'ghx+file:///a', 'gh+readme', 'ui://ghx/board', 'ui://board', ''])
    assert.is(toUpstream('gh', other), undefined);
});

uris(
  'back is the inverse for any text, and expanding an offered template leads to the expansion of the upstream one',
  () => {
    fc.assert(
      fc.property(fc.string({ unit: grapheme, maxLength: 60 }), (uri) => {
        assert.is(toUpstream('gh', toOffered('gh', uri)), uri);
        assert.is(toUpstream('gh2', toOffered('gh', uri)), undefined);
      }),
      { numRuns: random(500) },
    );
    const templates = [
      'file:///{+path}',
      '{+path}',
      'ui://{path}/x',
      'ui:/{/path}',
      'x{path}:y',
      'a:{?path}',
      '{path}://x',
    ];
    fc.assert(
      fc.property(fc.constantFrom(...templates), url, (template, path) => {
        const offered = parseTemplate(toOffered('gh', template)).expand({ path });
        assert.is(toUpstream('gh', offered), parseTemplate(template).expand({ path }));
      }),
      { numRuns: random(200) },
    );
  },
);

uris('are rewritten where the protocol has them, and nowhere else', () => {
  const result = {
    content: [
      { type: 'text', text: 'file:///a', uri: 'file:///a' },
      { type: 'resource_link', uri: 'file:///a', name: 'file:///a', icons: [{ src: 'https://x/i.png' }] },
      { type: 'resource', resource: { uri: 'file:///a', text: 'file:///b' } },
      { type: 'tool_result', toolUseId: '1', content: [{ type: 'resource_link', uri: 'a:b', name: 'b' }] },
    ],
    structuredContent: { uri: 'file:///a', contents: [{ uri: 'file:///a' }] },
  };
  assert.equal(rewriteUris('gh', result), {
    content: [
      result.content[0],
      { ...result.content[1], uri: 'gh+file:///a' },
      { type: 'resource', resource: { uri: 'gh+file:///a', text: 'file:///b' } },
      { type: 'tool_result', toolUseId: '1', content: [{ type: 'resource_link', uri: 'gh+a:b', name: 'b' }] },
    ],
    structuredContent: result.structuredContent,
  });
  const message = { messages: [{ role: 'user', content: { type: 'resource_link', uri: 'a:b', name: 'b' } }] };
  assert.equal(rewriteUris('gh', message).messages[0]?.content.uri, 'gh+a:b');
  const lists = {
    resources: [{ uri: 'a:b', name: 'b' }],
    resourceTemplates: [{ uriTemplate: 'a:{x}', name: 'b' }],
    skills: [{ uri: 'skill://a/SKILL.md', frontmatter: {}, resources: [{ uri: 'skill://a/SKILL.md' }] }],
    tools: [{ name: 'b', _meta: { ui: { resourceUri: 'ui://b', visibility: ['app'] }, 'ui/resourceUri': 'ui://b' } }],
  };
  assert.equal(rewriteUris('gh', lists), {
    resources: [{ uri: 'gh+a:b', name: 'b' }],
    resourceTemplates: [{ uriTemplate: 'gh+a:{x}', name: 'b' }],
    skills: [{ uri: 'skill://gh/a/SKILL.md', frontmatter: {}, resources: [{ uri: 'skill://gh/a/SKILL.md' }] }],
    tools: [
      { name: 'b', _meta: { ui: { resourceUri: 'ui://gh/b', visibility: ['app'] }, 'ui/resourceUri': 'ui://gh/b' } },
    ],
  });
});

uris('a value without URIs stays the same object, and nothing of it is changed in place', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const given = value as JsonValue;
      assert.is(rewriteUris(false, given), given);
      const before = structuredClone(given);
      rewriteUris('gh', given);
      assert.equal(given, before);
    }),
    { numRuns: random(200) },
  );
  const plain = { content: [{ type: 'text', text: 'a' }], structuredContent: { uri: 'a:b' }, _meta: { a: 1 } };
  assert.is(rewriteUris('gh', plain), plain);
  let deep: JsonValue = { type: 'resource_link', uri: 'a:b', name: 'b' };
  for (let at = 0; at < 5_000; at += 1) deep = { content: [deep] };
  assert.is(rewriteUris('gh', deep), deep);
});
