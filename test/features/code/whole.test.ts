/** Code mode as a whole: mounted tools, the real sandbox, and the ways in which a run waits. */
import { type Context, createServer, type MountOptions, type ServerOptions, type Store } from 'troupe';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { connect, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';
import { HANG_MS, until } from '../../harness/wait.ts';
import { ASKABLE, asked, resultIn, runModern } from './support.ts';

const test = suite('code mode');
/** True for a list of JSON. */
function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

const READS = { readOnlyHint: true } as const;

/** A gateway in front of a shop, of which it trusts what the tools say of themselves. */
function gateway(options: Partial<ServerOptions> = {}) {
  const refunded: unknown[] = [];
  const shop = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
  shop.tool(
    'orders',
    { annotations: READS, input: { type: 'object', properties: { page: { type: 'number' } } } },
    ({ page = 1 }: { page?: number }) => ({ orders: [page * 10, page * 10 + 1], next: page < 3 ? page + 1 : null }),
  );
  shop.tool('refund', { input: { type: 'object', properties: { order: { type: 'number' } } } }, (args: object) => {
    refunded.push(args);
    return 'refunded';
  });
  const server = createServer({ name: 'gateway', version: '1.0.0', log: () => {}, ...options });
  server.mount('shop', shop, { expose: 'code', trust: true });
  return { server, refunded };
}

/** The gateway of the tests that need no options: each has a thread of its own for scripts. */
const usual = gateway();
/** The same for calls that need no approval. */
const allowing = gateway({ code: { effects: 'allow' } });
test.after(async () => {
  await usual.server.close();
  await allowing.server.close();
});

test('a script pages through a mounted tool and returns what it has computed', async () => {
  const client = await connect(usual.server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const code = `
    const all = [];
    for (let page = 1; page; ) {
      const { orders, next } = await shop.orders({ page });
      all.push(...orders);
      page = next;
    }
    return { count: all.length, last: all.at(-1) };`;
  assert.equal(resultIn(await runModern(client, { code })), { count: 6, last: 31 });
});

test('a script with arguments of a wrong type does nothing, and its error has the place and the declaration', async () => {
  const { server, refunded } = allowing;
  const before = refunded.length;
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const code = 'await shop.refund({ order: 1 });\nreturn shop.refund({ order: "two" });';
  const result = await runModern(client, { code });
  assert.is(result.isError, true);
  assert.match(
    textOf(result),
    /^Nothing of the script has run\.\nline 2, column 29: shop\.refund: expected number for "order", got "two"\. .*order\?: number/s,
  );
  assert.is(refunded.length, before);
  // A variable is checked when the call is made.
  const late = await runModern(client, { code: 'const order = "two"; return shop.refund({ order });' });
  assert.match(textOf(late), /^ToolError: Invalid arguments/);
});

test('a result that is too long is a resource of its caller, also for the next script and in the next process', async () => {
  const inner = memoryStore();
  const ada = { auth: { principal: 'ada' }, deadlineMs: HANG_MS } as const;
  const { server } = gateway({ store: new TestStore(inner) });
  const client = await connect(server, ada);
  const rows = Array.from({ length: 4_000 }, (_, n) => `row ${n}`);
  const cut = await runModern(client, { code: 'return Array.from({ length: 4000 }, (_, n) => "row " + n);' });
  const [, link] = isList(cut.content) ? cut.content : [];
  if (!isObject(link)) throw new Error(`expected a link, got ${JSON.stringify(link)}`);
  const uri = String(link.uri);
  assert.equal(link, {
    ...{ type: 'resource_link', uri, name: 'result of the script', mimeType: 'application/json' },
    size: JSON.stringify(rows).length,
  });
  assert.match(
    textOf(cut),
    `Its shape is 4000 × string. For 10 min the whole is the resource ${uri}: a script reads it`,
  );
  const read = async (by: TestClient): Promise<unknown> => {
    const { contents } = await by.modern('resources/read', { uri });
    const [first] = isList(contents) ? contents : [];
    return isObject(first) ? JSON.parse(String(first.text)) : undefined;
  };
  assert.equal(await read(client), rows);
  const eve = await connect(server, { ...ada, auth: { principal: 'eve' } });
  assert.match(await read(eve).then(String, String), 'Resource not found');
  const code = `const rows = await resource(${JSON.stringify(uri)}); return rows.slice(-2);`;
  assert.equal(resultIn(await runModern(client, { code })), rows.slice(-2));
  await server.close();
  const next = gateway({ store: new TestStore(inner) });
  assert.equal(await read(await connect(next.server, ada)), rows);
  await next.server.close();
});

test('the user approves each call that may change something, and may approve those that follow in the run', async () => {
  const { server, refunded } = usual;
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const args = {
    code: 'const done = []; for (const order of [1, 2, 3]) done.push(await shop.refund({ order })); return done;',
  };
  const { keys, messages, state } = asked(await runModern(client, args));
  assert.match(messages[0] ?? '', /order/);
  assert.equal(refunded, []);
  const answer: JsonObject = { action: 'accept', content: { decision: 'approve', remember: true } };
  const inputResponses = { [keys[0] ?? '']: answer };
  const result = await runModern(client, args, { requestState: state, inputResponses });
  assert.equal(resultIn(result), ['refunded', 'refunded', 'refunded']);
  assert.is(refunded.length, 3);
  // The next run asks again.
  asked(await runModern(client, args));
});

test('a call that the user denies throws, and nothing is changed', async () => {
  const { server, refunded } = usual;
  const before = refunded.length;
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const args = {
    code: 'try { await shop.refund({ order: 1 }); } catch ({ code, carriedOut }) { return [code, carriedOut]; }',
  };
  const { keys, state } = asked(await runModern(client, args));
  const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { decision: 'deny' } } };
  assert.equal(resultIn(await runModern(client, args, { requestState: state, inputResponses })), ['denied', false]);
  assert.is(refunded.length, before);
});

