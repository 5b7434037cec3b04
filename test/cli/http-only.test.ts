/** A program that serves over HTTP only ends with its agent, and drains at a signal, whichever command loads it. Signals and closed pipes need processes. */
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { Cli, isBuilt, TROUPE } from './cli.ts';

const test = suite(
  'programs without stdio',
  !isBuilt
    ? 'dist is not built: npm run build'
    : process.platform === 'win32'
      ? 'the signals of this file are those of POSIX'
      : undefined,
);

const FILES = {
  'package.json': '{ "type": "module" }',
  'server.mjs': `import { createServer, http, stdio } from '${TROUPE}';
const server = createServer({ name: 'p', version: '1' });
server.tool('wait', {}, async () => {
  console.error('waits');
  await new Promise((resolve) => setTimeout(resolve, 100));
  return 'done';
});
const transport = http({ port: 0 });
await server.listen(transport);
if (process.argv.includes('both')) await server.listen(stdio());
console.error('URL ' + transport.url);
`,
};

/** Calls the tool `wait` over HTTP. */
async function wait(url: string): Promise<string> {
  const method = 'tools/call';
  const revision = '2026-07-28';
  const prefix = 'io.modelcontextprotocol/';
  const _meta = {
    [`${prefix}protocolVersion`]: revision,
    [`${prefix}clientInfo`]: { name: 'test', version: '1' },
    [`${prefix}clientCapabilities`]: {},
  };
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': revision,
      'Mcp-Method': method,
      'Mcp-Name': 'wait',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { name: 'wait', arguments: {}, _meta } }),
  });
  return answer.text();
}

const WAYS = {
  'run ends with its agent': { args: ['run'], how: 'eof' },
  'run drains at SIGTERM': { args: ['run'], how: 'SIGTERM', full: true },
  'run --no-supervisor drains at SIGTERM': { args: ['run', '--no-supervisor'], how: 'SIGTERM', full: true },
  'dev drains at SIGTERM': { args: ['dev', '--no-inspect'], how: 'SIGTERM', full: true },
} as const;

for (const [title, { args, how, ...more }] of Object.entries(WAYS)) {
  const add = 'full' in more ? test.full : test;
  add(`R-50: troupe ${title}, where the program serves over HTTP only`, async () => {
    const { path } = new Tree(FILES);
    const cli = new Cli([...args, 'server.mjs'], { cwd: path });
    await cli.said('/mcp\n');
    const [, url = ''] = /URL (\S+)/.exec(cli.err) ?? [];
    const answer = wait(url);
    await cli.said('waits\n');
    if (how === 'eof') cli.process.stdin?.end();
    else cli.process.kill(how);
    assert.match(await answer, '"done"');
    assert.is(await cli.exit, 0);
    assert.not.match(cli.err, /restarting|ended with|incident/);
  });
}

test.full('R-50: a program that listens on stdio after HTTP loses no message of its agent', async () => {
  const { path } = new Tree(FILES);
  const cli = new Cli(['run', 'server.mjs', '--', 'both'], { cwd: path });
  await cli.initialize();
  assert.is(await cli.call('wait'), 'done');
  assert.is(await cli.end(), 0);
});
