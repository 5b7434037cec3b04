/** A server is observed while somebody watches, and no longer; whoever comes later is told who lives, and whoever reads slowly what is missing. */
import * as assert from 'uvu/assert';
import { assign, createMachine } from 'xstate';
import { INTERNALS } from '../../src/features/server/internals.ts';
import { createServer, type Server } from '../../src/index.ts';
import type { Frame, HelloFrame, TraceRecord } from '../../src/inspector/frames.ts';
import { Model } from '../../src/inspector/model/index.ts';
import { Redactor } from '../../src/inspector/redaction/redact.ts';
import { FLUSH_MS, LINGER_MS, Observation, type ObservationOptions } from '../../src/inspector/stream/observation.ts';
import { Viewer } from '../../src/inspector/stream/viewer.ts';
import { SimulatedClock } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { inSession } from '../harness/memory.ts';
import { times } from '../harness/scale.ts';

const test = suite('inspector: observation');

const hello = (): HelloFrame => ({
  ...{ type: 'hello', format: 1, server: { name: 's', version: '1' }, troupe: '0', pid: 1, epoch: 0, now: 0 },
  control: false,
  live: true,
});

function observed(options: Partial<ObservationOptions> = {}) {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'observed', version: '1.0.0', clock });
  server.tool('echo', { input: { type: 'object' } }, (args) => JSON.stringify(args));
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  server.tool('hold', {}, () => held.then(() => 'held'));
  const { inspection } = server[INTERNALS];
  const redactor = new Redactor();
  const observation = new Observation({ inspection, clock, redactor, machines: () => [], ...options });
  return { clock, server, inspection, observation, release };
}

/** A viewer that reads as fast as it is told, unless it is to wait. */
function view(observation: Observation, options: { since?: number; everything?: boolean } = {}) {
  const frames: Frame[] = [];
  const reading = { on: true };
  const viewer = new Viewer({
    observation,
    hello,
    ...options,
    sink: {
      write(frame) {
        frames.push(JSON.parse(typeof frame === 'string' ? frame : Buffer.from(frame).toString()));
        return reading.on;
      },
      end() {},
    },
  });
  const records = (): TraceRecord[] => frames.flatMap((frame) => (frame.type === 'records' ? frame.records : []));
  return { viewer, frames, records, reading };
}

async function called(server: Server, times: number): Promise<void> {
  const client = await inSession(server);
  for (let count = 0; count < times; count += 1) await client.call('echo', { count });
  await client.close();
}

/** What a page would know of it: who lives, in which state. */
function known(frames: readonly Frame[]): Record<string, string> {
  const model = new Model();
  for (const frame of frames) model.take(frame);
  const living = [...model.actors.values()].filter((line) => line.aliveAt(Number.MAX_SAFE_INTEGER));
  return Object.fromEntries(living.map((line) => [line.address, line.standing(Number.MAX_SAFE_INTEGER)?.state ?? '']));
}

test('S-32 without a viewer no listener is attached, and nothing is kept', async () => {
  const { clock, server, inspection, observation } = observed();
  assert.is(inspection.on, false);
  const one = view(observation);
  assert.is(inspection.on, true);
  await called(server, 3);
  await clock.advance(FLUSH_MS);
  assert.ok(one.records().length > 20);
  one.viewer.end();
  // A page that reloads is back by now.
  await clock.advance(LINGER_MS - 1);
  assert.ok(observation.attached);
  const two = view(observation);
  await clock.advance(LINGER_MS);
  assert.ok(observation.attached);
  two.viewer.end();
  await clock.advance(LINGER_MS);
  assert.is(observation.attached, false);
  assert.is(inspection.on, false);
  await called(server, 3);
  assert.is(observation.backlog.at(observation.backlog.first), undefined);
  await server.close();
});

