/** What is told when more happens than can be told: whole exchanges, and who lives in which state; what is left out is accounted for. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { createMachine, getInitialSnapshot } from 'xstate';
import type { InspectionRecord, NewRecord } from '../../src/core/kernel/inspection/records.ts';
import { RecordSampler } from '../../src/inspector/stream/record-sampler.ts';
import { suite } from '../harness/door.ts';
import { times } from '../harness/scale.ts';

const test = suite('inspector: sampler');

/** Milliseconds after which another exchange is told, whatever waits. */
const EVERY = 10;

/** An sampler, and the means to let it add something. A thousand records take a millisecond, unless time is advanced. */
function sampler(capacity: number) {
  const heard = new RecordSampler(capacity, EVERY);
  let seq = 0;
  let passed = 0;
  const advance = (ms: number): void => {
    passed += ms;
  };
  const add = (record: NewRecord, cause = 0): number => {
    seq += 1;
    heard.add(Object.assign(record, { seq, at: passed + seq / 1_000, cause }));
    return seq;
  };
  const wire = (direction: 'in' | 'out', cause = 0): number =>
    add({ type: 'wire', connection: 'c', direction, text: '{}' }, cause);
  const mail = (cause: number): number => add({ type: 'mail', actor: 'a', mail: { type: 'm' } }, cause);
  const state = (actor: string, now: string, cause = 0): number => add({ type: 'state', actor, state: now }, cause);
  const taken = (): string[] => heard.take().map(inWords);
  return { heard, add, wire, mail, state, taken, advance };
}

function inWords(record: InspectionRecord): string {
  const what = 'state' in record ? ` ${record.state}` : '';
  return `${record.seq} ${record.type}${'actor' in record ? ` ${record.actor}` : ''}${what}`;
}

/** An exchange: what comes in, mail that it leads to, and what goes out. */
function exchange({ wire, mail }: ReturnType<typeof sampler>): number {
  const request = wire('in');
  wire('out', mail(mail(request)));
  return request;
}

test('everything is sent while there is room', () => {
  const { heard, ...rest } = sampler(1_000);
  for (let count = 0; count < 100; count += 1) exchange({ heard, ...rest });
  assert.is(heard.take().length, 400);
  assert.is(heard.gap(), undefined);
});

test('beyond it whole exchanges are left out, and counted', () => {
  const made = sampler(10);
  const { heard } = made;
  for (let count = 0; count < 100; count += 1) exchange(made);
  const taken = heard.take();
  // Ten records: two exchanges and a half; the third began before the room was used up, so it is told whole.
  assert.equal(
    taken.map(({ seq }) => seq),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
  );
  assert.equal(heard.gap(), { type: 'gap', from: 13, to: 400, at: 0.4, records: 388, exchanges: 97, why: 'flood' });
  assert.is(heard.gap(), undefined);
  // There is room again.
  exchange(made);
  assert.is(heard.take().length, 4);
});

test('exchanges are sent from each of the ten seconds of a flood, also while nothing is taken', () => {
  const made = sampler(10);
  const { heard, advance } = made;
  for (let count = 0; count < 20_000; count += 1) {
    exchange(made);
    advance(0.5);
  }
  const wires = heard.take().filter(({ type }) => type === 'wire');
  const exchanges = wires.length / 2;
  const perSecond = Array.from({ length: 10 }, () => 0);
  for (const { at } of wires) perSecond[Math.floor(at / 1_010)] = (perSecond[Math.floor(at / 1_010)] ?? 0) + 0.5;
  for (const told of perSecond) assert.ok(told > 80 && told <= 103, perSecond.join(' '));
  assert.is(heard.gap()?.exchanges, 20_000 - exchanges);
});

test('the exchanges that are sent from a flood are whole, and end if they are not taken for long', () => {
  const made = sampler(10);
  const { heard, advance, wire, mail } = made;
  const begun: number[] = [];
  for (let count = 0; count < 3_000; count += 1) {
    const request = wire('in');
    for (let more = 0; more < 8; more += 1) mail(request);
    begun.push(request);
    advance(EVERY + 1);
  }
  for (const request of begun) wire('out', request);
  const taken = heard.take();
  assert.ok(taken.length > 10_000 && taken.length < 12_000, String(taken.length));
  const count = (direction: string): number =>
    taken.filter((record) => record.type === 'wire' && record.direction === direction).length;
  assert.is(count('out'), count('in'));
});

test.full('steps of what is left out do not displace what is sent', () => {
  const { heard, wire, add, advance } = sampler(100);
  const snapshot = getInitialSnapshot(createMachine({}));
  const step = { type: 'step', event: { type: 'e' }, edges: [], snapshot, handled: true } as const;
  let most = 0;
  let told = 0;
  for (let flush = 0; flush < 100; flush += 1) {
    for (let count = 0; count < 600; count += 1) add({ ...step, actor: `a${count % 50}` }, wire('in'));
    advance(33);
    const taken = heard.take();
    told += taken.slice(0, 100).filter(({ type }) => type === 'wire').length;
    heard.putBack(taken.slice(100));
    most = Math.max(most, heard.size);
  }
  assert.ok(most < 1_000, String(most));
  assert.ok(told >= 90, String(told));
});

test('later records of an exchange are sent or left out as its beginning was', () => {
  const { heard, wire, mail } = sampler(3);
  const told = wire('in');
  wire('in');
  wire('in');
  const left = wire('in');
  assert.ok(heard.omits(left));
  assert.not.ok(heard.omits(told));
  assert.not.ok(heard.omits(0));
  heard.take();
  heard.gap();
  // The flood is over; what began in it is answered now.
  wire('out', mail(left));
  wire('out', mail(told));
  assert.equal(
    heard.take().map(({ seq }) => seq),
    [7, 8],
  );
  assert.equal(heard.gap(), { type: 'gap', from: 5, to: 6, at: 0.006, records: 2, exchanges: 0, why: 'flood' });
});

