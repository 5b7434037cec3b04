/** Cancellation against everything else that can happen to a request, in every order: never two answers, never one for what was cancelled. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { memory } from '../../../src/core/transports/memory.ts';
import { type Context, createServer, ErrorCode } from '../../../src/index.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { timedServer } from '../../harness/memory.ts';
import { errorResponse } from '../../harness/results.ts';
import { random } from '../../harness/scale.ts';
import { busy, Conversation } from '../fuzz/conversation.ts';
import { opening, SELF } from '../fuzz/messages.ts';
import { client } from './support.ts';

const RUNS = random(250);
const TIMEOUT_MS = 100;
const seed = Number(process.env.TROUPE_FUZZ_SEED ?? 20_261_121);

const test = suite('cancellation');

const HOW = ['at once', 'soon', 'held', 'heedless', 'cancels itself', 'cancels itself later'] as const;
const IDS = [1, 2, 'a'] as const;
type Id = (typeof IDS)[number];

type Step =
  | { readonly does: 'call'; readonly id: Id; readonly how: (typeof HOW)[number]; readonly batched: boolean }
  | { readonly does: 'cancel'; readonly id: Id }
  | { readonly does: 'end' | 'fail' | 'report'; readonly nth: number }
  | { readonly does: 'tick' | 'turn' }
  | { readonly does: 'wait'; readonly ms: number };

const id = fc.constantFrom(...IDS);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant('call' as const),
      id,
      how: fc.constantFrom(...HOW),
      batched: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('cancel' as const), id }) },
  { weight: 5, arbitrary: fc.record({ does: fc.constantFrom('end', 'fail', 'report'), nth: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constantFrom('tick', 'turn') }) },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('wait' as const), ms: fc.constantFrom(1, TIMEOUT_MS / 2, TIMEOUT_MS) }),
  },
);

/** A call that runs, and the means to end it. */
interface Held {
  readonly ctx: Context;
  end(): void;
  fail(): void;
}

/** A server and one client of it, for one run. */
class Scene {
  readonly clock = new SimulatedClock();
  readonly #server = createServer({
    name: 'x',
    version: '1',
    clock: this.clock,
    limits: { timeoutMs: TIMEOUT_MS },
    log: (_, message) => void this.logged.push(message),
  });
  readonly logged: string[] = [];
  readonly #held: Held[] = [];
  #conversation: Conversation | undefined;

  async open(session: '2025-03-26' | '2025-06-18' | undefined): Promise<Conversation> {
    this.#server.tool('run', {}, (args, ctx) => this.#run(String(args.how), ctx));
    const { transport, connect: enter } = memory();
    await this.#server.listen(transport);
    const conversation = new Conversation(enter());
    this.#conversation = conversation;
    if (session) {
      conversation.send(JSON.stringify({ jsonrpc: '2.0', id: 'open', method: 'initialize', params: opening(session) }));
    }
    return conversation;
  }

  cancel(requestId: unknown): void {
    this.#conversation?.send(
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }),
    );
  }

  /** One of the calls that run, if any does. */
  held(nth: number): Held | undefined {
    return this.#held[nth % this.#held.length];
  }

  async close(): Promise<void> {
    for (const { end } of this.#held) end();
    await settled();
    assert.equal(busy(this.#server), []);
    await this.#server.close();
  }

  #run(how: string, ctx: Context): unknown {
    switch (how) {
      case 'at once':
        return 'done';
      case 'soon':
        return (async () => 'done')();
      case 'cancels itself':
        this.cancel(ctx.requestId);
        ctx.progress(1);
        return 'said by nobody';
      case 'cancels itself later':
        return (async () => {
          await undefined;
          this.cancel(ctx.requestId);
          return 'said by nobody';
        })();
      default:
        return new Promise((resolve, reject) => {
          const fail = (): void => reject(new Error('failed'));
          this.#held.push({ ctx, end: () => resolve('done'), fail });
          if (how === 'held') ctx.signal.addEventListener('abort', fail);
        });
    }
  }
}

async function play(session: '2025-03-26' | '2025-06-18' | undefined, steps: readonly Step[]): Promise<void> {
  const scene = new Scene();
  const conversation = await scene.open(session);
  let reported = 0;
  let twins = 0;
  for (const each of steps) {
    switch (each.does) {
      case 'call': {
        const meta = { ...(session ? {} : SELF), progressToken: each.id };
        const params = { name: 'run', arguments: { how: each.how }, _meta: meta };
        const call = { jsonrpc: '2.0', id: each.id, method: 'tools/call', params };
        const batch = each.batched && session === '2025-03-26';
        twins += 1;
        conversation.send(JSON.stringify(batch ? [call, { ...call, id: `twin ${twins}` }] : call));
        break;
      }
      case 'cancel':
        scene.cancel(each.id);
        break;
      case 'end':
        scene.held(each.nth)?.end();
        break;
      case 'fail':
        scene.held(each.nth)?.fail();
        break;
      case 'report': {
        reported += 1;
        const { ctx } = scene.held(each.nth) ?? {};
        const before = conversation.got.length;
        ctx?.progress(reported);
        if (conversation.got.length > before && !conversation.model.awaits(ctx?.requestId))
          throw new Error(`progress for ${ctx?.requestId}, which is answered or cancelled`);
        break;
      }
      case 'tick':
        await undefined;
        break;
      case 'turn':
        await settled();
        break;
      case 'wait':
        await scene.clock.advance(each.ms);
    }
    conversation.look();
  }
  await scene.close();
  conversation.look();
  conversation.model.finished();
  // A handler that fails is logged.
  assert.equal(
    scene.logged.filter((line) => !/^incident \S+ in tool "[^"]*": Error: failed/.test(line)),
    [],
  );
}

for (const session of [undefined, '2025-06-18', '2025-03-26'] as const) {
  test(`in every order of calls, cancels, ends and deadlines each request is answered once, or was cancelled (${session ?? 'modern'})`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => play(session, steps)),
      { seed, numRuns: RUNS, includeErrorInReport: true },
    );
  });
}

