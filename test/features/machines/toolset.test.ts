/** What clients see of a machine: its tools, their answers, its resources, and whose they are. */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { z } from 'zod';
import type { CallToolResult } from '../../../src/core/protocol/types.ts';
import { StoreError } from '../../../src/core/store/store.ts';
import { createServer, type JsonObject, type Server } from '../../../src/index.ts';
import { ErrorResponse, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { orderMachine, orderOptions, withShop } from './shop.ts';
import { disk } from './support.ts';

const test = suite('a machine as a toolset');

function dataOf({ structuredContent, ...rest }: CallToolResult): JsonObject {
  assert.not.ok(rest.isError, textOf({ ...rest }));
  return Object(structuredContent);
}

async function create(client: TestClient, args: JsonObject = { customer: 'Ada' }): Promise<string> {
  const { handle } = dataOf(await client.call('order_create', args));
  return String(handle);
}

const bare = (): Server => createServer({ name: 'bare', version: '1.0.0', log: () => {} });

test('a machine gives one tool for each event, and those that create, get, list and end', () =>
  withShop(async ({ client }) => {
    const { tools } = await client().modern('tools/list');
    const shown = Array.isArray(tools) ? tools.map((tool) => Object(tool)) : [];
    assert.equal(
      shown.map(({ name }) => name),
      [
        'order_create',
        'order_add_item',
        'order_pay',
        'order_sign',
        'order_cancel',
        'order_get',
        'order_list',
        'order_end',
      ],
    );
    for (const { name, outputSchema } of shown) {
      assert.match(name, /^[A-Za-z0-9_.-]{1,128}$/);
      // The results of the other tools have the same shape: a model reads it twice, and not eight times.
      assert.is(outputSchema?.type, /_(create|get)$/.test(name) ? 'object' : undefined, name);
    }
    const [made, added] = shown;
    assert.match(made.description, /^Something to buy\.\n/);
    assert.match(made.description, /It starts in cart and ends in paid or cancelled\./);
    assert.not.match(JSON.stringify(shown), /internal/);
    const { state } = made.outputSchema.properties;
    assert.equal(state, { type: 'string', enum: ['cart', 'signing', 'paid', 'cancelled'] });
    assert.is(added.description, 'Adds to it\nAccepted in cart.');
    assert.match(shown[4].description, /Accepted in cart and signing\.$/);
    assert.equal(Object.keys(added.inputSchema.properties), ['handle', 'sku', 'quantity', 'idempotencyKey']);
    assert.equal(added.inputSchema.required, ['handle', 'sku']);
    const hints = new Map(shown.map(({ name, annotations }) => [name, annotations]));
    assert.is(hints.get('order_get').readOnlyHint, true);
    assert.is(hints.get('order_end').destructiveHint, true);
  }));

test('R-18: while the store is away, calls of a client that can be asked have not happened, without an incident for each', async () => {
  const store = disk();
  const logged: string[] = [];
  await withShop(
    async ({ client }) => {
      const ada = client();
      const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
      const call = (name: string, args: JsonObject): Promise<unknown> =>
        ada.modern('tools/call', { name, arguments: args }, meta);
      const { handle } = Object(Object(await call('order_create', { customer: 'Ada' })).structuredContent);
      for (const fault of ['busy', 'full', 'failed'] as const) {
        store.fails = new StoreError(fault, 'the database is away');
        for (const [name, args] of [
          ['order_create', { customer: 'Ada' }],
          ['order_add_item', { handle, sku: 'tea' }],
        ] as const) {
          try {
            await call(name, args);
            assert.unreachable(name);
          } catch (error) {
            assert.instance(error, ErrorResponse);
            const { code, data, message } = error as ErrorResponse;
            assert.equal([code, data], [-32603, { reason: 'storage' }]);
            assert.match(message, 'Nothing has happened. Try again later');
            assert.not.match(message, 'step');
          }
        }
      }
      store.fails = undefined;
      assert.equal(logged, []);
    },
    { store, log: (level, message) => void logged.push(`${level}: ${message}`) },
  );
});

test('lists are the same for every client, in both eras, whatever there is behind handles', () =>
  withShop(async ({ client }) => {
    const first = await client('ada').modern('tools/list');
    const old = client('bob');
    await old.initialize('2025-11-25');
    await create(old);
    const { tools } = await old.send('tools/list');
    assert.equal(tools, first.tools);
    const later = await client('ada').modern('tools/list');
    assert.equal(later.tools, first.tools);
    const { resourceTemplates } = await client('eve').modern('resources/templates/list');
    assert.equal(Array.isArray(resourceTemplates) && resourceTemplates.map((each) => Object(each).uriTemplate), [
      'troupe://order/{handle}',
      'troupe://order/{handle}/chart',
    ]);
    const { resources } = await old.send('resources/list');
    assert.equal(resources, []);
  }));

for (const era of ['legacy', 'modern'] as const) {
  test(`an instance goes its way through its tools (${era})`, () =>
    withShop(async ({ client }) => {
      const ada = client('ada');
      if (era === 'legacy') await ada.initialize('2025-06-18');
      const made = await ada.call('order_create', { customer: 'Ada' });
      const data = dataOf(made);
      const handle = String(data.handle);
      assert.ok(handle.length >= 22);
      assert.is(data.state, 'cart');
      assert.is(data.status, 'active');
      assert.equal(data.view, { customer: 'Ada', items: [] });
      assert.match(textOf(made), new RegExp(`^order ${handle}: cart\ncustomer: Ada\nitems: none\nAccepted next:\n`));
      assert.match(textOf(made), /- order_add_item \(sku: "tea" \| "cup", quantity\?: integer\)\n/);
      assert.match(textOf(made), /- order_sign \(\)\n/);

      const added = dataOf(await ada.call('order_add_item', { handle, sku: 'tea', quantity: 3 }));
      assert.equal(added.view, { customer: 'Ada', items: [{ sku: 'tea', quantity: 3 }] });
      assert.ok(Number(added.version) > Number(data.version));
      assert.equal(dataOf(await ada.call('order_get', { handle })).view, added.view);

      const list = dataOf(await ada.call('order_list'));
      assert.equal(Array.isArray(list.handles) && list.handles.map((each) => Object(each).handle), [handle]);

      const paid = await ada.call('order_pay', { handle });
      assert.equal([dataOf(paid).status, dataOf(paid).output], ['done', { paid: 3 }]);
      assert.match(
        textOf(paid),
        /^pay: cart → paid\norder \S+: done \(in paid\)\n.*result:\n {2}paid: 3\nIt accepts no more events\./s,
      );

      const other = await create(ada);
      assert.is(dataOf(await ada.call('order_end', { handle: other })).status, 'ended');
      const late = await ada.call('order_pay', { handle: other });
      assert.is(late.isError, true);
    }));
}

test('an event that the state does not take is refused, with those that it does', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const handle = await create(ada);
    await ada.call('order_add_item', { handle, sku: 'tea' });
    await ada.call('order_cancel', { handle });
    const late = await ada.call('order_pay', { handle });
    assert.is(late.isError, true);
    assert.is(late.structuredContent, undefined);
  }));