test('that holds for exchanges of a long time ago', () => {
  const records = times(1_200_000, { quick: 200_000 });
  const { heard, wire, mail, taken } = sampler(2);
  const before = wire('in');
  wire('in');
  const left = wire('in');
  heard.take();
  const told = wire('in');
  for (let count = 0; count < records; count += 1) mail(left);
  heard.take();
  heard.gap();
  const later = [wire('out', left), wire('out', before), wire('out', told)];
  assert.equal(taken(), [`${later[1]} wire`, `${later[2]} wire`]);
});

test('of what is left out, the last state of each actor is sent', () => {
  const { heard, wire, state, taken } = sampler(1);
  wire('in');
  const left = wire('in');
  for (let count = 0; count < 50; count += 1) {
    state('requests', `admitting (${count})`, left);
    state('executor', `running (${count})`, left);
  }
  assert.equal(taken(), ['1 wire', '101 state requests admitting (49)', '102 state executor running (49)']);
  assert.is(heard.gap()?.records, 99);
});

test('an actor that is created in what is left out is sent if it lives, and left out whole if it has ended', () => {
  const { heard, wire, add, state, taken } = sampler(1);
  wire('in');
  const left = wire('in');
  for (const actor of ['lives', 'gone']) {
    add({ type: 'created', actor, kind: 'machine' }, left);
    state(actor, 'begun', left);
  }
  add({ type: 'gone', actor: 'gone', why: 'done' }, left);
  assert.equal(taken(), ['1 wire', '3 created lives', '4 state lives begun']);
  assert.is(heard.gap()?.records, 4);
  // Its end is told, whatever it ends of.
  add({ type: 'gone', actor: 'lives', why: 'done' }, left);
  assert.equal(taken(), ['8 gone lives']);
});

test('steps and crashes of what is left out are sent too, up to a bound; then the last step of each actor', () => {
  const { heard, wire, add } = sampler(1);
  wire('in');
  const left = wire('in');
  for (let count = 0; count < 2_000; count += 1)
    add({ type: 'crashed', actor: `a${count}`, mail: 'm', error: new Error('no'), quarantined: false }, left);
  const crashes = heard.take().filter(({ type }) => type === 'crashed').length;
  assert.ok(crashes >= 500 && crashes < 2_000, String(crashes));
  assert.is(heard.gap()?.records, 2_001 - crashes);
});

test('one exchange without end fills no memory', () => {
  const { heard, wire, mail } = sampler(10);
  const told = wire('in');
  for (let count = 0; count < 100_000; count += 1) mail(told);
  const kept = heard.take().length;
  assert.ok(kept <= 20_000, String(kept));
  assert.is(heard.gap()?.records, 100_001 - kept);
});

test('records that were put back come first', () => {
  const { heard, wire } = sampler(100);
  for (let count = 0; count < 5; count += 1) wire('in');
  const taken = heard.take();
  heard.putBack(taken.slice(2));
  wire('in');
  assert.equal(
    heard.take().map(({ seq }) => seq),
    [3, 4, 5, 6],
  );
  assert.is(heard.size, 0);
});

test('in every case, sent and counted records together are all that were recorded, in order, and exchanges are whole', () => {
  const step = fc.record({
    what: fc.constantFrom('in', 'out', 'mail', 'state', 'step', 'created', 'gone', 'take'),
    /** Which of the records so far it is because of; 0 for none. */
    because: fc.nat(60),
    actor: fc.constantFrom('a', 'b', 'c'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), fc.integer({ min: 1, max: 30 }), (steps, capacity) => {
      const { heard, add, wire } = sampler(capacity);
      const told: InspectionRecord[] = [];
      const roots = new Map<number, number>();
      let all = 0;
      let accounted = 0;
      const take = (): void => {
        told.push(...heard.take());
        accounted += heard.gap()?.records ?? 0;
      };
      for (const { what, because, actor } of steps) {
        if (what === 'take') {
          take();
          continue;
        }
        const cause = Math.max(0, all - because);
        all += 1;
        // What comes over the wire begins anew, whatever led to it.
        roots.set(all, what === 'in' || cause === 0 ? all : (roots.get(cause) ?? 0));
        if (what === 'in' || what === 'out') wire(what, cause);
        else if (what === 'mail') add({ type: 'mail', actor, mail: { type: 'm' } }, cause);
        else if (what === 'state') add({ type: 'state', actor, state: String(all) }, cause);
        else if (what === 'created') add({ type: 'created', actor, kind: 'machine' }, cause);
        else if (what === 'gone') add({ type: 'gone', actor, why: 'done' }, cause);
        else add({ type: 'crashed', actor, mail: 'm', error: 0, quarantined: false }, cause);
      }
      take();
      const seqs = told.map(({ seq }) => seq);
      assert.equal(
        seqs,
        [...seqs].sort((a, b) => a - b),
      );
      assert.is(new Set(seqs).size, seqs.length);
      assert.is(told.length + accounted, all);
      const shown = new Set(seqs);
      const data = told.filter(({ type }) => type === 'mail' || type === 'wire');
      for (const { seq } of data) assert.ok(shown.has(roots.get(seq) ?? 0) || roots.get(seq) === seq, `${seq}`);
    }),
    { numRuns: times(300, { quick: 60 }) },
  );
});
