/** The option `approve` of a mount: which calls of an upstream, whose author knows nothing of it, wait for people. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import type { ToolAnnotations } from '../../../src/core/protocol/types.ts';
import { createServer, type Mount, type MountOptions, openapi, type Server } from '../../../src/index.ts';
import { openInspector } from '../../../src/inspector/inspector.ts';
import { isJsonArray, isObjectInTest } from '../../../src/testing/test-json.ts';
import { settled, type TestClient } from '../../../src/testing/testing.ts';
import { as, metaOf, OPS, pendingId, textIn, theOnly } from '../../features/approvals/support.ts';
import { idOf, Modern } from '../../features/tasks/support.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { until } from '../../harness/wait.ts';
import { viewerOf } from '../../inspector/viewing.ts';
import { apiServer } from '../openapi/api-server.ts';

const test = suite('approve of a mount');

const ANY = { type: 'object' } as const;
const BY_OPS = { by: { scope: 'ops' } } as const;

interface Stage {
  readonly gateway: Server;
  /** The last one that is mounted. */
  readonly upstream: Server;
  readonly mount: Mount;
  readonly logged: readonly string[];
  /** The names of the tools that ran. */
  readonly ran: string[];
}

/** A shop that knows nothing of approvals. */
function shopOf(ran: string[], annotations: ToolAnnotations = {}): Server {
  const server = createServer({ name: 'upstream', version: '1.0.0', log: () => {} });
  const add = (name: string, more: object = {}): void => {
    server.tool(name, { input: ANY, ...more }, () => {
      ran.push(name);
      return `${name} ran`;
    });
  };
  add('delete_order', { title: 'Look at an order', description: 'Deletes an order.' });
  add('list_orders', { annotations });
  add('erase', { task: 'allowed' });
  add('purge', { visibleTo: ['app'] });
  return server;
}

async function staged(
  options: MountOptions | readonly (readonly [string, MountOptions])[],
  annotations?: ToolAnnotations,
): Promise<Stage> {
  const ran: string[] = [];
  const { server: gateway, logged } = loggedServer({ name: 'gateway' });
  const mounts = isMounts(options) ? options : ([['shop', options]] as const);
  const [last] = await Promise.all(
    mounts.map(async ([name, each]) => {
      const upstream = shopOf(ran, annotations);
      return { upstream, mount: await gateway.mount(name, upstream, each) };
    }),
  ).then((opened) => opened.slice(-1));
  if (!last) throw new Error('expected a mount');
  return { gateway, ...last, logged, ran };
}

function isMounts(
  options: MountOptions | readonly (readonly [string, MountOptions])[],
): options is readonly (readonly [string, MountOptions])[] {
  return Array.isArray(options);
}

function call(client: TestClient, name: string, args: JsonObject = {}): Promise<JsonObject> {
  return client.modern('tools/call', { name, arguments: args });
}

/** True if the call waits for people. */
async function isHeld(client: TestClient, name: string, args: JsonObject = {}): Promise<boolean> {
  const { state } = metaOf(await call(client, name, args));
  return state === 'asked';
}

/** Conditions, arguments, and whether the call needs the approval. */
const CONDITIONS: readonly (readonly [JsonObject, JsonObject, boolean])[] = [
  [{ amount: { min: 100 } }, { amount: 100 }, true],
  [{ amount: { min: 100 } }, { amount: 99.99 }, false],
  [{ amount: { min: 100 } }, { amount: '1' }, true],
  [{ amount: { min: 100 } }, {}, true],
  [{ amount: { max: 0 } }, { amount: 1 }, false],
  [{ amount: { min: 1, max: 5 } }, { amount: 5 }, true],
  [{ amount: { min: 1, max: 5 } }, { amount: 6 }, false],
  [{ amount: { min: 1, present: true } }, {}, false],
  [{ force: true }, { force: true }, true],
  [{ force: true }, { force: false }, false],
  [{ force: true }, { force: 'true' }, true],
  [{ force: true }, {}, false],
  [{ mode: 'all' }, { mode: 'one' }, false],
  [{ mode: 'all' }, { mode: ['all'] }, true],
  [{ mode: { in: ['all', 'most'] } }, { mode: 'most' }, true],
  [{ mode: { in: ['all', 'most'] } }, { mode: 'one' }, false],
  [{ mode: { in: ['all', 1] } }, { mode: 2 }, false],
  [{ mode: { in: ['all', 1] } }, { mode: null }, true],
  [{ where: { present: true } }, { where: null }, true],
  [{ where: { present: true } }, {}, false],
  [{ where: { present: false } }, {}, true],
  [{ where: { present: false } }, { where: 1 }, false],
  [{ toString: { present: true } }, {}, false],
  [{ '/order/total': { min: 100 } }, { order: { total: 120 } }, true],
  [{ '/order/total': { min: 100 } }, { order: { total: 20 } }, false],
  [{ '/lines/1/id': 7 }, { lines: [{}, { id: 7 }] }, true],
  [{ '/lines/1/id': 7 }, { lines: [{ id: 7 }] }, false],
  [{ '/a~1b/c~0d': 1 }, { 'a/b': { 'c~d': 1 } }, true],
  [{ amount: { min: 100 }, force: true }, { amount: 100, force: false }, false],
  [{ amount: { min: 100 }, force: true }, { amount: 100, force: true }, true],
];

