/** `troupe check`: what it reports of tools, of an address and of package.json, for each directory, and its exit codes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as listen } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { onlineFacts } from '../../src/cli/check/online-facts.ts';
import { type StoreFinding, storeFindings } from '../../src/cli/check/store-checks.ts';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { createServer, http } from '../../src/index.ts';
import { suite } from '../harness/door.ts';
import { troupe } from './in-process.ts';

const test = suite('troupe check');
const folder = mkdtempSync(join(tmpdir(), 'troupe-check-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const SERVER = { name: 'shop', version: '1.0.0', revision: '2026-07-28', era: 'modern' } as const;
const EMPTY = { server: SERVER, capabilities: {}, tools: [], prompts: [], resources: [], templates: [] } as const;
const SCHEMA = { type: 'object' } as const;
const GOOD = {
  ...{ name: 'look', title: 'Look', description: 'Shows an order.', inputSchema: SCHEMA },
  annotations: { readOnlyHint: true, openWorldHint: false },
};
const PROJECT: JsonObject = {
  ...{ name: 'shop', version: '1.0.0', description: 'Orders.', homepage: 'https://example.com' },
  mcpName: 'com.example/shop',
  mcpb: { privacy_policies: ['https://example.com/privacy'] },
};

function found(
  tool: object,
  chosen: Parameters<typeof storeFindings>[1] = [],
  more: Partial<Parameters<typeof storeFindings>[0]> = {},
): readonly StoreFinding[] {
  const listing = { ...EMPTY, tools: [{ ...GOOD, ...tool }] };
  const facts = { listing, project: PROJECT, readme: '# Privacy policy', url: new URL('https://example.com/mcp') };
  return storeFindings({ ...facts, ...more }, chosen);
}

test('a server that has all that the directories ask for has no finding', () => {
  assert.equal(found({}), []);
});

for (const [what, tool, expected] of [
  ['no title', { title: undefined }, 'error all: it has no title for people'],
  ['no description', { description: ' ' }, 'error all: it has no description'],
  ['an instruction', { description: 'You must call this first.' }, 'warning all: its description instructs the model'],
  ['a long name', { name: 'x'.repeat(65) }, 'error all: its name has 65 characters'],
  ['no hints', { annotations: { openWorldHint: true } }, 'error all: annotations.readOnlyHint is not set'],
  ['no open world', { annotations: { readOnlyHint: true } }, 'error openai: annotations.openWorldHint is not set'],
  [
    'a contradiction',
    { annotations: { readOnlyHint: true, destructiveHint: true, openWorldHint: true } },
    'error all: annotations: it cannot be read-only and destructive',
  ],
  [
    'a write that adds only',
    { annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true } },
    'warning claude: it writes, and says destructiveHint: false',
  ],
] as const)
  test(`reports a tool with ${what}`, () => {
    const texts = found(tool).map(({ level, directory, message }) => `${level} ${directory}: ${message}`);
    assert.ok(
      texts.some((text) => text.startsWith(expected)),
      texts.join('\n'),
    );
  });

test('a project is checked for the directories that were chosen', () => {
  const { mcpName: _, mcpb: __, ...project } = PROJECT;
  const of = (directory: 'openai' | 'claude' | 'registry'): readonly string[] =>
    found({}, [directory], { project, readme: undefined, url: undefined }).map(
      ({ subject, message }) => `${subject}: ${message}`,
    );
  assert.match(of('registry').join('\n'), /package\.json: mcpName: expected the name in the registry/);
  assert.match(
    of('claude').join('\n'),
    /mcpb\.privacy_policies: expected the https address[\s\S]*README: it does not mention/,
  );
  assert.equal(of('openai'), ['address: apps need a public https endpoint: check that address, too']);
});

test('the command checks a server at its address, prints lines or JSON, and its exit code says whether there is something to mend', async () => {
  const server = createServer({ name: 'shop', version: '1.0.0' });
  server.tool('pay', {}, () => 'paid');
  const transport = http({ port: 0 });
  await server.listen(transport);
  const lines = await troupe(['check', transport.url, '--for', 'claude']);
  assert.is(lines.code, 1, lines.err);
  assert.match(lines.out, /^error: tool pay: it has no title for people$/m);
  assert.match(lines.out, /^error: tool pay: annotations\.destructiveHint is not set$/m);
  assert.not.match(lines.out, /openai/);
  const json = await troupe(['check', transport.url, '--json']);
  const { errors, findings } = JSON.parse(json.out);
  assert.is(errors, findings.filter(({ level }: StoreFinding) => level === 'error').length);
  assert.is((await troupe(['check', transport.url, '--for', 'bing'])).code, 2);
  assert.is((await troupe(['check'])).code, 2);
  await server.close();
  assert.is((await troupe(['check', transport.url])).code, 3);
});

test('the command starts a program and reads the package.json beside it', async () => {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...PROJECT, description: 'x'.repeat(101) }));
  writeFileSync(join(folder, 'README.md'), 'See our privacy policy.');
  const tool = `'look', { title: 'Look', description: 'Shows.', annotations: { readOnlyHint: true, openWorldHint: false } }, () => 'a'`;
  writeFileSync(
    join(folder, 'tool.mjs'),
    `import { createServer } from '${import.meta.resolve('troupe')}';
const server = createServer({ name: 'shop', version: '1.0.0' });
server.tool(${tool});
export default server;`,
  );
  const { code, out, err } = await troupe(['check', join(folder, 'tool.mjs'), '--for', 'registry']);
  assert.is(code, 1, err);
  assert.equal(out.trim().split('\n'), [
    'error (registry): package.json: description: it has 101 characters; at most 100',
    '1 thing to mend',
  ]);
});

test('each view has a content security policy, in either form, and other pages need none', () => {
  const view = { uri: 'ui://shop/cart.html', name: 'cart', mimeType: 'text/html;profile=mcp-app' };
  const of = (...resources: object[]) =>
    found({}, ['openai'], { listing: { ...EMPTY, tools: [GOOD], resources: resources as never } }).map(
      ({ subject }) => subject,
    );
  assert.equal(of(view), ['view ui://shop/cart.html']);
  assert.equal(of({ ...view, _meta: { ui: { csp: {} } } }, { ...view, _meta: { 'openai/widgetCSP': {} } }), []);
  assert.equal(of({ uri: 'file:///a.html', name: 'a', mimeType: 'text/html' }), []);
});

test('a server with events declares them in both places', () => {
  const draft = { extensions: { 'io.modelcontextprotocol/events': {} } };
  const of = (capabilities: JsonObject) =>
    found({}, [], { listing: { ...EMPTY, tools: [GOOD], capabilities } }).map(({ message }) => message);
  assert.equal(of({}), []);
  assert.equal(of({ ...draft, events: {} }), []);
  assert.match(of(draft)[0] ?? '', 'capabilities.events is not declared');
  assert.match(of({ events: {} })[0] ?? '', 'capabilities.extensions["io.modelcontextprotocol/events"]');
});

test('a server of Troupe with a view and an event has no finding about them', async () => {
  const server = createServer({ name: 'shop', version: '1.0.0' });
  server.app('cart', { html: '<!doctype html>', csp: {} });
  server.event('paid', { description: 'An order was paid.', payload: { type: 'object' } });
  const { title, description, annotations } = GOOD;
  server.tool('look', { title, description, annotations, app: 'cart' }, () => 'a');
  const transport = http({ port: 0 });
  await server.listen(transport);
  const { out } = await troupe(['check', transport.url, '--for', 'openai', '--json']);
  assert.equal(
    JSON.parse(out).findings.map(({ subject }: StoreFinding) => subject),
    ['address'],
  );
  await server.close();
});

test('with --online, a version that npm does not have and a domain without its challenge are found, and an answer that says nothing is a warning', async () => {
  let status = 404;
  const asked: string[] = [];
  const web = listen((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(status).end(request.url?.startsWith('/.well-known') ? 'token-1' : '{"version":"1.0.0"}');
  });
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  const { port } = web.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}`;
  const look = async () => {
    const online = await onlineFacts({ ...PROJECT, name: '@ada/shop' }, new URL(`${base}/mcp`), base);
    return found({}, [], { online }).map(({ level, directory }) => `${level} ${directory}`);
  };
  assert.equal(await look(), ['error registry', 'error openai']);
  assert.equal(asked.sort(), ['/%40ada%2Fshop/1.0.0', '/.well-known/openai-apps-challenge']);
  status = 200;
  assert.equal(await look(), []);
  status = 500;
  assert.equal(await look(), ['warning registry', 'warning openai']);
  await new Promise((resolve) => web.close(resolve));
  assert.equal(await look(), ['warning registry', 'warning openai']);
  assert.equal(await onlineFacts({ ...PROJECT, private: true }, undefined, base), {});
});
