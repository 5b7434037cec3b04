/** The limits and the deadline of a mount, as its callers and its upstream notice them. */
import { createServer, ErrorCode, type Mount, type MountOptions, type Server } from 'troupe';
import { type Client, connect as connectClient, ErrorResponse } from 'troupe/client';
import { connect, SimulatedClock, settled, type TestClient } from 'troupe/testing';
import * as assert from 'uvu/assert';
import type { CallToolResult } from '../../../src/core/protocol/types.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { untilPassed } from '../../harness/wait.ts';
import { type Era, speakLegacy } from './asking-server.ts';

const test = suite('limits of a mount');
const DAY_MS = 86_400_000;

interface Stage {
  readonly clock: SimulatedClock;
  readonly host: Server;
  readonly upstream: Server;
  /** The names of the callers whose calls the upstream runs now. */
  readonly running: string[];
  /** Ends the call of the longest wait. */
  readonly end: (() => void)[];
  readonly mount: Mount;
  /** Waits for work of the mount. */
  settle(work: Promise<void>): Promise<void>;
  close(...clients: { close(): Promise<unknown> }[]): Promise<void>;
}

async function stage(
  options: MountOptions,
  era: Era = 'modern',
  prepare: (upstream: Server) => void = () => {},
): Promise<Stage> {
  const clock = new SimulatedClock();
  const upstream = createServer({ name: 'shop', version: '1.0.0', clock, log() {} });
  if (era === 'legacy') speakLegacy(upstream);
  const running: string[] = [];
  const end: (() => void)[] = [];
  upstream.tool('price', () => '3');
  upstream.tool(
    'order',
    { input: { type: 'object', properties: { by: { type: 'string' } }, required: ['by'] } },
    ({ by }) =>
      new Promise<string>((resolve) => {
        running.push(by);
        end.push(() => {
          running.splice(running.indexOf(by), 1);
          resolve(`ordered by ${by}`);
        });
      }),
  );
  prepare(upstream);
  const host = createServer({ name: 'host', version: '1.0.0', clock, log() {} });
  const mount = await host.mount('shop', upstream, options);
  return {
    ...{ clock, host, upstream, mount, running, end },
    async settle(work) {
      await clock.advance(1_000);
      await work;
    },
    async close(...clients) {
      for (const each of [...clients, host, upstream]) {
        const closed = each.close();
        await clock.advance(60_000);
        await closed;
      }
    },
  };
}

const as = (host: Server, principal: string): Promise<TestClient> => connect(host, { auth: { principal } });
const order = (client: TestClient, by: string): Promise<CallToolResult> => client.call('shop_order', { by });
for (const era of ['legacy', 'modern'] as const)
  test(`S-77 limits.concurrent lets one call of each principal reach a ${era} upstream, also across a listing`, async () => {
    const { clock, host, upstream, mount, running, end, settle, close } = await stage(
      { limits: { concurrent: 1 } },
      era,
    );
    const [ada, bob] = [await as(host, 'ada'), await as(host, 'bob')];
    const first = order(ada, 'ada 1');
    await untilPassed(clock, () => running.length === 1, 1);
    upstream.tool('new', () => 'new');
    await settle(mount.refresh());
    const second = order(ada, 'ada 2');
    const other = order(bob, 'bob 1');
    await untilPassed(clock, () => running.length === 2, 1);
    // The second call of ada would have arrived by now.
    await clock.advance(1_000);
    assert.equal(running, ['ada 1', 'bob 1']);
    // Another tool has a limit of its own.
    assert.is(textOf(await ada.call('shop_price', {})), '3');
    end.shift()?.();
    assert.is(textOf(await first), 'ordered by ada 1');
    await untilPassed(clock, () => running.includes('ada 2'), 1);
    for (const each of end.splice(0)) each();
    assert.equal([textOf(await second), textOf(await other)], ['ordered by ada 2', 'ordered by bob 1']);
    await close(ada, bob);
  });

for (const [option, words, pauseMs] of [
  ['perDay', 'at most 2 a day', DAY_MS],
  ['perMinute', 'at most 2 a minute', 60_000],
] as const)
  test(`S-77 limits.${option} counts the calls of a principal over listings and changes of other options`, async () => {
    const { clock, host, upstream, mount, settle, close } = await stage({ limits: { [option]: 2 } });
    const [ada, bob] = [await as(host, 'ada'), await as(host, 'bob')];
    const price = async (client: TestClient): Promise<string> => textOf(await client.call('shop_price', {}));
    assert.is(await price(ada), '3');
    upstream.tools.update({ name: 'price', description: 'In pounds.', handler: () => '4' });
    await settle(mount.refresh());
    assert.is(await price(ada), '4');
    await settle(mount.change({ options: { limits: { [option]: 2 }, timeoutMs: 9_000 } }));
    assert.match(await price(ada), `Tool "shop_price" is limited: ${words}`);
    assert.is(await price(bob), '4');
    await clock.advance(pauseMs);
    assert.is(await price(ada), '4');
    await close(ada, bob);
  });

for (const era of ['legacy', 'modern'] as const)
  test(`timeoutMs ends a call, a read, a prompt and a completion, and cancels each at a ${era} upstream`, async () => {
    const cancelled: string[] = [];
    const hang = (what: string, signal: AbortSignal): Promise<never> =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          cancelled.push(what);
          reject(signal.reason);
        });
      });
    const { clock, host, close } = await stage({ timeoutMs: 5_000 }, era, (upstream) => {
      upstream.tool('hang', {}, (_args, ctx) => hang('tool', ctx.signal));
      upstream.resource('shop://hang', {}, (_, ctx) => hang('resource', ctx.signal));
      upstream.prompt(
        'hang',
        { arguments: [{ name: 'a' }], complete: { a: (_value, _chosen, ctx) => hang('completion', ctx.signal) } },
        (_, ctx) => hang('prompt', ctx.signal),
      );
    });
    const client: Client = await connectClient(host, { clock, log() {} });
    for (const [what, begin] of [
      ['tool', () => client.call('shop_hang', {}, { timeoutMs: 600_000 })],
      ['resource', () => client.read('shop+shop://hang', { timeoutMs: 600_000 })],
      ['prompt', () => client.prompt('shop_hang', {}, { timeoutMs: 600_000 })],
      [
        'completion',
        () => client.complete({ prompt: 'shop_hang' }, { name: 'a', value: '' }, {}, { timeoutMs: 600_000 }),
      ],
    ] as const) {
      let code: unknown;
      begin().then(
        () => {
          code = 'no error';
        },
        (error: unknown) => {
          code = error instanceof ErrorResponse && error.code === ErrorCode.TimedOut ? error.code : error;
        },
      );
      await settled();
      await clock.advance(4_000);
      assert.is(code, undefined, what);
      await clock.advance(2_000);
      assert.is(code, ErrorCode.TimedOut, what);
      assert.is(cancelled.at(-1), what);
    }
    await close(client);
  });
