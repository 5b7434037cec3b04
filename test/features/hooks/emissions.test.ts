/** Webhooks that emit events of the server: each delivery is one event, whatever its attempts and repeats. */
import * as assert from 'uvu/assert';
import type { HookOptions } from '../../../src/features/hooks/define-hook.ts';
import { memoryStore, type Server, type Store } from '../../../src/index.ts';
import { connect, SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { poll } from '../events/support.ts';
import { byGithub, receiver } from './support.ts';

const test = suite('webhooks that emit events');

/** A receiver whose server has the event type `push`. */
async function emitting(options: Partial<HookOptions> = { emit: 'push' }, store?: Store) {
  const define = (server: Server): void => {
    server.event('push', {
      description: 'Commits were pushed.',
      payload: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    });
  };
  const received = await receiver(
    { attempts: 2, ...options },
    store ? { store, keys: ['k'.repeat(32)] } : {},
    new SimulatedClock(),
    define,
  );
  const client = await connect(received.server, { auth: { principal: 'ada' } });
  const { cursor } = await poll(client, 'push');
  return { ...received, client, events: () => poll(client, 'push', { cursor }) };
}

test('R-93: each delivery is one event, whose data is the body and whose id is the key, also if the sender repeats it', async () => {
  const { send, events, hook, server } = await emitting();
  for (const body of ['{"n":1}', '{"n":1}', '{"n":2}']) assert.is((await send(body)).status, 200);
  await until(async () => (await hook.deliveries({ state: 'done' })).length === 2);
  const { ids, data } = await events();
  assert.equal(data, [{ n: 1 }, { n: 2 }]);
  for (const id of ids) assert.match(id, /^[\w-]{43}$/);
  await server.close();
});

test('R-93: a delivery whose process ends between the event and the end of the attempt is one event', async () => {
  const inner = memoryStore();
  const open = (dies: boolean) => {
    const store = new (class extends TestStore {
      override write(writes: Parameters<TestStore['write']>[0]): Promise<void> {
        const ends = dies && writes.some((write) => write.type === 'actor' && write.actor.status.startsWith('done'));
        return ends ? new Promise(() => {}) : super.write(writes);
      }
    })(inner);
    return emitting(undefined, store);
  };
  const first = await open(true);
  await first.send('{"n":1}');
  await until(async () => (await first.events()).ids.length === 1);
  await until(async () => (await first.hook.deliveries())[0]?.state === 'done');
  const next = await open(false);
  await until(async () => (await next.hook.deliveries())[0]?.attempt === 2);
  await until(async () => (await next.hook.deliveries())[0]?.state === 'done');
  const { cursor } = await poll(first.client, 'push');
  assert.equal((await poll(next.client, 'push', { cursor })).ids, []);
  await next.server.close();
});

test('a handler chooses the type, the data, the id and the time; without a result nothing is emitted', async () => {
  const at = new Date(5_000);
  const { send, events, hook, server } = await emitting({
    to: ({ body, type }) =>
      type === 'push' ? { emit: 'push', data: { n: String(body).length }, id: 'up_1', at } : undefined,
  });
  await send('"abc"');
  await send('"abcd"', byGithub('"abcd"', { 'x-github-event': 'star' }));
  await until(async () => (await hook.deliveries({ state: 'done' })).length === 2);
  const { ids, data } = await events();
  assert.equal([ids, data], [['up_1'], [{ n: 3 }]]);
  await server.close();
});

test('a body that does not fit the type, and a type that is unknown, become dead letters that say so', async () => {
  const { send, events, hook, server, clock } = await emitting({
    to: ({ body }) => ({ emit: body === 'unknown' ? 'nothing' : 'push', data: body }),
  });
  await send('{"n":"text"}');
  await send('"unknown"');
  await until(async () => {
    await clock.advance(10_000);
    return (await hook.deliveries({ state: 'dead' })).length === 2;
  });
  const errors = (await hook.deliveries({ state: 'dead' })).map(({ error }) => error).join('\n');
  assert.match(errors, /no such event type/);
  assert.match(errors, /does not fit "payload"/);
  assert.equal((await events()).ids, []);
  await server.close();
});