for (const [when, args, held] of CONDITIONS)
  test(`with when: ${JSON.stringify(when)}, a call with ${JSON.stringify(args)} ${held ? 'waits' : 'runs'}`, async () => {
    const { gateway, ran } = await staged({
      approve: [{ tools: ['delete_*'], ...BY_OPS, when } as NonNullable<MountOptions['approve']>[number]],
    });
    assert.is(await isHeld(await as(gateway), 'shop_delete_order', args), held);
    assert.is(ran.length, held ? 0 : 1);
    await gateway.close();
  });

/** What a tool says, and whether `destructive` is about it: without `trust`, and with it. */
const EFFECTS: readonly (readonly [ToolAnnotations, boolean, boolean])[] = [
  [{}, true, true],
  [{ readOnlyHint: true }, true, false],
  [{ readOnlyHint: false }, true, true],
  [{ destructiveHint: false }, true, false],
  [{ destructiveHint: true }, true, true],
  [{ readOnlyHint: true, destructiveHint: true }, true, true],
  [{ idempotentHint: true }, true, true],
];

for (const [annotations, untrusted, trusted] of EFFECTS)
  test(`destructive is about a tool that says ${JSON.stringify(annotations)} ${trusted ? 'always' : 'only without trust'}`, async () => {
    for (const [trust, held] of [
      [false, untrusted],
      [true, trusted],
    ] as const) {
      const { gateway } = await staged({ trust, approve: [{ destructive: true, ...BY_OPS }] }, annotations);
      assert.is(await isHeld(await as(gateway), 'shop_list_orders'), held);
      await gateway.close();
    }
  });

test('a pattern needs the approval of the caller, and the tools that no entry names run', async () => {
  const { gateway, ran } = await staged({ approve: ['delete_*'] });
  const client = await as(gateway);
  assert.is(await isHeld(client, 'shop_delete_order'), true);
  const { by, caller } = await theOnly(gateway);
  assert.equal([by, caller], [[{ who: 'the user who calls', missing: 1 }], true]);
  assert.is(textIn(await call(client, 'shop_list_orders')), 'list_orders ran');
  assert.equal(ran, ['list_orders']);
  await gateway.close();
});

test('entries add up: a call that two of them are about needs both', async () => {
  const { gateway } = await staged({
    approve: [
      { tools: ['delete_*'], ...BY_OPS },
      { destructive: true, by: { principals: ['grace'] } },
    ],
  });
  await call(await as(gateway), 'shop_delete_order');
  const { by, policies } = await theOnly(gateway);
  assert.equal(
    by.map(({ who }) => who),
    ['somebody with the scope ops', 'grace'],
  );
  assert.equal(policies, ['mount shop: delete_*', 'mount shop: destructive tools']);
  await gateway.close();
});

test('a pattern that matches no tool is reported, because it may be misspelled', async () => {
  const { gateway, logged } = await staged({ approve: ['delte_*', 'delete_*'] });
  await (await as(gateway)).modern('tools/list', {});
  assert.match(logged.join('\n'), /approve: no tool matches delte_\*/);
  assert.not.match(logged.join('\n'), /matches delete_/);
  await gateway.close();
});