test('records are gathered, and sent together in the order in which they happened', async () => {
  const { clock, server, observation } = observed();
  const { frames, records } = view(observation);
  const before = frames.length;
  await called(server, 5);
  assert.is(frames.length, before);
  await clock.advance(FLUSH_MS);
  const seqs = records().map(({ seq }) => seq);
  assert.equal(
    seqs,
    [...seqs].sort((a, b) => a - b),
  );
  assert.is(new Set(seqs).size, seqs.length);
  const wire = records().filter(({ type }) => type === 'wire');
  assert.is(wire.length, 13);
  await server.close();
});

test('a late viewer receives the living actors, although their first records are dropped', async () => {
  const { clock, server, observation } = observed({ maxBytes: 30_000 });
  const early = view(observation);
  await called(server, 10);
  const stays = await inSession(server);
  const calls = times(200, { quick: 80 });
  for (let count = 0; count < calls; count += 1) {
    await stays.call('echo', { count });
    if (count % 10 === 0) await clock.advance(FLUSH_MS);
  }
  await clock.advance(FLUSH_MS);
  const late = view(observation);
  const [first, ...rest] = late.frames;
  assert.is(first?.type, 'hello');
  const gap = rest.find((frame) => frame.type === 'gap');
  assert.ok(gap?.type === 'gap' && gap.why === 'forgotten' && gap.records > 100 && gap.exchanges > 10);
  assert.ok(late.records().length < early.records().length);
  assert.equal(known(late.frames), known(early.frames));
  assert.ok(Object.keys(known(late.frames)).some((actor) => actor.startsWith('session/')));
  await server.close();
});

test('a viewer that connects while a call runs receives its end', async () => {
  const { clock, server, inspection, observation, release } = observed();
  const client = await inSession(server);
  const call = client.call('hold');
  const { frames } = view(observation);
  const standing = (): void => {
    for (const [actor, state] of Object.entries(known(frames)))
      assert.is(inspection.live(actor)?.state(), state, actor);
  };
  standing();
  release();
  await call;
  await clock.advance(FLUSH_MS);
  standing();
  assert.is(known(frames)['executor/tools'], 'idle');
  await server.close();
});

test('a viewer that reconnects receives what it has missed, and nothing twice', async () => {
  const { clock, server, observation } = observed();
  const first = view(observation);
  await called(server, 3);
  await clock.advance(FLUSH_MS);
  const last = first.records().at(-1)?.seq ?? 0;
  first.viewer.end();
  await called(server, 2);
  await clock.advance(FLUSH_MS);
  const again = view(observation, { since: last });
  assert.is(again.records()[0]?.seq, last + 1);
  assert.not.ok(again.frames.some(({ type }) => type === 'gap'));
  // One that knew another process begins anew.
  const stranger = view(observation, { since: 1_000_000 });
  assert.is(stranger.records()[0]?.seq, 1);
  await server.close();
});

test('S-32 a viewer that reads slowly costs nothing, and receives its gap and the living actors', async () => {
  const { clock, server, observation } = observed({ maxBytes: 30_000 });
  const fast = view(observation);
  const slow = view(observation);
  slow.reading.on = false;
  const before = slow.frames.length;
  const rounds = times(40, { quick: 15 });
  for (let round = 0; round < rounds; round += 1) {
    await called(server, 5);
    await clock.advance(FLUSH_MS);
  }
  assert.ok(slow.frames.length <= before + 1);
  slow.reading.on = true;
  slow.viewer.drained();
  const gap = slow.frames.find((frame) => frame.type === 'gap');
  assert.ok(gap?.type === 'gap' && gap.why === 'lagging');
  const told = slow.records().length;
  assert.ok(gap.records + told <= fast.records().length);
  const seqs = slow.records().map(({ seq }) => seq);
  assert.equal(
    seqs,
    [...seqs].sort((a, b) => a - b),
  );
  assert.equal(known(slow.frames), known(fast.frames));
  await server.close();
});

