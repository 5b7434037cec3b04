/** The output gate of an actor: one commit at a time, in order, and no output before the writes that it rests on. */
import * as assert from 'uvu/assert';
import { OutputGate } from '../../../src/core/kernel/output-gate.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the output gate');

interface Commit {
  readonly batch: readonly string[];
  done(): void;
  fail(why: string): void;
}

/** A gate whose commits the test ends, and that writes words. */
function make(verdict: 'retry' | 'discard' | 'close' = 'retry') {
  const clock = new SimulatedClock();
  const commits: Commit[] = [];
  const log: string[] = [];
  const incidents: unknown[] = [];
  let next: string[] = [];
  const writes = {
    take(): readonly string[] {
      const batch = next;
      next = [];
      return batch;
    },
    commit: (batch: readonly string[]) =>
      new Promise<void>((resolve, reject) =>
        commits.push({ batch, done: resolve, fail: (why) => reject(new Error(why)) }),
      ),
    durable: (batch: readonly string[]) => void log.push(`durable ${batch.join('+')}`),
    rejected(batch: readonly string[]) {
      if (verdict === 'retry') next = [...batch, ...next];
      return verdict;
    },
  };
  const incident = (_where: string, error: unknown): string => String(incidents.push(error));
  const gate = new OutputGate(writes, { clock, incident });
  const add = (word: string, atOnce = true): void => {
    next.push(word);
    gate.add(atOnce);
  };
  const sends = (what: string, rejectable = true): void =>
    gate.after(() => void log.push(what), rejectable ? (why) => void log.push(`${what} rejected: ${why}`) : undefined);
  /** Lets the promises settle that the test has ended. */
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  const last = (): Commit => {
    const commit = commits.at(-1);
    assert.ok(commit, 'expected a commit');
    return commit;
  };
  return { clock, commits, last, log, incidents, gate, add, sends, settle };
}

test('output leaves when the writes before it are durable, in order; at once where nothing is pending', async () => {
  const { commits, log, gate, add, sends, settle } = make();
  sends('first');
  add('a');
  sends('second');
  add('b');
  sends('third');
  assert.equal(log, ['first']);
  assert.equal(
    commits.map(({ batch }) => batch),
    [['a']],
  );
  commits[0]?.done();
  await settle();
  assert.equal(log, ['first', 'durable a', 'second']);
  assert.equal(
    commits.map(({ batch }) => batch),
    [['a'], ['b']],
  );
  assert.not.ok(gate.still);
  commits[1]?.done();
  await settle();
  assert.equal(log.slice(3), ['durable b', 'third']);
  assert.ok(gate.still);
});

test('the additions of one turn are one batch, unless the first addition is committed at once', async () => {
  const { commits, add, settle } = make();
  add('a', false);
  add('b', false);
  await settle();
  assert.equal(
    commits.map(({ batch }) => batch),
    [['a', 'b']],
  );
});

test('output of an earlier position does not wait for later writes', async () => {
  const { commits, log, gate, add, settle } = make();
  add('a');
  const position = gate.added;
  commits[0]?.done();
  await settle();
  add('b');
  gate.afterAddition(
    position,
    () => void log.push('read'),
    () => void log.push('rejected'),
  );
  assert.equal(log, ['durable a', 'read']);
});

test('a rejected batch is retried: output that can be rejected is, the rest waits for the retry', async () => {
  const { clock, commits, last, log, gate, add, sends, settle } = make();
  add('a');
  sends('answer');
  sends('event', false);
  last().fail('disk full');
  await settle();
  assert.equal(log, ['answer rejected: disk full']);
  assert.ok(gate.failing);
  assert.is(commits.length, 1);
  await clock.advance(1_000);
  assert.equal(last().batch, ['a']);
  last().done();
  await settle();
  assert.equal(log.slice(1), ['durable a', 'event']);
});

test('output that can be rejected triggers the retry at once, and no batch overtakes the rejected one', async () => {
  const { clock, commits, last, log, add, sends, settle } = make();
  add('a');
  last().fail('disk full');
  await settle();
  add('b');
  assert.is(commits.length, 1);
  sends('answer');
  assert.equal(last().batch, ['a', 'b']);
  last().done();
  await settle();
  assert.equal(log, ['durable a+b', 'answer']);
  await clock.advance(60_000);
  assert.is(commits.length, 2);
});

test('output of the next batch is not rejected with the batch before it', async () => {
  const { last, log, add, sends, settle } = make();
  add('a');
  sends('first');
  add('b');
  sends('second');
  last().fail('disk full');
  await settle();
  assert.equal(log, ['first rejected: disk full']);
  assert.equal(last().batch, ['a', 'b']);
  last().done();
  await settle();
  assert.equal(log.slice(1), ['durable a+b', 'second']);
});

test('a discarded batch is not written again, and its output is rejected', async () => {
  const { clock, commits, last, log, gate, add, sends, settle } = make('discard');
  add('a');
  sends('answer');
  last().fail('disk full');
  await settle();
  assert.equal(log, ['answer rejected: disk full']);
  assert.ok(gate.still);
  await clock.advance(60_000);
  assert.is(commits.length, 1);
});

test('a closed gate rejects what waits and what comes, and writes nothing more', async () => {
  const { clock, commits, log, gate, add, sends, settle } = make();
  add('a');
  sends('answer');
  gate.close('the server stops');
  assert.equal(log, ['answer rejected: the server stops']);
  sends('late');
  assert.equal(log.slice(1), ['late rejected: the store is closed']);
  add('b');
  commits[0]?.done();
  await settle();
  await clock.advance(60_000);
  assert.is(commits.length, 1);
  assert.is(log.length, 2);
});

test('a store that accepts no more closes the gate', async () => {
  const { last, log, gate, add, sends, settle } = make('close');
  add('a');
  sends('answer');
  last().fail('its server has stopped');
  await settle();
  assert.ok(gate.closed);
  assert.equal(log, ['answer rejected: the store is closed']);
});

test('output that throws is an incident, and the output after it leaves', async () => {
  const { last, log, gate, add, sends, settle, incidents } = make();
  add('a');
  gate.after(() => {
    throw new Error('broken');
  });
  sends('next');
  last().done();
  await settle();
  assert.equal(log, ['durable a', 'next']);
  assert.is(incidents.length, 1);
});