for (const revision of ['2025-06-18', undefined]) {
  const era = revision ?? 'modern';
  const asked = (name: string) => (revision ? { name } : { name, _meta: SELF });

  test(`a cancel aborts the signal with the client's reason, frees the place, and nothing more is sent (${era})`, async () => {
    const { server } = timedServer({ limits: { maxInFlight: 1 } });
    const reasons: unknown[] = [];
    server.tool('wait', {}, async (_, ctx) => {
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      reasons.push(ctx.signal.reason);
      ctx.log.error('too late');
      return 'too late';
    });
    server.tool('good', {}, () => 'good');
    const caller = await client(server, revision);
    caller.raw(JSON.stringify({ jsonrpc: '2.0', id: 'w', method: 'tools/call', params: asked('wait') }));
    await settled();
    assert.is((await errorResponse(caller.send('tools/call', asked('good')))).code, ErrorCode.Overloaded);
    const before = caller.messages.length;
    caller.notify('notifications/cancelled', { requestId: 'w', reason: 'no longer needed' });
    await settled();
    assert.is(caller.messages.length, before + 1);
    assert.equal((await caller.send('tools/call', asked('good'))).content, [{ type: 'text', text: 'good' }]);
    assert.equal(reasons.map(String), ['AbortError: no longer needed']);
    assert.equal(caller.rest(), []);
    await caller.close();
  });

  test(`a tool that cancels itself gets no answer, and the next call does (${era})`, async () => {
    const { server } = timedServer();
    const aborted: boolean[] = [];
    for (const name of ['sync', 'async'])
      server.tool(name, {}, (_, ctx) => {
        const cancel = (): string => {
          caller.notify('notifications/cancelled', { requestId: ctx.requestId });
          aborted.push(ctx.signal.aborted);
          return 'said by nobody';
        };
        return name === 'sync' ? cancel() : Promise.resolve().then(cancel);
      });
    server.tool('good', {}, () => 'good');
    const caller = await connect(server);
    if (revision) await caller.initialize(revision);
    for (const name of ['sync', 'async']) {
      caller.raw(JSON.stringify({ jsonrpc: '2.0', id: name, method: 'tools/call', params: asked(name) }));
      await settled();
    }
    assert.equal(caller.rest(), []);
    assert.equal(aborted, [true, true]);
    assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
    await caller.close();
  });
}

test('a cancel for what is unknown, answered, or no id at all is ignored', async () => {
  const { server, logged } = timedServer();
  server.tool('good', {}, () => 'good');
  const caller = await client(server, '2025-06-18');
  await caller.call('good');
  for (const requestId of [1, 2, 'nobody', null, {}, 1.5, undefined])
    caller.notify('notifications/cancelled', requestId === undefined ? {} : { requestId });
  caller.raw('{"jsonrpc":"2.0","method":"notifications/cancelled"}');
  caller.raw('{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}');
  await settled();
  assert.equal(caller.rest(), []);
  assert.equal(logged, []);
  assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
  await caller.close();
});