test('S-32 a flood is sent as whole exchanges and a gap, and the states are those of the actors', async () => {
  const { clock, server, observation, inspection, release } = observed({ capacity: 100 });
  const { frames, records } = view(observation);
  const client = await inSession(server);
  await clock.advance(FLUSH_MS);
  const before = records().length;
  const standing = (): void => {
    for (const [actor, state] of Object.entries(known(frames)))
      assert.is(inspection.live(actor)?.state(), state, actor);
  };
  const calls = Array.from({ length: 120 }, () => client.call('hold'));
  await clock.advance(3 * FLUSH_MS);
  standing();
  assert.match(known(frames)['executor/tools'] ?? '', '120');
  // Nothing is left to be told, but that it ends.
  await clock.advance(1_000);
  release();
  await Promise.all(calls);
  await clock.advance(3 * FLUSH_MS);
  standing();
  const wire = records()
    .slice(before)
    .flatMap((record) => (record.type === 'wire' ? [record] : []));
  const gaps = frames.flatMap((frame) => (frame.type === 'gap' ? [frame] : []));
  const told = wire.filter(({ direction }) => direction === 'in').length;
  assert.ok(told > 0 && told < 120, String(told));
  // Each that is told has its answer, and those that are not are counted.
  assert.is(wire.filter(({ direction }) => direction === 'out').length, told);
  assert.is(told + gaps.reduce((sum, { exchanges }) => sum + exchanges, 0), 120);
  await client.close();
  await server.close();
});

for (const busy of [false, true])
  (busy ? test : test.full)(
    `S-32 viewers receive exchanges from each of the ten seconds of a flood${busy ? ', also if no timer gets its turn' : ''}`,
    async () => {
      const clock = new SimulatedClock();
      const server = createServer({ name: 'flooded', version: '1.0.0', clock });
      server.tool('echo', {}, () => 'echo');
      const { inspection } = server[INTERNALS];
      const never = { cancel() {} };
      const starved = {
        now: () => clock.now(),
        date: () => clock.date(),
        after: (ms: number, run: () => void) => (busy ? never : clock.after(ms, run)),
        hold: () => clock.hold(),
        soon: (run: () => void) => clock.soon(run),
      };
      const options = { inspection, clock: starved, redactor: new Redactor(), machines: () => [], capacity: 20 };
      const observation = new Observation(options);
      const { frames, records } = view(observation);
      const client = await inSession(server);
      const begin = clock.now();
      // Of 40 calls a second and more, at least 20 are sent.
      const perRound = times(5, { quick: 2 });
      for (let round = 0; round < 400; round += 1) {
        for (let count = 0; count < perRound; count += 1) await client.call('echo');
        await clock.advance(25);
      }
      observation.flushAll();
      const perSecond = Array.from({ length: 10 }, () => 0);
      const calls = records().flatMap((record) =>
        record.type === 'wire' && record.direction === 'in' && record.at >= begin
          ? [Math.floor((record.at - begin) / 1_000)]
          : [],
      );
      for (const second of calls) perSecond[second] = (perSecond[second] ?? 0) + 1;
      for (const told of perSecond) assert.ok(told >= 20 && told < 200, perSecond.join(' '));
      const left = frames.reduce((sum, frame) => sum + (frame.type === 'gap' ? frame.exchanges : 0), 0);
      assert.ok(left > perRound * 100, String(left));
      await server.close();
    },
  );

test('S-32 sending takes a bounded part of the time: the rest is sent later, and then less is recorded', async () => {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'slow', version: '1.0.0', clock });
  server.tool('echo', {}, () => 'echo');
  const { inspection } = server[INTERNALS];
  let now = 0;
  // Each look at the clock costs a millisecond: a record or eight do.
  const slow = {
    now: () => (now += 1),
    date: () => 0,
    after: (ms: number, run: () => void) => clock.after(ms, run),
    hold: () => clock.hold(),
    soon: (run: () => void) => clock.soon(run),
  };
  const observation = new Observation({ inspection, clock: slow, redactor: new Redactor(), machines: () => [] });
  const { frames, records } = view(observation);
  await called(server, 150);
  const sizes: number[] = [];
  for (let flush = 0; flush < 40; flush += 1) {
    const before = records().length;
    await clock.advance(FLUSH_MS);
    sizes.push(records().length - before);
  }
  // Five milliseconds, and the eight records that were begun.
  assert.ok(Math.max(...sizes) <= 6 * 8, String(sizes));
  assert.ok(sizes.filter((size) => size > 0).length > 1, String(sizes));
  const exchanges = records().filter((record) => record.type === 'wire' && record.direction === 'in').length;
  const left = frames.reduce((sum, frame) => sum + (frame.type === 'gap' ? frame.exchanges : 0), 0);
  assert.ok(left > 30, String(left));
  assert.is(exchanges + left, 152);
  await server.close();
});