test('lists are as they are without approvals', async () => {
  const plain = await staged({});
  const asked = await staged({ approve: [{ destructive: true, ...BY_OPS }] });
  const lists = await Promise.all(
    [plain, asked].map(async ({ gateway }) => (await as(gateway)).modern('tools/list', {})),
  );
  assert.equal(lists[0], lists[1]);
  await plain.gateway.close();
  await asked.gateway.close();
});

interface Way {
  readonly mounts: readonly (readonly [string, MountOptions])[];
  /** Calls the tool. @returns the result */
  call(gateway: Server): Promise<JsonObject>;
}

const APPROVE: MountOptions = { approve: [{ tools: ['delete_*', 'erase', 'purge'], ...BY_OPS }] };

/** Ways to a tool of a mount that needs an approval: each call waits, runs once with it, and waits again. */
const WAYS: Readonly<Record<string, Way>> = {
  'call_tool of the search': {
    mounts: [['shop', { ...APPROVE, expose: 'search' }]],
    call: async (gateway) =>
      call(await as(gateway), 'call_tool', { name: 'shop_delete_order', arguments: { order: '17' } }),
  },
  'a searched tool by its name': {
    mounts: [['shop', { ...APPROVE, expose: 'search' }]],
    call: async (gateway) => call(await as(gateway), 'shop_delete_order'),
  },
  'another prefix': {
    mounts: [['shop', { ...APPROVE, prefix: 'x.' }]],
    call: async (gateway) => call(await as(gateway), 'x.delete_order'),
  },
  'no prefix': {
    mounts: [['shop', { ...APPROVE, prefix: false }]],
    call: async (gateway) => call(await as(gateway), 'delete_order'),
  },
  'another name': {
    mounts: [['shop', { ...APPROVE, rename: { delete_order: 'look_at_order' } }]],
    call: async (gateway) => call(await as(gateway), 'look_at_order'),
  },
  'the first of two mounts with one name': {
    mounts: [
      ['shop', { ...APPROVE, prefix: false }],
      ['other', { prefix: false }],
    ],
    call: async (gateway) => call(await as(gateway), 'delete_order'),
  },
  'a view, whose tool no model sees': {
    mounts: [['shop', APPROVE]],
    call: async (gateway) => call(await as(gateway), 'shop_purge'),
  },
  'a batch of a session': {
    mounts: [['shop', APPROVE]],
    call: async (gateway) => {
      const client = await as(gateway);
      await client.initialize('2025-03-26');
      const request = { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'shop_delete_order' } };
      client.raw(JSON.stringify([request, { jsonrpc: '2.0', id: 'p', method: 'ping' }]));
      const answers = await client.next((each) => Array.isArray(each));
      const answer = isJsonArray(answers) ? answers.find((each) => isObjectInTest(each) && each.id === 'c') : undefined;
      return isObjectInTest(answer) && isObjectInTest(answer.result) ? answer.result : {};
    },
  },
};

for (const [title, way] of Object.entries(WAYS))
  test(`a call through ${title} waits, and runs once with the approval`, async () => {
    const { gateway, ran } = await staged(way.mounts);
    const id = pendingId(await way.call(gateway));
    assert.equal(ran, []);
    await gateway.approvals.decide(id, { approver: OPS, decision: 'approve' });
    const carriedOut = await way.call(gateway);
    assert.is(carriedOut.isError === true, false, JSON.stringify(carriedOut));
    assert.is(ran.length, 1);
    assert.is.not(pendingId(await way.call(gateway)), id);
    assert.is(ran.length, 1);
    await gateway.close();
  });

test('an approval of one mount approves nothing of another with the same tool', async () => {
  const { gateway, ran } = await staged([
    ['one', APPROVE],
    ['two', APPROVE],
  ]);
  const client = await as(gateway);
  const id = pendingId(await call(client, 'one_delete_order'));
  await gateway.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.is.not(pendingId(await call(client, 'two_delete_order')), id);
  assert.equal(ran, []);
  await gateway.close();
});

test('a call as a task waits, and runs once with the approval', async () => {
  const { gateway, ran } = await staged(APPROVE);
  const client = new Modern(await as(gateway));
  const task = idOf(await client.call('shop_erase'));
  await settled();
  assert.equal(ran, []);
  await gateway.approvals.decide((await theOnly(gateway)).id, { approver: OPS, decision: 'approve' });
  await settled();
  assert.is(await client.said(task), 'erase ran');
  assert.equal(ran, ['erase']);
  await gateway.close();
});

