/** Handlers that fail: whatever they throw, whenever, the request is answered, nothing that was not meant for the client is logged, and the next call works. */
import * as assert from 'uvu/assert';
import { ErrorCode, ProtocolError } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { timedServer } from '../../harness/memory.ts';
import { errorResponse } from '../../harness/results.ts';
import { client, states, THROWN } from './support.ts';

const test = suite('handlers that fail');

for (const [what, make, words] of THROWN) {
  test(`a tool that throws ${what} fails in words that the model can read`, async () => {
    const { server, logged } = timedServer();
    server.tool('sync', {}, () => {
      throw make();
    });
    server.tool('async', {}, () => Promise.reject(make()));
    server.tool('late', {}, async () => {
      await undefined;
      throw make();
    });
    server.tool('good', {}, () => 'good');
    const legacy = await client(server, '2025-06-18');
    const modern = await client(server);
    for (const caller of [legacy, modern]) {
      for (const name of ['sync', 'async', 'late']) {
        const result = await caller.call(name);
        assert.is(result.isError, true);
        assert.is(result.content.length, 1);
        const [block] = result.content;
        assert.match(block?.type === 'text' ? block.text : '', words);
      }
      assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
      await caller.close();
    }
    // Each with its stack: see test/core/execution/handler-errors.test.ts.
    assert.is(logged.length, 6);
    for (const line of logged) assert.match(line, /incident \S+ in tool "(sync|async|late)": /);
  });

  test(`a reader, a prompt and a completer that throw ${what} answer -32603 and tell only the operator`, async () => {
    const { server, logged } = timedServer();
    const fail = (): never => {
      throw make();
    };
    const reject = (): Promise<never> => Promise.reject(make());
    server.resource('sync://{x}', { complete: { x: fail } }, fail);
    server.resource('async://{x}', { complete: { x: reject } }, reject);
    server.prompt('sync', { arguments: [{ name: 'x' }], complete: { x: fail } }, fail);
    server.prompt('async', { arguments: [{ name: 'x' }], complete: { x: reject } }, reject);
    server.tool('good', {}, () => 'good');
    const caller = await client(server, '2025-06-18');
    for (const how of ['sync', 'async']) {
      for (const [method, params] of [
        ['resources/read', { uri: `${how}://1` }],
        ['prompts/get', { name: how }],
        ['completion/complete', { ref: { type: 'ref/prompt', name: how }, argument: { name: 'x', value: '' } }],
        [
          'completion/complete',
          { ref: { type: 'ref/resource', uri: `${how}://{x}` }, argument: { name: 'x', value: '' } },
        ],
      ] as const) {
        const error = await errorResponse(caller.send(method, params));
        assert.is(error.code, ErrorCode.InternalError);
        assert.is(error.data, undefined);
        const incident = /^Internal error \(incident ([\w-]+); the server's log has the details\)$/.exec(error.message);
        assert.is(logged.filter((line) => line.includes(`incident ${incident?.[1]} in `)).length, 1, error.message);
      }
    }
    assert.is(logged.length, 8);
    assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
    await caller.close();
  });
}

test('a ProtocolError whose data JSON cannot hold is answered with -32603', async () => {
  const { server, logged } = timedServer();
  server.tool('odd', {}, () => {
    throw new ProtocolError(ErrorCode.InvalidParams, 'look at the data', { big: 1n } as never);
  });
  server.tool('good', {}, () => 'good');
  const caller = await client(server, '2025-06-18');
  assert.is((await errorResponse(caller.call('odd'))).code, ErrorCode.InternalError);
  assert.is(logged.length, 1);
  assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
  await caller.close();
});

test('a handler that never returns is answered with -31002 at its deadline, its signal is aborted and its place is free', async () => {
  const { server, clock } = timedServer({ limits: { timeoutMs: 1_000, maxInFlight: 1 } });
  const aborted: unknown[] = [];
  const late: ((value: string) => void)[] = [];
  const hang = (_: unknown, { signal }: { signal: AbortSignal }): Promise<string> => {
    signal.addEventListener('abort', () => void aborted.push(signal.reason));
    return new Promise((resolve) => void late.push(resolve));
  };
  server.tool('hang', {}, hang);
  server.resource('hang://1', {}, hang);
  server.prompt(
    'hang',
    { arguments: [{ name: 'x' }], complete: { x: async (_v, _c, ctx) => [await hang(0, ctx)] } },
    hang,
  );
  server.tool('good', {}, () => 'good');
  const caller = await client(server, '2025-06-18');
  for (const [method, params] of [
    ['tools/call', { name: 'hang' }],
    ['resources/read', { uri: 'hang://1' }],
    ['prompts/get', { name: 'hang' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'hang' }, argument: { name: 'x', value: '' } }],
  ] as const) {
    const answer = errorResponse(caller.send(method, params));
    await clock.advance(999);
    assert.is((await errorResponse(caller.call('good'))).code, ErrorCode.Overloaded);
    await clock.advance(1);
    const error = await answer;
    assert.is(error.code, ErrorCode.TimedOut);
    assert.match(error.message, `${method} took longer than its timeout of 1 s`);
    assert.equal((await caller.call('good')).content, [{ type: 'text', text: 'good' }]);
  }
  assert.is(aborted.length, 4);
  assert.ok(aborted.every((reason) => reason instanceof Error && reason.name === 'AbortError'));
  // What comes after all is nobody's answer.
  const before = caller.messages.length;
  for (const resolve of late) resolve('at last');
  await settled();
  assert.is(caller.messages.length, before);
  assert.equal(
    [...states(server).values()].filter((state) => /\([1-9]|running \(/.test(state)),
    [],
  );
  await caller.close();
});

test('a handler that has logged or reported what JSON cannot hold keeps its answer and its connection', async () => {
  const { server, logged } = timedServer();
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const odd = [
    10n,
    cycle,
    {
      toJSON: () => {
        throw new Error('secret');
      },
    },
    () => 1,
    Symbol('s'),
    undefined,
  ];
  server.tool('log', {}, async (_, ctx) => {
    for (const data of odd) ctx.log.error(data);
    ctx.log.error('said', Object('logger') as string);
    return 'logged';
  });
  server.tool('report', {}, (_, ctx) => {
    const refused: string[] = [];
    for (const values of [[Number.NaN], [1, Number.POSITIVE_INFINITY], [2, 3, 4n], [5n], [6, {}]]) {
      try {
        Reflect.apply(ctx.progress, ctx, values);
      } catch (error) {
        refused.push(String(error));
      }
    }
    ctx.progress(7, 8, 'fine');
    return refused.join('\n');
  });
  const caller = await client(server, '2025-06-18');
  assert.equal((await caller.call('log')).content, [{ type: 'text', text: 'logged' }]);
  assert.is(caller.notifications.length, odd.length + 1);
  assert.not.match(JSON.stringify(caller.notifications), 'secret');
  assert.is(logged.length, 3);
  const reported = await caller.send('tools/call', { name: 'report', _meta: { progressToken: 1 } });
  const [block] = reported.content as [{ text: string }];
  assert.is(block.text.split('\n').length, 5);
  assert.match(block.text, /^TypeError: ctx\.progress: expected a finite number for what is done, got number NaN$/m);
  assert.match(block.text, /expected a string for the message, got bigint$/m);
  assert.equal(caller.notifications.at(-1)?.params, { progressToken: 1, progress: 7, total: 8, message: 'fine' });
  await caller.close();
});

test('a tool may register, change and remove elements while it runs, itself too', async () => {
  const { server, logged } = timedServer();
  server.tool('grow', {}, () => {
    server.tool('grown', {}, () => 'grown');
    server.resource('grown://1', {}, () => 'grown');
    server.prompt('grown', {}, () => 'grown');
    return 'grew';
  });
  server.tool('leave', {}, async () => {
    server.tools.remove('leave');
    return 'left';
  });
  server.resource('swap://1', {}, () => {
    server.resources.update({ uri: 'swap://1', handler: () => 'new' });
    return 'old';
  });
  server.tool('twice', {}, () => server.tool('grown', {}, () => 'other'));
  const caller = await client(server, '2025-06-18');
  assert.equal((await caller.call('grow')).content, [{ type: 'text', text: 'grew' }]);
  assert.equal((await caller.call('grown')).content, [{ type: 'text', text: 'grown' }]);
  assert.equal((await caller.call('leave')).content, [{ type: 'text', text: 'left' }]);
  assert.is((await errorResponse(caller.call('leave'))).code, ErrorCode.InvalidParams);
  assert.match(JSON.stringify(await caller.send('resources/read', { uri: 'swap://1' })), 'old');
  assert.match(JSON.stringify(await caller.send('resources/read', { uri: 'swap://1' })), 'new');
  const refused = await caller.call('twice');
  assert.is(refused.isError, true);
  assert.match(JSON.stringify(refused.content), 'is already registered');
  assert.match(logged.pop() ?? '', 'is already registered');
  assert.equal((await caller.call('grown')).content, [{ type: 'text', text: 'grown' }]);
  assert.equal(logged, []);
  await caller.close();
});

test('a log of the author that throws harms no request', async () => {
  const { server } = timedServer({
    log() {
      throw new Error('the disk is full');
    },
  });
  server.resource('bad://1', {}, async () => {
    throw new Error('for the log');
  });
  server.tool('cycle', {}, () => ({ toJSON: () => ({ big: { toJSON: () => 1n } }) }));
  const stderr = process.stderr.write;
  const said: string[] = [];
  process.stderr.write = (text: unknown) => said.push(String(text)) > 0;
  try {
    const caller = await client(server, '2025-06-18');
    assert.is((await errorResponse(caller.send('resources/read', { uri: 'bad://1' }))).code, ErrorCode.InternalError);
    assert.is((await errorResponse(caller.call('cycle'))).code, ErrorCode.InternalError);
    await caller.close();
  } finally {
    process.stderr.write = stderr;
  }
  assert.is(said.filter((line) => line.includes('the disk is full') && line.includes('incident')).length, 2);
});
