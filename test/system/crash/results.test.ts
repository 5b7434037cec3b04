/** Hostile results: whatever a handler or an executor of the author's gives back, one valid answer leaves, and the next message works. */
import * as assert from 'uvu/assert';
import { isObject } from '../../../src/core/protocol/json.ts';
import { createServer, ErrorCode, type ServerOptions } from '../../../src/index.ts';
import { connect, ErrorResponse, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { timedServer } from '../../harness/memory.ts';
import { errorResponse } from '../../harness/results.ts';
import { times } from '../../harness/scale.ts';
import { busy } from '../fuzz/conversation.ts';
import { client } from './support.ts';

const test = suite('hostile results');

const cycle: { self?: unknown } = {};
cycle.self = cycle;

const lying = (value: unknown): object => ({ toJSON: () => value });
const refusing = (): object =>
  new Proxy(
    {},
    {
      ownKeys() {
        throw new Error('secret');
      },
      has() {
        throw new Error('secret');
      },
      get() {
        throw new Error('secret');
      },
    },
  );

/** What JSON cannot say, and that is only found when it is written. */
const UNWRITABLE: Readonly<Record<string, () => unknown>> = {
  'a getter that throws': () => ({
    get value() {
      throw new Error('secret');
    },
  }),
};

/** What a tool may not return: it has failed then, as if it had thrown. */
const FAILURES: Readonly<Record<string, () => unknown>> = {
  'a BigInt': () => 1n,
  'a cycle': () => cycle,
  'a BigInt in data': () => ({ big: 1n }),
  'a whole result around a cycle': () => ({ content: [], structuredContent: cycle }),
  'a whole result with a BigInt in a block': () => ({ content: [{ type: 'text', text: 'x', _meta: { big: 1n } }] }),
  'a function inside of data': () => ({ a: [() => 1] }),
  'a symbol inside of data': () => ({ a: Symbol('a') }),
  'a Map inside of data': () => ({ map: new Map([[1, 2]]) }),
  'an error': () => new Error('returned, not thrown'),
  'a function': () => () => 1,
  'a symbol': () => Symbol('odd'),
  'a Map': () => new Map([[1, 2]]),
  'a toJSON that throws': () => ({
    toJSON() {
      throw new Error('no JSON today');
    },
  }),
  'a toJSON that gives nothing': () => lying(undefined),
};

/** What throws at a first look. An async function looks itself, so that it is the handler which throws then. */
const UNTOUCHABLE: Readonly<Record<string, () => unknown>> = {
  'a Proxy that throws': refusing,
  'a revoked Proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
};

/** What is odd, and an answer all the same. */
const ODD: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  'an empty string': () => '',
  'an empty array': () => [],
  'NaN and infinities': () => ({ a: Number.NaN, b: Number.POSITIVE_INFINITY }),
  'undefined inside of data': () => ({ a: undefined, b: [undefined] }),
  'a sparse array': () => ({ list: Object.assign([], { 2: 3 }) }),
  'an object without a prototype': () => Object.assign(Object.create(null), { a: 1 }),
  'an object with a __proto__ of its own': () => JSON.parse('{"__proto__":{"polluted":true},"a":1}'),
  'members called id and jsonrpc': () => ({ id: 'x', jsonrpc: '1.0', method: 'ping', result: {}, error: {} }),
  'half of a surrogate pair': () => 'half \ud800 pair',
  'control characters and line ends': () => 'a\nb\r\u0000\u2028\u2029\u001b[31m',
  'a thenable that is no Promise': () => ({
    // biome-ignore lint/suspicious/noThenProperty: that is the point
    then: (resolve: (value: unknown) => void) => resolve('then'),
  }),
  'a text of millions of characters': () => 'x'.repeat(times(8_000_000, { quick: 2_000_000 })),
  '200,000 rows': () => Array.from({ length: 200_000 }, (_, n) => n),
  'blocks of which one is none': () => [{ type: 'text', text: 'a' }, { type: 'text' }],
};

async function good(caller: TestClient): Promise<void> {
  assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
}

