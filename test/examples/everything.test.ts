/** The everything server as others run it: by the script of package.json, which takes `troupe` from the last build. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { EVERYTHING } from '../clients/scenario.ts';
import { connectV1 } from '../clients/v1.ts';
import { suite } from '../harness/door.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const test = suite('examples/everything');
const readme = readFileSync(`${root}examples/everything/README.md`, 'utf8');

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';
const title = 'npm run --silent everything:stdio serves, writes nothing but the protocol, and ends with its input';
if (existsSync(`${root}dist/lib/index.js`))
  test(title, async () => {
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

test('the README names all that it offers, and nothing else', async () => {
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
