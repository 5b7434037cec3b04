/** The servers of the migration pages: the same client gets the same results from all, and the differences that the pages list. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonValue } from 'troupe';
import { type Client, connect, ErrorResponse, type StdioCommand } from 'troupe/client';
import * as assert from 'uvu/assert';
import { compileProgram } from '../../harness/compiled.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { stepsOf } from './steps.ts';

fullOnly('installs packages; the quick test of the first hour is its tutorial');

const test = suite('the migration pages');

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDER = join(ROOT, 'dist/migration');
const PEERS = join(ROOT, 'bench/peers');

/** What the pages say about each server where they differ. */
const SERVERS = {
  v1: { page: 'from-official-sdk.md', revision: '2025-11-25', unknownTool: 'isError', wrongArguments: 'isError' },
  v2: { page: 'from-official-sdk.md', revision: '2026-07-28', unknownTool: -32602, wrongArguments: 'isError' },
  fastmcp: { page: 'from-fastmcp.md', revision: '2025-11-25', unknownTool: -32601, wrongArguments: -32602 },
  troupe: { page: 'from-fastmcp.md', revision: '2026-07-28', unknownTool: -32602, wrongArguments: 'isError' },
} as const;
/** Servers whose packages `npm ci --prefix bench/peers` installs. */
const OF_PEERS = ['v2', 'fastmcp'];
const havePeers = ['@modelcontextprotocol/server', 'fastmcp'].every((name) =>
  existsSync(join(PEERS, 'node_modules', name)),
);
const NEEDS = 'needs npm ci --prefix bench/peers';

test.before(() => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(join(FOLDER, 'node_modules/@modelcontextprotocol'), { recursive: true });
  const linked = { troupe: ROOT, zod: join(ROOT, 'node_modules/zod') };
  const official = { '@modelcontextprotocol/sdk': ROOT, '@modelcontextprotocol/server': PEERS, fastmcp: PEERS };
  for (const [name, target] of Object.entries(linked)) symlinkSync(target, join(FOLDER, 'node_modules', name), 'dir');
  for (const [name, from] of Object.entries(official))
    symlinkSync(join(from, 'node_modules', name), join(FOLDER, 'node_modules', name), 'dir');
});

for (const [name, { page, revision, unknownTool, wrongArguments }] of Object.entries(SERVERS)) {
  const title = `${name} gives the results of the others, and differs where ${page} says so`;
  if (OF_PEERS.includes(name) && !havePeers) test.skip(title, NEEDS);
  else
    test(title, async () => {
      const command = await commandOf(name, programOf(page, `${name}.ts`));
      for (const eras of ['auto', 'legacy'] as const) {
        const client = await connect(command, { eras, elicit: () => ({ count: 3 }) });
        assert.is(client.server.revision, eras === 'auto' ? revision : '2025-11-25');
        await compare(client);
        assert.is(await outcome(client, 'soup', {}), unknownTool);
        assert.is(await outcome(client, 'price', { item: 1, count: 2 }), wrongArguments);
        await client.close();
      }
    });
}

const prefixed = 'fastmcp puts its own words before the message of an error that is no UserError';
if (!havePeers) test.skip(prefixed, NEEDS);
else
  test(prefixed, async () => {
    const program = programOf('from-fastmcp.md', 'fastmcp.ts').replace('new UserError(', 'new Error(');
    const client = await connect(await commandOf('fastmcp-error', program));
    const { content } = await client.call('price', { item: 'soup', count: 2 });
    assert.equal(content, [{ type: 'text', text: "Tool 'price' execution failed: No soup here" }]);
    await client.close();
  });

const checked = 'the servers of the pages type-check as strictly as ours';
if (!havePeers) test.skip(checked, NEEDS);
else
  test(checked, () => {
    for (const [name, { page }] of Object.entries(SERVERS))
      writeFileSync(join(FOLDER, `${name}.ts`), programOf(page, `${name}.ts`));
    const options = { composite: false, noEmit: true, declaration: false, sourceMap: false, types: ['node'] };
    const config = {
      extends: '../../tsconfig.base.json',
      compilerOptions: { ...options, skipLibCheck: true },
      include: Object.keys(SERVERS).map((name) => `${name}.ts`),
    };
    writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify(config));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { status, stdout } = spawnSync(process.execPath, [tsc, '--checkers', '1', '-p', FOLDER], {
      encoding: 'utf8',
    });
    assert.is(status, 0, stdout);
  });

test('both pages show the same server of Troupe', () => {
  assert.is(programOf('from-official-sdk.md', 'troupe.ts'), programOf('from-fastmcp.md', 'troupe.ts'));
});

async function commandOf(name: string, program: string): Promise<StdioCommand> {
  const file = join(FOLDER, `${name}.ts`);
  writeFileSync(file, program);
  return { command: process.execPath, args: [await compileProgram(file)] };
}

/** The program of a page. */
function programOf(page: string, name: string): string {
  const [found] = stepsOf(readFileSync(join(ROOT, 'docs', page), 'utf8')).filter(
    (step) => step.kind === 'file' && step.name === name,
  );
  assert.ok(found, `${page}: ${name}`);
  return found?.text ?? '';
}

async function compare(client: Client): Promise<void> {
  assert.equal(
    (await client.tools()).map((tool) => tool.name),
    ['price', 'bake', 'order'],
  );
  const price = await client.call('price', { item: 'bread', count: 2 });
  assert.equal([price.content, price.structuredContent], [[{ type: 'text', text: '{"total":8}' }], { total: 8 }]);
  const failed = await client.call('price', { item: 'soup', count: 2 });
  assert.equal([failed.content, failed.isError], [[{ type: 'text', text: 'No soup here' }], true]);
  const steps: number[] = [];
  const baked = await client.call('bake', { loaves: 2 }, { onProgress: ({ progress }) => void steps.push(progress) });
  assert.equal([baked.content, steps], [[{ type: 'text', text: 'Baked 2' }], [1, 2]]);
  assert.equal((await client.call('order', { item: 'cake' })).content, [{ type: 'text', text: '3 of cake' }]);
  const [read] = (await client.read('bakery://cake')).contents;
  assert.equal([read?.uri, read?.mimeType, Object(read).text], ['bakery://cake', 'text/plain', '12']);
  assert.equal((await client.prompt('praise', { item: 'cake' })).messages, [
    { role: 'user', content: { type: 'text', text: 'Praise the cake' } },
  ]);
}

/** The code of the error response of a call, or `isError` for a result that the model reads. */
async function outcome(client: Client, name: string, args: Readonly<Record<string, JsonValue>>): Promise<unknown> {
  try {
    const result = await client.request('tools/call', { name, arguments: args });
    return Object(result).isError === true ? 'isError' : 'a result';
  } catch (error) {
    if (error instanceof ErrorResponse) return error.code;
    throw error;
  }
}
