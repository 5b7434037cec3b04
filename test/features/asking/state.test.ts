/** The state that a client carries: what it is good for, what it is refused for, and what happens when what waited is gone. */
import * as assert from 'uvu/assert';
import * as z from 'zod';
import { ErrorCode, memory, type ServerOptions } from '../../../src/index.ts';
import { type SimulatedClock, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { accept, Modern, type Stage, stage } from './support.ts';

const test = suite('request state');

const OK = { message: 'Sure?', schema: z.object({ ok: z.boolean() }) };
const YES = { elicit: accept({ ok: true }) };

interface Refunds extends Stage {
  /** What was done, in order. */
  readonly done: string[];
}

/** A tool that does something, asks, does something, asks, and does something. */
function refunds(options: Partial<ServerOptions> = {}, clock?: SimulatedClock, rerun?: boolean): Refunds {
  const staged = stage(options, clock);
  const done: string[] = [];
  staged.server.tool(
    'refund',
    { input: z.object({ order: z.string() }), ...(rerun === undefined ? {} : { rerun }) },
    async ({ order }, ctx) => {
      const amount = await ctx.step('look up', () => {
        done.push(`looked up ${order}`);
        return 42;
      });
      const { first } = await ctx.ask({ first: { elicit: OK } });
      const receipt = await ctx.step('pay', () => {
        done.push(`paid ${amount}`);
        return { id: 'r1' };
      });
      const { second } = await ctx.ask({ second: { elicit: OK } });
      done.push('told');
      return `${receipt.id} ${first.status} ${second.status}`;
    },
  );
  return { ...staged, done };
}

const ORDER = { arguments: { order: 'o1' } };

test('S-12: a state that was changed anywhere is refused, and the question stays open', async () => {
  const { server } = refunds();
  const client = await Modern.of(server);
  const { requestState: state } = await client.ask('refund', ORDER);
  const changed = [
    `${state}-TAMPERED`,
    state.slice(0, -1),
    `${state.slice(0, 40)}${state[40] === 'A' ? 'B' : 'A'}${state.slice(41)}`,
    state.toUpperCase(),
    '',
    'nonsense',
    `${state}${state}`,
  ];
  for (const text of changed) {
    const error = await errorResponse(client.retry('refund', text, { first: accept({ ok: true }) }, ORDER));
    assert.is(error.code, ErrorCode.InvalidParams, text);
    assert.match(error.message, 'requestState');
  }
  await client.ask('refund', { ...ORDER, requestState: state, inputResponses: { first: accept({ ok: true }) } });
  await server.close();
});

test('S-12: a state is good for one tool, its arguments in any order, and nothing else', async () => {
  const { server } = stage();
  for (const name of ['one', 'other'])
    server.tool(
      name,
      { input: z.object({ a: z.number(), b: z.string() }) },
      async (_, ctx) => (await ctx.elicit(OK)).status,
    );
  server.prompt('one', {}, async (_, ctx) => (await ctx.elicit(OK)).status);
  const client = await Modern.of(server);
  const { requestState } = await client.ask('one', { arguments: { a: 1, b: 'x' } });
  const refused = [
    client.retry('other', requestState, YES, { arguments: { a: 1, b: 'x' } }),
    client.retry('one', requestState, YES, { arguments: { a: 2, b: 'x' } }),
    client.retry('one', requestState, YES, { arguments: { a: 1, b: 'x', c: 1 } }),
    client.send({ name: 'one', requestState, inputResponses: YES }, 'prompts/get'),
  ];
  for (const answer of refused) assert.match((await errorResponse(answer)).message, 'does not verify');
  const fine = await client.retry('one', requestState, YES, { arguments: { b: 'x', a: 1 } });
  assert.is(textOf(fine), 'accepted');
  await server.close();
});

test('S-12: another principal cannot go on with a request', async () => {
  const { server } = stage();
  server.tool('ask', {}, async (_, ctx) => `${(await ctx.elicit(OK)).status} ${ctx.principal}`);
  const { transport, connect } = memory();
  await server.listen(transport);
  const [ada, bob] = ['ada', 'bob'].map((principal) => new Modern(new TestClient(connect({ principal }))));
  if (!ada || !bob) throw new Error('two clients were made');
  const { requestState } = await ada.ask('ask');
  assert.match((await errorResponse(bob.retry('ask', requestState, YES))).message, 'does not verify');
  assert.is(textOf(await ada.retry('ask', requestState, YES)), 'accepted ada');
  await server.close();
});

test('a state is taken once: replayed while its handler runs, or after it has ended, it is refused', async () => {
  const { server, done } = refunds();
  const client = await Modern.of(server);
  const first = await client.ask('refund', ORDER);
  const answer = { first: accept({ ok: true }) };
  const [second, replayed] = await Promise.all([
    client.ask('refund', { ...ORDER, requestState: first.requestState, inputResponses: answer }),
    errorResponse(client.retry('refund', first.requestState, answer, ORDER)),
  ]);
  assert.match(replayed.message, 'already answered');
  await client.retry('refund', second.requestState, { second: accept({ ok: true }) }, ORDER);
  for (const state of [first.requestState, second.requestState])
    assert.match((await errorResponse(client.retry('refund', state, answer, ORDER))).message, 'already answered');
  assert.equal(done, ['looked up o1', 'paid 42', 'told']);
  await server.close();
});

test('if the process that asked has ended, the call runs again with its answers and steps, and each step runs once', async () => {
  const before = refunds();
  const client = await Modern.of(before.server);
  const first = await client.ask('refund', ORDER);
  const second = await client.ask('refund', {
    ...ORDER,
    requestState: first.requestState,
    inputResponses: { first: accept({ ok: true }) },
  });
  assert.equal(before.done, ['looked up o1', 'paid 42']);
  await before.server.close();

  const after = refunds();
  const again = await Modern.of(after.server);
  const answer = { second: { action: 'decline' } };
  const result = await again.retry('refund', second.requestState, answer, ORDER);
  assert.is(textOf(result), 'r1 accepted declined');
  assert.equal(after.done, ['told']);
  // Here too it is taken once.
  assert.match(
    (await errorResponse(again.retry('refund', second.requestState, answer, ORDER))).message,
    'already answered',
  );
  await after.server.close();
});

test('a call that runs again can ask more questions, and of two clients with the same state one is served', async () => {
  const before = refunds();
  const { requestState } = await (await Modern.of(before.server)).ask('refund', ORDER);
  await before.server.close();
  const after = refunds();
  const client = await Modern.of(after.server);
  const answer = { first: accept({ ok: true }) };
  const [second, replayed] = await Promise.all([
    client.ask('refund', { ...ORDER, requestState, inputResponses: answer }),
    errorResponse(client.retry('refund', requestState, answer, ORDER)),
  ]);
  assert.match(replayed.message, 'already answered');
  await client.retry('refund', second.requestState, { second: accept({ ok: true }) }, ORDER);
  assert.equal(after.done, ['paid 42', 'told']);
  await after.server.close();
});

test('a call does not run again in a process with other keys, or if its tool forbids it', async () => {
  const before = refunds();
  const { requestState } = await (await Modern.of(before.server)).ask('refund', ORDER);
  await before.server.close();
  const answer = { first: accept({ ok: true }) };
  for (const [after, why] of [
    [refunds({ keys: ['another secret, which is long enough as well'] }), 'unknown key'],
    [refunds({}, undefined, false), 'resumed where it stopped'],
  ] as const) {
    const error = await errorResponse((await Modern.of(after.server)).retry('refund', requestState, answer, ORDER));
    assert.is(error.code, ErrorCode.InvalidParams);
    assert.match(error.message, why);
    assert.equal(after.done, []);
    await after.server.close();
  }
});

test('old keys open what they sealed, after a new one has come', async () => {
  const [old, young] = ['the old secret, which was long enough', 'the young secret, as long as it must be'];
  const before = refunds({ keys: [old] });
  const { requestState } = await (await Modern.of(before.server)).ask('refund', ORDER);
  await before.server.close();
  const after = refunds({ keys: [young, old] });
  await (await Modern.of(after.server)).ask('refund', {
    ...ORDER,
    requestState,
    inputResponses: { first: accept({ ok: true }) },
  });
  assert.throws(() => stage({ keys: ['short'] }), /32/);
  await after.server.close();
});

test('a question is open for limits.askMs: then its handler gets an error, and its state is rejected', async () => {
  const { server, clock } = stage({ limits: { askMs: 60_000 } });
  let why: unknown;
  server.tool('ask', {}, async (_, ctx) => {
    try {
      return (await ctx.elicit(OK)).status;
    } catch (error) {
      why = error;
      throw error;
    }
  });
  const client = await Modern.of(server);
  await clock.advance(20_000);
  const others = clock.timers;
  const early = await client.ask('ask');
  await clock.advance(59_999);
  const late = await client.ask('ask');
  assert.is(why, undefined);
  await clock.advance(1);
  assert.match(String(why), 'nobody answered within 1 min');
  const error = await errorResponse(client.retry('ask', early.requestState, YES));
  assert.match(error.message, 'expired after 1 min');
  assert.is(textOf(await client.retry('ask', late.requestState, YES)), 'accepted');
  await clock.advance(600_000);
  assert.is(clock.timers, others);
  await server.close();
});

test('if too many calls wait, the oldest is evicted, and runs again when its client returns', async () => {
  const { server, done } = refunds({ limits: { maxParked: 2 } });
  const client = await Modern.of(server);
  const first = await client.ask('refund', ORDER);
  await client.ask('refund', { arguments: { order: 'o2' } });
  await client.ask('refund', { arguments: { order: 'o3' } });
  await client.ask('refund', {
    ...ORDER,
    requestState: first.requestState,
    inputResponses: { first: accept({ ok: true }) },
  });
  assert.equal(done, ['looked up o1', 'looked up o2', 'looked up o3', 'paid 42']);
  await server.close();
});

test('suspended requests are limited in bytes, too: a large one evicts the oldest, and never itself', async () => {
  const { server, clock } = stage({ limits: { maxParkedBytes: 10_000 } });
  const gone: string[] = [];
  server.tool('ask', { input: z.object({ text: z.string() }) }, async ({ text }, ctx) => {
    ctx.signal.addEventListener('abort', () => gone.push(`${text.length}: ${String(ctx.signal.reason)}`));
    return (await ctx.elicit(OK)).status;
  });
  const client = await Modern.of(server);
  const ask = (length: number) => client.ask('ask', { arguments: { text: 'x'.repeat(length) } });
  await ask(1);
  await ask(2);
  await ask(9_000);
  assert.equal(gone, []);
  await ask(9_500);
  assert.equal(
    gone.map((each) => each.split(':')[0]),
    ['1', '2', '9000'],
  );
  assert.match(gone[0] ?? '', 'maxParkedBytes');
  const { requestState } = await ask(20_000);
  assert.is(gone.length, 4);
  const large = { arguments: { text: 'x'.repeat(20_000) } };
  assert.is(textOf(await client.retry('ask', requestState, YES, large)), 'accepted');
  // All that it held is given back.
  for (let round = 0; round < 3; round += 1) await ask(4_000);
  assert.is(gone.length, 5);
  await clock.advance(600_000);
  assert.is(gone.length, 7);
  await server.close();
});

test('a principal has room of its own, which others cannot use up', async () => {
  const { server } = stage({ limits: { maxParkedPerPrincipal: 1 } });
  const gone: string[] = [];
  server.tool('ask', {}, async (_, ctx) => {
    ctx.signal.addEventListener('abort', () => gone.push(`${ctx.principal}: ${String(ctx.signal.reason)}`));
    return (await ctx.elicit(OK)).status;
  });
  const { transport, connect } = memory();
  await server.listen(transport);
  const [ada, bob] = ['ada', 'bob'].map((principal) => new Modern(new TestClient(connect({ principal }))));
  if (!ada || !bob) throw new Error('two clients were made');
  const { requestState } = await bob.ask('ask');
  await ada.ask('ask');
  await ada.ask('ask');
  assert.is(gone.length, 1);
  assert.match(gone[0] ?? '', /^ada: .*maxParkedPerPrincipal/);
  assert.is(textOf(await bob.retry('ask', requestState, YES)), 'accepted');
  await server.close();
});

test('data that exceeds a state is left out of it: the call continues in its own process, and in no other', async () => {
  const make = () => {
    const staged = stage({ limits: { maxStateLength: 500 } });
    staged.server.tool('big', {}, async (_, ctx) => {
      await ctx.step('load', () => 'x'.repeat(10_000));
      return (await ctx.elicit(OK)).status;
    });
    staged.server.tool('odd', {}, async (_, ctx) => {
      await ctx.step('load', () => 10n);
      return (await ctx.elicit(OK)).status;
    });
    return staged.server;
  };
  const [before, after] = [make(), make()];
  const client = await Modern.of(before);
  const other = await Modern.of(after);
  for (const name of ['big', 'odd']) {
    const { requestState } = await client.ask(name);
    assert.ok(requestState.length <= 500);
    assert.match((await errorResponse(other.retry(name, requestState, YES))).message, 'cannot be run again');
    assert.is(textOf(await client.retry(name, requestState, YES)), 'accepted');
  }
  await before.close();
  await after.close();
});
