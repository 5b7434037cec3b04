/** What a machine does that ends the whole process: it is counted over the lives of the process, and not done a third time. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { type Databases, postgresSuite, sharedPostgres } from '../../harness/postgres.ts';
import { textOf } from '../../harness/results.ts';
import { atScale, SCALE } from '../../harness/scale.ts';

fullOnly('ends processes; the quick tests of nodes are outages.test.ts and continuity.test.ts');

const test = suite('deadly events');
const FIXTURE = fileURLToPath(new URL('../../fixtures/durable/bomb.mjs', import.meta.url));
const COMMAND = fileURLToPath(new URL('../../../dist/lib/cli/main.js', import.meta.url));
/** The watchdog does not end a process within this time: only the test does. */
const LONG_MS = '600000';
/** The watchdog ends a blocked process after this time. A busy machine needs less to start one: loading its modules blocks it, too. */
const SHORT_MS = '15000';
const folder = mkdtempSync(join(tmpdir(), 'troupe-deadly-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** One life of the server. */
class Life {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: AsyncIterator<string>;
  readonly ended: Promise<unknown>;
  #sent = 0;
  #wake: (() => void)[] = [];
  /** What it has said on stderr. */
  told = '';

  constructor(file: string, hardMs = LONG_MS, command: readonly string[] = [FIXTURE]) {
    this.#child = spawn(process.execPath, [...command, file, hardMs], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.told += text;
      for (const wake of this.#wake.splice(0)) wake();
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

  /** Resolves once stderr has this text, so many times. */
  async said(text: string, times = 1): Promise<void> {
    while (this.told.split(text).length <= times) await new Promise<void>((resolve) => void this.#wake.push(resolve));
  }

  /** What operators do to a server that seems to hang. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  async stop(): Promise<void> {
    this.#child.stdin.end();
    await this.ended;
  }
}

async function made(life: Life): Promise<string> {
  const { structuredContent } = await life.call('bomb_create', {});
  const handle = isObject(structuredContent) ? structuredContent.handle : undefined;
  if (typeof handle !== 'string') throw new Error(`expected a handle, got ${JSON.stringify(structuredContent)}`);
  return handle;
}

/** @param file or the URL of a database */
async function setsEventAside(file: string): Promise<void> {
  let life = new Life(file);
  const handle = await made(life);
  await life.call('bomb_count', { handle, by: 1 });
  const deadly = { handle, how: 'exit', n: 1 };
  for (let times = 1; times <= 2; times += 1) {
    const call = life.call('bomb_blow', deadly).catch(() => 'nobody answers');
    assert.is(await life.ended, 3);
    assert.is(await call, 'nobody answers');
    life = new Life(file);
    await life.call('bomb_count', { handle, by: 1 });
  }
  // The answer of a call and the log come on two pipes.
  await life.said('(2 times so far');
  assert.match(life.told, /died while it processed event "blow" of handle\/bomb\/.{6} \(2 times so far/);
  assert.not.match(life.told, handle);
  const refused = await life.call('bomb_blow', deadly);
  assert.is(refused.code, -32603);
  assert.match(String(refused.message), /"blow" crashed this instance 2 times and was quarantined/);
  assert.match(textOf(await life.call('letters', {})), /it crashed the whole process 2 times/);
  const { structuredContent } = await life.call('bomb_count', { handle, by: 1 });
  assert.equal(isObject(structuredContent) ? structuredContent.view : undefined, { count: 4 });
  // Another of its kind is another.
  const other = life.call('bomb_blow', { handle, how: 'abort', n: 2 }).catch(() => 'nobody answers');
  assert.is(await life.ended, 'SIGABRT');
  await other;
}

/** @param file or the URL of a database */
async function setsTimerAside(file: string): Promise<void> {
  let life = new Life(file);
  const good = await made(life);
  const handle = await made(life);
  await life.stop();
  life = new Life(file, SHORT_MS);
  const lit = life.call('bomb_light', { handle }).catch(() => 'nobody answers');
  assert.is(await life.ended, 'SIGKILL');
  await lit;
  assert.match(life.told, /has been blocked for \d+ ms by handle\/bomb\/.{6}\b/);
  // It is late, and so it is due at once.
  life = new Life(file, SHORT_MS);
  assert.is(await life.ended, 'SIGKILL');
  life = new Life(file);
  const looked = await life.call('bomb_get', { handle });
  assert.match(JSON.stringify(looked), /crashed 2 times in a row and was quarantined/);
  const { structuredContent } = await life.call('bomb_count', { handle: good, by: 1 });
  assert.equal(isObject(structuredContent) ? structuredContent.view : undefined, { count: 1 });
  await life.stop();
}

test('R-15: an event that ends the whole process is quarantined when it comes the third time; the rest go on', () =>
  setsEventAside(join(folder, 'event.db')));

test('R-15: a timer that blocks the process until it is ended is tried twice; then its instance is quarantined', () =>
  setsTimerAside(join(folder, 'timer.db')));

const testDatabase = postgresSuite('deadly events, in PostgreSQL');
let server: Databases | undefined;
const database = async (): Promise<string> => {
  server ??= await sharedPostgres();
  return server.database();
};
testDatabase.after(() => server?.stop());

testDatabase(
  'D-15: an event that ends its process is quarantined when it comes the third time, wherever it comes',
  async () => setsEventAside(await database()),
);

if (SCALE !== 'quick')
  testDatabase(
    'D-15: a timer that blocks its process is tried twice, wherever it falls due; then its instance is quarantined',
    async () => setsTimerAside(await database()),
  );

/** The view of a result. */
function countIn({ structuredContent }: JsonObject): unknown {
  const view = isObject(structuredContent) ? structuredContent.view : undefined;
  return isObject(view) ? view.count : undefined;
}

async function refusalsOf(life: Life): Promise<readonly { element: string; incident: string; attempts: number }[]> {
  return JSON.parse(textOf(await life.call('report', {})));
}

test('R-39: an event during which a server was killed twice is innocent: it runs once the kills stop', async () => {
  const file = join(folder, 'killed.db');
  const until = join(folder, 'killed');
  let life = new Life(file);
  const handle = await made(life);
  // Where the process survives it, what came from outside counts no more: this may go on for ever.
  for (let round = 1; round <= atScale({ quick: 1, full: 1, proof: 2 }); round += 1) {
    for (let kills = 1; kills <= 2; kills += 1) {
      const lost = life.call('bomb_stall', { handle, until }).catch(() => 'nobody answers');
      await life.said('stalls');
      await life.kill();
      await lost;
      life = new Life(file);
    }
    writeFileSync(until, '');
    assert.is(countIn(await life.call('bomb_stall', { handle, until })), round);
    assert.equal(await refusalsOf(life), []);
    rmSync(until);
    await life.stop();
    life = new Life(file);
  }
  await life.stop();
});

test('R-39: an event in the middle of which the process died three times is quarantined, and release lets it be done once', async () => {
  const file = join(folder, 'released.db');
  const until = join(folder, 'released');
  let life = new Life(file);
  const handle = await made(life);
  const event = { handle, until, idempotencyKey: 'the-one-and-only' };
  for (let kills = 1; kills <= 3; kills += 1) {
    const lost = life.call('bomb_stall', event).catch(() => 'nobody answers');
    await life.said('stalls');
    await life.kill();
    await lost;
    life = new Life(file);
  }
  const refused = await life.call('bomb_stall', event);
  assert.match(String(refused.message), /"stall" crashed this instance 3 times and was quarantined/);
  // Again and again: there is one letter.
  assert.is((await life.call('bomb_stall', event)).message, refused.message);
  const letters: { incident: string }[] = JSON.parse(textOf(await life.call('letters', {})));
  assert.is(letters.length, 1);
  const incident = letters[0]?.incident ?? '';
  assert.match(String(refused.message), `(incident ${incident})`);
  await life.stop();
  // What is quarantined stays so over a restart, and so does its release.
  life = new Life(file);
  assert.is((await life.call('bomb_stall', event)).message, refused.message);
  const [known] = await refusalsOf(life);
  assert.match(known?.element ?? '', /^event "stall" of handle\/bomb\/.{6}$/);
  assert.is(known?.incident, incident);
  assert.is(textOf(await life.call('release', { name: incident })), 'true');
  assert.is(textOf(await life.call('release', { name: incident })), 'false');
  assert.equal(await refusalsOf(life), []);
  await life.stop();
  life = new Life(file);
  // Nobody but its client sends it again.
  assert.is(countIn(await life.call('bomb_get', { handle })), 0);
  writeFileSync(until, '');
  assert.is(countIn(await life.call('bomb_stall', event)), 1);
  assert.is(countIn(await life.call('bomb_stall', event)), 1);
  await life.kill();
  life = new Life(file);
  assert.is(countIn(await life.call('bomb_stall', event)), 1);
  await life.stop();
});

test('R-39: an instance that was quarantined for what it did by itself lives again once it is released', async () => {
  const file = join(folder, 'revived.db');
  let life = new Life(file);
  const handle = await made(life);
  await life.stop();
  life = new Life(file, SHORT_MS);
  const lit = life.call('bomb_light', { handle }).catch(() => 'nobody answers');
  assert.is(await life.ended, 'SIGKILL');
  await lit;
  life = new Life(file, SHORT_MS);
  assert.is(await life.ended, 'SIGKILL');
  life = new Life(file, SHORT_MS);
  const said = JSON.stringify(await life.call('bomb_get', { handle }));
  const incident = /\(incident ([^)]+)\)/.exec(said)?.[1] ?? '';
  assert.is(textOf(await life.call('release', { name: incident })), 'true');
  // Its fuse still burns: what was wrong with it is not mended.
  assert.is(await life.ended, 'SIGKILL');
});

if (!existsSync(COMMAND)) test.skip('under a supervisor', 'dist is not built: npm run build');
else
  test('R-39: a supervisor tells who crashed from who was killed: an abort counts in full, a kill does not', async () => {
    const file = join(folder, 'supervised.db');
    const until = join(folder, 'supervised');
    const life = new Life(file, undefined, [COMMAND, 'run', FIXTURE, '--']);
    const handle = await made(life);
    const innocent = { handle, until };
    const deadly = { handle, how: 'abort', n: 1 };
    for (let kills = 1; kills <= 2; kills += 1) {
      const pid = Number(textOf(await life.call('pid', {})));
      const lost = life.call('bomb_stall', innocent);
      await life.said('stalls', kills);
      process.kill(pid, 'SIGKILL');
      assert.match(String((await lost).message), /the server restarted/i);
    }
    writeFileSync(until, '');
    assert.is(countIn(await life.call('bomb_stall', innocent)), 1);
    await life.stop();
    const next = new Life(file, undefined, [COMMAND, 'run', FIXTURE, '--']);
    for (let aborts = 1; aborts <= 2; aborts += 1)
      assert.match(String((await next.call('bomb_blow', deadly)).message), /the server restarted/i);
    assert.match(String((await next.call('bomb_blow', deadly)).message), /"blow" crashed this instance 2 times/);
    assert.is(countIn(await next.call('bomb_get', { handle })), 1);
    await next.stop();
  });
