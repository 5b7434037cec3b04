/** The lifecycle of an instance: its table does what `machines/handle.ts` draws, and the instance obeys it. */
import { readdirSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { initialTransition, transition } from 'xstate';
import { type HandleLifeEvent, type HandleLifeTag, handleMachine } from '../../../machines/handle.ts';
import { pathOf } from '../../../src/core/kernel/charts/paths.ts';
import { statesOf } from '../../../src/core/kernel/charts/state-table.ts';
import { InstanceLifecycle } from '../../../src/features/machines/lifecycle.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the lifecycle of an instance');

const EVENTS = handleMachine.events.filter((type): type is HandleLifeEvent['type'] => type !== '*');
const TAGS: readonly HandleLifeTag[] = ['loaded', 'ready', 'pending', 'changed', 'away'];

test('the table takes the transitions of the chart, and no other', () => {
  const snapshots = [initialTransition(handleMachine)[0]];
  const states = new Map([
    [pathOf(snapshots[0] ?? { status: '' }), statesOf<HandleLifeEvent['type'], HandleLifeTag>(handleMachine)],
  ]);
  let taken = 0;
  for (let snapshot = snapshots.pop(); snapshot; snapshot = snapshots.pop()) {
    const state = states.get(pathOf(snapshot));
    if (!state) throw new Error(`${pathOf(snapshot)}: expected a state`);
    assert.is(state.path, pathOf(snapshot));
    assert.is(state.final, snapshot.status !== 'active');
    for (const tag of TAGS) assert.is(state.has(tag), snapshot.hasTag(tag), `${state.path} ${tag}`);
    for (const type of EVENTS) {
      const after = state.after(type);
      assert.is(after !== undefined, !state.final && snapshot.can({ type }), `${state.path} ${type}`);
      if (!after) continue;
      taken += 1;
      const [next] = transition(handleMachine, snapshot, { type });
      assert.is(after.path, pathOf(next));
      assert.is(state.after(type), after);
      if (!states.has(after.path)) snapshots.push(next);
      states.set(after.path, after);
    }
  }
  assert.is(states.size, 14);
  assert.ok(taken > 40, `${taken} transitions`);
});

test('an instance that is committing serves no call, and a change meanwhile waits for the next turn', () => {
  const life = new InstanceLifecycle();
  for (const event of ['wake', 'activated', 'commit', 'change'] as const) assert.ok(life.take(event), event);
  assert.equal([life.has('ready'), life.has('changed'), life.can('rest')], [false, true, false]);
  assert.ok(life.take('durable'));
  assert.equal([life.has('ready'), life.has('changed'), life.can('rest')], [true, true, false]);
});

test('an instance that has left memory accepts nothing', () => {
  const life = new InstanceLifecycle();
  assert.ok(life.take('leave'));
  assert.ok(life.over);
  for (const event of EVENTS) assert.not.ok(life.take(event), event);
});

test('the instance sends every event of the chart and reads every tag', () => {
  const folder = new URL('../../../src/features/machines/', import.meta.url);
  const code = readdirSync(folder)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(new URL(file, folder), 'utf8'))
    .join('');
  for (const event of EVENTS) assert.match(code, `'${event}'`, event);
  for (const tag of TAGS) assert.match(code, `has('${tag}')`, tag);
});
