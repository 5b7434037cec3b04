/** Texts of a machine behind a gateway name its tools as the gateway offers them. */
import { createServer, type MountOptions, type Server } from 'troupe';
import { connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { suite } from '../../harness/door.ts';

const test = suite('names in texts through a gateway');

const note = createMachine({
  context: { text: 'Then call note_close or note_get.' },
  initial: 'open',
  states: { open: { on: { close: 'closed' } }, closed: { type: 'final' } },
});

function shop(): Server {
  const server = createServer({ name: 'shop', version: '1.0.0', log() {} });
  server.machine('note', note, { events: { close: true }, view: ({ context }) => context });
  server.tool('read', {}, () => 'note_close');
  return server;
}

/** The texts of calls through a chain of mounts. */
async function texts(
  chain: readonly (readonly [string, MountOptions])[],
  ...calls: readonly string[]
): Promise<string[]> {
  const servers = [shop()];
  for (const [name, options] of chain) {
    const gateway = createServer({ name, version: '1.0.0', log() {} });
    await gateway.mount(name, servers[0] ?? shop(), options);
    servers.unshift(gateway);
  }
  const client = await connect(servers[0] ?? shop());
  const found: string[] = [];
  let handle: unknown = 'none';
  for (const call of calls) {
    const args = call.endsWith('create') || call.endsWith('read') ? {} : { handle: String(handle) };
    const result = await client.call(call, args);
    handle = Object(result.structuredContent).handle ?? handle;
    found.push(String(Object(result.content[0]).text));
    assert.is(result._meta?.['io.troupe/names'], undefined);
  }
  await client.close();
  for (const server of servers) await server.close();
  return found;
}

test('the names that a machine says are those of the gateway, and data stays as it is', async () => {
  const [created = '', read = '', wrong = ''] = await texts([['up', {}]], 'up_note_create', 'up_read', 'up_note_close');
  assert.match(created, '- up_note_close (');
  assert.match(created, 'Then call note_close or note_get.');
  assert.is(read, 'note_close');
  assert.match(wrong, 'Then call note_close or note_get.');
  const [, , again = ''] = await texts([['up', {}]], 'up_note_create', 'up_note_end', 'up_note_close');
  assert.match(again, /Call up_note_\w+ to/);
});

test('a new name, a prefix, and two gateways', async () => {
  const [renamed = ''] = await texts([['up', { prefix: 'x.', rename: { note_close: 'shut' } }]], 'x.note_create');
  assert.match(renamed, '- shut (');
  const [plain = ''] = await texts([['up', { prefix: false }]], 'note_create');
  assert.match(plain, '- note_close (');
  const [twice = ''] = await texts(
    [
      ['in', {}],
      ['out', {}],
    ],
    'out_in_note_create',
  );
  assert.match(twice, '- out_in_note_close (');
  const [hidden = ''] = await texts([['up', { except: ['note_close'] }]], 'up_note_create');
  assert.match(hidden, '- note_close (');
});

test('a client that does not ask gets no places', async () => {
  const server = shop();
  const client = await connect(server);
  assert.is((await client.call('note_create'))._meta?.['io.troupe/names'], undefined);
  const asked = await client.call('note_create', {}, { meta: { 'io.troupe/names': true } });
  const text = String(Object(asked.content[0]).text);
  const places = Object(asked._meta)['io.troupe/names'];
  assert.equal(
    places.map(([start, end]: [number, number]) => text.slice(start, end)),
    ['note_close'],
  );
  await client.close();
  await server.close();
});
