/** Middleware around requests: its order, its types, and what it may do with a request, in both eras. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { z } from 'zod';
import {
  createServer,
  ErrorCode,
  type JsonObject,
  type Middleware,
  ProtocolError,
  type RequestResult,
  type Server,
  type ServerOptions,
  sqlite,
  ToolError,
  text,
} from '../../../src/index.ts';
import { connect, SimulatedClock, settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { wireChecker } from '../../harness/wire.ts';
import { accept, Modern } from '../asking/support.ts';
import * as tasks from '../tasks/support.ts';

const test = suite('middleware');

interface Stage {
  readonly server: Server;
  readonly logged: string[];
}

function stage(options: Partial<ServerOptions> = {}): Stage {
  const logged: string[] = [];
  const log = (_level: string, message: string): void => void logged.push(message);
  const server = createServer({ name: 's', version: '1', log, ...options });
  server.tool('echo', { input: z.object({ say: z.string() }) }, ({ say }) => say);
  server.tool('fail', {}, () => {
    throw new Error('the kettle is empty');
  });
  server.resource('note://{id}', { complete: { id: () => ['1', '2'] } }, ({ uri }) => uri);
  server.prompt('advise', { arguments: [{ name: 'need' }] }, ({ need }) => `What helps with ${need}?`);
  return { server, logged };
}

type Send = (method: string, params?: JsonObject) => Promise<JsonObject>;

/** Runs the body with a client of each era. */
async function inBothEras(
  make: () => Stage,
  body: (send: Send, stage: Stage, client: TestClient) => Promise<void>,
): Promise<void> {
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    const made = make();
    const check = wireChecker(revision);
    const client = await connect(made.server, { onMessage: ({ direction, text: seen }) => check(direction, seen) });
    const modern = revision === '2026-07-28';
    if (!modern) await client.initialize(revision);
    await body(
      (method, params) => (modern ? client.modern(method, params) : client.send(method, params)),
      made,
      client,
    );
    await client.close();
    await made.server.close();
  }
}

const ECHO = { name: 'echo', arguments: { say: 'hi' } };

test('runs in the order of registration, around the handler', () => {
  const seen: string[] = [];
  return inBothEras(
    () => {
      seen.length = 0;
      const made = stage();
      for (const name of ['first', 'second'])
        made.server.use(async (call, _ctx, next) => {
          if (call.method !== 'tools/call') return next();
          seen.push(`${name} in`);
          const result = await next();
          seen.push(`${name} out`);
          return result;
        });
      return made;
    },
    async (send) => {
      assert.is(textOf(await send('tools/call', ECHO)), 'hi');
      assert.equal(seen, ['first in', 'second in', 'second out', 'first out']);
    },
  );
});

test('sees each method of both eras once, with its parameters and result', async () => {
  const seen: [string, unknown, unknown][] = [];
  await inBothEras(
    () => {
      const made = stage();
      made.server.use(async (call, _ctx, next) => {
        const result = await next();
        seen.push([call.method, call.params, result]);
        return result;
      });
      return made;
    },
    async (send) => {
      seen.length = 0;
      await send('tools/list');
      await send('resources/templates/list');
      await send('resources/list');
      await send('prompts/list');
      await send('resources/read', { uri: 'note://7' });
      await send('prompts/get', { name: 'advise', arguments: { need: 'rain' } });
      await send('completion/complete', {
        ref: { type: 'ref/resource', uri: 'note://{id}' },
        argument: { name: 'id', value: '' },
      });
      const of = (method: string): unknown[] => seen.find(([name]) => name === method)?.slice(1) ?? [];
      assert.equal(of('resources/read'), [{ uri: 'note://7' }, { contents: [{ uri: 'note://7', text: 'note://7' }] }]);
      assert.equal(of('resources/list'), [{ cursor: undefined }, { resources: [], nextCursor: undefined }]);
      assert.equal(of('completion/complete')[1], { completion: { values: ['1', '2'], total: 2, hasMore: false } });
      assert.is(JSON.stringify(of('prompts/get')[0]), '{"name":"advise","arguments":{"need":"rain"}}');
      assert.is(Object(of('tools/list')[1]).tools.length, 2);
      const lists = ['tools/list', 'resources/templates/list', 'resources/list', 'prompts/list'];
      const methods = seen.map(([method]) => method);
      assert.equal(methods, [...lists, 'resources/read', 'prompts/get', 'completion/complete']);
    },
  );
});

