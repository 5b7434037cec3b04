/** The server's half of a machine's view: its page, its live data, the key of a view, and who acts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { z } from 'zod';
import type { InspectionRecord } from '../../../src/core/kernel/inspection/records.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { createServer, memory, type Server, type ServerOptions, sample, sqlite } from '../../../src/index.ts';
import { connect, SimulatedClock, settled, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { orderMachine } from '../machines/shop.ts';
import { itemsOf, namesOf, VIEWS, WITH_VIEWS } from './support.ts';

const test = suite("a machine's view");

type App = NonNullable<Parameters<Server['machines']['register']>[0]['app']>;

/** A thread lays out the chart of the page, which takes a busy machine some time. */
const LAYOUT_MS = 30_000;

interface Bench {
  readonly clock: SimulatedClock;
  readonly server: Server;
  /** A modern client of this principal. */
  as(principal: string): TestClient;
}

async function shop(app: App = true, options: Partial<ServerOptions> = {}): Promise<Bench> {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'shop', version: '1.0.0', clock, log: () => {}, ...options });
  server.machine('order', orderMachine, {
    app,
    input: z.object({ customer: z.string() }),
    events: {
      add_item: z.object({ sku: z.enum(['tea', 'cup']), quantity: z.number().int().min(1) }),
      pay: true,
      sign: true,
      cancel: z.object({ why: z.string().optional() }),
    },
    view: ({ context }) => ({ items: context.items, customer: context.customer }),
    annotations: { cancel: { destructiveHint: true } },
  });
  const { transport, connect: open } = memory();
  await server.listen(transport);
  return { clock, server, as: (principal) => new TestClient(open({ principal }), { deadlineMs: LAYOUT_MS }) };
}

const dataOf = (result: JsonObject): JsonObject => Object(result.structuredContent);
/** A call, with the key of a view and with capabilities if they are given. */
function call(
  client: TestClient,
  name: string,
  args: JsonObject,
  { key, capabilities = {} }: { readonly key?: unknown; readonly capabilities?: JsonObject } = {},
): Promise<JsonObject> {
  return client.modern(
    'tools/call',
    { name, arguments: args },
    {
      'io.modelcontextprotocol/clientCapabilities': capabilities,
      ...(key === undefined ? {} : { 'dev.troupe/view': { key: String(key) } }),
    },
  );
}

/** Creates an order. */
async function opened(
  client: TestClient,
): Promise<{ readonly handle: string; readonly uri: string; readonly key: string }> {
  const result = await call(client, 'order_create', { customer: 'Ada' });
  const handle = String(dataOf(result).handle);
  const { key } = Object(Object(result._meta)['dev.troupe/view']);
  return { handle, uri: `troupe://order/${handle}`, key };
}

async function definitionOf(client: TestClient): Promise<JsonObject> {
  const [create] = itemsOf('tools/list', await client.modern('tools/list'));
  const { resourceUri } = Object(Object(create?._meta).ui);
  const { contents } = await client.read(resourceUri);
  const [, json = ''] = /id="definition">(.*?)<\/script>/.exec(String(Object(contents[0]).text)) ?? [];
  return JSON.parse(json);
}

test('opens from create and get only, and lists its tools for views', async () => {
  const { server, as } = await shop();
  const client = as('ada');
  const tools = itemsOf('tools/list', await client.modern('tools/list', {}, WITH_VIEWS));
  const opening = tools
    .filter(({ _meta }) => Object(Object(_meta).ui).resourceUri !== undefined)
    .map(({ name }) => name);
  assert.equal(opening, ['order_create', 'order_get']);
  const forViews = tools
    .filter(({ _meta }) => Object(Object(_meta).ui).visibility !== undefined)
    .map(({ name }) => name);
  assert.equal([...forViews].sort(), ['troupe_answer', 'troupe_watch']);
  assert.not.ok((await namesOf(client, 'tools/list', {})).some((name) => String(name).startsWith('troupe_')));
  await server.close();
});

