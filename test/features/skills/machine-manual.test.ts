/** Manuals of machines: skills that are made from the charts that run. */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import * as z from 'zod';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { ErrorCode, elicitWith, type Server } from '../../../src/index.ts';
import { connect, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { officialHost, readAll } from './support.ts';

const test = suite('manuals of machines');

const order = setup({
  types: { events: {} as { type: 'add'; sku: string } | { type: 'pay' } | { type: 'audit' } | { type: 'internal' } },
  actors: { consent: elicitWith(z.object({ agreed: z.boolean() })) },
  guards: { filled: () => true },
  delays: { patience: 60_000 },
}).createMachine({
  id: 'order',
  initial: 'cart',
  on: { audit: { description: 'Writes\nit down' } },
  states: {
    cart: {
      description: 'Collects items',
      on: { add: {}, pay: { guard: 'filled', target: 'paying', description: 'Asks first' }, internal: 'lost' },
      after: { patience: 'lost' },
    },
    paying: {
      initial: 'asking',
      states: {
        asking: { invoke: { src: 'consent', input: { message: 'Pay?' }, onDone: 'agreed' } },
        agreed: { type: 'final' },
      },
      onDone: 'done',
    },
    done: { type: 'final' },
    lost: { type: 'final' },
  },
});

const OPTIONS = {
  description: 'An order in a tea shop:\nit\'s # "hot"',
  input: z.object({ customer: z.string() }),
  events: { add: z.object({ sku: z.enum(['tea', 'cup']) }), pay: true, audit: true },
  skill: true,
} as const;

const ADDRESS = 'skill://shop/order/SKILL.md';

function served(options: object = {}): Server {
  const { server } = loggedServer({ name: 'shop' });
  server.machine('order', order, { ...OPTIONS, ...options });
  return server;
}

async function textOf(client: TestClient, uri: string): Promise<string> {
  return Object((await client.modern('resources/read', { uri })).contents)[0].text;
}

async function listed(client: TestClient): Promise<readonly unknown[]> {
  const { skills } = await client.modern('skills/list');
  return Object(skills).map(({ uri }: JsonObject) => uri);
}

test('has the states, and the call of each event with its arguments, guard, target and meaning', async () => {
  const server = served();
  const client = await connect(server);
  const text = await textOf(client, ADDRESS);
  for (const line of [
    "description: 'An order in a tea shop: it''s # \"hot\" Read it before you use order_create",
    '1. `order_create(customer: string)` creates an instance',
    '`order_get(handle)` shows the state again',
    'It begins in `cart` and ends in `done` or `lost`.',
    '## In every state\n\n- `order_audit(handle)` (the state stays): Writes it down\n',
    '## In `cart`\n\nCollects items\n- `order_add(handle, sku: "tea" | "cup")` (the state stays)\n',
    '- `order_pay(handle)`, only if `filled` → `paying`: Asks first\n',
    '- By itself, after patience → `lost`\n',
    '## In `paying.asking`\n\n- The server asks the user.\n',
    '## In `paying.agreed`\n\nThis part is done.\n',
    '## In `done`\n\nThe instance is done: it accepts no event.\n',
  ])
    assert.ok(text.includes(line), `${line}\n is not in\n${text}`);
  // Clients cannot send this event.
  assert.not.match(text, /internal/);
  assert.match(await textOf(client, 'skill://shop/order/references/chart.mmd'), /^stateDiagram-v2\n/);
  assert.match(await textOf(client, 'skill://shop/order/references/transitions.md'), /\| `cart` \(Collects items\) \|/);
  await server.close();
});

test('the official SkillsClient reads and verifies it', async () => {
  const server = served();
  const host = await officialHost(server, '2026-07-28');
  assert.is(await readAll(host), 3);
  const [entry] = (await host.skills.list()).skills;
  assert.match(String(entry?.frontmatter.description), /^An order in a tea shop: it's # "hot" Read it before/);
  await host.client.close();
  await server.close();
});

test('one tool for all events is called with the event and its data', async () => {
  const server = served({ single: true });
  const text = await textOf(await connect(server), ADDRESS);
  assert.match(text, '- `order_send(handle, event: "add", data: { sku: "tea" | "cup" })` (the state stays)');
  assert.match(text, '- `order_send(handle, event: "pay")`, only if `filled` → `paying`');
  await server.close();
});

test('changes with the machine, and is withdrawn with it', async () => {
  const server = served();
  const client = await connect(server);
  assert.match(await textOf(client, ADDRESS), /Collects items/);
  const [definition] = server.machines.definitions();
  assert.ok(definition);
  server.machines.update({ ...definition, description: 'Another order' });
  assert.match(await textOf(client, ADDRESS), /Another order/);
  server.machines.update({ ...definition, skill: false });
  assert.equal(await listed(client), []);
  server.machines.update(definition);
  assert.equal(await listed(client), [ADDRESS]);
  server.machines.remove('order');
  assert.equal(await listed(client), []);
  await server.close();
});

test('is hidden while its machine is disabled', async () => {
  const { server } = loggedServer({ name: 'shop' });
  server.machine('order', order, OPTIONS);
  const client = await connect(server);
  server.machines.disable('order');
  assert.equal(await listed(client), []);
  server.machines.enable('order');
  assert.equal(await listed(client), [ADDRESS]);
  await server.close();
});

test('needs the scopes of its machine', async () => {
  const server = served({ scopes: ['orders'], eventScopes: { get: ['orders:read'] } });
  const client = await connect(server, { auth: { principal: 'ada', scopes: ['orders'] } });
  const error: unknown = await client.modern('resources/read', { uri: ADDRESS }).catch((thrown: unknown) => thrown);
  assert.is(Object(error).code, ErrorCode.Forbidden);
  assert.match(String(error), /orders:read/);
  await server.close();
});

test('its name is made of the names of the server and of the machine', async () => {
  const { server } = loggedServer({ name: 'Shop № 1 (Tea)' });
  server.machine('Tea_Order.v2', order, OPTIONS);
  const client = await connect(server);
  assert.equal(await listed(client), ['skill://shop-1-tea/tea-order-v2/SKILL.md']);
  assert.throws(
    () => server.machine('__', order, OPTIONS),
    /machine "__": skill: expected a name with a letter or a digit/,
  );
  await server.close();
});

test('a server whose machines have no manual has no skills', async () => {
  const { server } = loggedServer({ name: 'shop' });
  server.machine('order', order, { ...OPTIONS, skill: undefined });
  const client = await connect(server);
  assert.not('extensions' in Object((await client.modern('server/discover')).capabilities));
  await server.close();
});