test('server/discover, ping and initialize pass through, and their results can be changed', async () => {
  const { server } = stage();
  server.use('server/discover', async (_call, _ctx, next) => ({ ...(await next()), instructions: 'Ask nicely.' }));
  server.use('initialize', async (_call, _ctx, next) => ({ ...(await next()), instructions: 'Ask twice.' }));
  const pings: string[] = [];
  server.use('ping', (call, _ctx, next) => {
    pings.push(call.method);
    return next();
  });
  const client = await connect(server);
  assert.is((await client.modern('server/discover')).instructions, 'Ask nicely.');
  assert.is((await client.initialize('2025-06-18')).instructions, 'Ask twice.');
  await client.send('ping');
  assert.equal(pings, ['ping']);
  await client.close();
  await server.close();
});

test('an initialize that was rejected opens nothing, and may be sent again', async () => {
  const { server } = stage();
  let refuse = true;
  server.use('initialize', (_call, _ctx, next) => {
    if (!refuse) return next();
    refuse = false;
    throw new ProtocolError(ErrorCode.InvalidRequest, 'Come back later.');
  });
  const client = await connect(server);
  assert.is((await errorResponse(client.initialize('2025-06-18'))).message.includes('Come back later.'), true);
  await client.initialize('2025-06-18');
  assert.is((await client.tools()).length, 2);
  await client.close();
  await server.close();
});

test('changed arguments are checked by the schema of the tool', () =>
  inBothEras(
    () => {
      const made = stage();
      made.server.use((call, _ctx, next) => {
        if (call.method !== 'tools/call') return next();
        const { say } = call.params.arguments;
        return next({ ...call, params: { ...call.params, arguments: { say: say === 'number' ? 7 : `${say}!` } } });
      });
      return made;
    },
    async (send) => {
      assert.is(textOf(await send('tools/call', ECHO)), 'hi!');
      const wrong = await send('tools/call', { name: 'echo', arguments: { say: 'number' } });
      assert.is(wrong.isError, true);
      assert.match(textOf(wrong), 'arguments for tool "echo"');
    },
  ));

test('the changed parameters of prompts, resources and completions reach their handlers', () =>
  inBothEras(
    () => {
      const made = stage();
      made.server.use('resources/read', (call, _ctx, next) => next({ ...call, params: { uri: 'note://other' } }));
      made.server.use('prompts/get', (call, _ctx, next) =>
        next({ ...call, params: { ...call.params, arguments: { need: 'snow' } } }),
      );
      return made;
    },
    async (send) => {
      assert.equal(Object(await send('resources/read', { uri: 'note://7' })).contents, [
        { uri: 'note://other', text: 'note://other' },
      ]);
      const prompt = await send('prompts/get', { name: 'advise', arguments: {} });
      assert.match(JSON.stringify(prompt), 'What helps with snow?');
    },
  ));

test('a request can be answered without next, and a list can be filtered', () =>
  inBothEras(
    () => {
      const made = stage();
      made.server.use('tools/call', (call, _ctx, next) =>
        call.params.name === 'fail' ? { content: [text('spared')] } : next(),
      );
      made.server.use('tools/list', async (_call, _ctx, next) => {
        const { tools, ...page } = await next();
        return { ...page, tools: tools.filter(({ name }) => name !== 'fail') };
      });
      return made;
    },
    async (send) => {
      assert.is(textOf(await send('tools/call', { name: 'fail' })), 'spared');
      assert.is(textOf(await send('tools/call', ECHO)), 'hi');
      assert.equal(
        Object(await send('tools/list')).tools.map(({ name }: { name: string }) => name),
        ['echo'],
      );
    },
  ));

