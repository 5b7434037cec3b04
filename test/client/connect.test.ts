/** A client of each era over each transport: lists, calls, input, progress, cancellation, changes, and the end. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createSocketServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, http } from 'troupe';
import {
  type Channel,
  type ConnectTarget,
  connect,
  ErrorResponse,
  type FormAnswer,
  type SamplingSupport,
} from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { ServerRequests } from '../../src/client/server-requests.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { ErrorCode, ProtocolError } from '../../src/core/protocol/errors.ts';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { startable } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { clientError, type Reachable, reachable } from './fixture.ts';

const test = suite('the client');

const MESSAGES = [{ role: 'user', content: { type: 'text', text: 'add' } }] as const;
const ERAS = ['legacy', 'modern'] as const;
const LEGACY_SERVER = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 's', version: '1' },
};
type Way = (from: Reachable) => ConnectTarget | Reachable['server'];
const WAYS: Readonly<Record<string, Way>> = {
  memory: ({ server }) => server,
  HTTP: ({ url }) => url,
  'a socket': ({ socket }) => ({ socket }),
};

for (const eras of ERAS)
  for (const [way, target] of Object.entries(WAYS)) {
    test(`a ${eras} client lists, calls, reads, gets and completes over ${way}`, async () => {
      const fixture = await reachable();
      const client = await connect(target(fixture), { eras });
      assert.is(client.server.name, 'fixture');
      assert.is(client.server.version, '1.2.3');
      assert.is(client.server.era, eras);
      assert.is(client.state, 'ready');
      const tools = await client.tools();
      assert.equal(
        tools.map(({ name }) => name),
        ['add', 'ask', 'count', 'wait'],
      );
      const { structuredContent } = await client.call('add', { a: 2, b: 3 });
      assert.equal(structuredContent, { sum: 5 });
      assert.equal(
        (await client.templates()).map(({ uriTemplate }) => uriTemplate),
        ['notes://{id}'],
      );
      const [content] = (await client.read('notes://7')).contents;
      assert.equal(content && 'text' in content && content.text, 'note 7');
      assert.is((await client.prompts()).length, 1);
      assert.is((await client.prompt('review', { code: 'x = 1' })).messages.length, 1);
      await client.close();
      assert.is(client.state, 'closed');
      await fixture.close();
    });

    test(`a ${eras} client answers forms over ${way}, and fills in the schema's defaults`, async () => {
      const fixture = await reachable();
      const asked: unknown[] = [];
      const client = await connect(target(fixture), {
        eras,
        elicit: ({ message, requestedSchema }, { about }) => {
          asked.push(message, Object.keys(Object(requestedSchema.properties)), about);
          return { gift: true };
        },
      });
      const { content } = await client.call('ask');
      assert.equal(content, [{ type: 'text', text: 'large true' }]);
      assert.equal(asked, ['Which size?', ['size', 'gift'], 'ask']);
      await client.close();
      await fixture.close();
    });

    test(`a ${eras} client takes an answer in the words of the protocol over ${way}, and reports one that is none`, async () => {
      const fixture = await reachable();
      const answers: readonly unknown[] = [
        { action: 'accept', content: { gift: true } },
        { action: 'decline' },
        undefined,
      ];
      const texts: unknown[] = [];
      const logged: string[] = [];
      for (const answer of answers) {
        const client = await connect(target(fixture), {
          eras,
          elicit: () => answer as FormAnswer,
          log: (_, message) => void logged.push(message),
        });
        texts.push(await client.call('ask').then(({ content }) => Object(content[0]).text, String));
        await client.close();
      }
      assert.equal(texts.slice(0, 2), ['large true', 'declined']);
      assert.match(
        [...logged, String(texts[2])].join(),
        /expected the fields as an object, 'decline' or 'cancel', got nothing/,
      );
      await fixture.close();
    });

    test(`a ${eras} client receives progress over ${way}`, async () => {
      const fixture = await reachable();
      const client = await connect(target(fixture), { eras });
      const seen: unknown[] = [];
      await client.call(
        'count',
        {},
        { onProgress: ({ progress, total, message }) => seen.push([progress, total, message]) },
      );
      assert.equal(seen.at(-1), [3, 3, 'step 3']);
      await client.close();
      await fixture.close();
    });

    test(`a ${eras} client cancels a call over ${way}, and the handler notices`, async () => {
      let aborted = (): void => {};
      const noticed = new Promise<void>((resolve) => {
        aborted = resolve;
      });
      let started = (): void => {};
      const running = new Promise<void>((resolve) => {
        started = resolve;
      });
      const fixture = await reachable((server) => {
        server.tool('long', {}, (_args, ctx) => {
          started();
          return new Promise((resolve) =>
            ctx.signal.addEventListener('abort', () => {
              aborted();
              resolve('late');
            }),
          );
        });
      });
      const client = await connect(target(fixture), { eras });
      const controller = new AbortController();
      const call = client.call('long', {}, { signal: controller.signal });
      await running;
      controller.abort(new Error('not needed'));
      const error = await clientError(call);
      assert.is(error.reason, 'cancelled');
      assert.is(error.carriedOut, 'unknown');
      assert.match(error.message, 'not needed');
      await noticed;
      await client.close();
      await fixture.close();
    });

    test(`a ${eras} client receives changes over ${way}`, async () => {
      const fixture = await reachable();
      const client = await connect(target(fixture), { eras });
      const changes = client.changes({ tools: true, resources: ['notes://1'] });
      const first = changes.next();
      // The subscription is in place when the first change arrives; before that, changes are repeated.
      const repeat = setInterval(() => fixture.server.resourceUpdated('notes://1'), 20);
      const { value } = await first;
      clearInterval(repeat);
      assert.equal(value, { type: 'resource', uri: 'notes://1' });
      await changes.return();
      await client.close();
      await fixture.close();
    });
  }

test('a list is cached until the server announces a change of it', async () => {
  const fixture = await reachable();
  const wire: string[] = [];
  const client = await connect(fixture.server, {
    eras: 'legacy',
    inspect: (record) => {
      if (record.type === 'wire' && record.direction === 'out') wire.push(record.text);
    },
  });
  const listings = (): number => wire.filter((text) => text.includes('tools/list')).length;
  await client.tools();
  await client.tools();
  assert.is(listings(), 1);
  const changes = client.changes({ tools: true });
  fixture.server.tool('new', {}, () => 'new');
  assert.equal((await changes.next()).value, { type: 'tools' });
  assert.is((await client.tools()).length, 5);
  assert.is(listings(), 2);
  await client.tools({ fresh: true });
  assert.is(listings(), 3);
  await client.close();
  await fixture.close();
});

test('a reader that waits for a change keeps the process alive, until the client closes', async () => {
  let holds = 0;
  class CountingClock extends SimulatedClock {
    override hold(): { cancel(): void } {
      const timer = super.hold();
      holds += 1;
      return {
        cancel() {
          holds -= 1;
          timer.cancel();
        },
      };
    }
  }
  const fixture = await reachable();
  const client = await connect(fixture.server, { clock: new CountingClock() });
  await client.tools();
  assert.is(holds, 0);
  const next = client.changes({ tools: true }).next();
  assert.is(holds, 1);
  await client.close();
  assert.equal(await next, { done: true, value: undefined });
  assert.is(holds, 0);
  await fixture.close();
});

test('an error response has its code, and says nothing about the effect', async () => {
  const fixture = await reachable();
  const client = await connect(fixture.server);
  const error = await clientError(client.call('nothing'));
  assert.instance(error, ErrorResponse);
  assert.is(error instanceof ErrorResponse && error.code, -32602);
  assert.is(error.carriedOut, 'unknown');
  await client.close();
  await fixture.close();
});

test('a call times out on the injected clock, and progress restarts the time', async () => {
  const clock = new SimulatedClock();
  let progress = (): void => {};
  const fixture = await reachable((server) => {
    server.tool('report', {}, (_args, ctx) => {
      progress = () => ctx.progress(1);
      return new Promise(() => {});
    });
  });
  const client = await connect(fixture.server, { eras: 'modern', clock });
  const arrived: number[] = [];
  let seen = (): void => {};
  const first = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const call = client.call(
    'report',
    {},
    {
      timeoutMs: 1_000,
      onProgress: () => {
        arrived.push(clock.now());
        seen();
      },
    },
  );
  const failed = clientError(call);
  await client.tools();
  await clock.advance(900);
  progress();
  await first;
  await clock.advance(900);
  assert.equal(arrived.length, 1);
  await clock.advance(200);
  const error = await failed;
  assert.is(error.reason, 'timed out');
  assert.match(error.message, '(timeoutMs)');
  assert.is(error.carriedOut, 'unknown');
  const closing = client.close();
  await closing;
  await fixture.close();
});

test('a program that does not exist is refused, with its name', async () => {
  const error = await clientError(connect({ command: 'no-such-program-of-troupe' }));
  assert.is(error.reason, 'refused');
  assert.is(error.carriedOut, 'no');
  assert.match(error.message, 'no-such-program-of-troupe');
});

test('a port without a server is unreachable, and nothing was carried out', async () => {
  const error = await clientError(connect('http://127.0.0.1:9/mcp'));
  assert.is(error.reason, 'unreachable');
  assert.is(error.carriedOut, 'no');
});

test('https in place of http is named, without the words of OpenSSL', async () => {
  const fixture = await reachable();
  const error = await clientError(connect(fixture.url.replace('http:', 'https:')));
  assert.is(error.reason, 'unreachable');
  assert.match(
    error.message,
    /cannot be reached: no TLS is spoken there\. Write http: in place of https: in its address$/,
  );
  await fixture.close();
});

test('an address that is no MCP server is reported as one', async () => {
  const fixture = await reachable();
  const error = await clientError(connect(new URL('/nothing', fixture.url)));
  assert.is(error.reason, 'not mcp');
  await fixture.close();
});

for (const eras of ERAS)
  test(`a ${eras} client over HTTP sends no call that is cancelled in the turn of its beginning`, async () => {
    const ran: unknown[] = [];
    const fixture = await reachable((server) => {
      server.tool('note', { input: z.object({ n: z.number() }) }, ({ n }) => {
        ran.push(n);
        return 'noted';
      });
    });
    const client = await connect(fixture.url, { eras });
    await client.tools();
    // The first call leaves at once; the others leave together, at the end of the turn.
    const first = client.call('note', { n: 1 });
    const abort = new AbortController();
    const cancelled = clientError(client.call('note', { n: 2 }, { signal: abort.signal }));
    const third = client.call('note', { n: 3 });
    abort.abort(new Error('not needed'));
    assert.is((await cancelled).reason, 'cancelled');
    await Promise.all([first, third]);
    assert.equal(
      ran.toSorted((one, other) => Number(one) - Number(other)),
      [1, 3],
    );
    await client.close();
    await fixture.close();
  });

test('a closed client rejects calls, and none of them was carried out', async () => {
  const fixture = await reachable();
  const client = await connect(fixture.server);
  await client.close();
  const error = await clientError(client.call('add', { a: 1, b: 2 }));
  assert.is(error.reason, 'closed');
  assert.is(error.carriedOut, 'no');
  await client.close();
  await fixture.close();
});

for (const eras of ERAS)
  (eras === 'modern' ? test : test.full)(`a ${eras} client speaks with a program over stdio, and ends it`, async () => {
    const client = await connect(
      { command: process.execPath, args: [startable('examples/everything/stdio.ts')] },
      { eras, connectMs: 60_000, probeMs: 60_000 },
    );
    assert.ok((await client.tools()).length > 5);
    await client.close();
    assert.is(client.state, 'closed');
  });

test('a client that speaks only the modern era takes silence for slowness, not for a legacy server', async () => {
  const clock = new SimulatedClock();
  let asked = (): void => {};
  const probe = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const silent: Channel = {
    kind: 'stream',
    open: (host) => host.send({ type: 'opened' }),
    send: () => asked(),
    abandon() {},
    answered() {},
    async close() {},
  };
  const failed = clientError(connect({ channel: () => silent, name: 'silent' }, { eras: 'modern', clock, log() {} }));
  await probe;
  await clock.advance(10_000);
  const { reason, message } = await failed;
  assert.is(reason, 'timed out');
  assert.match(message, 'server/discover');
});

test('a local server that is remembered as modern may answer slowly, and stays modern', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'remembered-'));
  const path = join(folder, 'server');
  const arrived: { readonly socket: Socket; readonly id: unknown }[] = [];
  let came = (): void => {};
  const server = createSocketServer((socket) => {
    socket.on('data', (text) => {
      arrived.push({ socket, id: JSON.parse(String(text)).id });
      came();
    });
  });
  server.listen(path);
  await once(server, 'listening');
  const discover = async (clock: SimulatedClock, afterMs: number): Promise<string> => {
    const asked = new Promise<void>((resolve) => {
      came = resolve;
    });
    const connecting = connect({ socket: path }, { clock, log() {} });
    await asked;
    await clock.advance(afterMs);
    const [probe] = arrived.splice(0);
    const result = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {}, ttlMs: 0 };
    probe?.socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: probe.id, result })}\n`);
    const client = await connecting;
    await client.close();
    return client.server.era;
  };
  assert.is(await discover(new SimulatedClock(), 0), 'modern');
  assert.is(await discover(new SimulatedClock(), 9_999), 'modern');
  server.close();
  rmSync(folder, { recursive: true });
});

for (const initialize of [true, false])
  test(`a local server that answers the probe late, and ${initialize ? 'accepts' : 'rejects'} initialize, is opened again for the modern era`, async () => {
    const clock = new SimulatedClock();
    const sent: string[] = [];
    let guessed = (): void => {};
    let asked = (): void => {};
    const probe = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const both = new Promise<void>((resolve) => {
      guessed = resolve;
    });
    const discovered = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {}, ttlMs: 0 };
    let read: (() => void) | undefined;
    const channel = (): Channel => {
      const waiting: (() => void)[] = [];
      let answer: (message: object) => void = () => {};
      return {
        kind: 'stream',
        open(host) {
          if (sent.length > 0) sent.push('');
          answer = (message) =>
            host.send({ type: 'text', text: JSON.stringify({ jsonrpc: '2.0', ...message }), about: undefined });
          host.send({ type: 'opened' });
        },
        send({ text }) {
          const { id, method, params } = JSON.parse(text);
          sent.push(`${method} ${Object(params)._meta?.['io.modelcontextprotocol/protocolVersion'] ?? ''}`.trim());
          const respond = (): void => {
            if (method === 'server/discover') answer({ id, result: discovered });
            else if (method === 'initialize' && !initialize) answer({ id, error: { code: -32601, message: 'no' } });
            else if (method === 'initialize') answer({ id, result: { ...LEGACY_SERVER } });
            else if (id !== undefined) answer({ id, result: { resultType: 'complete', content: [] } });
          };
          if (read === undefined) waiting.push(respond);
          else respond();
          if (method === 'server/discover') asked();
          if (method !== 'initialize') return;
          read = () => {
            for (const each of waiting.splice(0)) each();
          };
          guessed();
        },
        abandon() {},
        answered() {},
        async close() {},
      };
    };
    const connecting = connect({ channel, name: 'slow' }, { clock, log() {} });
    await probe;
    await clock.advance(3_000);
    await both;
    read?.();
    const client = await connecting;
    assert.is(client.server.era, 'modern');
    await client.call('work');
    assert.equal(sent, [
      'server/discover 2026-07-28',
      'initialize',
      '',
      'server/discover 2026-07-28',
      'tools/call 2026-07-28',
    ]);
    await client.close();
  });

for (const eras of ['auto', 'legacy', 'modern'] as const)
  test(`a server that asks to try again later is not taken for one of the other era (eras: ${eras})`, async () => {
    const server = createServer({ name: 'busy', version: '1.0.0', log() {} });
    const transport = http({
      port: 0,
      auth: {
        documents: new Map(),
        challenge: () => [],
        authenticate: () => ({ status: 503, headers: { 'retry-after': '7' }, message: 'the issuer cannot be asked' }),
      },
    });
    await server.listen(transport);
    const error = await clientError(connect(transport.url, { eras, log() {} }));
    assert.equal([error.reason, error.carriedOut, error.retryAfterMs], ['overloaded', 'no', 7_000]);
    assert.match(error.message, 'the issuer cannot be asked');
    await server.close();
  });

for (const eras of ERAS)
  test(`a ${eras} client declares what its model understands, and a server passes tools only then`, async () => {
    const server = createServer({ name: 'agent', version: '1', log: () => {} });
    const tools = [{ name: 'add', inputSchema: { type: 'object' } }] as const;
    server.tool('think', {}, async (_args, ctx) => {
      const { content } = await ctx.sample({ messages: MESSAGES, maxTokens: 9, tools });
      return JSON.stringify([content, ctx.client.capabilities.sampling]);
    });
    const use = { type: 'tool_use', id: '1', name: 'add', input: { a: 1 } };
    const sample = () => ({ role: 'assistant', model: 'm', content: [use], stopReason: 'toolUse' });
    const able = await connect(server, { eras, sample, sampling: { tools: true, context: true } });
    const [said] = (await able.call('think')).content;
    assert.equal(said, { type: 'text', text: JSON.stringify([[use], { tools: {}, context: {} }]) });
    await able.close();
    const unable = await connect(server, { eras, sample, sampling: { context: true } });
    const refused = await unable.call('think');
    assert.is(refused.isError, true);
    assert.match(JSON.stringify(refused.content), /tool use/);
    await unable.close();
    await server.close();
  });

test('a client rejects tools for a model that does not understand them', async () => {
  const context = { signal: new AbortController().signal, about: undefined };
  const sample = () => ({ role: 'assistant', model: 'm', content: [] });
  const outcome = async (sampling: SamplingSupport | undefined, more: JsonObject): Promise<unknown> => {
    const requests = new ServerRequests({ sample, ...(sampling && { sampling }) }, systemClock, () => {});
    const answer = requests.answer('sampling/createMessage', { messages: [], ...more }, context);
    return answer.then(
      ({ model }) => model,
      (error: unknown) => error instanceof ProtocolError && error.code,
    );
  };
  for (const [sampling, more, expected] of [
    [undefined, {}, 'm'],
    [undefined, { tools: [] }, ErrorCode.InvalidParams],
    [{ context: true }, { toolChoice: { mode: 'auto' } }, ErrorCode.InvalidParams],
    [{ tools: true }, { tools: [], toolChoice: { mode: 'auto' } }, 'm'],
  ] as const)
    assert.is(await outcome(sampling, more), expected, JSON.stringify([sampling, more]));
});