test('a guard that says no is named', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const handle = await create(ada);
    const refused = await ada.call('order_pay', { handle });
    assert.is(refused.isError, true);
    assert.match(textOf(refused), /filled/);
    assert.match(textOf(refused), /- order_add_item \(sku: "tea" \| "cup", quantity\?: integer\)/);
  }));

test('arguments that do not fit are refused by path, with what was expected', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const handle = await create(ada);
    const refused = await ada.call('order_add_item', { sku: 'tent', type: 'pay', idempotencyKey: '' });
    assert.is(refused.isError, true);
    for (const line of [
      /- handle: expected string of 1 to 256 characters, got nothing/,
      /- sku: /,
      /- type: /,
      /- idempotencyKey: /,
    ])
      assert.match(textOf(refused), line);
    assert.equal(dataOf(await ada.call('order_get', { handle })).view, { customer: 'Ada', items: [] });
    const extra = await ada.call('order_pay', { handle, sku: 'tea' });
    assert.match(textOf(extra), /- sku: expected nothing: unknown argument/);
  }));

test('the same key again does it once, and answers as the first time', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const handle = await create(ada, { customer: 'Ada', idempotencyKey: 'a' });
    assert.is(await create(ada, { customer: 'Ada', idempotencyKey: 'a' }), handle);
    const add = { handle, sku: 'tea', idempotencyKey: 'b' };
    const first = await ada.call('order_add_item', add);
    await ada.call('order_add_item', { handle, sku: 'cup' });
    assert.equal(await ada.call('order_add_item', add), first);
    const { view } = dataOf(await ada.call('order_get', { handle }));
    assert.is(Object(view).items.length, 2);
  }));