test('a thrown ToolError is a result that the model reads, a ProtocolError is the response', () =>
  inBothEras(
    () => {
      const made = stage();
      made.server.use((call, _ctx, next) => {
        if (call.method === 'tools/call') throw new ToolError('Sign in first.');
        if (call.method === 'prompts/list') throw new ProtocolError(ErrorCode.InvalidRequest, 'Not today.', { day: 1 });
        return next();
      });
      return made;
    },
    async (send, { logged }) => {
      const refused = await send('tools/call', ECHO);
      assert.equal([refused.isError, textOf(refused)], [true, 'Sign in first.']);
      const error = await errorResponse(send('prompts/list'));
      assert.equal([error.code, error.data], [ErrorCode.InvalidRequest, { day: 1 }]);
      assert.match(error.message, 'Not today.');
      assert.equal(logged, []);
    },
  ));

test('an unexpected error is logged with the name of the middleware and its stack, and masked', () =>
  inBothEras(
    () => {
      const made = stage({ errors: 'masked' });
      made.server.use(async (_call, _ctx, next) => next());
      made.server.use(async function counter(call, _ctx, next) {
        if (call.method === 'tools/call' || call.method === 'prompts/list') throw new Error('the counter is jammed');
        return next();
      });
      return made;
    },
    async (send, { logged }) => {
      const failed = await send('tools/call', ECHO);
      assert.is(failed.isError, true);
      assert.not.match(textOf(failed), 'jammed');
      assert.not.match((await errorResponse(send('prompts/list'))).message, 'jammed');
      assert.is(logged.length, 2);
      for (const line of logged) {
        assert.match(line, 'middleware "counter"');
        assert.match(line, 'the counter is jammed');
        assert.match(line, 'middleware.test');
      }
    },
  ));

