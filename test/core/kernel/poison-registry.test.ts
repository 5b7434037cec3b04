/** The poison rule: which work must not run again after it has ended the process, and when that is forgotten. */
import * as assert from 'uvu/assert';
import {
  deathsOf,
  hasCrashed,
  isPoison,
  PoisonRegistry,
  REMEMBERED_MS,
} from '../../../src/core/kernel/poison-registry.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the poison rule');

function registryAt(start: number): {
  registry: PoisonRegistry<string>;
  time: { now: number };
  died: (crashed: boolean) => void;
} {
  const time = { now: start };
  const registry = new PoisonRegistry<string>(() => time.now);
  const died = (crashed: boolean): void => {
    registry.died('work', { crashed, at: time.now, factsOf: (before) => before ?? 'first' });
  };
  return { registry, time, died };
}

function poison(registry: PoisonRegistry<string>): boolean {
  const record = registry.find('work');
  return record !== undefined && isPoison(record);
}

test('quarantines work that crashed the process twice', () => {
  const { registry, died } = registryAt(0);
  died(true);
  assert.not.ok(poison(registry));
  died(true);
  assert.ok(poison(registry));
});

test('R-39: quarantines work only at the third death if the process may have been killed from outside', () => {
  const { registry, died } = registryAt(0);
  died(false);
  died(false);
  assert.not.ok(poison(registry));
  died(false);
  assert.ok(poison(registry));
});

test('R-39: forgets unexplained deaths once the process survives the work, and crashes not', () => {
  const { registry, died } = registryAt(0);
  assert.not.ok(registry.survived('work'));
  died(false);
  assert.ok(registry.survived('work'));
  assert.is(registry.size, 0);
  died(true);
  died(false);
  assert.ok(registry.survived('work'));
  const record = registry.find('work');
  assert.is(record && deathsOf(record), 1);
});

test('R-39: counts a process as crashed by its own mark, or by its supervisor if that means the same process', () => {
  assert.ok(hasCrashed({ pid: 7, ended: true }, undefined));
  assert.ok(hasCrashed({ pid: 7, ended: false }, { pid: 7, crashed: true }));
  assert.not.ok(hasCrashed({ pid: 7, ended: false }, { pid: 7, crashed: false }));
  assert.not.ok(hasCrashed({ pid: 7, ended: false }, { pid: 8, crashed: true }));
  assert.not.ok(hasCrashed({ pid: 7, ended: false }, undefined));
  assert.not.ok(hasCrashed(undefined, { pid: 7, crashed: true }));
});

test('keeps the facts of the first death, and expires a record a day after the last', () => {
  const { registry, time, died } = registryAt(1_000);
  died(true);
  registry.describe('work', 'described');
  time.now += REMEMBERED_MS - 1;
  died(true);
  assert.is(registry.find('work')?.facts, 'described');
  time.now += REMEMBERED_MS - 1;
  assert.ok(poison(registry));
  time.now += 1;
  assert.equal([...registry.records()], []);
  assert.is(registry.find('work'), undefined);
  died(true);
  assert.is(registry.find('work')?.crashes, 1, 'an expired record does not count');
});

test('releases the work that is meant, and ignores an expired record of an earlier process', () => {
  const { registry, died } = registryAt(REMEMBERED_MS);
  registry.restore('old', { crashes: 2, unexplained: 0, at: 0, facts: 'old' });
  assert.is(registry.size, 0);
  died(true);
  assert.is(
    registry.release(() => false),
    undefined,
  );
  assert.is(registry.release((key) => key === 'work')?.[0], 'work');
  assert.is(registry.size, 0);
});

test('evicts the oldest of more than 1,000 works', () => {
  const { registry } = registryAt(0);
  for (let each = 0; each <= 1_000; each += 1)
    registry.died(`work ${each}`, { crashed: true, at: 0, factsOf: () => '' });
  assert.is(registry.size, 1_000);
  assert.is(registry.find('work 0'), undefined);
});