test('S-01: no client reaches an event that its author has not listed, nor one of XState', () =>
  withShop(async ({ client, server }) => {
    server.machine('all', orderMachine, { ...orderOptions, single: true });
    const ada = client('ada');
    const handle = await create(ada);
    const { handle: other } = dataOf(await ada.call('all_create', { customer: 'Ada' }));
    const forged = [
      'internal',
      '*',
      'xstate.done.actor.name',
      'xstate.error.actor.name',
      'xstate.stop',
      'xstate.init',
      'xstate.after.60000.order.cart',
    ];
    for (const event of forged) {
      assert.match(String(await ada.call(`order_${event}`, { handle }).catch(String)), /Unknown tool/);
      const refused = await ada.call('all_send', { handle: String(other), event });
      assert.is(refused.isError, true, event);
      assert.match(textOf(refused), /- event: expected one of "add_item", "pay", "sign", "cancel"/);
      const data = await ada.call('all_send', { handle: String(other), event: 'cancel', data: { type: event } });
      assert.is(data.isError, true, event);
    }
    for (const [name, each] of [
      ['order', handle],
      ['all', other],
    ] as const)
      assert.is(dataOf(await ada.call(`${name}_get`, { handle: String(each) })).state, 'cart');
  }));

test('S-01: an event of XState, or a pattern, cannot be listed', () => {
  const machine = createMachine({ initial: 'a', states: { a: { on: { '*': 'b' }, after: { 5: 'b' } }, b: {} } });
  for (const event of ['xstate.stop', 'xstate.after.5.(machine).a', '*', 'a.*'])
    assert.throws(
      () => bare().machine('m', machine, { events: { [event]: true } }),
      /clients cannot send|got a wildcard/,
    );
});

test('S-04: a handle belongs to its owner only, for every tool and resource', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const eve = client('eve');
    const handle = await create(ada);
    const guessed = `${handle.slice(0, -1)}${handle.endsWith('A') ? 'B' : 'A'}`;
    const calls: readonly (readonly [string, JsonObject])[] = [
      ['order_get', {}],
      ['order_add_item', { sku: 'tea' }],
      ['order_pay', {}],
      ['order_cancel', { idempotencyKey: 'k' }],
      ['order_end', {}],
    ];
    for (const [tool, args] of calls) {
      const stolen = await eve.call(tool, { handle, ...args });
      assert.is(stolen.isError, true, tool);
      const never = await eve.call(tool, { handle: guessed, ...args });
      assert.is(textOf(stolen).replaceAll(handle, guessed), textOf(never), tool);
    }
    for (const uri of [`troupe://order/${handle}`, `troupe://order/${handle}/chart`]) {
      const refused: unknown = await eve.modern('resources/read', { uri }).catch((error: unknown) => error);
      assert.match(String(refused), /Resource not found/);
      // Another test reads the picture, which takes a second of processor time.
      if (!uri.endsWith('/chart')) await ada.modern('resources/read', { uri });
    }
    assert.equal(dataOf(await eve.call('order_list')).handles, []);
    assert.is(dataOf(await ada.call('order_get', { handle })).status, 'active');
  }));

test('S-04: an anonymous caller is shown no list, and uses handles by their ids', () =>
  withShop(async ({ client }) => {
    const handle = await create(client());
    const listed = await client().call('order_list');
    assert.equal(dataOf(listed).handles, []);
    assert.match(textOf(listed), /no user is signed in/);
    assert.is(dataOf(await client().call('order_get', { handle })).state, 'cart');
  }));