test('S-32 a failure of the observation is reported, and the server and the viewers continue', async () => {
  const faults: unknown[] = [];
  let broken = false;
  const { clock, server, observation } = observed({
    failed: (error) => void faults.push(error),
    machines() {
      if (broken) throw new Error('no machines');
      return [];
    },
  });
  const { records, viewer } = view(observation);
  broken = true;
  await called(server, 1);
  await clock.advance(FLUSH_MS);
  assert.ok(faults.length > 0);
  broken = false;
  viewer.focusOn(['server']);
  await called(server, 1);
  await clock.advance(FLUSH_MS);
  // Nothing was lost meanwhile.
  assert.is(records().filter(({ type }) => type === 'wire').length, 10);
  await server.close();
});

test('an actor in focus is looked at when it changes, and only then', async () => {
  const { clock, server, observation } = observed();
  const { viewer, frames } = view(observation);
  const views = (): string[] => frames.flatMap((frame) => (frame.type === 'look' ? [frame.look.state] : []));
  viewer.focusOn(['server', 'nobody']);
  assert.equal(views(), ['starting']);
  await clock.advance(5_000);
  assert.equal(views(), ['starting']);
  await called(server, 1);
  await clock.advance(FLUSH_MS);
  assert.equal(views(), ['starting', 'running']);
  viewer.focusOn([]);
  await server.close();
  await clock.advance(FLUSH_MS);
  assert.equal(views(), ['starting', 'running']);
});

test('S-30 data that a statechart hides is hidden from the first message that brings it', async () => {
  const { clock, server, observation } = observed({ machines: () => server[INTERNALS].machines() });
  const { viewer, frames } = view(observation, { everything: true });
  const secret = '4111-zq7';
  server.machine(
    'payment',
    createMachine({
      meta: { redact: ['card', 'customer.email'] },
      context: ({ input }) => ({ input, note: 'seen' }),
      on: { charge: { actions: assign({ last: ({ event }) => event }) } },
    }),
    { description: 'A payment', input: { type: 'object' }, events: { charge: { type: 'object' } } },
  );
  const client = await inSession(server);
  const made = await client.call('payment_create', { card: secret, customer: { email: secret } });
  const handle = /"handle":"([^"]+)"/.exec(JSON.stringify(made.structuredContent))?.[1] ?? '';
  await clock.advance(FLUSH_MS);
  const address = /"(handle\/payment\/[^"]+)"/.exec(JSON.stringify(frames))?.[1] ?? '';
  viewer.focusOn([address]);
  await client.call('payment_charge', { handle, card: secret, customer: { email: secret } });
  await clock.advance(FLUSH_MS);
  const text = JSON.stringify(frames);
  assert.ok(/"event":"charge"/.test(text) && /"type":"look"/.test(text) && text.includes('seen'), address);
  assert.not.ok(text.includes(secret));
  await server.close();
});

test('the context of statecharts is sent with the steps of actors in focus, and of all in a recording', async () => {
  const { clock, server, observation } = observed();
  const { viewer, records } = view(observation);
  const contexts = (): number => records().filter((record) => record.type === 'step' && 'context' in record).length;
  await called(server, 1);
  await clock.advance(FLUSH_MS);
  assert.ok(records().some(({ type }) => type === 'step'));
  assert.is(contexts(), 0);
  viewer.focusOn(['server']);
  const closing = server.close();
  await clock.advance(FLUSH_MS);
  await closing;
  await clock.advance(FLUSH_MS);
  assert.ok(contexts() > 0);
});
