/** The connections of one upstream: shared where it is modern, one for each owner where it is legacy. */
import * as assert from 'uvu/assert';
import { ClientError } from '../../../src/client/client-errors.ts';
import type { ConnectOptions } from '../../../src/client/client-options.ts';
import type { ConnectedClient } from '../../../src/client/connected-client.ts';
import type { CallOwner } from '../../../src/core/execution/request-context.ts';
import { Quota } from '../../../src/core/kernel/quota.ts';
import type { ClientCapabilities } from '../../../src/core/protocol/types.ts';
import { createServer, type Server } from '../../../src/features/server/server.ts';
import { Upstream, type UpstreamOptions } from '../../../src/gateway/mounts/upstream.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';

const test = suite('connections of an upstream');

const BOUNDS = () => ({
  quota: new Quota({ what: 'connections', max: 1_024, option: 'limits.maxUpstreamConnections' }),
  ...{ maxUpstreamConnections: 256, maxUpstreamInFlight: 256, upstreamWaitMs: 10_000, upstreamIdleMs: 900_000 },
});
const ASKS: ClientCapabilities = { elicitation: { form: {} } };

function owner(key: string, over: Partial<CallOwner> = {}): CallOwner {
  const several = key === 'principal/anonymous';
  return { key, capabilities: ASKS, principal: several ? 'anonymous' : 'ada', session: undefined, several, ...over };
}

interface Stage {
  readonly clock: SimulatedClock;
  readonly server: Server;
  readonly upstream: Upstream;
  /** What `initialize` declared, by connection. */
  readonly declared: unknown[];
  close(): Promise<void>;
}

