/** The sandboxes of a server: threads that run scripts in turns, end those that do not end, and survive what happens to them. */
import * as assert from 'uvu/assert';
import { createActorSystem } from '../../../../src/core/kernel/actor-system.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { Sandboxes, type SandboxesOptions } from '../../../../src/features/code/sandbox/sandboxes.ts';
import { SimulatedClock } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { assertFigure } from '../../../harness/pace.ts';
import { times } from '../../../harness/scale.ts';
import { until } from '../../../harness/wait.ts';
import { endOf, scriptOf, value } from './support.ts';

const test = suite('sandboxes');
const logged: string[] = [];
const open: Sandboxes[] = [];

function sandboxes(options: Partial<SandboxesOptions> = {}): Sandboxes {
  const system = createActorSystem({ clock: systemClock, log: (level, text) => void logged.push(`${level}: ${text}`) });
  const made = new Sandboxes({ system, sliceMs: 300, ...options });
  open.push(made);
  return made;
}

/** The message of the error of a promise. */
function failure(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'resolved',
    (error: Error) => error.message,
  );
}

test.after(() => {
  for (const each of open) each.end();
});

/** The sandboxes of the tests that need no others: a thread takes longer to start than a script to run. */
let usual: Sandboxes;
test.before(() => {
  usual = sandboxes();
});

test('a script makes calls, waits, and returns with their results', async () => {
  const boxes = usual;
  const first = await boxes.begin('a', 'ann', scriptOf('const x = await shop.list({ page: 1 });\nreturn x.length;'));
  assert.equal(first.calls, [{ number: 1, name: 'shop.list', arguments: '[{"page":1}]', line: 1 }]);
  assert.is(endOf(first), 'waits');
  const last = await boxes.proceed('a', [value(1, '[1,2,3]')]);
  assert.is(last && endOf(last), 'returned 3');
  assert.is(await boxes.proceed('a', [value(1, '[]')]), undefined, 'a script that has ended is forgotten');
  assert.is(boxes.size.scripts, 0);
});

test('a script that is repeated makes the same calls, in another thread, too', async () => {
  const code = `const parts = await Promise.all([shop.a(), shop.b(Math.random()), shop.c(Date.now())]);
for (const part of parts) await mail.send(part, Math.random(), new Date().toISOString());
return Math.random();`;
  const deliveries = [3, 1, 2, 4, 5, 6].map((number, at) => value(number, `"${number}"`, 2_000 + at * 10));
  const [one, other] = [usual, sandboxes()];
  const live = [await one.begin('a', 'ann', scriptOf(code))];
  for (const delivery of deliveries) {
    const slice = await one.proceed('a', [delivery]);
    assert.ok(slice);
    live.push(slice);
  }
  const repeated = await other.begin('a', 'ann', scriptOf(code), deliveries);
  assert.equal(
    repeated.calls,
    live.flatMap(({ calls }) => calls),
  );
  assert.equal(repeated.end, live.at(-1)?.end);
  assert.match(endOf(repeated), /^returned 0\.\d+$/);
});

test('S-133: scripts of several principals take turns, and one principal leaves a thread to the others', async () => {
  const boxes = sandboxes({ sliceMs: times(50, { quick: 20 }) });
  const ends: string[] = [];
  const run = async (name: string, principal: string, code: string): Promise<void> => {
    await boxes.begin(name, principal, scriptOf(code));
    ends.push(name);
  };
  const endless = Array.from({ length: 4 }, (_, at) => run(`endless ${at}`, 'eve', 'for (;;);'));
  await run('bystander', 'ann', 'return 1');
  assert.ok(ends.length <= 2, `the bystander comes after ${ends}`);
  await Promise.all(endless);
  assert.is(boxes.size.waiting, 0);
});

test.full('endless scripts of one principal delay neither the server nor the scripts of another', async () => {
  const boxes = sandboxes({ sliceMs: 100 });
  await Promise.all(['eve', 'ann'].map((principal) => boxes.begin(principal, principal, scriptOf('return 1'))));
  const endless = Array.from({ length: 50 }, (_, at) => boxes.begin(`endless ${at}`, 'eve', scriptOf('for (;;);')));
  const times: number[] = [];
  for (let round = 0; round < 100; round += 1) {
    const began = performance.now();
    assert.is(endOf(await boxes.begin('bystander', 'ann', scriptOf('return 1'))), 'returned 1');
    times.push(performance.now() - began);
  }
  times.sort((one, other) => one - other);
  assertFigure(times[98] ?? 0, 50, 'a script beside 50 endless ones of another principal, p99');
  boxes.end();
  await Promise.all(endless);
});

test('with one thread, the turn of a principal comes after one slice of each other', async () => {
  const boxes = sandboxes({ threads: 1 });
  await boxes.begin('warm', 'ann', scriptOf('return 1'));
  const order: string[] = [];
  const run = (name: string, principal: string): Promise<unknown> =>
    boxes.begin(name, principal, scriptOf('return 1')).then(() => order.push(name));
  await Promise.all([
    run('e1', 'eve'),
    run('e2', 'eve'),
    run('e3', 'eve'),
    run('a1', 'ann'),
    run('b1', 'bob'),
    run('a2', 'ann'),
  ]);
  assert.equal(order, ['e1', 'e2', 'a1', 'b1', 'e3', 'a2']);
});

test('too many waiting scripts are refused, for a principal before all others', async () => {
  const boxes = sandboxes({ threads: 1, maxWaiting: 20 });
  const outcomes = await Promise.all(
    Array.from({ length: 6 }, (_, at) =>
      boxes.begin(`e${at}`, 'eve', scriptOf('return 1')).then(endOf, (error: Error) => error.message),
    ),
  );
  assert.is(outcomes.filter((outcome) => outcome === 'returned 1').length, 2);
  assert.match(outcomes.at(-1) ?? '', /too many scripts wait/);
  assert.is(endOf(await boxes.begin('a', 'ann', scriptOf('return 2'))), 'returned 2');
});

