/** A machine that cannot work is rejected when it is registered, with every reason and what to write. */
import * as assert from 'uvu/assert';
import {
  type AnyStateMachine,
  and,
  assign,
  createMachine,
  enqueueActions,
  fromPromise,
  not,
  raise,
  sendTo,
  setup,
  spawnChild,
  stateIn,
} from 'xstate';
import { createServer, elicit, elicitWith, type ServerOptions } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';

const test = suite('the references of a machine');

/** Untyped: XState rejects the name of an unknown delay. */
const SOON = Object({ delay: 'soon' });
const EVENTS = { events: { go: true } } as const;

function register(machine: AnyStateMachine, options: object = EVENTS, more: Partial<ServerOptions> = {}) {
  const { server, logged: log } = loggedServer({ name: 'm', ...more });
  let error: unknown;
  try {
    Reflect.apply(server.machine, server, ['m', machine, options]);
  } catch (thrown) {
    error = thrown;
  }
  return { log, message: error instanceof Error ? error.message : '' };
}

/** The names that an error lists, with their places. */
function missing(machine: AnyStateMachine): readonly string[] {
  const { message } = register(machine);
  return [...message.matchAll(/(\w+ "[^"]+" \(.*?\)) has no implementation/g)].map(([, text]) => text ?? '');
}

test('every guard, action, actor and delay that a chart names needs an implementation, wherever it is named', () => {
  const machine = createMachine({
    initial: 'open',
    entry: 'atStart',
    on: { go: [{ guard: 'mayGo', actions: { type: 'note', params: {} } }, { actions: 'note' }] },
    states: {
      open: {
        exit: 'atEnd',
        invoke: { src: 'work', onDone: { actions: 'onWork' }, onError: 'shut' },
        always: { guard: { type: 'ready' }, target: 'shut' },
        after: { pause: 'shut', 1000: { actions: 'late' } },
        initial: 'in',
        states: { in: { on: { 'a.b': { guard: and(['one', not('two')]), actions: spawnChild('child') } } } },
      },
      shut: { entry: [raise({ type: 'go' }, SOON), sendTo('x', { type: 'y' }, SOON)] },
    },
  });
  assert.equal(missing(machine), [
    'action "atStart" (the machine, entry)',
    'guard "mayGo" (the machine, on "go")',
    'action "note" (the machine, on "go")',
    'delay "pause" (state "open", entry)',
    'action "atEnd" (state "open", exit)',
    'actor "work" (state "open", invoke)',
    'action "onWork" (state "open", onDone)',
    'action "late" (state "open", after 1000)',
    'guard "ready" (state "open", always)',
    'guard "one" (state "open.in", on "a.b")',
    'guard "two" (state "open.in", on "a.b")',
    'actor "child" (state "open.in", on "a.b", spawnChild)',
    'delay "soon" (state "shut", entry)',
  ]);
});

test('implementations written in place, provided later, or built into XState are not missing', () => {
  const inner = setup({ guards: { fine: () => true } }).createMachine({ on: { go: { guard: 'fine' } } });
  const machine = setup({
    guards: { fine: () => true, both: and(['fine', stateIn('a')]) },
    actors: { ask: elicit, inner, own: fromPromise(async () => 1) },
    actions: { note: () => {}, more: enqueueActions(({ enqueue }) => enqueue(() => {})) },
    delays: { dynamic: () => 5, fixed: 10 },
  }).createMachine({
    initial: 'a',
    states: {
      a: {
        entry: ['note', 'more', assign({}), () => {}, spawnChild('own')],
        invoke: [{ src: 'ask', input: { message: 'x', schema: { type: 'object', properties: {} } } }, { src: inner }],
        after: { dynamic: 'b', fixed: 'b', 50: 'b' },
        on: { go: { guard: 'both', target: 'b' } },
      },
      b: {},
    },
  });
  assert.is(register(machine).message, '');
  assert.is(register(createMachine({ entry: spawnChild(inner), on: { go: {} } })).message, '');
  const provided = createMachine({ on: { go: { guard: 'later' } } });
  assert.match(register(provided).message, 'guard "later"');
  assert.is(register(provided.provide({ guards: { later: () => true } })).message, '');
});

test('the machines that a machine invokes or spawns are checked with it', () => {
  const inner = createMachine({ initial: 'x', states: { x: { entry: 'lost' } } });
  const machine = setup({ actors: { named: inner } }).createMachine({ invoke: { src: 'named' }, on: { go: {} } });
  assert.equal(missing(machine), ['action "lost" (the machine, invoke of "named" › state "x", entry)']);
  assert.equal(missing(createMachine({ invoke: { src: inner }, on: { go: {} } })), [
    'action "lost" (the machine, invoke › state "x", entry)',
  ]);
  assert.match(
    register(createMachine({ on: { go: {} } }), { ...EVENTS, version: '2', previous: { 1: machine } }).message,
    'version 1: action "lost"',
  );
});

test('a guard that refers to itself ends the check', () => {
  const machine = setup({ guards: { loop: not('loop') } }).createMachine({ on: { go: { guard: 'loop' } } });
  assert.is(register(machine).message, '');
});

test('server.machine without options lists all that is missing, and what to write', () => {
  const machine = createMachine({ initial: 'a', states: { a: { on: { go: { guard: 'may' }, 'a-b': {} } } } });
  for (const options of [{}, { events: {} }])
    assert.is(
      register(machine, options).message,
      `machine "m": events: expected at least one event that clients may send, got none. Write those of the machine that a client may send: events: { go: true, 'a-b': true }, with a schema in place of true for an event that has data
- guard "may" (state "a", on "go") has no implementation: write setup({ guards: { may: ({ context, event }) => … } }), or pass it to machine.provide`,
    );
  assert.match(register(machine, { events: 'go' }).message, 'got string "go"');
  assert.match(register(createMachine({}), {}).message, 'The machine accepts none: register it as a tool');
  for (const none of [undefined, null, 5, {}]) {
    const { message } = Reflect.apply(register, undefined, [none]);
    assert.match(message, /^machine "m": (machine: )?expected a (state|machine)/);
  }
});

test('a tool of a machine is checked as well', () => {
  const server = createServer({ name: 'm', version: '1.0.0' });
  const machine = createMachine({ initial: 'a', states: { a: { invoke: { src: 'work' } } } });
  assert.throws(
    () => server.tool('run', { machine }),
    'tool "run": machine: actor "work" (state "a", invoke) has no implementation: write setup({ actors: { work: fromPromise(',
  );
});

test('a fixed form that no client can show is an error, also of a tool, of an inner machine and of an earlier version', () => {
  const nested = { type: 'object', properties: { a: { type: 'object', properties: { b: { type: 'string' } } } } };
  const asking = (schema: object) =>
    setup({ actors: { ask: elicitWith(schema as never) } }).createMachine({
      initial: 'asking',
      states: { asking: { invoke: { src: 'ask', input: { message: 'Sure?' } }, on: { go: {} } } },
    });
  const problem =
    'state "asking", invoke of "ask": at #/properties/a: property "a" is an object, but a form is flat; make each';
  assert.ok(register(asking(nested)).message.startsWith(`machine "m": ${problem}`), register(asking(nested)).message);
  assert.is(register(asking({ type: 'object', properties: { a: { type: 'string' } } })).message, '');
  const outer = setup({ actors: { inner: asking(nested) } }).createMachine({
    invoke: { src: 'inner' },
    on: { go: {} },
  });
  assert.match(register(outer).message, 'the machine, invoke of "inner" › state "asking", invoke of "ask": at #');
  const earlier = { ...EVENTS, version: '2', previous: { 1: asking(nested) } };
  assert.match(register(createMachine({ on: { go: {} } }), earlier).message, `version 1: ${problem}`);
  const server = createServer({ name: 'm', version: '1.0.0' });
  assert.throws(() => server.tool('run', { machine: asking(nested) }), `tool "run": machine: ${problem}`);
});

test('a delay that an instance does not live to see is an error, and one that is longer than its time without use is none', () => {
  const waiting = (ms: number) =>
    setup({ delays: { fixed: ms } }).createMachine({
      initial: 'a',
      states: { a: { on: { go: 'b' }, after: { [ms]: 'b' } }, b: { entry: raise({ type: 'x' }, { delay: 'fixed' }) } },
    });
  assert.is(
    register(waiting(2_001), { ...EVENTS, ttlMs: 2_000 }).message,
    'machine "m": state "a", entry: the delay of 2001 ms; state "b", entry: the delay of 2001 ms never ends, because an instance lives for 2 s. Set ttlMs in the options of the machine, or limits.handleTtlMs, to more than 2001 (2001 ms)',
  );
  assert.is(
    register(waiting(14 * 86_400_000)).message,
    'machine "m": state "a", entry: the delay of 14 d; state "b", entry: the delay of 14 d never ends, because an instance lives for 7 d. Set ttlMs in the options of the machine, or limits.handleTtlMs, to more than 1209600000 (14 d)',
  );
  assert.equal(register(waiting(2_000), { ...EVENTS, ttlMs: 2_000, idleMs: 1_999 }), { log: [], message: '' });
  const limits = { handleTtlMs: 10 * 86_400_000 };
  assert.equal(register(waiting(8 * 86_400_000), EVENTS, { limits }), { log: [], message: '' });
  // A timer of Node waits for 24.8 days at most.
  const year = 365 * 86_400_000;
  assert.equal(register(waiting(year), { ...EVENTS, ttlMs: year }), { log: [], message: '' });
  assert.match(
    register(waiting(1), { ...EVENTS, ttlMs: 0 }).message,
    /ttlMs: expected whole milliseconds from 1 to 3155760000000/,
  );
});
