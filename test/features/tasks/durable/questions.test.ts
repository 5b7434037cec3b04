/** Questions of requests that survive the process: their keys, which answers were taken, and steps that are durable before they are used. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import type { Server } from '../../../../src/index.ts';
import { settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { errorResponse, textOf } from '../../../harness/results.ts';
import { accept } from '../../asking/support.ts';
import { NAME } from '../support.ts';
import { call, Disk, type Process, start } from './support.ts';

const test = suite('durable questions');

const ANA = accept({ name: 'Ana' });
const BO = accept({ name: 'Bo' });

/** What really happened, whichever process did it. */
interface World {
  charges: number;
  /** A charge whose result was used. */
  used: number;
  runs: number;
}

/** Asks, charges, asks again. */
function shop(world: World): (server: Server) => void {
  return (server) => {
    server.tool('buy', {}, async (_, ctx) => {
      world.runs += 1;
      const first = await ctx.elicit(NAME);
      const charge = await ctx.step('charge', () => {
        world.charges += 1;
        return { number: world.charges };
      });
      world.used += 1;
      const second = await ctx.elicit(NAME);
      return `${nameIn(first)}, ${nameIn(second)}: charge ${charge.number}`;
    });
  };
}

function nameIn(answer: { readonly status: string; readonly content?: { readonly name: string } }): string {
  return answer.content?.name ?? answer.status;
}

const world = (): World => ({ charges: 0, used: 0, runs: 0 });

function stateOf(result: JsonObject): string {
  if (typeof result.requestState !== 'string') throw new Error(`expected a question, got ${JSON.stringify(result)}`);
  return result.requestState;
}

const bring = (process: Process, requestState: string, elicit: JsonObject, key = 'elicit'): Promise<JsonObject> =>
  call(process.modern(), 'buy', { requestState, inputResponses: { [key]: elicit } });

test('a question survives a restart without any configuration: the secret that seals it is in the store', async () => {
  const disk = new Disk();
  const w = world();
  const one = await start(disk, shop(w));
  const asked = stateOf(await call(one.modern(), 'buy'));
  one.kill();
  const two = await start(disk, shop(w));
  const again = stateOf(await bring(two, asked, ANA));
  assert.is(textOf(await bring(two, again, BO, 'elicit-2')), 'Ana, Bo: charge 1');
  assert.is(w.charges, 1);
  await two.server.close();
});