function stage(eras: ConnectOptions['eras'], over: Partial<UpstreamOptions> = {}): Stage {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'files', version: '1.0.0', log() {} });
  server.tool('add', {}, () => 'added');
  server.tool('wait', {}, (_args, ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', reject)));
  server.tool('ask', {}, async (_args, ctx) => (await ctx.elicitUrl({ message: 'm', url: 'https://a.test/' })).status);
  const declared: unknown[] = [];
  const upstream = new Upstream({
    name: 'files',
    target: server,
    connect: {
      clock,
      log() {},
      ...(eras ? { eras } : {}),
      inspect: (record) => {
        if (record.type !== 'wire' || record.direction !== 'out') return;
        const { method, params } = JSON.parse(record.text);
        if (method === 'initialize') declared.push(params.capabilities);
      },
    },
    ...BOUNDS(),
    ...over,
  });
  return {
    ...{ clock, server, upstream, declared },
    async close() {
      await upstream.close();
      await server.close();
    },
  };
}

const call = (client: ConnectedClient, name: string, signal?: AbortSignal): Promise<unknown> =>
  client.relay({ method: 'tools/call', params: { name, arguments: {} }, signal });

test('all owners share one connection to a modern upstream', async () => {
  const { upstream, close } = stage('modern');
  assert.is(upstream.state, 'idle');
  const catalogue = await upstream.catalogue();
  assert.is(await upstream.for(owner('session/1')), catalogue);
  assert.is(await upstream.for(owner('principal/anonymous')), catalogue);
  assert.equal([upstream.connections, upstream.state], [1, 'ready']);
  await close();
  assert.equal([upstream.connections, upstream.state], [0, 'closed']);
});

test('each owner has its own connection to a legacy upstream, which declares its capabilities and no more', async () => {
  const { upstream, declared, close } = stage('legacy');
  const one = await upstream.for(owner('session/1'));
  const other = await upstream.for(owner('session/2', { capabilities: { sampling: {} } }));
  assert.is(await upstream.for(owner('session/1')), one);
  assert.is.not(one, other);
  assert.is.not(one, await upstream.catalogue());
  // Some servers list certain tools only for clients that can be asked, or that show views.
  const [catalogue, ...owners] = declared;
  assert.equal(Object.keys(catalogue ?? {}), ['elicitation', 'sampling', 'roots', 'extensions']);
  assert.equal(owners, [ASKS, { sampling: {} }]);
  // Two clients of one principal declare different capabilities.
  const mine = await upstream.for(owner('principal/ada'));
  assert.is.not(await upstream.for(owner('principal/ada', { capabilities: {} })), mine);
  assert.is(await upstream.for(owner('principal/ada')), mine);
  assert.is(upstream.connections, 5);
  upstream.released('session/1');
  assert.is(upstream.connections, 4);
  assert.is((await rejection(call(one, 'add'), ClientError)).reason, 'closed');
  await close();
});

test('with share "everyone" one connection to a legacy upstream serves all, and declares nothing', async () => {
  const { upstream, declared, close } = stage('legacy', { share: 'everyone' });
  assert.is(await upstream.for(owner('session/1')), await upstream.for(owner('principal/anonymous')));
  assert.equal(declared, [{}]);
  await close();
});

test('callers who neither sign in nor have sessions share one connection for each set of capabilities, and at most eight', async () => {
  const { upstream, declared, close } = stage('legacy');
  const anonymous = (capabilities: ClientCapabilities = ASKS): Promise<ConnectedClient> =>
    upstream.for(owner('principal/anonymous', { capabilities }));
  const [first, second, third] = await Promise.all([anonymous(), anonymous(), anonymous()]);
  assert.is(first, second);
  assert.is(first, third);
  assert.is.not(await anonymous({ sampling: {} }), first);
  assert.equal(declared.slice(1), [ASKS, { sampling: {} }]);
  const abort = new AbortController();
  const calls: Promise<unknown>[] = [];
  const uses = async (used: ConnectedClient): Promise<void> =>
    void calls.push(rejection(call(used, 'wait', abort.signal), ClientError));
  await uses(first);
  for (let number = 0; number < 6; number += 1) await uses(await anonymous({ sampling: { number } }));
  // With that of the catalogue.
  assert.is(upstream.connections, 9);
  // The one without a call makes room.
  await uses(await anonymous({ roots: {} }));
  assert.is(upstream.connections, 9);
  const error = await rejection(anonymous({ roots: { listChanged: true } }), ClientError);
  assert.equal([error.reason, error.carriedOut], ['overloaded', 'no']);
  assert.match(error.message, '8 connections of anonymous are in use');
  assert.is(await anonymous(), first);
  abort.abort();
  await Promise.all(calls);
  assert.is(await anonymous(), first, 'a call that was cancelled does not end the state of its owner');
  await close();
});

test('a limit closes the connection that was unused longest, and rejects a call if all are in use', async () => {
  const quota = new Quota({ what: 'connections to upstreams', max: 3, option: 'maxUpstreamConnections' });
  const { upstream, clock, close } = stage('legacy', { maxUpstreamConnections: 3, quota });
  const first = await upstream.for(owner('session/1'));
  await clock.advance(10);
  const second = await upstream.for(owner('session/2'));
  const abort = new AbortController();
  const calls = [rejection(call(first, 'wait', abort.signal), ClientError)];
  const third = await upstream.for(owner('session/3'));
  assert.is((await rejection(call(second, 'add'), ClientError)).reason, 'closed');
  calls.push(rejection(call(third, 'wait', abort.signal), ClientError));
  const error = await rejection(upstream.for(owner('session/4')), ClientError);
  assert.equal([error.reason, error.carriedOut, upstream.connections], ['overloaded', 'no', 3]);
  assert.match(error.message, 'maxUpstreamConnections');
  const other = stage('legacy', { quota });
  assert.match((await rejection(other.upstream.catalogue(), ClientError)).message, 'maxUpstreamConnections');
  abort.abort();
  await Promise.all(calls);
  await other.close();
  await close();
  assert.is(quota.all, 0);
});

test('a connection of an owner closes after idleMs without a call', async () => {
  const { upstream, clock, close } = stage('legacy', { upstreamIdleMs: 1_000 });
  const busy = await upstream.for(owner('session/busy'));
  await upstream.for(owner('session/idle'));
  const abort = new AbortController();
  const calling = rejection(call(busy, 'wait', abort.signal), ClientError);
  await clock.advance(1_000);
  assert.is(upstream.connections, 2);
  abort.abort();
  await calling;
  await clock.advance(2_000);
  assert.is(upstream.connections, 1);
  assert.is.not(await upstream.for(owner('session/busy')), busy);
  await close();
});

test('a connection whose changes are read is unused without a call: it closes after idleMs', async () => {
  const { upstream, clock, close } = stage('legacy', { upstreamIdleMs: 1_000 });
  const idle = await upstream.for(owner('session/idle'));
  const changes = idle.changes({ tools: true });
  const reading = changes.next();
  // With that of the catalogue.
  assert.is(upstream.connections, 2);
  await clock.advance(2_000);
  assert.is(upstream.connections, 1);
  changes.end();
  await reading;
  await close();
});

test('a connection that cannot be opened is tried again by the next call', async () => {
  const server = createServer({ name: 'files', version: '1.0.0', log() {} });
  const missing = { command: '/no/such/program' };
  const upstream = new Upstream({ name: 'files', target: missing, connect: { log() {} }, ...BOUNDS() });
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    const error = await rejection(upstream.for(owner('session/1')), ClientError);
    assert.equal([error.reason, error.carriedOut, upstream.connections], ['refused', 'no', 0]);
  }
  await upstream.close();
  assert.is((await rejection(upstream.for(owner('session/1')), ClientError)).reason, 'closed');
  await server.close();
});

