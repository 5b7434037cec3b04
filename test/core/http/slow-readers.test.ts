/** who reads slowly, or nothing, costs a bounded part of the memory, and nobody else anything. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { META } from '../../../src/core/protocol/meta.ts';
import type { Context, Server } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { times } from '../../harness/scale.ts';
import { answered, call, modern } from './modern.ts';
import { Raw, rawRequest } from './raw.ts';
import { pings, serving } from './session.ts';
import { openSession, type Session, type Stage } from './support.ts';

const test = suite('slow readers');

const STALL_MS = 30_000;
const MiB = 2 ** 20;
/** What one client that reads nothing may cost. */
const EACH = 2 * MiB;
const SLACK = 24 * MiB;

setFlagsFromString('--expose-gc');
const collect: unknown = runInNewContext('gc');

/** Bytes that this process holds, the buffers of sockets included. */
function held(): number {
  for (let round = 0; round < 3 && typeof collect === 'function'; round += 1) Reflect.apply(collect, undefined, []);
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A call of `flood`. */
interface Flood {
  readonly ctx: Context;
  /** Resolves once it has said everything; it runs on until {@link end}. */
  readonly said: Promise<void>;
  end(): void;
}

/** Tools that say much, and let others run now and then: `flood {lines, size}` logs, `race {to, every}` reports progress. */
function define(server: Server, floods: Flood[] = []): void {
  const input = z.object({ lines: z.number(), size: z.number() });
  server.tool('flood', { input, timeoutMs: 600_000 }, ({ lines, size }, ctx) => {
    const text = 'x'.repeat(size);
    const say = async (): Promise<void> => {
      for (let line = 1; line <= lines; line += 1) {
        ctx.log.info(text);
        if (line % 20 === 0) await turn();
      }
    };
    const said = say();
    return new Promise<string>((resolve) => floods.push({ ctx, said, end: () => resolve('flooded') }));
  });
  const race = z.object({ to: z.number(), every: z.number() });
  server.tool('race', { input: race, timeoutMs: 600_000 }, async ({ to, every }, ctx) => {
    for (let done = 1; done <= to; done += 1) {
      ctx.progress(done, to);
      if (done % every === 0) await turn();
    }
    return `raced to ${to}`;
  });
}

function rawCall(name: string, args: object, session?: Session): string {
  const meta = { progressToken: 'r', [META.logLevel]: 'info' };
  const params = { name, arguments: args };
  const request = modern('tools/call', { params, meta });
  const body = session ? { jsonrpc: '2.0', id: 1, method: 'tools/call', params } : request.body;
  const lines = Object.entries(session?.headers ?? request.headers ?? {});
  const common = ['Host: localhost', 'Content-Type: application/json', 'Accept: application/json, text/event-stream'];
  return rawRequest(
    'POST',
    '/mcp',
    [...common, ...lines.map(([header, value]) => `${header}: ${String(value)}`)],
    JSON.stringify(body),
  );
}

/** A client that sends a request, and reads nothing. */
async function deaf(stage: Stage, request: string): Promise<Raw> {
  const raw = await Raw.open(stage.url);
  raw.socket.pause();
  raw.keep = 1_000;
  raw.write(request);
  return raw;
}

/** Calls of another client until `done`: how long the slowest took, in milliseconds. */
async function slowestUntil(stage: Stage, done: Promise<unknown>): Promise<number> {
  let going = true;
  const stop = done.then(() => {
    going = false;
  });
  let slowest = 0;
  while (going) {
    const started = performance.now();
    await answered(await call(stage.url, 'echo', { text: 'x' }));
    slowest = Math.max(slowest, performance.now() - started);
  }
  await stop;
  return slowest;
}

/** Resolves once so many floods have begun. */
async function begun(stage: Stage, floods: readonly Flood[], count: number): Promise<void> {
  while (floods.length < count) await answered(await call(stage.url, 'echo', { text: 'x' }));
}

test('R-08: clients that never read cost bounded memory, are dropped with a reason, and delay no other client', () => {
  const CLIENTS = times(20, { quick: 2 });
  const floods: Flood[] = [];
  return serving(
    async (stage) => {
      await answered(await call(stage.url, 'echo', { text: 'warm' }));
      const before = held();
      // 32 MiB for each: more than two sockets buffer.
      const flood = rawCall('flood', { lines: 2_000, size: 16_384 });
      const clients = await Promise.all(Array.from({ length: CLIENTS }, () => deaf(stage, flood)));
      await begun(stage, floods, CLIENTS);
      const slowest = await slowestUntil(stage, Promise.all(floods.map(({ said }) => said)));
      const most = held() - before;
      process.stdout.write(
        `${CLIENTS} deaf clients: ${(most / MiB).toFixed(1)} MiB more, slowest call of another ${slowest.toFixed(0)} ms\n`,
      );
      assert.ok(most <= CLIENTS * EACH + SLACK, `${most} bytes more`);
      assertFigure(slowest, 1_500, 'the slowest call of another client');
      await stage.clock.advance(2 * STALL_MS);
      for (const client of clients) {
        client.socket.resume();
        await client.closed();
      }
      for (const { ctx, end } of floods) {
        assert.is(ctx.signal.aborted, true);
        end();
      }
      assert.ok(
        stage.told.some((line) => line.includes('stallMs')),
        `the log has no reason: ${stage.told.join('; ')}`,
      );
      await answered(await call(stage.url, 'echo', { text: 'well' }));
      const after = held() - before;
      assert.ok(after <= SLACK, `${after} bytes more when they are gone`);
    },
    { stallMs: STALL_MS },
    (server) => define(server, floods),
  );
});

test('R-08: a session and its calls continue when its client reads nothing and is dropped', () => {
  const floods: Flood[] = [];
  return serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const raw = await deaf(stage, rawCall('flood', { lines: 1_000, size: 16_384 }, session));
      await begun(stage, floods, 1);
      const [flood] = floods;
      await flood?.said;
      await stage.clock.advance(2 * STALL_MS);
      raw.socket.resume();
      await raw.closed();
      assert.is(flood?.ctx.signal.aborted, false);
      assert.is(await pings(session), 200);
      flood?.end();
    },
    { stallMs: STALL_MS },
    (server) => define(server, floods),
  );
});

