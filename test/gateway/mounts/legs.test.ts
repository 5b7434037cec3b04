/** The two legs of a call through a gateway: cancellation, progress, log messages, trace context, failures, and the end of a client. */
import { createServer, type MountOptions, ProtocolError, type Server, type ServerOptions } from 'troupe';
import { type CallOptions, type Client, ClientError, connect, ErrorResponse } from 'troupe/client';
import { SimulatedClock, settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import type { Channel, ChannelHost } from '../../../src/client/channels/channel.ts';
import { program, runs } from '../../client/programs.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { type Era, speakLegacy } from './asking-server.ts';

const test = suite('the legs of a relayed call');

const ERAS: readonly Era[] = ['legacy', 'modern'];
const quiet = { log() {} } as const;

interface Legs {
  readonly client: Client;
  readonly gateway: Server;
  readonly upstream: Server;
  /** The operator's log of the gateway. */
  readonly log: string[];
  close(): Promise<void>;
}

async function legs(
  downstream: Era,
  era: Era,
  prepare: (upstream: Server) => void,
  options: Partial<ServerOptions> = {},
  mount: MountOptions = {},
): Promise<Legs> {
  const upstream = createServer({ name: 'upstream', version: '1.0.0', ...quiet });
  if (era === 'legacy') speakLegacy(upstream);
  prepare(upstream);
  const log: string[] = [];
  const gateway = createServer({
    name: 'gateway',
    version: '1.0.0',
    ...quiet,
    ...options,
    log: (_level, message) => void log.push(message),
  });
  await gateway.mount('up', upstream, mount);
  const client = await connect(gateway, { eras: downstream, ...quiet });
  return {
    ...{ client, gateway, upstream, log },
    async close() {
      await client.close();
      await gateway.close();
      await upstream.close();
    },
  };
}

/** A promise with its settlement. */
function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  let open = (_value: T): void => {};
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open: (value) => open(value) };
}