test('a call continues although its tool is replaced while its question is read from the store', async () => {
  const disk = new Disk();
  const ask = (server: Server, version: string): void =>
    server.tools.update({
      name: 'buy',
      handler: async (_, ctx) => `${nameIn(await ctx.elicit(NAME))}, ${version}`,
    });
  const one = await start(disk, (server) => {
    server.tool('buy', {}, () => '');
    ask(server, 'a');
  });
  const asked = stateOf(await call(one.modern(), 'buy'));
  one.kill();
  const two = await start(disk, (server) => {
    server.tool('buy', {}, () => '');
    ask(server, 'b');
  });
  const answered = bring(two, asked, ANA);
  let isAnswered = false;
  const end = (): void => {
    isAnswered = true;
  };
  answered.then(end, end);
  // As a mounted server does that is listed again at the start.
  while (!isAnswered) {
    for (let tick = 0; tick < 50; tick += 1) {
      ask(two.server, 'b');
      await Promise.resolve();
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.is(textOf(await answered), 'Ana, b');
  await two.server.close();
});

test('S-12: a state that was answered runs nothing after a restart: an older one is refused, the last is answered with what it was', async () => {
  const disk = new Disk();
  const w = world();
  const one = await start(disk, shop(w));
  const first = stateOf(await call(one.modern(), 'buy'));
  const second = stateOf(await bring(one, first, ANA));
  assert.is(textOf(await bring(one, second, BO, 'elicit-2')), 'Ana, Bo: charge 1');
  one.kill();
  const two = await start(disk, shop(w));
  const { runs } = w;
  const refused = await errorResponse(bring(two, first, BO));
  assert.is(refused.code, -32602);
  assert.match(refused.message, 'already answered');
  // Its answer may not have reached the client: it is said again, and nothing runs.
  assert.is(textOf(await bring(two, second, accept({ name: 'Eve' }), 'elicit-2')), 'Ana, Bo: charge 1');
  assert.is(w.runs, runs);
  await two.server.close();
});

test('S-12: a state whose next question was on its way when the process ended is answered with that very question', async () => {
  const disk = new Disk();
  const w = world();
  const one = await start(disk, shop(w));
  const first = stateOf(await call(one.modern(), 'buy'));
  const second = stateOf(await bring(one, first, ANA));
  one.kill();
  const two = await start(disk, shop(w));
  const { runs } = w;
  assert.is(stateOf(await bring(two, first, BO)), second);
  assert.is(w.runs, runs);
  assert.is(textOf(await bring(two, second, BO, 'elicit-2')), 'Ana, Bo: charge 1');
  await two.server.close();
});

test('S-12: that a state was answered is remembered for limits.askMs, in which it could come back', async () => {
  const disk = new Disk();
  const w = world();
  const one = await start(disk, shop(w), { askMs: 60_000 });
  const first = stateOf(await call(one.modern(), 'buy'));
  await bring(one, first, ANA).then((asked) => bring(one, stateOf(asked), BO, 'elicit-2'));
  const rows = (): Promise<readonly unknown[]> => one.store.list({ kind: 'question', limit: 10 });
  assert.is((await rows()).length, 1);
  await one.clock.advance(180_000);
  assert.equal(await rows(), []);
  await one.server.close();
});

test('S-12: a request that its client cancelled is not gone on with after a restart; one that the server ended is', async () => {
  const disk = new Disk();
  const w = world();
  const one = await start(disk, shop(w));
  const first = stateOf(await call(one.modern(), 'buy'));
  await one.server.close();
  const two = await start(disk, shop(w));
  stateOf(await bring(two, first, ANA));
  await two.server.close();
});

test('a result is not sent before it is durable that its state was answered', async () => {
  const disk = new Disk();
  const one = await start(disk, shop(world()));
  const second = stateOf(await bring(one, stateOf(await call(one.modern(), 'buy')), ANA));
  one.store.hold();
  let answered = false;
  const answer = bring(one, second, BO, 'elicit-2').finally(() => {
    answered = true;
  });
  await settled();
  assert.is(answered, false);
  await one.store.letThrough();
  assert.is(textOf(await answer), 'Ana, Bo: charge 1');
  await one.server.close();
});

test('R-18: on a full disk the answer is an error, and the same state brings the result once there is room', async () => {
  const disk = new Disk();
  const w = world();
  const one = await start(disk, shop(w));
  const second = stateOf(await bring(one, stateOf(await call(one.modern(), 'buy')), ANA));
  one.store.full = true;
  assert.is((await errorResponse(bring(one, second, BO, 'elicit-2'))).code, -32603);
  one.store.full = false;
  assert.is(textOf(await bring(one, second, BO, 'elicit-2')), 'Ana, Bo: charge 1');
  assert.is(w.runs, 1);
  await one.server.close();
});

test('a result of a handler that continued while its question was being stored waits for the client', async () => {
  const stop = new AbortController();
  const process = await start(new Disk(), (server) =>
    server.tool('buy', {}, async (_, ctx) => {
      await ctx.elicit(NAME);
      const second = ctx.ask({ second: { elicit: NAME } }, { signal: stop.signal });
      return await second.then(() => 'answered').catch(() => 'continued without an answer');
    }),
  );
  const asked = stateOf(await call(process.modern(), 'buy'));
  process.store.hold();
  const again = bring(process, asked, ANA);
  await settled();
  stop.abort(new Error('it took too long'));
  await settled();
  await process.store.letThrough();
  const state = stateOf(await again);
  assert.is(textOf(await bring(process, state, ANA, 'second')), 'continued without an answer');
});

test('code that a handler left running cannot ask while the result is being stored', async () => {
  let late: Promise<unknown> | undefined;
  const process = await start(new Disk(), (server) =>
    server.tool('buy', {}, async (_, ctx) => {
      const first = await ctx.elicit(NAME);
      late = settled().then(() => ctx.elicit(NAME));
      late.catch(() => {});
      return nameIn(first);
    }),
  );
  const asked = stateOf(await call(process.modern(), 'buy'));
  process.store.hold();
  const result = bring(process, asked, ANA);
  await settled();
  assert.match(String(await late?.catch((error: unknown) => error)), /the handler has ended/);
  await process.store.letThrough();
  assert.is(textOf(await result), 'Ana');
});

test('the result of a step is used once it is durable, and not before', async () => {
  const disk = new Disk();
  const w = world();
  const one = await start(disk, shop(w));
  const first = stateOf(await call(one.modern(), 'buy'));
  one.store.hold();
  const answer = bring(one, first, ANA);
  await settled();
  assert.equal([w.charges, w.used], [1, 0]);
  await one.store.letThrough();
  stateOf(await answer);
  assert.equal([w.charges, w.used], [1, 1]);
  await one.server.close();
});

test('a step whose result cannot be kept fails, and says that it has run', async () => {
  const disk = new Disk();
  const one = await start(
    disk,
    (server) => {
      server.tool('full', {}, async (_, ctx) => {
        one.store.full = true;
        return await ctx.step('charge', () => 1).catch((error: unknown) => String(error));
      });
      server.tool('bigint', {}, async (_, ctx) => ctx.step('count', () => 1n).catch((error: unknown) => String(error)));
      server.tool('many', {}, async (_, ctx) => {
        for (let n = 1; ; n += 1) await ctx.step(`n${n}`, () => n);
      });
      server.tool('long', {}, async (_, ctx) =>
        ctx.step('text', () => 'x'.repeat(2_000)).catch((error: unknown) => String(error)),
      );
    },
    { maxSteps: 3, maxStepsLength: 1_000 },
  );
  const client = one.modern();
  assert.match(
    textOf(await call(client, 'full')),
    /"charge"\) has run, but its result could not be persisted: the disk is full/,
  );
  one.store.full = false;
  assert.match(textOf(await call(client, 'bigint')), /expected JSON data/);
  assert.match(textOf(await call(client, 'many')), /at most 3 steps.*limits\.maxSteps/);
  assert.match(textOf(await call(client, 'long')), /limits\.maxStepsLength/);
  await one.server.close();
});

test('R-01: a step whose result was used runs once, for each batch at which a process may end', async () => {
  let died = 0;
  for (const when of ['before', 'after'] as const) {
    for (let n = 1; n <= 6; n += 1) {
      const disk = new Disk();
      const w = world();
      const one = await start(disk, shop(w));
      const first = stateOf(await call(one.modern(), 'buy'));
      one.store.killAt(n, when);
      // Whoever waits for a process that is gone hears nothing.
      bring(one, first, ANA)
        .then((asked) => bring(one, stateOf(asked), BO, 'elicit-2'))
        .catch(() => {});
      await settled();
      await settled();
      if (one.store.commits.length >= n) died += 1;
      one.kill();
      const { used, charges } = w;
      const two = await start(disk, shop(w));
      // Its client knows the first question only, at worst: it brings that again.
      const again = await bring(two, first, ANA).catch(() => undefined);
      if (again) assert.match(textOf(await bring(two, stateOf(again), BO, 'elicit-2')), /^Ana, Bo: charge \d$/);
      if (used > 0) assert.is(w.charges, charges, `${when} batch ${n}: charged ${w.charges} times`);
      assert.ok(w.charges <= 2, `${when} batch ${n}`);
      await two.server.close();
    }
  }
  assert.ok(died >= 6, `died at ${died} batches`);
});

test('the records of a request are deleted when it ends', async () => {
  const disk = new Disk();
  const one = await start(disk, (server) => {
    server.tool('step', {}, (_, ctx) => ctx.step('one', () => 'done'));
  });
  assert.is(textOf(await call(one.modern(), 'step')), 'done');
  await settled();
  assert.is(one.store.durables, 3);
  assert.equal(await one.store.list({ kind: 'question', limit: 10 }), []);
  await one.server.close();
});