for (const [what, make] of Object.entries(UNWRITABLE)) {
  test(`${what} is answered with -32603, and the log has the reason`, async () => {
    const { server, logged } = timedServer();
    server.tool('sync', {}, make);
    server.tool('async', {}, async () => make());
    server.tool('checked', { output: { type: 'object' } }, make as () => object);
    server.tool('good', {}, () => 'good');
    for (const revision of ['2024-11-05', '2025-06-18', undefined]) {
      const caller = await client(server, revision);
      for (const name of ['sync', 'async', 'checked']) {
        const before = logged.length;
        const answer = await caller.call(name).catch((error: unknown) => error);
        assert.is(logged.length, before + 1);
        // A check of the output may find it before it is written: then it is the tool's failure, which the model reads.
        if (name === 'checked' && isObject(answer) && answer.isError === true) continue;
        if (!(answer instanceof ErrorResponse)) return assert.unreachable(`${name} gave ${JSON.stringify(answer)}`);
        assert.is(answer.code, ErrorCode.InternalError);
        assert.not.match(answer.message, 'secret');
      }
      await good(caller);
      await caller.close();
    }
  });
}

for (const [what, make] of Object.entries(FAILURES)) {
  test(`a tool that returns ${what} has failed, in words for the model and for the operator`, async () => {
    const { server, logged } = timedServer();
    server.tool('sync', {}, make);
    server.tool('async', {}, async () => make());
    server.tool('checked', { output: { type: 'object' } }, make as () => object);
    server.tool('good', {}, () => 'good');
    for (const revision of ['2024-11-05', '2025-06-18', undefined]) {
      const caller = await client(server, revision);
      for (const name of ['sync', 'async', 'checked']) {
        const { content, isError } = await caller.call(name);
        assert.is(isError, true);
        assert.match(
          JSON.stringify(content),
          /expected the tool to return|has no JSON form|would be sent as \{\}|no JSON today/,
        );
        assert.match(logged.pop() ?? '', `tool "${name}"`);
      }
      await good(caller);
      await caller.close();
    }
    assert.equal(logged, []);
  });
}

for (const [what, make] of Object.entries(UNTOUCHABLE)) {
  test(`${what} is answered once, and the next message works, however often`, async () => {
    const { server } = timedServer();
    server.tool('sync', {}, make);
    server.tool('async', {}, async () => make());
    server.tool('checked', { output: { type: 'object' } }, make as () => object);
    server.tool('good', {}, () => 'good');
    for (const revision of ['2025-06-18', undefined]) {
      const caller = await client(server, revision);
      for (const name of ['sync', 'async', 'checked', 'sync', 'sync', 'sync']) {
        const answer = await caller.call(name).catch((error: unknown) => error);
        // Where it was looked at decides: in the handler it is the tool's failure, later it is ours.
        if (answer instanceof ErrorResponse) assert.is(answer.code, ErrorCode.InternalError);
        else assert.ok(isObject(answer) && answer.isError === true, JSON.stringify(answer));
      }
      await good(caller);
      await caller.close();
    }
  });
}

for (const [what, make] of Object.entries(ODD)) {
  (what === '200,000 rows' ? test.full : test)(`${what} leaves as one valid answer`, async () => {
    const { server } = timedServer();
    server.tool('sync', {}, make);
    server.tool('async', {}, async () => make());
    server.tool('good', {}, () => 'good');
    for (const revision of ['2024-11-05', '2025-06-18', undefined]) {
      const caller = await client(server, revision);
      // The client rejects a member `__proto__`.
      const raw = (name: string) => caller[revision ? 'send' : 'modern']('tools/call', { name });
      const answers = [await raw('sync'), await raw('async')];
      for (const { content } of answers) assert.ok(Array.isArray(content));
      await good(caller);
      await caller.close();
    }
    assert.is(({} as { polluted?: unknown }).polluted, undefined);
  });
}

test('a result that knows its own JSON is shown as that', async () => {
  const { server } = timedServer();
  const when = new Date(0);
  server.tool('date', {}, () => when);
  server.tool('dated', { output: { type: 'object', required: ['when'] } }, () => lying({ when }));
  for (const revision of ['2025-06-18', undefined]) {
    const caller = await client(server, revision);
    assert.match(JSON.stringify((await caller.call('date')).content), '1970-01-01T00:00:00.000Z');
    assert.equal((await caller.call('dated')).structuredContent, { when: '1970-01-01T00:00:00.000Z' });
    await caller.close();
  }
});