test.full('a handle is a resource, as JSON and as a picture with its state marked', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const handle = await create(ada);
    const uri = `troupe://order/${handle}`;
    const read = async (at: string): Promise<JsonObject> => {
      const { contents } = await ada.modern('resources/read', { uri: at });
      return Object(Array.isArray(contents) ? contents[0] : undefined);
    };
    const { mimeType, text } = await read(uri);
    assert.is(mimeType, 'application/json');
    const got = dataOf(await ada.call('order_get', { handle }));
    assert.equal(JSON.parse(String(text)), { ...got, expires: JSON.parse(String(text)).expires });
    const chart = await read(`${uri}/chart`);
    assert.is(chart.mimeType, 'image/svg+xml');
    assert.match(String(chart.text), /^<svg [\s\S]*fill="#1f3c9e"[^>]*font-weight="bold">cart</);
  }),
);

test('the handles of who asks complete {handle}', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const mine = [await create(ada), await create(ada)];
    await create(client('eve'));
    const ref = { type: 'ref/resource', uri: 'troupe://order/{handle}' };
    const completed = async (value: string): Promise<unknown> => {
      const { completion } = await ada.modern('completion/complete', { ref, argument: { name: 'handle', value } });
      return Object(completion).values;
    };
    assert.equal(await completed(''), mine);
    assert.equal(await completed(String(mine[1]).slice(0, 12)), [mine[1]]);
  }));

