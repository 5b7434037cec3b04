/** The policy that a page gets: found as a browser finds it, by parsing the page. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import * as assert from 'uvu/assert';
import { withPolicy } from '../../../src/features/apps/page-policy.ts';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';

const test = suite('policies of pages');

type Node = DefaultTreeAdapterTypes.ChildNode;

const POLICY = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`;
const ADDED = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src`;
const START = '<script>start()</script>';

/** The head of a page, as a browser that runs scripts builds it. */
function headOf(text: string): readonly Node[] {
  const html = parse(text, { scriptingEnabled: true }).childNodes.find((each) => each.nodeName === 'html');
  const head = html && 'childNodes' in html ? html.childNodes.find((each) => each.nodeName === 'head') : undefined;
  return head && 'childNodes' in head ? head.childNodes : [];
}

/** The policy that a browser obeys before it sees anything else of the page. */
function firstPolicy(text: string): string | undefined {
  const first = headOf(text).find((each) => each.nodeName !== '#text' && each.nodeName !== '#comment');
  if (!first || !('attrs' in first)) return undefined;
  const attribute = (name: string): string | undefined => first.attrs.find((each) => each.name === name)?.value;
  return attribute('http-equiv') === 'Content-Security-Policy' ? attribute('content') : undefined;
}

/** Text that contains a policy, where a browser sees none. */
const LOOKALIKES: Readonly<Record<string, string>> = {
  title: `<title>${POLICY}</title>`,
  textarea: `<textarea>${POLICY}</textarea>`,
  template: `<template>${POLICY}</template>`,
  noscript: `<noscript>${POLICY}</noscript>`,
  'a comment': `<!-- ${POLICY} -->`,
  'an odd comment': `<!-->${''}<!--- ${POLICY} --!>`,
  'a bogus comment': `<?${POLICY.slice(0, -1)}?>`,
  'an attribute': `<div data-a='${POLICY.replaceAll("'", '')}'></div>`,
  style: `<style>${POLICY}</style>`,
  'a script': `<script>"${POLICY}"</script>`,
  iframe: `<iframe>${POLICY}</iframe>`,
  xmp: `<xmp>${POLICY}</xmp>`,
  noembed: `<noembed>${POLICY}</noembed>`,
  'the title of a picture': `<svg><title>${POLICY}</title></svg>`,
  'the body': `<body><p>${POLICY}</p>`,
  'a policy without content': '<meta http-equiv="Content-Security-Policy">',
  'an empty policy': '<meta http-equiv="Content-Security-Policy" content="">',
  'the name of another attribute': `<meta data-http-equiv="Content-Security-Policy" content="default-src 'none'">`,
  'a second attribute of one name': `<meta http-equiv="refresh" http-equiv="Content-Security-Policy" content="default-src 'none'">`,
  'another element': `<link http-equiv="Content-Security-Policy" content="default-src 'none'">`,
};
for (const [where, lookalike] of Object.entries(LOOKALIKES))
  test(`S-90: a page that contains the text of a policy in ${where} gets a policy`, async () => {
    for (const head of ['', '<html><head>', '<html lang="en">\n<!-- a -->\n<head data-a=">">']) {
      const text = await withPolicy(`<!doctype html>${head}${lookalike}${START}`);
      assert.match(text, ADDED);
      assert.match(firstPolicy(text) ?? '', hashOf('start()'));
    }
  });

const OWN: Readonly<Record<string, string>> = {
  'in the head': `<head>${POLICY}`,
  'without a head': POLICY,
  'after a title': `<title>a</title>${POLICY}`,
  'in capital letters': POLICY.toUpperCase(),
  'without quotes': '<meta http-equiv=content-security-policy content=default-src>',
  'with entities': `<meta http-equiv="Content&#45;Security-Policy" content="default-src 'none'">`,
  'over several lines': `<meta\n content="default-src 'none'"\n http-equiv='Content-Security-Policy'\n/>`,
};
for (const [how, own] of Object.entries(OWN))
  test(`S-90: a page with a policy of its own stays as it is: ${how}`, async () => {
    const page = `<!doctype html>${own}${START}`;
    assert.is(await withPolicy(page), page);
  });

