/** What a machine does that ends the whole process: it is counted over the lives of the process, and not done a third time. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../src/protocol/json.ts';
import { META } from '../../src/protocol/meta.ts';
import { textOf } from '../asking/support.ts';
import { suite, timeLimit } from '../harness/door.ts';

timeLimit(60_000);
const test = suite('deadly events');
const FIXTURE = fileURLToPath(new URL('../fixtures/durable/bomb.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'troupe-deadly-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** One life of the server. */
class Life {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: AsyncIterator<string>;
  readonly ended: Promise<unknown>;
  #sent = 0;
  /** What it has said on stderr. */
  told = '';

  constructor(file: string) {
    this.#child = spawn(process.execPath, [FIXTURE, file], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.told += text;
    });
    this.#child.stdin.on('error', () => {});
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.ended = once(this.#child, 'close').then(([code, signal]) => code ?? signal);
  }

  /** @returns the result, or the error */
  async call(name: string, args: JsonObject): Promise<JsonObject> {
    this.#sent += 1;
    const _meta = {
      [META.protocolVersion]: '2026-07-28',
      [META.clientInfo]: { name: 'deadly', version: '1.0.0' },
      [META.clientCapabilities]: {},
    };
    const params = { name, arguments: args, _meta };
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: this.#sent, method: 'tools/call', params })}\n`);
    const { value } = await this.#lines.next();
    const answer: unknown = JSON.parse(String(value));
    const said = isObject(answer) && answer.id === this.#sent ? (answer.result ?? answer.error) : undefined;
    if (isObject(said)) return said as JsonObject;
    throw new Error(`expected the result of ${name}, got ${String(value)}`);
  }

  async stop(): Promise<void> {
    this.#child.stdin.end();
    await this.ended;
  }
}

async function made(life: Life, input: JsonObject): Promise<string> {
  const { structuredContent } = await life.call('bomb_create', input);
  const handle = isObject(structuredContent) ? structuredContent.handle : undefined;
  if (typeof handle !== 'string') throw new Error(`expected a handle, got ${JSON.stringify(structuredContent)}`);
  return handle;
}

test('R-15: an event that ends the whole process is set aside when it comes the third time; the rest go on', async () => {
  const file = join(folder, 'event.db');
  let life = new Life(file);
  const handle = await made(life, {});
  await life.call('bomb_count', { handle, by: 1 });
  const deadly = { handle, how: 'abort', n: 1 };
  for (let times = 1; times <= 2; times += 1) {
    const call = life.call('bomb_blow', deadly).catch(() => 'nobody answers');
    assert.is(await life.ended, 'SIGABRT');
    assert.is(await call, 'nobody answers');
    life = new Life(file);
    await life.call('bomb_count', { handle, by: 1 });
  }
  assert.match(life.told, /ended in the middle of event "blow" of handle\/bomb\/.{6}: 2 times so far/);
  assert.not.match(life.told, handle);
  const refused = await life.call('bomb_blow', deadly);
  assert.is(refused.code, -32603);
  assert.match(String(refused.message), /"blow" crashed this instance 2 times and was set aside/);
  assert.match(textOf(await life.call('letters', {})), /it has ended the whole process 2 times/);
  const { structuredContent } = await life.call('bomb_count', { handle, by: 1 });
  assert.equal(isObject(structuredContent) ? structuredContent.view : undefined, { count: 4 });
  // Another of its kind is another.
  const other = life.call('bomb_blow', { handle, how: 'exit', n: 2 }).catch(() => 'nobody answers');
  assert.is(await life.ended, 3);
  await other;
});

test('R-15: a timer that blocks the process until it is ended is tried twice; then its instance is set aside', async () => {
  const file = join(folder, 'timer.db');
  let life = new Life(file);
  const good = await made(life, {});
  const handle = await made(life, { fuse: 300 });
  assert.is(await life.ended, 'SIGKILL');
  assert.match(life.told, /has been blocked for \d+ ms by handle\/bomb\/.{6}\b/);
  // It is late, and so it is due at once.
  life = new Life(file);
  assert.is(await life.ended, 'SIGKILL');
  life = new Life(file);
  const looked = await life.call('bomb_get', { handle });
  assert.match(JSON.stringify(looked), /crashed 2 times in a row and was set aside/);
  const { structuredContent } = await life.call('bomb_count', { handle: good, by: 1 });
  assert.equal(isObject(structuredContent) ? structuredContent.view : undefined, { count: 1 });
  await life.stop();
});