test('with effects "deny" a call that may change something fails, and with "allow" it runs', async () => {
  const denying = gateway({ code: { effects: 'deny' } });
  for (const [{ server }, outcome] of [
    [denying, ['denied', false]],
    [allowing, 'refunded'],
  ] as const) {
    const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
    const code =
      'try { return await shop.refund({ order: 1 }); } catch ({ code, carriedOut }) { return [code, carriedOut]; }';
    assert.equal(resultIn(await runModern(client, { code })), outcome);
  }
  await denying.server.close();
});

test('an error of a script has its line, and a script that computes too long is stopped', async () => {
  const { server } = gateway({ code: { sliceMs: 100 } });
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const thrown = textOf(await runModern(client, { code: 'const a = 1;\nundefined.b;' }, {}, ASKABLE));
  assert.match(thrown, /TypeError: .*\(line 2/);
  const endless = textOf(await runModern(client, { code: 'while (true);' }));
  assert.match(endless, /The script was stopped: /);
  await server.close();
});

/** A gateway in front of a desk, over a store that outlives it. */
function desk(store: Store, sent: unknown[], options: Partial<MountOptions> = {}) {
  const room = createServer({ name: 'room', version: '1.0.0', log: () => {}, store: memoryStore() });
  const name = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const;
  room.tool('names', { annotations: READS }, async (_: unknown, ctx: Context) => {
    const names: unknown[] = [];
    for (const which of ['first', 'second']) {
      const answer = await ctx.elicit({ message: `The ${which} name?`, schema: name });
      names.push(answer.status === 'accepted' ? answer.content : answer.status);
    }
    return { names };
  });
  room.tool('send', { input: { type: 'object', properties: { to: { type: 'string' } } } }, (args: object) => {
    sent.push(args);
    return 'sent';
  });
  const server = createServer({ name: 'desk', version: '1.0.0', log: () => {}, store, keys: KEYS });
  server.mount('room', room, { expose: 'code', trust: true, ...options });
  return server;
}

const KEYS = ['a secret that is long enough to be one of this server'] as const;

test('a call that asks its user one question after another gets each answer', async () => {
  const server = desk(memoryStore(), []);
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const args = { code: 'return (await room.names({})).names;' };
  let result = await runModern(client, args);
  for (const name of ['Ada', 'Bob']) {
    const { keys, state } = asked(result);
    const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { name } } };
    result = await runModern(client, args, { requestState: state, inputResponses });
  }
  assert.equal(resultIn(result), [{ name: 'Ada' }, { name: 'Bob' }]);
  await server.close();
});

test('calls that their user approves in the next process are sent once, by a script and without one', async () => {
  const meta = { [META.clientCapabilities]: { elicitation: { form: {} } } };
  const calls: readonly (readonly [JsonObject, Partial<MountOptions>, readonly unknown[]])[] = [
    [
      {
        name: 'run_code',
        arguments: { code: "return Promise.all(['a', 'b'].map((to) => room.send({ to })));" },
      },
      {},
      [{ to: 'a' }, { to: 'b' }],
    ],
    [{ name: 'room_send', arguments: { to: 'c' } }, { expose: 'all', approve: ['send'] }, [{ to: 'c' }]],
  ];
  for (const [params, options, expected] of calls) {
    const inner = memoryStore();
    const sent: unknown[] = [];
    const first = desk(new TestStore(inner), sent, options);
    const one = await connect(first, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
    const { keys, state } = asked(await one.modern('tools/call', params, meta));
    await first.close();
    const second = desk(new TestStore(inner), sent, options);
    const two = await connect(second, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
    const inputResponses = Object.fromEntries(
      keys.map((key) => [key, { action: 'accept', content: { decision: 'approve' } }]),
    );
    const result = await two.modern('tools/call', { ...params, requestState: state, inputResponses }, meta);
    assert.not(result.isError, textOf(result));
    assert.equal(sent, expected);
    await second.close();
  }
});

test('a server takes up its own runs only from a store that it shares, and a question of one waits for its client', async () => {
  const inner = memoryStore();
  const sent: unknown[] = [];
  const first = desk(new TestStore(inner), sent);
  const one = await connect(first, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const run = runModern(one, { code: "await sleep(30); return room.send({ to: 'a' });" }, {}, ASKABLE);
  await until(async () => (await inner.list({ kind: 'run', limit: 1 })).length === 1);
  await first.close();
  await run.catch(() => {});
  const incidents: string[] = [];
  const other = createServer({
    ...{ name: 'other', version: '1.0.0', store: new TestStore(inner), keys: KEYS },
    log: (level, message) => void (level === 'error' && incidents.push(message)),
  });
  await connect(other);
  const second = desk(new TestStore(inner), sent);
  const two = await connect(second, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const [row] = await inner.list({ kind: 'run', limit: 1 });
  const args = { resume: String(row?.id.slice('run/'.length)) };
  let result = await runModern(two, args);
  const { keys, state } = asked(result);
  const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { decision: 'approve' } } };
  result = await runModern(two, args, { requestState: state, inputResponses });
  assert.is(resultIn(result), 'sent');
  assert.equal([sent, incidents], [[{ to: 'a' }], []]);
  await other.close();
  await second.close();
});