test('the page has the chart and a form for each event, and the data of no instance', async () => {
  const { server, as } = await shop();
  await opened(as('ada'));
  const { states, events, ...rest } = await definitionOf(as('ada'));
  assert.equal(rest, {
    kind: 'machine',
    server: 'shop',
    title: 'Order',
    machine: 'order',
    watch: 'troupe_watch',
    answer: 'troupe_answer',
    get: 'order_get',
    uri: 'troupe://order/{handle}',
    texts: { title: 'Order' },
    translations: {},
    address: 'handle',
  });
  assert.equal(states, ['cart', 'signing', 'paid', 'cancelled']);
  const listed = Array.isArray(events) ? events.map((event) => Object(event)) : [];
  assert.equal(
    listed.map(({ name, tool, confirm }) => [name, tool, confirm]),
    [
      ['add_item', 'order_add_item', false],
      ['pay', 'order_pay', false],
      ['sign', 'order_sign', false],
      ['cancel', 'order_cancel', true],
      ['end', 'order_end', true],
    ],
  );
  const [sku, quantity] = listed[0].fields;
  assert.equal([sku.name, sku.required, sku.field.kind], ['sku', true, 'one']);
  assert.equal([quantity.name, quantity.field.kind, quantity.field.minimum], ['quantity', 'number', 1]);
  await server.close();
});

test.full('options choose the opening tools, the title, the order, the labels, and what asks again', async () => {
  const { clock, server, as } = await shop({
    on: ['get'],
    title: 'A tea order',
    hide: ['sign', 'customer'],
    order: ['pay'],
    confirm: ['pay'],
    chart: 'steps',
    labels: { states: { cart: 'In the cart' }, events: { pay: 'Pay now' }, delays: { '1 min': 'Time to decide' } },
    translations: { de: { title: 'Teebestellung' } },
  });
  const client = as('ada');
  const tools = itemsOf('tools/list', await client.modern('tools/list'));
  assert.equal(
    tools.filter(({ _meta }) => _meta).map(({ name }) => name),
    ['order_get'],
  );
  const get = tools.find(({ name }) => name === 'order_get');
  const { contents } = await client.read(Object(Object(get?._meta).ui).resourceUri);
  const [, json = ''] = /id="definition">(.*?)<\/script>/.exec(String(Object(contents[0]).text)) ?? [];
  const { title, events, texts, translations } = JSON.parse(json);
  assert.not.match(String(Object(contents[0]).text), /<svg/);
  assert.is(title, 'A tea order');
  assert.equal(
    events.map(({ name, confirm }: JsonObject) => [name, confirm]),
    [
      ['pay', true],
      ['add_item', false],
      ['cancel', false],
      ['end', false],
    ],
  );
  assert.equal(texts.labels.states, { cart: 'In the cart' });
  assert.equal(translations, { de: { title: 'Teebestellung' } });
  const { uri } = await opened(client);
  await clock.advance(1);
  const live = dataOf(await call(client, 'troupe_watch', { uri }));
  assert.equal(live.view, { items: [] });
  // The page names it in its language.
  assert.is(Object(Array.isArray(live.timers) ? live.timers[0] : {}).label, '1 min');
  await server.close();
});

test('a view learns which events cannot happen, and by which guard', async () => {
  const { server, as } = await shop();
  const client = as('ada');
  const { handle, uri, key } = await opened(client);
  const before = dataOf(await call(client, 'troupe_watch', { uri }));
  assert.equal(before.blocked, [{ event: 'pay', guard: 'filled' }]);
  await call(client, 'order_add_item', { handle, sku: 'tea', quantity: 1 }, { key });
  assert.equal(dataOf(await call(client, 'troupe_watch', { uri })).blocked, []);
  await server.close();
});

test('a result that opens a view, or that a view asks for, has all that the view shows; others do not', async () => {
  const { server, as } = await shop({ hide: ['customer'] });
  const client = as('ada');
  const metaOf = ({ _meta }: JsonObject): JsonObject => Object(Object(_meta)['dev.troupe/view']);
  const views = { extensions: VIEWS };
  const created = await call(client, 'order_create', { customer: 'Ada' }, { capabilities: views });
  const { handle } = dataOf(created);
  const { now: _, ...live } = Object(metaOf(created).live);
  const { now: __, ...watched } = dataOf(await call(client, 'troupe_watch', { uri: `troupe://order/${handle}` }));
  const { changed: ___, ...shown } = watched;
  assert.equal(live, shown);
  assert.equal(live.view, { items: [] });
  const { key } = metaOf(created);
  const item = { handle: String(handle), sku: 'tea', quantity: 1 };
  const added = metaOf(await call(client, 'order_add_item', item, { key }));
  assert.equal(Object(Object(added.live).view).items.length, 1);
  assert.is(metaOf(await call(client, 'order_get', { handle: String(handle) })).live, undefined);
  assert.equal(metaOf(await call(client, 'order_add_item', item)), {});
  await server.close();
});

