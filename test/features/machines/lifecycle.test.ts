/** The lifecycle of an instance: it obeys `machines/handle.ts`. */
import { readdirSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type HandleLifeEvent, type HandleLifeTag, handleMachine } from '../../../machines/handle.ts';
import { InstanceLifecycle } from '../../../src/features/machines/lifecycle.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the lifecycle of an instance');

const EVENTS = handleMachine.machine.events.filter((type): type is HandleLifeEvent['type'] => type !== '*');
const TAGS: readonly HandleLifeTag[] = ['loaded', 'ready', 'pending', 'changed', 'away'];

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