test('a call waits for a connection at most waitMs', async () => {
  const clock = new SimulatedClock();
  const silent = {
    name: 'silent',
    channel: () => ({
      kind: 'stream' as const,
      ...{ open() {}, send() {}, abandon() {}, answered() {}, close: () => Promise.resolve() },
    }),
  };
  const upstream = new Upstream({
    name: 'silent',
    target: silent,
    connect: { clock, log() {} },
    ...BOUNDS(),
    upstreamWaitMs: 500,
  });
  const late = rejection(upstream.for(owner('session/1')), ClientError);
  await clock.advance(500);
  const error = await late;
  assert.equal([error.reason, error.carriedOut], ['unreachable', 'no']);
  await clock.advance(20_000);
  await upstream.close();
});

test('an upstream that asks for roots outside of a call gets those that its owner gave during one', async () => {
  const received: unknown[] = [];
  let ask = (_id: number): void => {};
  const target = {
    name: 'played',
    channel: () => ({
      kind: 'stream' as const,
      open(host: { send(mail: object): void }) {
        ask = (id) => text({ id, method: 'roots/list' });
        const text = (message: object): void =>
          host.send({ type: 'text', text: JSON.stringify({ jsonrpc: '2.0', ...message }), about: undefined });
        this.say = text;
        host.send({ type: 'opened' });
      },
      say(_message: object) {},
      send({ text }: { text: string }) {
        const { id, method, result, error } = JSON.parse(text);
        if (method === undefined || method === 'notifications/roots/list_changed')
          received.push(result ?? error?.code ?? method);
        if (method === 'initialize')
          this.say({
            id,
            result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'p', version: '1' } },
          });
      },
      ...{ abandon() {}, answered() {}, close: () => Promise.resolve() },
    }),
  };
  const upstream = new Upstream({ name: 'played', target, connect: { eras: 'legacy', log() {} }, ...BOUNDS() });
  const session = { id: '1', mailbox: { address: 's', send() {} }, rootsChanges: 0 };
  const mine = (rootsChanges: number): CallOwner =>
    owner('session/1', {
      capabilities: { roots: {} },
      session: { ...session, rootsChanges } as unknown as CallOwner['session'],
    });
  await upstream.for(mine(0));
  const asked = async (id: number): Promise<unknown> => {
    const before = received.length;
    ask(id);
    while (received.length === before) await new Promise(setImmediate);
    return received.at(-1);
  };
  assert.is(await asked(70), -32603);
  const roots = { roots: [{ uri: 'file:///home/ada', name: 'home' }] };
  upstream.keepRoots(mine(0), roots);
  assert.equal(await asked(71), roots);
  await upstream.for(mine(1));
  while (received.length < 3) await new Promise(setImmediate);
  assert.is(received.at(-1), 'notifications/roots/list_changed');
  assert.is(await asked(72), -32603);
  await upstream.close();
});