test('a call that fails names its reason for views, which have sentences of their own', async () => {
  const { server, as } = await shop();
  const client = as('ada');
  const { handle, uri, key } = await opened(client);
  const reasonOf = ({ _meta }: JsonObject): unknown => Object(Object(_meta)['dev.troupe/view']).reason;
  const answer = { id: uri, answers: { none: { action: 'decline' } } };
  assert.is(reasonOf(await call(client, 'order_pay', { handle }, { key })), 'refused');
  assert.is(reasonOf(await call(client, 'order_pay', { handle: 'none' }, { key })), 'unknown');
  assert.is(reasonOf(await call(client, 'troupe_watch', { uri: 'troupe://order/none' })), 'unknown');
  assert.is(reasonOf(await call(client, 'troupe_answer', answer)), 'key');
  assert.is(reasonOf(await call(client, 'troupe_answer', answer, { key })), 'invalid');
  await call(client, 'order_end', { handle }, { key });
  assert.is(reasonOf(await call(client, 'order_pay', { handle }, { key })), 'ended');
  await server.close();
});

test('views get delays, questions with their forms, and the time; the model gets neither', async () => {
  const { clock, server, as } = await shop();
  const client = as('ada');
  const { handle, uri, key } = await opened(client);
  await clock.advance(10_000);
  const first = dataOf(await call(client, 'troupe_watch', { uri }));
  assert.equal(first.timers, [{ label: '1 min', at: '2026-01-01T00:01:00.000Z', lasts: 60_000 }]);
  assert.is(first.now, '2026-01-01T00:00:10.000Z');
  assert.equal(first.asks, []);
  await call(client, 'order_sign', { handle }, { key });
  const { asks, version, expires } = dataOf(await call(client, 'troupe_watch', { uri }));
  const [ask] = Array.isArray(asks) ? asks.map((each) => Object(each)) : [];
  assert.equal(
    { ...ask, fields: undefined },
    {
      id: 'name',
      kind: 'elicit',
      message: 'Who signs?',
      schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      fields: undefined,
      until: expires,
    },
  );
  assert.equal([ask.fields[0].name, ask.fields[0].field.kind], ['name', 'text']);
  const seen = dataOf(await call(client, 'order_get', { handle }, { key }));
  assert.equal(seen.asks, [{ id: 'name', kind: 'elicit', message: 'Who signs?' }]);
  assert.equal([seen.timers, seen.now, seen.version], [undefined, undefined, version]);
  // A resource is read by views whose host does not let them wait, and by programs that know no views.
  const read = async (capabilities: JsonObject): Promise<JsonObject> => {
    const meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities };
    const { contents } = await client.modern('resources/read', { uri }, meta);
    return JSON.parse(String(Object(Array.isArray(contents) ? contents[0] : {}).text));
  };
  assert.ok((await read({ extensions: VIEWS })).now);
  assert.is((await read({})).now, undefined);
  await server.close();
});

test('S-65: a person answers in the view, and a call without a good key does not', async () => {
  const { server, as } = await shop();
  const [ada, bob] = [as('ada'), as('bob')];
  const { handle, uri, key } = await opened(ada);
  const other = await opened(ada);
  const foreign = await opened(bob);
  await call(ada, 'order_sign', { handle }, { key });
  const answers = { name: { action: 'accept', content: { name: 'Grace' } } };
  const keys: readonly (readonly [TestClient, unknown])[] = [
    [ada, undefined],
    [ada, 'guess'],
    [ada, other.key],
    [ada, foreign.key],
    [bob, key],
    [bob, foreign.key],
  ];
  for (const [client, bad] of keys) {
    const refused = await call(client, 'troupe_answer', { id: uri, answers }, { key: bad });
    assert.is(refused.isError, true);
    assert.match(textOf(refused), /no valid key of a view/);
  }
  const misfit = await call(
    ada,
    'troupe_answer',
    { id: uri, answers: { name: { action: 'accept', content: {} } } },
    { key },
  );
  assert.is(misfit.isError, true);
  assert.match(textOf(misfit), /name/);
  const unknown = await call(ada, 'troupe_answer', { id: uri, answers: { nothing: { action: 'decline' } } }, { key });
  assert.match(textOf(unknown), /no longer open/);
  const done = await call(ada, 'troupe_answer', { id: uri, answers }, { key });
  assert.is(done.isError, undefined);
  assert.equal([dataOf(done).state, dataOf(done).asks], ['cart', undefined]);
  assert.equal(Object(dataOf(done).view).customer, 'Grace');
  const twice = await call(ada, 'troupe_answer', { id: uri, answers }, { key });
  assert.match(textOf(twice), /no longer open/);
  await server.close();
});