test('S-04: each change notifies the subscribers of the handle, in both eras, and only its owner', () =>
  withShop(async ({ client, clock }) => {
    const ada = client('ada');
    const handle = await create(ada);
    const uri = `troupe://order/${handle}`;
    const old = client('ada');
    const stranger = client('eve');
    for (const each of [old, stranger]) {
      await each.initialize('2025-06-18');
      await each.send('resources/subscribe', { uri });
      await each.send('resources/subscribe', { uri: `${uri}/chart` });
    }
    const [own, other] = [client('ada'), client('eve')];
    for (const each of [own, other]) {
      const listen = each.modern('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } });
      listen.catch(() => {});
      await each.notification('notifications/subscriptions/acknowledged');
    }
    await ada.call('order_add_item', { handle, sku: 'tea' });
    await clock.advance(1_000);
    assert.is((await old.notification('notifications/resources/updated')).uri, uri);
    assert.is((await old.notification('notifications/resources/updated')).uri, `${uri}/chart`);
    assert.is((await own.notification('notifications/resources/updated')).uri, uri);
    assert.equal([...stranger.rest(), ...other.rest()], []);
    // What happens without a call is told too: the cart is given up.
    await clock.advance(60_000);
    assert.is((await own.notification('notifications/resources/updated')).uri, uri);
    assert.is(dataOf(await ada.call('order_get', { handle })).status, 'done');
  }));

test('one tool sends all events, where the author prefers it', () =>
  withShop(async ({ client, server }) => {
    server.machine('all', orderMachine, { ...orderOptions, single: true });
    const ada = client('ada');
    const made = await ada.call('all_create', { customer: 'Ada' });
    const handle = String(dataOf(made).handle);
    assert.match(textOf(made), /- all_send \(event: "add_item", data: { sku: "tea" \| "cup", quantity\?: integer }\)/);
    const added = await ada.call('all_send', { handle, event: 'add_item', data: { sku: 'cup' } });
    assert.equal(Object(dataOf(added).view).items, [{ sku: 'cup', quantity: 1 }]);
    const wrong = await ada.call('all_send', { handle, event: 'add_item', data: { sku: 'tent' } });
    assert.match(textOf(wrong), /- data\.sku: /);
    assert.is(dataOf(await ada.call('all_send', { handle, event: 'pay' })).status, 'done');
  }));

test('a question of an instance is asked of the client that calls, in both eras', () =>
  withShop(async ({ client }) => {
    const ada = client('ada');
    const handle = await create(ada);
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
    const call = { name: 'order_sign', arguments: { handle } };
    const asked = await ada.modern('tools/call', call, meta);
    const [key = '', question] = Object.entries(Object(asked.inputRequests))[0] ?? [];
    assert.is(Object(question).params.message, 'Who signs?');
    const inputResponses = { [key]: { action: 'accept', content: { name: 'Grace' } } };
    const signed = await ada.modern('tools/call', { ...call, requestState: asked.requestState, inputResponses }, meta);
    assert.is(Object(signed.structuredContent).state, 'cart');
    assert.is(Object(signed.structuredContent).view.customer, 'Grace');

    const old = client('ada');
    await old.initialize('2025-06-18', { elicitation: {} });
    const again = old.call('order_sign', { handle });
    const sent = Object(await old.next((message) => Object(message).method === 'elicitation/create'));
    old.raw(JSON.stringify({ jsonrpc: '2.0', id: sent.id, result: { action: 'accept', content: { name: 'Joan' } } }));
    assert.is(Object(dataOf(await again).view).customer, 'Joan');
  }));

test('a name that is taken refuses the whole machine, and leaves what there was', () => {
  const server = bare();
  server.tool('order_get', {}, () => 'mine');
  assert.throws(
    () => server.machine('order', orderMachine, orderOptions),
    /tool "order_get" of machine "order" is already registered \(by code\)/,
  );
  assert.is(server.tools.catalogue.all().length, 1);
  assert.equal(server.resources.catalogue.all(), []);
  server.tools.remove('order_get');
  server.machine('order', orderMachine, orderOptions);
  assert.throws(() => server.machine('order', orderMachine, orderOptions), /machine "order" is already registered/);
});

test('a definition that cannot be offered is refused, with how to mend it', () => {
  const machine = createMachine({
    initial: 'a',
    states: { a: { on: { go: 'b', get: 'b', 'two words': 'b' } }, b: {} },
  });
  const refusal = (name: string, options: object): string => {
    try {
      bare().machines.register({ name, machine, events: { go: true }, ...options });
      return 'offered';
    } catch (error) {
      return error instanceof Error ? error.message : '';
    }
  };
  assert.is(refusal('m', {}), 'offered');
  assert.match(refusal('a name', {}), /machine "a name": expected a name of 1 to 100 letters/);
  assert.match(refusal('m', { events: {} }), /events: expected at least one/);
  assert.match(
    refusal('m', { events: { get: true } }),
    /every machine already has a tool m_get. Rename the event or set single: true/,
  );
  assert.match(refusal('m', { events: { 'two words': true } }), /"m_two words" is not a valid tool name/);
  assert.is(refusal('m', { events: { get: true, 'two words': true }, single: true }), 'offered');
  assert.match(
    refusal('m', { events: { go: z.object({ handle: z.string() }) } }),
    /events\.go: handle: every tool of a machine/,
  );
  assert.match(
    refusal('m', { events: { go: z.object({ type: z.string() }) } }),
    /events\.go: type: this member is reserved/,
  );
  assert.match(refusal('m', { input: z.object({ idempotencyKey: z.string() }) }), /input: idempotencyKey: every tool/);
  assert.match(refusal('m', { machine: {} }), /machine: expected a statechart of XState v5/);
});

test('a machine can be disabled, shown again, and taken back, with all of its tools and resources', () =>
  withShop(async ({ client, server }) => {
    const ada = client('ada');
    server.machine('other', orderMachine, orderOptions);
    const names = async (): Promise<number> => {
      const { tools } = await ada.modern('tools/list');
      return Array.isArray(tools) ? tools.length : -1;
    };
    assert.is(await names(), 16);
    server.machines.disable('other');
    assert.is(await names(), 8);
    server.machines.enable('other');
    assert.is(await names(), 16);
    server.machines.remove('other');
    assert.is(await names(), 8);
    assert.equal(
      server.machines.definitions().map(({ name }) => name),
      ['order'],
    );
  }));

test('an instance continues when its machine is replaced by one with other events', () =>
  withShop(async ({ client, server }) => {
    const ada = client('ada');
    const handle = await create(ada);
    const { cancel: _, ...events } = orderOptions.events;
    server.machines.update({ ...orderOptions, name: 'order', machine: orderMachine, events });
    assert.match(String(await ada.call('order_cancel', { handle }).catch(String)), /Unknown tool/);
    const added = dataOf(await ada.call('order_add_item', { handle, sku: 'tea' }));
    assert.equal(added.accepts, ['add_item', 'pay', 'sign']);
  }));
