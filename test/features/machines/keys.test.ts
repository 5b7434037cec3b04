/** Instances of keys: one for each key, created by its first accepted event, and open to the callers whose roles allow it. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { canonicalKey, handleOfKey, problemOfKey } from '../../../src/features/machines/keys.ts';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('keys');

interface Room {
  readonly members: Readonly<Record<string, string>>;
  readonly said: readonly string[];
}

const room = setup({
  types: {
    input: {} as { key: string; principal: string },
    context: {} as Room,
    events: {} as
      | { type: 'say'; text: string; by: string }
      | { type: 'invite'; who: string; by: string }
      | { type: 'drop'; who: string; by: string }
      | { type: 'close'; by: string }
      | { type: 'tidy' },
  },
}).createMachine({
  context: ({ input }) => ({ members: { [input.principal]: 'host' }, said: [] }),
  initial: 'open',
  states: {
    open: {
      on: {
        say: { actions: assign({ said: ({ context, event }) => [...context.said, `${event.by}: ${event.text}`] }) },
        invite: {
          actions: assign({ members: ({ context, event }) => ({ ...context.members, [event.who]: 'guest' }) }),
        },
        drop: {
          actions: assign({
            members: ({ context, event }) =>
              Object.fromEntries(Object.entries(context.members).filter(([name]) => name !== event.who)),
          }),
        },
        close: 'closed',
        tidy: { actions: assign({ said: [] }) },
      },
    },
    closed: { type: 'final' },
  },
});

function rooms() {
  return createServer({ name: 'rooms', version: '1.0.0' }).machine('room', room, {
    key: { argument: 'room', schema: z.string().max(64) },
    events: {
      say: z.object({ text: z.string() }),
      invite: z.object({ who: z.string() }),
      drop: z.object({ who: z.string() }),
      close: true,
    },
    roles: {
      of: ({ principal, context }) => context.members[principal],
      host: { events: '*' },
      guest: { events: ['say'], view: ({ context }) => ({ said: context.said.length }) },
    },
    view: ({ context }) => ({ said: context.said, members: context.members }),
    keep: true,
  });
}

test('a key has one handle, whatever the machine, the kind and the spelling', () => {
  assert.is(handleOfKey('room', 'argument', 'lobby').length, 24);
  assert.is(handleOfKey('room', 'argument', 'lobby'), handleOfKey('room', 'argument', 'lobby'));
  const others = [handleOfKey('rooms', 'argument', 'lobby'), handleOfKey('room', 'tenant', 'lobby')];
  assert.not.ok(others.includes(handleOfKey('room', 'argument', 'lobby')));
  assert.is(canonicalKey('cafe\u0301'), 'café');
  for (const wrong of ['', 'a\nb', 'a\u0000', 'a\u202eb', ' a', 'a ', '\ud800', 'é'.repeat(129), 7, null])
    assert.ok(problemOfKey(wrong) !== undefined, JSON.stringify(wrong));
});

test('the first accepted event creates the instance of a key, and a look creates nothing', async () => {
  const server = rooms();
  const ada = await connect(server, { auth: { principal: 'ada' } });
  const before = await ada.call('room_get', { room: 'lobby' });
  assert.equal(before.structuredContent, {
    ...{ key: 'lobby', state: 'absent', status: 'absent', accepts: ['say', 'invite', 'drop', 'close'], version: 0 },
  });
  const said = await ada.call('room_say', { room: 'lobby', text: 'hi' });
  assert.is(said.structuredContent?.key, 'lobby');
  assert.equal(said.structuredContent?.view, { said: ['ada: hi'], members: { ada: 'host' } });
  await server.close();
});

test('a caller without a role cannot distinguish an instance from none, and a role sees and sends its part', async () => {
  const server = rooms();
  const ada = await connect(server, { auth: { principal: 'ada' } });
  const bob = await connect(server, { auth: { principal: 'bob' } });
  await ada.call('room_say', { room: 'lobby', text: 'hi' });
  for (const [tool, more] of [
    ['room_get', {}],
    ['room_say', { text: 'let me in' }],
    ['room_end', {}],
  ] as const) {
    const refused = await bob.call(tool, { room: 'lobby', ...more });
    assert.ok(refused.isError, tool);
    assert.match(JSON.stringify(refused.content), 'no \\"room\\" that you may use has this key');
  }
  await ada.call('room_invite', { room: 'lobby', who: 'bob' });
  const seen = await bob.call('room_say', { room: 'lobby', text: 'thanks' });
  assert.equal(seen.structuredContent?.view, { said: 2 });
  assert.equal(seen.structuredContent?.accepts, ['say']);
  const refused = await bob.call('room_invite', { room: 'lobby', who: 'eve' });
  assert.ok(refused.isError);
  assert.match(JSON.stringify(refused.content), 'your role does not include it');
  await ada.call('room_drop', { room: 'lobby', who: 'bob' });
  assert.ok((await bob.call('room_get', { room: 'lobby' })).isError);
  await server.close();
});

test('the program sends events without a role, also those that no client may send', async () => {
  const server = rooms();
  const sent = await server.send('room', 'lobby', { type: 'say', text: 'good morning' });
  assert.is(sent.key, 'lobby');
  assert.equal(sent.view, { said: ['program: good morning'], members: { program: 'host' } });
  assert.equal((await server.send('room', 'lobby', { type: 'tidy' })).view, { said: [], members: { program: 'host' } });
  const key = { idempotencyKey: 'once' };
  await server.send('room', 'lobby', { type: 'say', text: 'one' }, key);
  const again = await server.send('room', 'lobby', { type: 'say', text: 'one' }, key);
  assert.equal(again.view, { said: ['program: one'], members: { program: 'host' } });
  await server.close();
});