test('next rejects with the error of the server, which a middleware passes on or replaces', () =>
  inBothEras(
    () => {
      const made = stage();
      made.server.use(async (call, _ctx, next) => {
        try {
          return await next();
        } catch (error) {
          if (call.method === 'prompts/get' && error instanceof ProtocolError)
            throw new ProtocolError(error.code, `replaced: ${error.message}`);
          throw error;
        }
      });
      return made;
    },
    async (send, { logged }) => {
      assert.match((await errorResponse(send('tools/call', { name: 'none' }))).message, 'Unknown tool: none');
      assert.match(
        (await errorResponse(send('prompts/get', { name: 'none' }))).message,
        'replaced: Unknown prompt: none',
      );
      // A tool that fails has a result.
      assert.is((await send('tools/call', { name: 'fail' })).isError, true);
      assert.is(logged.filter((line) => /middleware (\d|")/.test(line)).length, 0);
    },
  ));

test('mistakes of a middleware are errors that name them', async () => {
  const mistakes: readonly [Middleware, string][] = [
    [
      async (_call, _ctx, next) => {
        await next();
        return next();
      },
      'next() was called twice',
    ],
    [() => JSON.parse('{"contents":[]}'), 'expected the middleware to return the result of next()'],
    [() => JSON.parse('null'), 'got null'],
    [(_call, _ctx, next) => next(JSON.parse('{"method":"ping","params":{}}')), 'expected a call of tools/call'],
    [
      (call, _ctx, next) => next(JSON.parse(JSON.stringify({ ...call, params: { ...call.params, name: 'fail' } }))),
      'cannot redirect a call',
    ],
    [
      (call, _ctx, next) => next(JSON.parse(JSON.stringify({ ...call, params: { ...call.params, arguments: 7 } }))),
      'params.arguments: expected an object',
    ],
  ];
  for (const [middleware, expected] of mistakes) {
    const { server } = stage();
    server.use(
      'tools/call',
      (call, ctx, next) => Promise.resolve(middleware(call, ctx, next)) as Promise<RequestResult<'tools/call'>>,
    );
    const client = await connect(server);
    const result = await client.modern('tools/call', ECHO);
    assert.is(result.isError, true);
    assert.match(textOf(result), expected);
    await client.close();
    await server.close();
  }
});

test('server.use rejects what is no middleware, and no method', () => {
  const { server } = stage();
  assert.throws(() => server.use(JSON.parse('7')), /server\.use: expected a function .*7/);
  assert.throws(() => server.use('tools/run' as never, () => ({}) as never), /tools\/call.*"tools\/run"/);
  assert.throws(() => Reflect.apply(server.use, server, ['tools/call']), /expected a function/);
});

test('a middleware that was registered later applies to later requests', () =>
  inBothEras(stage, async (send, { server }) => {
    assert.is(textOf(await send('tools/call', ECHO)), 'hi');
    server.use('tools/call', () => ({ content: [text('later')] }));
    assert.is(textOf(await send('tools/call', ECHO)), 'later');
  }));

test('a middleware that hangs ends at the deadline of its request, and its handler does not start afterwards', async () => {
  const clock = new SimulatedClock();
  const { server } = stage({ clock, limits: { timeoutMs: 1_000, maxTimeoutMs: 1_000 } });
  let ran = 0;
  server.tool('count', {}, () => {
    ran += 1;
  });
  let aborted = false;
  let resume = (): void => {};
  server.use('tools/call', async (_call, ctx, next) => {
    ctx.signal.addEventListener('abort', () => {
      aborted = true;
    });
    await new Promise<void>((resolve) => {
      resume = resolve;
    });
    return next();
  });
  const client = await connect(server);
  const failing = errorResponse(client.modern('tools/call', { name: 'count' }));
  await settled();
  await clock.advance(1_000);
  assert.is((await failing).code, ErrorCode.TimedOut);
  assert.is(aborted, true);
  resume();
  await settled();
  assert.is(ran, 0);
  await client.close();
  await server.close();
});

test('a handler whose middleware has answered is aborted, and counts until it ends', async () => {
  const { server } = stage({ limits: { maxRunning: 1 } });
  const { opened, open } = tasks.gate();
  let aborted = false;
  server.tool('wait', {}, async (_args, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      aborted = true;
    });
    await opened;
    return 'late';
  });
  server.use('tools/call', (call, _ctx, next) => {
    if (call.params.name !== 'wait') return next();
    void next();
    return { content: [text('early')] };
  });
  const client = await connect(server);
  assert.is(textOf(await client.modern('tools/call', { name: 'wait' })), 'early');
  assert.is(aborted, true);
  assert.is((await errorResponse(client.modern('tools/call', ECHO))).code, ErrorCode.Overloaded);
  open();
  await settled();
  assert.is(textOf(await client.modern('tools/call', ECHO)), 'hi');
  await client.close();
  await server.close();
});

test('each round of a call that asks is a request of its own', async () => {
  const { server } = stage();
  server.tool('greet', {}, async (_args, ctx) => {
    const answer = await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }) });
    return answer.status === 'accepted' ? `Hello, ${answer.content.name}!` : answer.status;
  });
  const rounds: string[] = [];
  server.use('tools/call', async (_call, _ctx, next) => {
    const result = await next();
    rounds.push('resultType' in result ? result.resultType : 'complete');
    return 'resultType' in result ? result : { ...result, content: [...result.content, text('wrapped')] };
  });
  const client = await Modern.of(server);
  const { requestState } = await client.ask('greet');
  const result = await client.retry('greet', requestState, { elicit: accept({ name: 'Ada' }) });
  assert.equal(result.content, [text('Hello, Ada!'), text('wrapped')]);
  assert.equal(rounds, ['input_required', 'complete']);
  await server.close();
});

test('a call of a session that asks is one request', async () => {
  const { server } = stage();
  server.tool('greet', {}, async (_args, ctx) => (await ctx.elicit({ message: 'Who?', schema: z.object({}) })).status);
  let rounds = 0;
  server.use('tools/call', (_call, _ctx, next) => {
    rounds += 1;
    return next();
  });
  const client = await connect(server, { elicit: () => 'cancel' });
  await client.initialize('2025-11-25');
  assert.is(textOf(await client.send('tools/call', { name: 'greet' })), 'cancelled');
  assert.is(rounds, 1);
  await client.close();
  await server.close();
});

test('a task passes through when it starts; its polls are requests of their own', async () => {
  const { server, modern } = await tasks.stage();
  const { opened, open } = tasks.gate();
  server.tool('work', { task: 'required' }, async () => {
    await opened;
    return 'done';
  });
  const seen: string[] = [];
  server.use(async (call, _ctx, next) => {
    const result = await next();
    seen.push(`${call.method} ${'task' in result ? result.task.status : ''}`);
    return result;
  });
  const client = modern();
  const id = await client.start('work');
  open();
  await settled();
  assert.is((await client.get(id)).status, 'completed');
  assert.equal(seen, ['tools/call working', 'tasks/get completed']);
  await server.close();
});