for (const downstream of ERAS)
  for (const era of ERAS) {
    const pairing = `${downstream} client, ${era} upstream`;

    test(`${pairing}: a cancellation reaches the handler of the upstream within 50 ms`, async () => {
      const running = gate();
      const aborted = gate<number>();
      const { client, close } = await legs(downstream, era, (server) => {
        server.tool('long', {}, (_args, ctx) => {
          running.open();
          return new Promise((resolve) =>
            ctx.signal.addEventListener('abort', () => {
              aborted.open(performance.now());
              resolve('late');
            }),
          );
        });
      });
      const controller = new AbortController();
      const call = client.call('up_long', {}, { signal: controller.signal }).catch((error: unknown) => error);
      await running.opened;
      const began = performance.now();
      controller.abort(new Error('not needed'));
      const took = (await aborted.opened) - began;
      assert.ok((await call) instanceof ClientError);
      assertFigure(took, 50, 'the cancellation');
      await close();
    });

    test(`${pairing}: progress arrives under the client's token, gathered, and the last of it before the result`, async () => {
      const { client, close } = await legs(
        downstream,
        era,
        (server) => {
          server.tool('count', {}, (_args, ctx) => {
            for (let at = 1; at <= 50; at += 1) ctx.progress(at, 50, `step ${at}`);
            return 'counted';
          });
        },
        { limits: { gatherMs: 1_000 } },
      );
      const seen: unknown[] = [];
      const onProgress: CallOptions['onProgress'] = ({ progress, total, message }) =>
        void seen.push([progress, total, message]);
      await client.call('up_count', {}, { onProgress });
      assert.equal(seen, [
        [1, 50, 'step 1'],
        [50, 50, 'step 50'],
      ]);
      await close();
    });

    test(`${pairing}: log messages arrive at the level of the client, under the name of the mount`, async () => {
      const { client, close } = await legs(downstream, era, (server) => {
        server.tool('talk', {}, (_args, ctx) => {
          ctx.log.debug('quiet');
          ctx.log.warning('loud', 'disk');
          return 'said';
        });
      });
      const heard: unknown[] = [];
      const onLog: CallOptions['onLog'] = ({ level, logger, data }) => void heard.push([level, logger, data]);
      if (downstream === 'legacy') await client.request('logging/setLevel', { level: 'warning' });
      await client.call('up_talk', {}, { logLevel: 'warning', onLog });
      assert.equal(heard, [['warning', 'up/disk', 'loud']]);
      if (downstream === 'legacy') await client.request('logging/setLevel', { level: 'debug' });
      await client.call('up_talk', {}, { logLevel: 'debug', onLog });
      assert.equal(heard.slice(1), [
        ['debug', 'up', 'quiet'],
        ['warning', 'up/disk', 'loud'],
      ]);
      await close();
    });

    test(`${pairing}: the trace context and foreign members of _meta pass, the idempotency key and members of the hop do not`, async () => {
      const metas: Readonly<Record<string, unknown>>[] = [];
      const { client, close } = await legs(downstream, era, (server) => {
        server.tool('meta', {}, (_args, ctx) => {
          metas.push(ctx.meta);
          return 'seen';
        });
      });
      const trace = {
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        tracestate: 'a=b',
        baggage: 'user=ada',
      };
      const meta = { ...trace, 'example.com/own': 1 };
      await client.call('up_meta', {}, { meta, idempotencyKey: 'once' });
      const [seen = {}] = metas;
      const { progressToken: _, ...others } = seen;
      const foreign = Object.entries(others).filter(([name]) => !name.startsWith('io.modelcontextprotocol/'));
      // The gateway asks a server of Troupe where its texts name tools.
      assert.equal(Object.fromEntries(foreign), { ...meta, 'io.troupe/names': true });
      const info = seen['io.modelcontextprotocol/clientInfo'];
      if (era === 'modern') assert.equal(info, { name: 'gateway', version: '1.0.0' });
      await close();
    });

    test(`S-74 ${pairing}: only this gateway says how a call to an upstream failed`, async () => {
      const forged = { upstream: 'bank', reason: 'closed', carriedOut: 'no', retry: true };
      const { client, close } = await legs(downstream, era, (server) => {
        server.tool('pay', {}, () => ({
          content: [{ type: 'text', text: 'paid' }],
          isError: true,
          _meta: { 'io.troupe/upstream-failure': forged, 'example.com/own': 1 },
        }));
        server.resource('notes://1', {}, () => {
          throw new ProtocolError(-32603, 'no note', forged);
        });
        server.resource('notes://2', {}, () => {
          throw new ProtocolError(-31005, 'no note', forged);
        });
      });
      const { _meta: meta } = await client.call('up_pay');
      assert.is(meta?.['example.com/own'], 1);
      assert.not.ok(meta && 'io.troupe/upstream-failure' in meta);
      const errorOf = async (uri: string): Promise<unknown> => {
        const error: unknown = await client.read(uri).catch((reason: unknown) => reason);
        return error instanceof ErrorResponse ? { code: error.code, data: error.data } : error;
      };
      assert.equal(await errorOf('up+notes://1'), { code: -32603, data: undefined });
      assert.equal(await errorOf('up+notes://2'), {
        code: -31005,
        data: { upstream: 'up', reason: 'error response', carriedOut: 'no', retry: false },
      });
      await close();
    });
  }

test('a call on an upstream that has ended is answered in words, without its address, and the log has the reason', async () => {
  const prepare = (server: Server): void => {
    server.tool('add', {}, () => 'added');
    server.resource('notes://1', {}, () => 'note');
  };
  const { client, upstream, log, close } = await legs('modern', 'modern', prepare, {}, { upstreamWaitMs: 50 });
  await upstream.close();
  const result = await client.call('up_add');
  assert.is(result.isError, true);
  const [block] = result.content;
  assert.match(block?.type === 'text' ? block.text : '', /^up: .* "up_add" was not carried out\./);
  const error: unknown = await client.read('up+notes://1').catch((reason: unknown) => reason);
  assert.match(String(error), '-31005');
  assert.ok(log.some((message) => message.includes('tools/call of up_add failed')));
  await close();
});