test('a call of the inspector waits, and runs once with the approval', async () => {
  const { gateway, ran } = await staged(APPROVE);
  const { tool, ended, text } = await viewerOf((await openInspector(gateway, { control: true })).url);
  const called = await tool('shop_delete_order');
  await until(async () => (await gateway.approvals.list()).length > 0);
  assert.equal(ran, []);
  await gateway.approvals.decide((await theOnly(gateway)).id, { approver: OPS, decision: 'approve' });
  await ended(called);
  assert.is(await text(called), 'delete_order ran');
  assert.equal(ran, ['delete_order']);
  await gateway.close();
});

test('a person sees the mount, and the words of the upstream as its own', async () => {
  const { gateway } = await staged(APPROVE);
  await call(await as(gateway), 'shop_delete_order', { order: '17' });
  const { title, text } = await theOnly(gateway);
  // The upstream says that it only looks.
  assert.is(title, 'shop_delete_order');
  assert.match(
    text,
    /ada calls the tool shop_delete_order of gateway, which is "delete_order" of the server "shop" behind it\./,
  );
  assert.match(text, /The server "shop" says of it: "Look at an order: Deletes an order\."/);
  assert.match(text, /The server "shop" says of its effects: it may delete/);
  assert.match(text, /Policy: mount shop: delete_\*, erase, purge\./);
  await gateway.close();
});

test('an approval is void once the upstream has another definition of the tool', async () => {
  const { gateway, upstream, mount, ran } = await staged(APPROVE);
  const client = await as(gateway);
  const id = pendingId(await call(client, 'shop_delete_order'));
  await gateway.approvals.decide(id, { approver: OPS, decision: 'approve' });
  upstream.tools.remove('delete_order');
  upstream.tool('delete_order', { input: ANY, description: 'Deletes all orders.' }, () => {
    ran.push('all');
    return 'all are deleted';
  });
  await mount.refresh();
  const again = await call(client, 'shop_delete_order');
  assert.is.not(pendingId(again), id);
  assert.equal(ran, []);
  await gateway.close();
});

test('a changed option voids open approvals, asks again, or lets the call run', async () => {
  const { gateway, mount, ran } = await staged(APPROVE);
  const client = await as(gateway);
  const first = pendingId(await call(client, 'shop_delete_order'));
  await mount.change({
    options: { approve: [{ tools: ['delete_*'], ...BY_OPS, when: { order: { present: false } } }] },
  });
  const second = pendingId(await call(client, 'shop_delete_order'));
  assert.is.not(second, first);
  // It was asked under the other policy.
  await gateway.approvals.decide(first, { approver: OPS, decision: 'approve' });
  assert.is(pendingId(await call(client, 'shop_delete_order')), second);
  await mount.change({ options: {} });
  assert.is(textIn(await call(client, 'shop_delete_order')), 'delete_order ran');
  assert.equal(ran, ['delete_order']);
  await gateway.close();
});

test('a deletion of an OpenAPI document waits, runs once with the approval, and is void once the document sends it elsewhere', async () => {
  const api = await apiServer();
  const { server: gateway } = loggedServer({ name: 'gateway' });
  const mount = await gateway.mount('pets', openapi(`${api.url}/openapi.json`), {
    approve: [{ destructive: true, ...BY_OPS }],
  });
  await mount.ready();
  const client = await as(gateway);
  const remove = (): Promise<JsonObject> => call(client, 'pets_deletePet', { petId: '7' });
  const deletions = (): readonly string[] => api.requests.filter((request) => request.startsWith('DELETE'));
  // Its methods are believed.
  assert.is(await isHeld(client, 'pets_listPets'), false);
  const id = pendingId(await remove());
  await gateway.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.is((await remove()).isError === true, false);
  assert.equal(deletions(), ['DELETE /pets/7']);
  const second = pendingId(await remove());
  await gateway.approvals.decide(second, { approver: OPS, decision: 'approve' });
  api.document = { ...api.document, servers: [{ url: '/v2' }] };
  await mount.refresh();
  assert.is.not(pendingId(await remove()), second);
  assert.equal(deletions(), ['DELETE /pets/7']);
  await gateway.close();
  await api.close();
});