test('a subscription passes through when it opens, and can be rejected', async () => {
  const { server } = stage();
  let reject = true;
  const seen: unknown[] = [];
  server.use('subscriptions/listen', async (call, _ctx, next) => {
    if (reject) throw new ProtocolError(ErrorCode.InvalidRequest, 'Not today.');
    seen.push(call.params.filter.lists, await next());
    return {};
  });
  const client = await connect(server);
  const listen = { notifications: { toolsListChanged: true } };
  assert.match((await errorResponse(client.modern('subscriptions/listen', listen))).message, 'Not today.');
  reject = false;
  void client.modern('subscriptions/listen', listen).catch(() => {});
  await client.next(
    (message) => Object(message).method === 'notifications/subscriptions/acknowledged',
    'the acknowledgement',
  );
  await settled();
  assert.equal(seen, [['tools'], {}]);
  server.tool('another', {}, () => 'x');
  await client.next((message) => Object(message).method === 'notifications/tools/list_changed', 'the change');
  await client.close();
  await server.close();
});

test('the requests of a batch pass through one by one', async () => {
  const { server } = stage();
  const seen: string[] = [];
  server.use('tools/call', (call, ctx, next) => {
    seen.push(`${call.params.name} ${ctx.requestId}`);
    return next();
  });
  const client = await inSession(server, '2025-03-26');
  const call = (id: number): JsonObject => ({ jsonrpc: '2.0', id, method: 'tools/call', params: ECHO });
  client.raw(JSON.stringify([call(101), call(102)]));
  const answers = await client.next((message) => Array.isArray(message), 'the batch');
  assert.is(Object(answers).length, 2);
  assert.equal(seen, ['echo 101', 'echo 102']);
  await client.close();
  await server.close();
});

test('the tools of a machine pass through', async () => {
  const { server } = stage();
  const lamp = createMachine({ initial: 'off', states: { off: { on: { toggle: 'on' } }, on: {} } });
  server.machine('lamp', lamp, { events: { toggle: true } });
  const seen: string[] = [];
  server.use('tools/call', (call, _ctx, next) => {
    seen.push(call.params.name);
    return next();
  });
  const client = await connect(server);
  const created = Object((await client.modern('tools/call', { name: 'lamp_create' })).structuredContent);
  assert.type(created.handle, 'string');
  const toggled = await client.modern('tools/call', { name: 'lamp_toggle', arguments: { handle: created.handle } });
  assert.match(JSON.stringify(toggled), '"on"');
  assert.equal(seen, ['lamp_create', 'lamp_toggle']);
  await client.close();
  await server.close();
});

test('a stored reply does not pass through again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-middleware-'));
  const { server } = stage({ store: sqlite(join(folder, 'troupe.db')) });
  let passed = 0;
  server.use('tools/call', async (_call, _ctx, next) => {
    passed += 1;
    const result = await next();
    return 'content' in result ? { ...result, content: [...result.content, text(`wrapped ${passed}`)] } : result;
  });
  const client = await connect(server);
  const keyed = { 'io.troupe/idempotency-key': 'a-key-of-sixteen-or-more' };
  const first = await client.modern('tools/call', ECHO, keyed);
  assert.equal(first.content, [text('hi'), text('wrapped 1')]);
  assert.equal((await client.modern('tools/call', ECHO, keyed)).content, first.content);
  assert.is(passed, 1);
  await client.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

test('types follow from the method: parameters, results, and the calls that next accepts', () => {
  const { server } = stage();
  type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
  const holds = <T extends true>(..._: T[]): void => {};
  server.use(async (call, _ctx, next) => {
    if (call.method === 'prompts/list') {
      const result = await next(call);
      holds<Equal<typeof result, RequestResult<'prompts/list'>>>();
      holds<Equal<typeof call.params, { readonly cursor: string | undefined }>>();
      return result;
    }
    // @ts-expect-error a call has no method of this name
    if (call.method === 'tools/run') return {};
    return next();
  });
  // @ts-expect-error the result of another method
  server.use('tools/list', () => ({ prompts: [] }));
  server.use('tools/list', async (_call, _ctx, next) => {
    const result = await next();
    holds<Equal<typeof result, RequestResult<'tools/list'>>>();
    return result;
  });
});
