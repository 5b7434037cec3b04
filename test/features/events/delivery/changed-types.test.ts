/** Types of events that change or go: subscribers learn of it at once, not with the next event. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { createServer } from '../../../../src/index.ts';
import { suite } from '../../../harness/door.ts';
import { deliveryStage, idsOf, receiver, SEP, subscription, untilDelivered } from './support.ts';

const test = suite('types that change under webhooks');

const typeWith = (properties: JsonObject, required: readonly string[] = ['n']) => ({
  description: 'A thing has happened.',
  payload: { type: 'object', properties, required },
});
const NUMBER = { n: { type: 'number' } };

const called = (url: string): JsonObject => ({ ...subscription(url), name: 'thing' });

test('a removed type ends its subscriptions at once, and their receivers get "terminated"', async () => {
  const hook = await receiver();
  const { server, as, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  const thing = server.event('thing', typeWith(NUMBER));
  await ada.modern('events/subscribe', called(hook.url), SEP);
  thing.remove();
  await untilDelivered(hook, 1);
  const { type, error } = hook.posts[0]?.body ?? {};
  assert.equal(
    [type, error],
    ['terminated', { code: -32023, message: 'the event type "thing" is gone', data: { kind: 'event' } }],
  );
  await close();
  await hook.close();
});

test('other schemas end subscriptions at once; new members, and the same type again in one turn, do not', async () => {
  const hook = await receiver();
  const { server, as, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  let thing = server.event('thing', typeWith(NUMBER));
  await ada.modern('events/subscribe', called(hook.url), SEP);
  const replace = (properties: JsonObject): void => {
    thing.remove();
    thing = server.event('thing', typeWith(properties));
  };
  replace(NUMBER);
  await thing.emit({ n: 1 }, { id: 'e1' });
  await untilDelivered(hook, 1);
  replace({ ...NUMBER, more: { type: 'string' } });
  await thing.emit({ n: 2 }, { id: 'e2' });
  await untilDelivered(hook, 2);
  assert.equal(idsOf(hook), ['e1', 'e2']);
  replace({ n: { type: 'string' } });
  await untilDelivered(hook, 3);
  const { type, error } = hook.posts[2]?.body ?? {};
  assert.is(type, 'terminated');
  assert.match(JSON.stringify(error), /have changed: subscribe again.*schema_changed/);
  await close();
  await hook.close();
});

test('a reload without a type ends its subscriptions, and one with it does not', async () => {
  const hook = await receiver();
  const { server, as, close } = deliveryStage([hook.origin]);
  const program = (names: readonly string[]) => {
    const loaded = createServer({ name: 'program', version: '1.0.0' });
    for (const name of names) loaded.event(name, typeWith(NUMBER));
    return loaded;
  };
  server.eventsOf(program(['thing', 'other']));
  const ada = await as('ada');
  await ada.modern('events/subscribe', called(hook.url), SEP);
  await ada.modern('events/subscribe', { ...called(hook.url), name: 'other' }, SEP);
  server.eventsOf(program(['thing', 'other']));
  server.eventsOf(program(['other']));
  await untilDelivered(hook, 1);
  assert.match(JSON.stringify(hook.posts.map(({ body }) => body)), /^\[\{"type":"terminated"[^[]*\\"thing\\" is gone/);
  await close();
  await hook.close();
});
