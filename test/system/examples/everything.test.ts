/** The everything server as others run it: by the script of package.json, which takes `troupe` from the last build. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { readChallenges } from '../../../src/client/oauth/challenges.ts';
import { send } from '../../core/http/modern.ts';
import type { Answer } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { everything } from '../clients/http-wire.ts';
import { EVERYTHING } from '../clients/scenario.ts';
import { connectV1 } from '../clients/v1.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('examples/everything');
const readme = readFileSync(`${root}examples/everything/README.md`, 'utf8');

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';
const title = 'npm run --silent everything:stdio serves, writes nothing but the protocol, and ends with its input';
if (existsSync(`${root}dist/lib/index.js`))
  test.full(title, async () => {
    const script: string = JSON.parse(readFileSync(`${root}package.json`, 'utf8')).scripts['everything:stdio'];
    const [node, ...args] = script.split(' ');
    assert.is(node, 'node');
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end(PING);
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    assert.equal(await once(child, 'close'), [0, null]);
    assert.is(out, '{"jsonrpc":"2.0","id":1,"result":{}}\n');
  });
else test.skip(title, 'there is no build: npm run build');

test.full('the README names all that it offers, and nothing else', async () => {
  const client = await connectV1(EVERYTHING, '2025-11-25');
  for (const kind of ['tool', 'resource', 'prompt']) await client.callTool(`test_trigger_${kind}_change`);
  const offered = [
    ...(await client.listTools()).map(({ name }) => name),
    ...(await client.listResources()).map(({ uri }) => uri),
    ...(await client.listTemplates()).map(({ uriTemplate }) => uriTemplate),
    ...(await client.listPrompts()).map(({ name }) => name),
  ];
  await client.close();
  const named = [...readme.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, name]) => name);
  assert.equal(named.sort(), offered.sort());
});

/** The operations of conformance #480, with the scopes that each needs. */
const SCOPED = [
  ['tools/call', { name: 'test_simple_text', arguments: {} }, ['tools:call', 'tools:test_simple_text']],
  ['resources/read', { uri: 'test://static-text' }, ['resources:read', 'resources:static']],
  ['resources/read', { uri: 'test://template/123/data' }, ['resources:read', 'resources:template:123']],
  ['prompts/get', { name: 'test_simple_prompt' }, ['prompts:get', 'prompts:test_simple_prompt']],
] as const;

test.full(
  'G-16: with EVERYTHING_SCOPES each operation of conformance #480 names its scopes in one challenge, and is served with them',
  async () => {
    const served = await everything({ EVERYTHING_SCOPES: '1' });
    const metadata = new URL('/.well-known/oauth-protected-resource', served.url);
    assert.is((await fetch(metadata)).status, 200);
    for (const [method, params, needs] of SCOPED) {
      const as = (token?: string): Promise<Answer> =>
        send(served.url, method, {
          params,
          headers: { authorization: token && `Bearer mcp-conformance-scope-${token}` },
        });
      const low = await as('low');
      const what = `${method} ${JSON.stringify(params)}: ${await low.text()}`;
      assert.is(low.status, 403, what);
      const [challenge] = readChallenges(String(low.headers['www-authenticate']));
      assert.is(challenge?.scheme, 'bearer');
      assert.is(challenge?.params.error, 'insufficient_scope');
      assert.is(challenge?.params.scope, needs.map((scope) => `mcp:conformance:${scope}`).join(' '), what);
      assert.ok(challenge?.params.resource_metadata);
      for (const token of ['full', undefined]) assert.is((await as(token)).status, 200, `${what} with ${token}`);
      assert.is((await as('other')).status, 401);
    }
    assert.is(await served.end(), 0);
  },
);
