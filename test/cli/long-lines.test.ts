/**
 * Lines that are too long, through `troupe run` and `troupe attach`: the server's limit holds, in the server's words, and nothing is
 * buffered. The memory is that of a process.
 */
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import type { ServerLink } from '../../src/cli/shim/server-link.ts';
import { Shim } from '../../src/cli/shim/shim.ts';
import { suite } from '../harness/door.ts';
import { atScale, SCALE } from '../harness/scale.ts';
import { Cli, isBuilt } from './cli.ts';

const all = suite('long lines');
function test(
  title: string,
  body: () => Promise<void>,
  add: (title: string, body: () => Promise<void>) => void = all,
): void {
  if (!isBuilt) all.skip(title, 'dist is not built: npm run build');
  else if (!existsSync('/proc/self/status'))
    all.skip(title, 'this system does not show the memory of a process as a file');
  else add(title, body);
}

const SERVER = fileURLToPath(new URL('../fixtures/supervised/server.mjs', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'troupe-long-lines-'));
all.after(() => rmSync(root, { recursive: true, force: true }));

const BOTH = ['run', 'attach'] as const;
const MB = 1_048_576;
const LONG = atScale({ quick: 64, full: 200, proof: 200 }) * MB;
const LIMIT = 2 * MB;
/** The most memory for a long line: less than half of it. */
const MOST = 0.48 * LONG;

/** The most memory that a process has had, in bytes. */
function peakOf(pid: number | undefined): number {
  const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1_024;
}

/** Sends one line of so many bytes, as fast as it is taken. @returns the error that comes, as text */
async function sendLong(cli: Cli, bytes: number): Promise<string> {
  const input = cli.process.stdin;
  assert.ok(input);
  const head = '{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"x":"';
  const piece = Buffer.alloc(MB, 'x');
  input.write(head);
  for (let left = bytes - head.length - 3; left > 0; left -= piece.length)
    if (!input.write(piece.subarray(0, Math.min(left, piece.length)))) await once(input, 'drain');
  input.write('"}}\n');
  await cli.until(() => cli.messages.some(({ error }) => error !== undefined), 'the error');
  return cli.lines.find((line) => line.includes('"error"')) ?? '';
}

function commandOf(kind: 'run' | 'attach' | 'direct'): readonly string[] {
  const folder = mkdtempSync(join(root, 'agent-'));
  const rest = ['--', folder, String(LIMIT)];
  if (kind === 'attach') return ['attach', '--spawn', SERVER, join(folder, 's'), '--idle-exit', '2000', ...rest];
  return ['run', ...(kind === 'direct' ? ['--no-supervisor'] : []), SERVER, ...rest];
}

test(`R-34: a line of ${LONG / MB} MB is rejected in the words of the server and in little memory, and the next line is served`, async () => {
  const direct = new Cli(commandOf('direct'));
  await direct.initialize();
  const expected = (await sendLong(direct, 2 * LIMIT)).replace(String(2 * LIMIT), String(LONG));
  await direct.end();
  assert.match(expected, `${LONG} bytes is longer than ${LIMIT}`);
  for (const kind of atScale<readonly ('run' | 'attach')[]>({ quick: ['run'], full: BOTH, proof: BOTH })) {
    const cli = new Cli(commandOf(kind));
    await cli.initialize();
    const before = peakOf(cli.process.pid);
    assert.is(await sendLong(cli, LONG), expected);
    const more = peakOf(cli.process.pid) - before;
    assert.is(await cli.call('echo', { text: 'next' }), 'next');
    assert.is(await cli.end(), 0);
    process.stdout.write(
      `\n    ${kind}: ${(before / MB).toFixed(0)} MB, and ${(more / MB).toFixed(0)} MB more at most`,
    );
    assert.ok(more < MOST, `${kind}: ${more} bytes more`);
  }
});

test(
  'R-34: a line that is too long is rejected, also if it comes before the server has reported its limit',
  async () => {
    for (const kind of atScale<readonly ('run' | 'attach')[]>({ quick: ['attach'], full: BOTH, proof: BOTH })) {
      const cli = new Cli(commandOf(kind));
      const error = await sendLong(cli, 32 * MB);
      assert.match(error, `${32 * MB} bytes is longer than ${LIMIT}`);
      assert.ok(peakOf(cli.process.pid) < 160 * MB);
      await cli.initialize();
      assert.is(await cli.call('echo', { text: 'next' }), 'next');
      assert.is(await cli.end(), 0);
    }
  },
  all.full,
);

test('R-34: a line of the server that is too long is dropped, and its request gets an error', async () => {
  const limit = atScale({ quick: 1, full: 64, proof: 64 }) * MB;
  const [input, output, fromServer, toServer] = Array.from({ length: 4 }, () => new PassThrough());
  assert.ok(input && output && fromServer && toServer);
  let over = (): void => {};
  const link: ServerLink = {
    input: fromServer,
    output: toServer,
    closed: new Promise((resolve) => {
      over = resolve;
    }),
    durable: false,
    drain() {},
    destroy() {},
  };
  const said: string[] = [];
  const shim = new Shim({
    input,
    output,
    dial: () => Promise.resolve(link),
    retryPolicy: { failed: () => Promise.resolve(), lost: () => Promise.resolve(), deadline: () => () => {} },
    say: (line) => void said.push(line),
    ...(SCALE === 'quick' ? { maxLineBytes: limit } : {}),
  });
  const ran = shim.run();
  input.write('{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n{"jsonrpc":"2.0","id":2,"method":"tools/call"}\n');
  toServer.resume();
  const heard: string[] = [];
  output.setEncoding('utf8').on('data', (text: string) => void heard.push(...text.trim().split('\n')));
  fromServer.write('{"jsonrpc":"2.0","id":1,"result":{"x":"');
  const piece = Buffer.alloc(MB, 'x');
  for (let count = 0; count <= limit / MB; count += 1) if (!fromServer.write(piece)) await once(fromServer, 'drain');
  fromServer.write('"}}\n{"jsonrpc":"2.0","id":2,"result":{}}\n');
  while (heard.length < 2) await once(output, 'data');
  const [first, second] = heard.map((line) => JSON.parse(line));
  assert.is(first.id, 1);
  const { length } = `{"jsonrpc":"2.0","id":1,"result":{"x":""}}`;
  assert.match(first.error.message, `${limit + MB + length} bytes long, and the limit is ${limit}`);
  assert.equal(second, { jsonrpc: '2.0', id: 2, result: {} });
  assert.match(said.join(), 'dropped a line from the server');
  // Both are answered: nothing is answered again when the server has gone.
  input.end();
  await once(toServer, 'end');
  over();
  await ran;
  assert.is(heard.length, 2);
});