test('R-08: a client that does not read one big JSON body is dropped, too, and its exchange is free again', () =>
  serving(
    async (stage) => {
      const raw = await deaf(stage, rawCall('big', { length: times(48, { quick: 16 }) * MiB }));
      // While the body is on its way, there is room for nobody else.
      const other = async (): Promise<number> => {
        const answer = await call(stage.url, 'echo', { text: 'x' });
        await answer.text();
        return answer.status;
      };
      while ((await other()) === 200);
      await stage.clock.advance(2 * STALL_MS);
      raw.socket.resume();
      await raw.closed();
      assert.is(await other(), 200);
    },
    { stallMs: STALL_MS, maxExchanges: 1 },
    (server) => server.tool('big', { input: z.object({ length: z.number() }) }, ({ length }) => 'x'.repeat(length)),
  ));

const PROGRESS = times(200_000, { quick: 6_000 });

for (const [how, every] of [
  ['lets others run now and then', 500],
  ['never does', 1_000_000],
] as const) {
  test(`R-09: ${PROGRESS} progress notifications of a handler that ${how}: its client gets the last, and the result`, () =>
    serving(
      async (stage) => {
        const delay = monitorEventLoopDelay({ resolution: 5 });
        delay.enable();
        for (let nth = 0; nth < 100; nth += 1) await answered(await call(stage.url, 'echo', { text: 'x' }));
        const idle = delay.percentile(99) / 1e6;
        delay.reset();
        // A connection without a request is closed after some seconds.
        const raw = await Raw.open(stage.url);
        raw.keep = 4_000;
        const before = process.memoryUsage().rss;
        raw.write(rawCall('race', { to: PROGRESS, every }));
        await raw.until('the result', (text) => text.includes(`raced to ${PROGRESS}`));
        delay.disable();
        const rss = process.memoryUsage().rss - before;
        const p99 = delay.percentile(99) / 1e6;
        process.stdout.write(
          `${PROGRESS} notifications, ${(raw.received / MiB).toFixed(1)} MiB sent: loop delay p99 ${p99.toFixed(0)} ms, ${(rss / MiB).toFixed(0)} MiB more\n`,
        );
        const last = raw.text.indexOf(`"progress":${PROGRESS},`);
        assert.ok(last >= 0 && last < raw.text.indexOf(`raced to ${PROGRESS}`));
        assert.ok(rss <= 64 * MiB, `${rss} bytes more`);
        // Beyond what this machine takes from the process while it has next to nothing to do.
        if (every < 1_000) assertFigure(p99, idle + 50, 'the loop delay');
        raw.cut();
      },
      {},
      define,
    ));
}