function hashOf(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}

test('S-90: the policy has the hash of each script in the page, and of no text that only looks like one', async () => {
  const cases: readonly (readonly [html: string, run: readonly string[], not: readonly string[]])[] = [
    ['<script>a</script><script>b</script>', ['a', 'b'], []],
    ['<script src="https://a.example">a</script>', [], ['a']],
    ['<title><script>a</script></title><script>b</script>', ['b'], ['a']],
    ['<!-- <script>a</script> --><script>b</script>', ['b'], ['a']],
    ['<textarea><script>a</script></textarea><script>b</script>', ['b'], ['a']],
    ['<noscript><script>a</script></noscript><script>b</script>', ['b'], ['a']],
    ['<p title="<script>a</script>"><script>b</script>', ['b'], ['a']],
    // The script is what a browser takes for it: it ends after the comment that contains a script.
    ['<script><!--<script>a</script>--></script>', ['<!--<script>a</script>-->'], ['a']],
    ['<svg><script>a&lt;b</script></svg>', ['a<b'], ['a&lt;b']],
    ['<template><script>a</script></template>', ['a'], []],
    ['<SCRIPT type=module>a</SCRIPT >', ['a'], []],
    ['<script>é\u2028🎈</script>', ['é\u2028🎈'], []],
  ];
  for (const [html, run, not] of cases) {
    const policy = firstPolicy(await withPolicy(`<!doctype html>${html}`)) ?? '';
    for (const script of run) assert.match(policy, hashOf(script), html);
    for (const script of not) assert.not(policy.includes(hashOf(script)), html);
  }
});

const PIECES = [
  ...Object.values(LOOKALIKES),
  ...['<html>', '<html lang="a">', '<head>', '<head/>', '</head>', '<body>', '</body>', '</html>', '<frameset>'],
  ...['<!doctype html>', '<!-- <head> -->', '<!--', '-->', '\u00a0', '\n', 'text', '<', '<x', '</', '&lt;', '\u0000'],
  ...['<title>', '</title>', '<template>', '</template>', '<svg>', '<math>', '<table>', '<select>', '<script', '>'],
  ...[START, '<script>', '</script>', '<header>', '<noscript>', '</noscript>', '<plaintext>', '"', "'"],
];
test('S-90: a browser obeys the policy of any page before it sees anything else of the page', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }), async (pieces) => {
      const page = `<!doctype html>${pieces.join('')}`;
      const text = await withPolicy(page);
      const own = text === page;
      if (own) assert.ok(headOf(page).some((each) => each.nodeName === 'meta'));
      else assert.ok(firstPolicy(text)?.startsWith("default-src 'none'; script-src"), text);
      assert.is(await withPolicy(text), text);
    }),
    { numRuns: random(2_000) },
  );
});

test('a page is parsed in time that grows with its length', async () => {
  const deep = `<!doctype html>${'<div>'.repeat(20_000)}${START}`;
  assert.match(firstPolicy(await withPolicy(deep)) ?? '', hashOf('start()'));
});

test('the address of a page changes with its text and its origins, and a byte order mark is not part of it', async () => {
  const server = createServer({ name: 'team', version: '1.0.0', log: () => {} });
  const client = await connect(server);
  const html = `<!doctype html>${START}`;
  const uris = [
    server.app('a', { html }),
    server.app('b', { html: `${html} ` }),
    server.app('c', { html, csp: { connectDomains: ['https://a.example'] } }),
    server.app('d', { html: `\uFEFF${html}` }),
  ].map(({ uri }) => uri);
  const hashes = uris.map((uri) => uri.split('.')[1]);
  assert.is(new Set(hashes).size, 3);
  assert.is(hashes[0], hashes[3]);
  for (const uri of uris) {
    const { contents } = await client.read(uri);
    assert.match(String(Object(contents[0]).text), '<!doctype html><meta http-equiv="Content-Security-Policy"');
  }
  await server.close();
});