test('a script ends when its signal aborts, and when it is dropped: waiting, running or at rest', async () => {
  const boxes = sandboxes({ threads: 1, sliceMs: 60_000 });
  const controller = new AbortController();
  const running = boxes.begin('running', 'ann', scriptOf('for (;;);'), [], controller.signal);
  const waiting = boxes.begin('waiting', 'bob', scriptOf('return 1'));
  boxes.drop('waiting');
  assert.is(endOf(await waiting), 'stopped dropped');
  controller.abort(new Error('the client has left'));
  assert.is(await failure(running), 'the client has left');
  assert.is(endOf(await boxes.begin('rests', 'ann', scriptOf('await shop.a()'))), 'waits');
  boxes.drop('rests');
  assert.is(await boxes.proceed('rests', [value(1, '1')]), undefined);
  const aborted = AbortSignal.abort(new Error('too late'));
  assert.is(await failure(boxes.begin('x', 'ann', scriptOf('return 1'), [], aborted)), 'too late');
  assert.equal(boxes.size, { threads: 1, waiting: 0, scripts: 0 });
});

test('a script that is stuck ends its thread: it is stopped, and the others are begun again', async () => {
  const boxes = sandboxes({ threads: 1, sliceMs: 30, graceMs: times(500, { quick: 100 }) });
  assert.is(endOf(await boxes.begin('other', 'ann', scriptOf('return await shop.a()'))), 'waits');
  const stuck = boxes.begin('stuck', 'eve', scriptOf("return new Array(1_000_000_000) + ''"));
  const later = boxes.proceed('other', [value(1, '"a"')]);
  const slice = await stuck;
  assert.is(endOf(slice), 'stopped processor time');
  assert.match(slice.end?.type === 'stopped' ? slice.end.message : '', /in one operation of the language/);
  assert.is(await later, undefined);
  assert.is(
    endOf(await boxes.begin('other', 'ann', scriptOf('return await shop.a()'), [value(1, '"a"')])),
    'returned "a"',
  );
  assert.equal(logged, [], 'a stuck script is no incident');
});

test('a thread holds a bounded number of scripts, and those that wait longest are begun again', async () => {
  const boxes = sandboxes({ threads: 1, warm: 2 });
  for (const run of ['a', 'b', 'c']) await boxes.begin(run, 'ann', scriptOf('return await shop.a()'));
  assert.is(await boxes.proceed('a', [value(1, '1')]), undefined);
  assert.ok(await boxes.proceed('b', [value(1, '1')]));
  assert.ok(await boxes.proceed('c', [value(1, '1')]));
});

test.full('large scripts make room before there are many of them', async () => {
  const boxes = sandboxes({ threads: 1, sliceMs: 60_000, runMs: 60_000 });
  const large =
    'const held = []; for (let i = 0; i < 200; i++) held.push("x".repeat(1e5) + i); await shop.a(); return held.length';
  for (const run of ['a', 'b', 'c', 'd', 'e'])
    assert.is(endOf(await boxes.begin(run, 'ann', scriptOf(large))), 'waits');
  assert.is(await boxes.proceed('a', [value(1, '1')]), undefined);
  const last = await boxes.proceed('e', [value(1, '1')]);
  assert.is(last && endOf(last), 'returned 200');
});

test('a script that is too long is invalid, and starts no thread', async () => {
  assert.match(
    endOf(await usual.begin('a', 'ann', scriptOf(`//${'ü'.repeat(32_767)}`))),
    /^invalid the script is 65536|^waits|^returned/,
  );
  const { end } = await sandboxes().begin('a', 'ann', scriptOf('ü'.repeat(32_769)));
  assert.match(
    end?.type === 'invalid' ? end.message : '',
    /^the script is 65538 bytes long, and at most 65536 are allowed/,
  );
});

test('threads that crash start again after a while, and too many crashes refuse scripts until a minute has passed', async () => {
  const clock = new SimulatedClock();
  const incidents: string[] = [];
  const system = createActorSystem({ clock, log: (_, text) => void incidents.push(text) });
  // No engine fits in so little memory.
  const boxes = new Sandboxes({ system, threads: 1, memoryBytes: 1_000 });
  open.push(boxes);
  const refused = boxes.begin('a', 'ann', scriptOf('return 1'));
  for (let crash = 1; crash <= 6; crash += 1) {
    await until(() => incidents.length === crash, 'a crash of the thread');
    clock.advance(5_000);
  }
  assert.is(endOf(await refused), 'stopped engine');
  assert.match(incidents[0] ?? '', /^incident \S+ in a thread of the sandboxes: /);
  assert.equal(boxes.size, { threads: 0, waiting: 0, scripts: 0 });
  const later = boxes.begin('b', 'ann', scriptOf('return 1'));
  clock.advance(60_000);
  await until(() => incidents.length === 7, 'a thread starts when the minute has passed');
  boxes.end();
  assert.is(endOf(await later), 'stopped dropped');
});

test('a server that stops ends its scripts', async () => {
  const boxes = sandboxes({ sliceMs: 60_000 });
  const running = boxes.begin('a', 'ann', scriptOf('for (;;);'));
  const waiting = boxes.begin('b', 'ann', scriptOf('return 1'));
  boxes.end();
  assert.is(endOf(await running), 'stopped dropped');
  assert.is(endOf(await waiting), 'stopped dropped');
  assert.is(endOf(await boxes.begin('c', 'ann', scriptOf('return 1'))), 'stopped dropped');
});
