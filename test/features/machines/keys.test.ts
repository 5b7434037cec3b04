/** Instances of keys: one for each key, created by its first accepted event, and open to the callers whose roles allow it. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import { actorId } from '../../../src/features/machines/handle-record.ts';
import { canonicalKey, handleOfKey, problemOfKey } from '../../../src/features/machines/keys.ts';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { ALICE, BOB, disk, orderKind, stage } from './support.ts';

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

test('an event that creates nothing is rejected for a key without an instance, and for one whose instance has ended', async () => {
  const server = rooms();
  const tidy = () => server.send('room', 'lobby', { type: 'tidy' }, { create: false });
  const isUnknown = await tidy().catch((error: unknown) => error);
  assert.match(String(isUnknown), 'there is no "room" with this key');
  assert.is(isUnknown instanceof HandleError && isUnknown.reason, 'unknown');
  const ada = await connect(server, { auth: { principal: 'ada' } });
  assert.not.ok((await ada.call('room_say', { room: 'lobby', text: 'mine' })).isError);
  assert.equal((await tidy()).view, { said: [], members: { ada: 'host' } });
  await ada.call('room_close', { room: 'lobby' });
  assert.match(String(await tidy().catch((error: unknown) => error)), 'there is no "room" with this key');
  await server.close();
});

test('the log warns once of an instance whose only member is the program', async () => {
  const { server, logged } = loggedServer({ name: 'rooms' });
  const more = { key: { argument: 'room' }, events: { say: z.object({ text: z.string() }) } } as const;
  const warnings = () => logged.filter((line) => line.includes('which no client can have'));
  server.machine('open', room, { ...more, roles: { of: () => 'guest', guest: { events: ['say'] } } });
  server.machine('signed', room, {
    ...more,
    roles: { of: ({ auth }) => auth?.scopes[0] ?? auth?.principal.at(0), guest: { events: ['say'] } },
  });
  server.machine('room', room, {
    ...more,
    roles: { of: ({ principal, context }) => context.members[principal], host: { events: '*' } },
  });
  await server.send('open', 'lobby', { type: 'tidy' });
  await server.send('signed', 'lobby', { type: 'tidy' });
  assert.equal(warnings(), []);
  for (const key of ['lobby', 'hall']) await server.send('room', key, { type: 'tidy' });
  assert.is(warnings().length, 1);
  assert.match(warnings()[0] ?? '', /machine "room": the program created an instance/);
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

test('a role that is taken away before the turn of an event rejects the event', async () => {
  const server = rooms();
  const ada = await connect(server, { auth: { principal: 'ada' } });
  const bob = await connect(server, { auth: { principal: 'bob' } });
  await ada.call('room_say', { room: 'lobby', text: 'hi' });
  await ada.call('room_invite', { room: 'lobby', who: 'bob' });
  // Both wait in the mailbox of the instance; the right of the second is that of its turn.
  const [dropped, said] = await Promise.all([
    ada.call('room_drop', { room: 'lobby', who: 'bob' }),
    bob.call('room_say', { room: 'lobby', text: 'still here' }),
  ]);
  assert.not.ok(dropped.isError);
  assert.ok(said.isError);
  const { structuredContent } = await ada.call('room_get', { room: 'lobby' });
  assert.not.match(JSON.stringify(structuredContent), 'still here');
  await server.close();
});

test('an instance that has ended makes room for a new one of its key', async () => {
  const server = rooms();
  const ada = await connect(server, { auth: { principal: 'ada' } });
  await ada.call('room_say', { room: 'lobby', text: 'one' });
  assert.is((await ada.call('room_close', { room: 'lobby' })).structuredContent?.status, 'done');
  assert.is((await ada.call('room_get', { room: 'lobby' })).structuredContent?.status, 'done');
  const again = await ada.call('room_say', { room: 'lobby', text: 'two' });
  assert.equal(again.structuredContent?.view, { said: ['ada: two'], members: { ada: 'host' } });
  await server.close();
});

const note = setup({
  types: {
    input: {} as { key: string; principal: string },
    context: {} as { lines: readonly string[] },
    events: {} as { type: 'add'; line: string; by: string },
  },
}).createMachine({
  context: { lines: [] },
  on: { add: { actions: assign({ lines: ({ context, event }) => [...context.lines, `${event.by}: ${event.line}`] }) } },
});

const ADD = { add: z.object({ line: z.string() }) };

test('a key by principal or tenant is that of the caller, and no argument names another', async () => {
  const server = createServer({ name: 'notes', version: '1.0.0' })
    .machine('mine', note, { key: 'principal', events: ADD, view: ({ context }) => context })
    .machine('ours', note, {
      ...{ key: 'tenant', events: ADD, view: ({ context }) => context },
      tenant: ({ scopes }) => scopes.find((scope) => scope.startsWith('org:')),
    });
  const org = (principal: string, name: string) => ({
    auth: { principal, scopes: name === '' ? [] : [`org:${name}`] },
  });
  const ada = await connect(server, org('ada', 'acme'));
  const bob = await connect(server, org('bob', 'acme'));
  const eve = await connect(server, org('eve', 'other'));
  await ada.call('mine_add', { line: 'a' });
  await ada.call('ours_add', { line: 'b' });
  await bob.call('ours_add', { line: 'c' });
  assert.is((await bob.call('mine_get', {})).structuredContent?.status, 'absent');
  assert.equal((await ada.call('ours_get', {})).structuredContent?.view, { lines: ['ada: b', 'bob: c'] });
  assert.is((await eve.call('ours_get', {})).structuredContent?.status, 'absent');
  // The program names the principal.
  assert.equal((await server.send('mine', 'ada', { type: 'add', line: 'd' })).view, {
    lines: ['ada: a', 'program: d'],
  });
  const stranger = await connect(server, org('zoe', ''));
  assert.match(JSON.stringify((await stranger.call('ours_get', {})).content), 'you belong to no tenant');
  await server.close();
});

test('events and input that keys exclude are rejected with the fix', () => {
  const server = createServer({ name: 'wrong', version: '1.0.0' });
  const rejects = (options: object, message: RegExp): void =>
    assert.throws(() => server.machines.register({ name: 'n', machine: note, events: ADD, ...options }), message);
  rejects({ key: 'principal', input: z.object({ a: z.string() }) }, /an event creates an instance/);
  rejects({ key: 'principal', events: { add: z.object({ by: z.string() }) } }, /by: a machine with keys receives/);
});

test('a function that names no role, or throws, gives none, and the log has it', async () => {
  const { server, logged } = loggedServer({ name: 'rooms', version: '1.0.0' });
  let answer: () => unknown = () => 'nobody';
  server.machine('n', note, {
    ...{ key: { argument: 'room' }, events: ADD },
    roles: { of: () => Reflect.apply(answer, undefined, []) as string, all: { events: '*' } },
  });
  const ada = await connect(server, { auth: { principal: 'ada' } });
  const call = async (): Promise<boolean> => (await ada.call('n_add', { room: 'r', line: 'x' })).isError === true;
  assert.ok(await call());
  answer = () => {
    throw new Error('no table of members');
  };
  assert.ok(await call());
  answer = () => Promise.resolve('all');
  assert.ok(await call());
  answer = () => 'all';
  assert.not.ok(await call());
  assert.match(logged.join('\n'), 'no table of members');
  await server.close();
});

test('an instance with keep does not expire, and a restarted process finds its key', async () => {
  const kind = {
    ...orderKind(),
    keyed: { kind: 'argument', argument: 'order', create: 'event', roles: undefined, keep: true },
  } as const;
  const store = disk();
  const first = await stage([kind], { store });
  const add = { type: 'add', data: { item: 'tea' } };
  await first.handles.sendTo('order', 'o1', add, ALICE);
  await first.handles.stop();
  const { handles } = await first.again({ laterMs: 400 * 86_400_000 });
  const view = await handles.sendTo('order', 'o1', add, BOB);
  assert.is(view.key, 'o1');
  assert.is(view.expires, '');
  assert.equal(view.view, { items: ['tea', 'tea'] });
  // The history says who has sent what.
  const history = await store.events(actorId('order', view.handle), '', 0, 10);
  assert.match(JSON.stringify(history), '\\"by\\":\\"alice\\"');
  assert.match(JSON.stringify(history), '\\"by\\":\\"bob\\"');
  await handles.stop();
});

test('only a caller with a role reads a shared instance, and subscribes to it', async () => {
  const server = rooms();
  const as = async (principal: string) => {
    const client = await connect(server, { auth: { principal } });
    await client.initialize();
    return client;
  };
  const ada = await as('ada');
  const bob = await as('bob');
  await server.send('room', 'lobby', { type: 'say', text: 'hi' });
  await server.send('room', 'lobby', { type: 'invite', who: 'ada' });
  const uri = 'troupe://room/lobby';
  const outcome = (asked: Promise<unknown>): Promise<string> => asked.then(JSON.stringify, String);
  assert.match(await outcome(ada.read(uri)), 'said');
  assert.match(await outcome(bob.read(uri)), /not found/i);
  assert.is(await outcome(ada.send('resources/subscribe', { uri })), '{}');
  assert.match(await outcome(bob.send('resources/subscribe', { uri })), /not found/i);
  await server.send('room', 'lobby', { type: 'say', text: 'again' });
  assert.equal(await ada.notification('notifications/resources/updated'), { uri });
  await server.close();
});