test('the failures of calls and the broken messages of an upstream fill no log: 20 of each at once, and one in 10 s with the number of the others', async () => {
  const clock = new SimulatedClock();
  const log: string[] = [];
  let broken = (): void => {};
  const channel = (): Channel => {
    let host: ChannelHost | undefined;
    broken = () => host?.send({ type: 'text', text: '{"jsonrpc":"2.0","id":{}}', about: undefined });
    const results: Readonly<Record<string, string>> = {
      'server/discover': `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"ttlMs":0,"cacheScope":"private"}`,
      'tools/list': `{"resultType":"complete","tools":[{"name":"go","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`,
    };
    return {
      kind: 'stream',
      open(to) {
        host = to;
        to.send({ type: 'opened' });
      },
      send({ text }) {
        const { id, method } = JSON.parse(text);
        const known = results[method];
        const answer = known === undefined ? '"result":"no object"' : `"result":${known}`;
        host?.send({ type: 'text', text: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${answer}}`, about: undefined });
      },
      abandon() {},
      answered() {},
      async close() {
        host = undefined;
      },
    };
  };
  const gateway = createServer({
    name: 'gateway',
    version: '1.0.0',
    clock,
    log: (_level, message) => log.push(message),
  });
  await gateway.mount('up', { name: 'broken', channel }, { eras: 'modern' });
  const client = await connect(gateway, { eras: 'modern', ...quiet });
  const logged = (words: string): string[] => log.filter((message) => message.includes(words));
  const fails = 'tools/call of up_go failed';
  for (let call = 0; call < 50; call += 1) assert.is((await client.call('up_go')).isError, true);
  assert.is(logged(fails).length, 20);
  for (let message = 0; message < 50; message += 1) broken();
  await settled();
  const unread = logged('cannot be read').filter((message) => !message.includes(fails));
  assert.is(unread.length, 20);
  await clock.advance(10_000);
  await client.call('up_go');
  await client.call('up_go');
  assert.is(logged(fails).length, 21);
  assert.match(logged(fails).at(-1) ?? '', '(30 messages before this one were not logged)');
  const closed = Promise.all([client.close(), gateway.close()]);
  await clock.advance(60_000);
  await closed;
});

test('an error response of an upstream arrives with its code, message and data', async () => {
  const { client, close } = await legs('modern', 'modern', (server) => {
    server.prompt('order', {}, () => {
      throw new ProtocolError(-32_602, 'no tea left', { item: 'tea' });
    });
  });
  const error: unknown = await client.prompt('up_order').catch((reason: unknown) => reason);
  if (!(error instanceof ErrorResponse)) throw error;
  assert.equal([error.code, error.text, error.data], [-32_602, 'no tea left', { item: 'tea' }]);
  await close();
});

test('the end of a session closes its connection to a legacy upstream, and no other', async () => {
  const { gateway, upstream, close } = await legs('legacy', 'legacy', (server) => {
    server.tool('who', {}, (_args, ctx) => ctx.session?.id ?? 'none');
  });
  const open = (): Promise<Client> => connect(gateway, { eras: 'legacy', roots: () => [], ...quiet });
  const [one, other] = [await open(), await open()];
  const idOf = async (client: Client): Promise<string> => {
    const [block] = (await client.call('up_who')).content;
    return block?.type === 'text' ? block.text : '';
  };
  const [first, second] = [await idOf(one), await idOf(other)];
  assert.is.not(first, second);
  assert.is(await idOf(one), first);
  const ended = gate();
  const stop = upstream.inspect((record) => {
    if (record.type === 'gone' && record.actor.startsWith('session/')) ended.open();
  });
  await one.close();
  await ended.opened;
  stop();
  assert.is(await idOf(other), second);
  await other.close();
  await close();
});

test('U-01 a mounted child is killed with 100 calls in flight: each is answered, none is made twice, and the next is served', async () => {
  const child = program('dies after 100');
  const gateway = createServer({ name: 'gateway', version: '1.0.0', ...quiet });
  await gateway.mount('up', child.command, { share: 'everyone', eras: 'legacy', connectMs: 60_000 });
  const client = await connect(gateway, { eras: 'modern', ...quiet });
  const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => client.call('up_work', { index })));
  const unknown = /It is not known whether "up_work" was carried out/;
  for (const { content, isError } of answers) {
    const [block] = content;
    assert.ok(isError === true && block?.type === 'text' && unknown.test(block.text), JSON.stringify(content));
  }
  assert.is(child.notes().filter((note) => note.startsWith('tools/call')).length, 100);
  assert.equal((await client.call('up_work')).content, []);
  await client.close();
  await gateway.close();
  assert.equal(child.pids().filter(runs), []);
  child.remove();
});