test('S-65: a key ends with the life that its handle had when the view was opened', async () => {
  const { clock, server, as } = await shop();
  const client = as('ada');
  const { handle, uri } = await opened(client);
  // Cancelled after a minute, it waits for nothing: it lives for a day without use.
  await clock.advance(61_000);
  const first = await call(client, 'order_get', { handle });
  const { key } = Object(Object(first._meta)['dev.troupe/view']);
  await clock.advance(80_000_000);
  await call(client, 'order_get', { handle });
  await clock.advance(10_000_000);
  const late = await call(client, 'troupe_answer', { id: uri, answers: {} }, { key });
  assert.match(textOf(late), /no valid key/);
  const { _meta } = await call(client, 'order_get', { handle });
  const { key: fresh } = Object(Object(_meta)['dev.troupe/view']);
  const now = await call(client, 'troupe_answer', { id: uri, answers: { x: { action: 'cancel' } } }, { key: fresh });
  assert.match(textOf(now), /no longer open/);
  await server.close();
});

test("an answer in the view withdraws the client's own dialog, and the waiting call continues", async () => {
  const { server } = await shop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  await client.initialize('2025-11-25', { elicitation: {} });
  const create = await client.send('tools/call', { name: 'order_create', arguments: { customer: 'Ada' } });
  const handle = String(dataOf(create).handle);
  const { key } = Object(Object(create._meta)['dev.troupe/view']);
  const waiting = client.send('tools/call', { name: 'order_sign', arguments: { handle } });
  const dialog = Object(await client.next((message) => Object(message).method === 'elicitation/create'));
  const answers = { name: { action: 'accept', content: { name: 'Grace' } } };
  await client.send('tools/call', {
    name: 'troupe_answer',
    arguments: { id: `troupe://order/${handle}`, answers },
    _meta: { 'dev.troupe/view': { key } },
  });
  const withdrawn = Object(await client.next((message) => Object(message).method === 'notifications/cancelled'));
  assert.is(withdrawn.params.requestId, dialog.id);
  assert.is(dataOf(await waiting).state, 'cart');
  await server.close();
});

test('S-69: a newer wait of the same view replaces its older one, and leaves those of other views', async () => {
  const { clock, server, as } = await shop();
  const client = as('ada');
  const { handle, uri, key } = await opened(client);
  const { _meta } = await call(client, 'order_get', { handle });
  const { key: second } = Object(Object(_meta)['dev.troupe/view']);
  const seen: string[] = [];
  const wait = (name: string, own: unknown): void =>
    void call(client, 'troupe_watch', { uri, version: 1 }, { key: own }).then((result) => {
      seen.push(`${name}: ${result.isError ? textOf(result) : dataOf(result).version}`);
    });
  wait('older', key);
  wait('other view', second);
  await clock.advance(5);
  wait('newer', key);
  await clock.advance(5);
  assert.equal(seen, ['older: This view waits in a newer call.']);
  await call(client, 'order_add_item', { handle, sku: 'tea', quantity: 1 });
  await clock.advance(20);
  assert.equal(seen.slice(1).sort(), ['newer: 2', 'other view: 2']);
  await server.close();
});

