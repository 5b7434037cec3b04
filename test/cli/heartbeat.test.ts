/** When the heartbeat and the probe declare a worker dead, in simulated time: not while it loads, computes, is debugged, or the machine sleeps. */
import * as assert from 'uvu/assert';
import { Heartbeat } from '../../src/cli/supervisor/heartbeat.ts';
import { Probe } from '../../src/cli/supervisor/probe.ts';
import type { ProcessState } from '../../src/cli/supervisor/process-state.ts';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';
import { suite } from '../harness/door.ts';

const test = suite('heartbeat');

/** A clock that goes on while nothing runs: timers are late by as much. */
class Sleepy extends SimulatedClock {
  #slept = 0;

  sleep(ms: number): void {
    this.#slept += ms;
  }

  override now(): number {
    return super.now() + this.#slept;
  }
}

/** A process that answers each beat at once, until it does not. */
class Worker {
  readonly clock = new Sleepy();
  state: ProcessState = 'running';
  answers = true;
  debugged = false;
  asked = 0;
  readonly dead: string[] = [];
  readonly heartbeat: Heartbeat = new Heartbeat({
    clock: this.clock,
    ask: () => {
      this.asked += 1;
      if (this.answers) queueMicrotask(() => this.heartbeat.answered(this.debugged));
    },
    state: () => this.state,
    dead: (why, blocked) => void this.dead.push(blocked ? `blocked: ${why}` : why),
  });

  /** It answers what it has not answered. */
  wakes(): void {
    this.answers = true;
    this.heartbeat.answered(this.debugged);
  }
}

test('R-38: a process that answers gets a beat every two seconds', async () => {
  const worker = new Worker();
  worker.heartbeat.begin(1_000);
  await worker.clock.advance(3_600_000);
  assert.equal(worker.dead, []);
  assert.is(worker.asked, 1_801);
  assert.ok(worker.heartbeat.loopRuns);
  worker.heartbeat.stop();
  assert.is(worker.clock.timers, 0);
});

test('R-38: a process that is stopped is dead after ten seconds, also while it loads', async () => {
  for (const serves of [true, false]) {
    const worker = new Worker();
    if (serves) worker.heartbeat.begin(60_000);
    await worker.clock.advance(serves ? 100_000 : 0);
    worker.answers = false;
    worker.state = 'stopped';
    await worker.clock.advance(9_000);
    assert.equal(worker.dead, []);
    await worker.clock.advance(5_000);
    assert.equal(worker.dead, ['is stopped (SIGSTOP)']);
    await worker.clock.advance(100_000);
    assert.is(worker.dead.length, 1);
    assert.is(worker.clock.timers, 0);
  }
});

test('R-38: a process that is stopped for a moment continues', async () => {
  const worker = new Worker();
  worker.heartbeat.begin(60_000);
  for (let time = 0; time < 10; time += 1) {
    worker.answers = false;
    worker.state = 'stopped';
    await worker.clock.advance(8_000);
    worker.state = 'running';
    worker.wakes();
    await worker.clock.advance(4_000);
  }
  assert.equal(worker.dead, []);
});

test('R-38: a blocked process is left to its watchdog until twice the hard limit', async () => {
  const worker = new Worker();
  worker.heartbeat.begin(60_000);
  worker.answers = false;
  await worker.clock.advance(128_000);
  assert.equal(worker.dead, []);
  assert.not(worker.heartbeat.loopRuns);
  await worker.clock.advance(6_000);
  assert.match(worker.dead[0] ?? '', 'blocked: was blocked for 130 seconds');
});

test('R-38: without a hard limit, or while it loads, a process may block without a limit', async () => {
  for (const serves of [true, false]) {
    const worker = new Worker();
    if (serves) worker.heartbeat.begin(undefined);
    worker.answers = false;
    await worker.clock.advance(3_600_000);
    assert.equal(worker.dead, []);
    assert.not(worker.heartbeat.loopRuns);
  }
});

test('R-38: a process under a debugger is not killed', async () => {
  const worker = new Worker();
  worker.debugged = true;
  worker.heartbeat.begin(1_000);
  worker.answers = false;
  worker.state = 'stopped';
  await worker.clock.advance(3_600_000);
  const native = new Worker();
  native.heartbeat.begin(1_000);
  native.answers = false;
  native.state = 'traced';
  await native.clock.advance(3_600_000);
  assert.equal([...worker.dead, ...native.dead], []);
  assert.not(worker.heartbeat.loopRuns);
});

test('R-38: a sleeping laptop and an overloaded machine do not kill a worker', async () => {
  const worker = new Worker();
  worker.heartbeat.begin(1_000);
  for (let time = 0; time < 100; time += 1) {
    // Asked, and not heard yet: the timer of the look comes before what the pipe has.
    worker.answers = false;
    await worker.clock.advance(2_000);
    // Nothing runs for an hour, and the look is late by as much.
    worker.clock.sleep(3_600_000);
    await worker.clock.advance(2_000);
    worker.wakes();
    await worker.clock.advance(2_000);
  }
  assert.equal(worker.dead, []);
});

/** A server that owes a response. */
class Owing {
  readonly clock = new SimulatedClock();
  awaits = true;
  loopRuns = true;
  responds = false;
  asked = 0;
  readonly dead: string[] = [];
  readonly probe: Probe = new Probe({
    clock: this.clock,
    awaits: () => this.awaits,
    loopRuns: () => this.loopRuns,
    ask: () => {
      this.asked += 1;
      if (this.responds) queueMicrotask(() => this.probe.responded());
    },
    dead: (why) => void this.dead.push(why),
  });
}

test('R-38: a server that owes a response and does not answer a probe is reported dead once', async () => {
  const server = new Owing();
  await server.clock.advance(18_000);
  assert.is(server.asked, 1);
  assert.equal(server.dead, []);
  await server.clock.advance(100_000);
  assert.equal(server.dead, ['does not respond although its event loop runs']);
  assert.is(server.clock.timers, 0);
});

test('R-38: a server that sends notifications but no responses is dead', async () => {
  const server = new Owing();
  await server.clock.advance(10_000);
  assert.is(server.asked, 1);
  for (let time = 0; time < 12; time += 1) {
    server.probe.received();
    await server.clock.advance(1_000);
  }
  assert.is(server.dead.length, 1);
});

test('R-38: a call has no time limit while its server answers probes', async () => {
  const server = new Owing();
  server.responds = true;
  await server.clock.advance(3_600_000);
  assert.is(server.asked, 360);
  assert.equal(server.dead, []);
});

test('a server that owes nothing, computes, or sends messages is not probed', async () => {
  for (const [member, value] of [
    ['awaits', false],
    ['loopRuns', false],
  ] as const) {
    const server = new Owing();
    server[member] = value;
    await server.clock.advance(3_600_000);
    assert.is(server.asked, 0);
  }
  const speaks = new Owing();
  for (let time = 0; time < 1_000; time += 1) {
    await speaks.clock.advance(4_000);
    speaks.probe.received();
  }
  assert.is(speaks.asked, 0);
});