test('contents and messages that JSON makes something else of are answered with -32603', async () => {
  const { server, logged } = timedServer();
  const contents = [{ uri: 'odd://1', text: 'x' }];
  const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'x' } }];
  server.resource('odd://1', {}, () => ({ contents, ...lying('secret') }));
  server.prompt('odd', {}, async () => ({ messages, ...lying(['secret']) }));
  server.tool('good', {}, () => 'good');
  for (const revision of ['2025-06-18', undefined]) {
    const caller = await client(server, revision);
    for (const [method, params] of [
      ['resources/read', { uri: 'odd://1' }],
      ['prompts/get', { name: 'odd' }],
    ] as const) {
      const error = await errorResponse(revision ? caller.send(method, params) : caller.modern(method, params));
      assert.is(error.code, ErrorCode.InternalError);
      assert.not.match(error.message, 'secret');
    }
    await good(caller);
    await caller.close();
  }
  assert.is(logged.length, 4);
});

function fail(): never {
  throw new Error('secret');
}

function thenable(then: (resolve: (value: unknown) => void) => void): object {
  return { then };
}

/** What an executor of the author's may do instead of giving a result. */
const EXECUTIONS: Readonly<Record<string, () => never>> = {
  throws: fail,
  'throws what cannot be logged': () => {
    throw Object.create(null);
  },
  rejects: () => Promise.reject(new Error('secret')) as never,
  'gives nothing': () => undefined as never,
  'gives null, later': () => Promise.resolve(null) as never,
  'gives a number': () => 5 as never,
  'gives a function': () => (() => 5) as never,
  'gives what JSON makes a text of': () => lying('text') as never,
  'gives what refuses to be looked at': () => refusing() as never,
  'gives a thenable that throws': () => thenable(() => fail()) as never,
  'gives a thenable that calls back twice': () =>
    thenable((resolve) => {
      resolve(undefined);
      resolve(undefined);
    }) as never,
};

for (const [what, execute] of Object.entries(EXECUTIONS)) {
  test(`an executor of the author's that ${what} is answered with -32603, and the next message works`, async () => {
    let broken = true;
    const wrap = <E extends { execute: (...args: never[]) => unknown }>(inner: E): E => ({
      ...inner,
      execute: (...args: never[]) => (broken ? execute() : inner.execute(...args)),
    });
    const executors: ServerOptions['executors'] = { tools: wrap, resources: wrap, prompts: wrap, completions: wrap };
    const logged: string[] = [];
    const server = createServer({ name: 'x', version: '1', executors, log: (_, line) => void logged.push(line) });
    server.tool('good', {}, () => 'good');
    server.resource('good://1', {}, () => 'good');
    server.prompt('good', { arguments: [{ name: 'x' }], complete: { x: () => ['good'] } }, () => 'good');
    const requests = [
      ['tools/call', { name: 'good' }],
      ['resources/read', { uri: 'good://1' }],
      ['prompts/get', { name: 'good' }],
      ['completion/complete', { ref: { type: 'ref/prompt', name: 'good' }, argument: { name: 'x', value: '' } }],
    ] as const;
    const legacy = await client(server, '2025-06-18');
    const modern = await connect(server);
    // More often than any restart policy would bear: it is the request that fails, not the actor.
    for (let round = 0; round < 5; round += 1) {
      for (const [method, params] of requests) {
        for (const answer of [legacy.send(method, params), modern.modern(method, params)]) {
          const error = await errorResponse(answer);
          assert.is(error.code, ErrorCode.InternalError, method);
          assert.not.match(error.message, 'secret');
        }
      }
    }
    assert.is(logged.length, 5 * 2 * requests.length);
    assert.equal(busy(server), []);
    broken = false;
    for (const [method, params] of requests) assert.match(JSON.stringify(await legacy.send(method, params)), 'good');
    await legacy.close();
    await modern.close();
  });
}