test('a client that shows views and asks nothing leaves the question of its model to the view', async () => {
  const { server, as } = await shop();
  const client = as('ada');
  const { handle, uri, key } = await opened(client);
  const asked = await call(client, 'order_sign', { handle }, { capabilities: { extensions: VIEWS } });
  assert.is(dataOf(asked).state, 'signing');
  assert.match(textOf(asked), /Waiting for an answer from the user/);
  const answers = { name: { action: 'decline' } };
  assert.is(dataOf(await call(client, 'troupe_answer', { id: uri, answers }, { key })).state, 'cart');
  // Without views, the machine learns that its client cannot be asked.
  const { handle: second } = await opened(client);
  assert.is(dataOf(await call(client, 'order_sign', { handle: second })).state, 'cart');
  await server.close();
});

test('S-65: the model is not asked what a view can answer, also with askThroughModel', async () => {
  const { server, as } = await shop(true, { askThroughModel: true });
  const client = as('ada');
  const { handle } = await opened(client);
  const asked = await call(client, 'order_sign', { handle }, { capabilities: { extensions: VIEWS } });
  assert.is(dataOf(asked).state, 'signing');
  assert.not.match(textOf(asked), /troupe_answer/);
  // A client without views has no other way.
  const { handle: second } = await opened(client);
  assert.match(textOf(await call(client, 'order_sign', { handle: second })), /troupe_answer/);
  await server.close();
});

test('the machine learns that no model can be asked, also if its client shows views: no view answers for a model', async () => {
  const { server, as } = await shop();
  const machine = setup({ actors: { sample } }).createMachine({
    initial: 'idle',
    states: {
      idle: { on: { think: 'thinking' } },
      thinking: {
        invoke: {
          src: 'sample',
          input: { messages: [{ role: 'user', content: { type: 'text', text: 'A name' } }], maxTokens: 5 },
          onDone: 'idle',
          onError: 'unanswered',
        },
      },
      unanswered: { type: 'final' },
    },
  });
  server.machine('muse', machine, { app: true, events: { think: true } });
  const client = as('ada');
  const { handle } = dataOf(await call(client, 'muse_create', {}));
  const args = { handle: String(handle) };
  const thought = await call(client, 'muse_think', args, { capabilities: { extensions: VIEWS } });
  assert.is(dataOf(thought).state, 'unanswered');
  await server.close();
});

test('the next answer to the model begins with the changes of the user, and says each once', async () => {
  const { server, as } = await shop();
  const client = as('ada');
  const { handle, uri, key } = await opened(client);
  const item = { handle, sku: 'tea', quantity: 1 };
  const own = await call(client, 'order_add_item', item);
  assert.not.match(textOf(own), /Since you last looked/);
  const inView = await call(client, 'order_add_item', item, { key });
  assert.not.match(textOf(inView), /Since you last looked/);
  await call(client, 'order_sign', { handle }, { key });
  await call(client, 'troupe_answer', { id: uri, answers: { name: { action: 'decline' } } }, { key });
  await call(client, 'troupe_watch', { uri });
  const next = await call(client, 'order_get', { handle });
  assert.match(
    textOf(next),
    /^Since you last looked: add_item, now cart \(by the user\); sign, now signing \(by the user\); signing → cart \(the question "[^"]+" was declined\)\norder /,
  );
  assert.not.match(textOf(await call(client, 'order_get', { handle })), /Since you last looked/);
  for (let times = 0; times < 14; times += 1) await call(client, 'order_add_item', item, { key });
  const many = textOf(await call(client, 'order_pay', { handle })).split('\n')[0] ?? '';
  assert.is(many.split(';').length, 10);
  await server.close();
});

test('the record names who acted: a view, a client, a model', async () => {
  const { server, as } = await shop(true, { askThroughModel: true });
  const client = as('ada');
  const records: InspectionRecord[] = [];
  const stop = server.inspect((record) => void records.push(record));
  const { handle, uri, key } = await opened(client);
  await call(client, 'order_add_item', { handle, sku: 'tea', quantity: 1 });
  await call(client, 'order_sign', { handle }, { key });
  await call(client, 'troupe_answer', { id: uri, answers: { name: { action: 'decline' } } }, { key });
  const asked = await call(client, 'order_sign', { handle });
  const [, id = ''] = /"id":"([^"]+)"/.exec(textOf(asked)) ?? [];
  await call(client, 'troupe_answer', { id, answers: { 'name.2': { action: 'decline' } } });
  const elicits = { capabilities: { elicitation: {} } };
  const params = { name: 'order_sign', arguments: { handle } };
  const meta = { 'io.modelcontextprotocol/clientCapabilities': elicits.capabilities };
  const { requestState, inputRequests } = await client.modern('tools/call', params, meta);
  const inputResponses = Object.fromEntries(
    Object.keys(Object(inputRequests)).map((name) => [name, { action: 'decline' }]),
  );
  await client.modern('tools/call', { ...params, requestState: String(requestState), inputResponses }, meta);
  await settled();
  stop();
  const acted = records.flatMap((record) =>
    record.type === 'mail' && 'by' in record.mail ? [`${record.mail.type}: ${String(record.mail.by)}`] : [],
  );
  assert.equal(
    acted.filter((line) => /^(send|answer)/.test(line)),
    [
      'send add_item: model',
      'send sign: view',
      'answer name: view',
      'send sign: model',
      'answer name.2: model',
      'send sign: model',
      'answer name.3: client',
    ],
  );
  await server.close();
});

test('S-68: without views, answers and lists are as before except for _meta', async () => {
  const [before, after] = [await shop(false), await shop()];
  const [old, now] = [before.as('ada'), after.as('ada')];
  for (const method of ['tools/list', 'resources/list', 'resources/templates/list'] as const) {
    const strip = (items: readonly JsonObject[]) => items.map(({ _meta: _, ...item }) => item);
    assert.equal(strip(itemsOf(method, await now.modern(method))), strip(itemsOf(method, await old.modern(method))));
  }
  const shown = async (client: TestClient): Promise<string> => {
    const { handle, uri } = await opened(client);
    const results = [
      await call(client, 'order_add_item', { handle, sku: 'tea', quantity: 1 }),
      await call(client, 'order_sign', { handle }),
      await call(client, 'order_get', { handle }),
      await client.modern('resources/read', { uri }),
    ];
    return JSON.stringify(results.map(({ _meta: _, ...result }) => result)).replaceAll(handle, 'HANDLE');
  };
  assert.is(await shown(now), await shown(old));
  await Promise.all([before.server.close(), after.server.close()]);
});

test('S-66: a rule of the machine decides about its page, and about the answers of its views', async () => {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'shop', version: '1.0.0', clock, log: () => {} });
  let open = true;
  server.machine('order', orderMachine, {
    app: true,
    allow: () => (open ? true : { hidden: true }),
    input: z.object({ customer: z.string() }),
    events: { sign: true },
  });
  const client = await connect(server, { auth: { principal: 'ada' } });
  const { handle, uri, key } = await opened(client);
  await call(client, 'order_sign', { handle }, { key });
  open = false;
  const answers = { name: { action: 'decline' } };
  const refused = await call(client, 'troupe_answer', { id: uri, answers }, { key });
  assert.is(refused.isError, true);
  const watched = await call(client, 'troupe_watch', { uri });
  assert.is(watched.isError, true);
  open = true;
  assert.is(dataOf(await call(client, 'troupe_answer', { id: uri, answers }, { key })).state, 'cart');
  await server.close();
});

test('S-65: after a restart, the open question and the key of its view are still good', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-view-'));
  const start = async (): Promise<{ readonly server: Server; readonly client: TestClient }> => {
    const server = createServer({ name: 'shop', version: '1', store: sqlite(join(folder, 'shop.db')), log: () => {} });
    server.machine('order', orderMachine, {
      app: true,
      input: z.object({ customer: z.string() }),
      events: { sign: true },
      view: ({ context }) => ({ customer: context.customer }),
    });
    return { server, client: await connect(server, { auth: { principal: 'ada' } }) };
  };
  const first = await start();
  const { handle, uri, key } = await opened(first.client);
  await call(first.client, 'order_sign', { handle }, { key });
  await first.server.close();
  const { server, client } = await start();
  const { asks } = dataOf(await call(client, 'troupe_watch', { uri }));
  assert.equal(Array.isArray(asks) && asks.map((ask) => Object(ask).id), ['name']);
  const answers = { name: { action: 'accept', content: { name: 'Grace' } } };
  const done = await call(client, 'troupe_answer', { id: uri, answers }, { key });
  assert.is(Object(dataOf(done).view).customer, 'Grace', textOf(done));
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});
