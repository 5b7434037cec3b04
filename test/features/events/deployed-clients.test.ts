/**
 * The clients of events that are in use: the AI SDK and a verifier of Standard Webhooks with their own packages, and the steps of ChatGPT
 * (its guide of October 2026: webhooks only, over `initialize` or 2026-07-28).
 */
import { existsSync } from 'node:fs';
import { createServer as listen } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { createServer, http, memoryStore } from '../../../src/index.ts';
import { receiver } from '../../../src/webhooks.ts';
import { suite } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { PAYLOAD } from './support.ts';

const test = suite('deployed clients of events');

const PEERS = fileURLToPath(new URL('../../../bench/peers/node_modules/', import.meta.url));
const havePeers = existsSync(`${PEERS}@ai-sdk/mcp`) && existsSync(`${PEERS}standardwebhooks`);
const AUTHORIZATION = { authorization: 'Bearer a token' };

/** A server over HTTP with the event type `note`, by the wall clock, which the packages read, too. */
async function served() {
  const server = createServer({
    ...{ name: 'notes', version: '1.0.0', log: () => {}, store: memoryStore() },
    events: { callbacks: { allow: ['http://127.0.0.1:*'] } },
  });
  const note = server.event('note', { description: 'A note was taken.', payload: PAYLOAD });
  const transport = http({
    port: 0,
    authenticate: (request) => (request.header('authorization') === AUTHORIZATION.authorization ? 'ada' : undefined),
  });
  await server.listen(transport);
  return { server, note, url: String(transport.url) };
}

/** An endpoint that a function answers. */
async function endpoint(answer: (request: Request) => Promise<Response>) {
  const server = listen(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const body = Buffer.concat(chunks);
    const answered = await answer(new Request(`${url}${request.url ?? '/'}`, { method: 'POST', headers, body }));
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    response.end(Buffer.from(await answered.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

if (!havePeers)
  test.skip('the AI SDK and standardwebhooks', 'npm ci --ignore-scripts --prefix bench/peers installs them');

const load = async (file: string): Promise<unknown> => import(pathToFileURL(PEERS + file).href);

const AiSdk = z.object({
  createMCPClient: z.custom<(options: object) => Promise<AiClient>>((value) => typeof value === 'function'),
  experimental_createMCPEventWebhook: z.custom<(options: object) => (request: Request) => Promise<Response>>(
    (value) => typeof value === 'function',
  ),
});

interface Verifier {
  verify(body: string, headers: object): unknown;
  sign(id: string, at: Date, body: string): string;
}

const Standard = z.object({
  Webhook: z.custom<new (secret: string) => Verifier>((value) => typeof value === 'function'),
});

interface Granted {
  readonly id: string;
  readonly refreshBefore: string | null;
}

interface AiClient {
  readonly experimental_events: {
    list(): Promise<{ readonly events: readonly { readonly name: string; readonly delivery: readonly string[] }[] }>;
    subscribe(options: object): Promise<Granted>;
    refresh(options: object): Promise<Granted>;
    unsubscribe(options: object): Promise<void>;
  };
  close(): Promise<void>;
}

/** The store of subscriptions that the AI SDK wants from its program. */
function subscriptionStore() {
  const kept = new Map<string, { key: string; id?: string }>();
  return {
    kept,
    get: async (key: string) => kept.get(key),
    getById: async (id: string) => [...kept.values()].find((each) => each.id === id),
    async set(subscription: { key: string }) {
      kept.set(subscription.key, subscription);
    },
    async update(key: string, patch: object) {
      const before = kept.get(key);
      if (before) kept.set(key, { ...before, ...patch });
    },
    async delete(key: string) {
      kept.delete(key);
    },
  };
}

if (havePeers)
  test('the AI SDK lists, subscribes, is verified, gets events, refreshes and unsubscribes', async () => {
    const { createMCPClient, experimental_createMCPEventWebhook: createWebhook } = AiSdk.parse(
      await load('@ai-sdk/mcp/dist/index.js'),
    );
    const { server, note, url } = await served();
    const store = subscriptionStore();
    const events: { subscription: { id: string }; event: { eventId: string; data: unknown } }[] = [];
    const errors: unknown[] = [];
    const box = await endpoint(
      createWebhook({
        store,
        onEvent: async (each: (typeof events)[number]) => void events.push(each),
        onError: (error: unknown) => void errors.push(error),
      }),
    );
    const client = await createMCPClient({
      transport: { type: 'http', url, headers: AUTHORIZATION },
      experimental_events: { store },
    });
    const { events: types } = await client.experimental_events.list();
    assert.equal(
      types.map(({ name, delivery }) => [name, delivery.includes('webhook')]),
      [['note', true]],
    );
    const delivery = { mode: 'webhook', url: `${box.url}/events`, allowInsecureLocalhost: true };
    const granted = await client.experimental_events.subscribe({ name: 'note', delivery, ttlMs: 600_000 });
    await note.emit({ n: 1 }, { id: 'a' });
    await note.emit({ n: 2 }, { id: 'b' });
    await until(() => events.length === 2);
    assert.equal(
      events.map(({ subscription, event }) => [subscription.id, event.eventId, event.data]),
      [
        [granted.id, 'a', { n: 1 }],
        [granted.id, 'b', { n: 2 }],
      ],
    );
    assert.is((await client.experimental_events.refresh({ id: granted.id })).id, granted.id);
    await note.emit({ n: 3 }, { id: 'c' });
    await until(() => events.length === 3);
    await client.experimental_events.unsubscribe({ id: granted.id });
    assert.equal([store.kept.size, errors], [0, []]);
    await client.close();
    await server.close();
    box.close();
  });

if (havePeers)
  test('standardwebhooks verifies each delivery, challenges included, and rejects a changed one', async () => {
    const { Webhook } = Standard.parse(await load('standardwebhooks/dist/index.js'));
    const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
    const verifier = new Webhook(secret);
    const { server, note, url } = await served();
    const verified: unknown[] = [];
    const box = await endpoint(async (request) => {
      const body = await request.text();
      const headers = Object.fromEntries(request.headers);
      verified.push(verifier.verify(body, headers));
      assert.throws(() => verifier.verify(`${body} `, headers));
      return Response.json({ challenge: Object(JSON.parse(body)).challenge });
    });
    const chat = emulator(url, LATEST_MODERN);
    await chat.result('events/subscribe', subscribing(`${box.url}/events`, secret));
    await note.emit({ n: 1 }, { id: 'a' });
    await until(() => verified.length === 2);
    assert.equal(
      verified.map((body) => Object(body).type ?? Object(body).eventId),
      ['verification', 'a'],
    );
    await server.close();
    box.close();
  });

if (havePeers)
  test('the receiver takes what standardwebhooks has signed', async () => {
    const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
    const { Webhook } = Standard.parse(await load('standardwebhooks/dist/index.js'));
    const events: string[] = [];
    const hook = receiver({ secrets: secret, onEvent: ({ id }) => void events.push(id) });
    const body = JSON.stringify({ eventId: 'a', name: 'note', timestamp: new Date().toISOString(), data: {} });
    const now = new Date();
    const headers = {
      ...{ 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)) },
      'webhook-signature': new Webhook(secret).sign('msg_1', now, body),
    };
    const request = new Request('https://mine.example.com/events', { method: 'POST', headers, body });
    assert.equal([(await hook.fetch(request)).status, events], [204, ['a']]);
  });

const subscribing = (url: string, secret: string, more: object = {}) => ({
  ...{ name: 'note', arguments: {}, delivery: { mode: 'webhook', url, secret }, ...more },
});

/** Sends requests as ChatGPT does: JSON, one each, and no declaration of the extension. */
function emulator(url: string, revision: string) {
  const isModern = revision === LATEST_MODERN;
  let session: string | undefined;
  let id = 0;
  const post = async (method: string, params: object, more: object = {}): Promise<Response> => {
    id += 1;
    const meta = {
      'io.modelcontextprotocol/protocolVersion': revision,
      'io.modelcontextprotocol/clientInfo': { name: 'openai-mcp', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    return fetch(url, {
      method: 'POST',
      headers: {
        ...{ ...AUTHORIZATION, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...(isModern && { 'mcp-method': method }),
        ...(method !== 'initialize' && { 'mcp-protocol-version': revision }),
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
        ...more,
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', method, params: isModern ? { ...params, _meta: meta } : params },
        ...(method.startsWith('notifications/') ? {} : { id }),
      }),
    });
  };
  const answer = async (method: string, params: object): Promise<{ result?: unknown; error?: { code: number } }> => {
    const response = await post(method, params);
    session ??= response.headers.get('mcp-session-id') ?? undefined;
    const text = await response.text();
    return Object(JSON.parse(text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? 'null')));
  };
  return {
    async result(method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
      const { result, error } = await answer(method, params);
      assert.is(error, undefined, JSON.stringify(error));
      return Object(result);
    },
    code: async (method: string, params: object = {}) => (await answer(method, params)).error?.code,
    notify: async (method: string) => void (await post(method, {})),
  };
}

const Delivered = z.object({
  ...{ eventId: z.string(), name: z.literal('note'), data: z.object({ n: z.number() }) },
  // With its zone.
  timestamp: z.iso.datetime({ offset: true }),
});

for (const revision of [LATEST_MODERN, '2025-03-26'])
  test(`the steps of ChatGPT work in ${revision}`, async () => {
    const { server, note, url } = await served();
    const posts: { readonly headers: Headers; readonly body: unknown }[] = [];
    const box = await endpoint(async (request) => {
      const body: unknown = await request.json();
      posts.push({ headers: request.headers, body });
      const { type, challenge } = Object(body);
      return type === 'verification' ? Response.json({ challenge }) : new Response(null, { status: 202 });
    });
    const chat = emulator(url, revision);
    const opened =
      revision === LATEST_MODERN
        ? await chat.result('server/discover')
        : await chat.result('initialize', {
            ...{ protocolVersion: revision, capabilities: {}, clientInfo: { name: 'openai-mcp', version: '1.0.0' } },
          });
    assert.type(Object(opened.capabilities).events, 'object');
    if (revision !== LATEST_MODERN) await chat.notify('notifications/initialized');
    const { events } = await chat.result('events/list');
    assert.equal(
      (Array.isArray(events) ? events : []).map(({ name, delivery }) => [name, delivery.includes('webhook')]),
      [['note', true]],
    );
    const secret = `whsec_${Buffer.alloc(32, 6).toString('base64')}`;
    const subscribed = subscribing(`${box.url}/callback?token=t`, secret, { ttlMs: 3_600_000, cursor: null });
    const granted = await chat.result('events/subscribe', subscribed);
    assert.ok(Date.parse(String(granted.refreshBefore)) > Date.now());
    assert.is(Object(posts[0]?.body).type, 'verification');
    await note.emit({ n: 1 }, { id: 'evt_1' });
    await until(() => posts.length === 2);
    const { headers, body } = posts[1] ?? {};
    const event = Delivered.parse(body);
    assert.equal([headers?.get('webhook-id'), headers?.get('x-mcp-subscription-id')], [event.eventId, granted.id]);
    assert.match(headers?.get('webhook-signature') ?? '', /^v1,[A-Za-z0-9+/]{43}=$/);
    // The same call is a refresh, without another challenge.
    assert.is((await chat.result('events/subscribe', subscribed)).id, granted.id);
    assert.is(posts.length, 2);
    const other = { name: 'note', arguments: {}, delivery: { url: subscribed.delivery.url } };
    await chat.result('events/unsubscribe', other);
    await chat.result('events/unsubscribe', other);
    await note.emit({ n: 2 }, { id: 'evt_2' });
    // A type that is gone is no message to it: it knows neither `gap` nor `terminated`.
    assert.is(await chat.code('events/subscribe', { ...subscribed, name: 'nothing' }), -32011);
    assert.is(await chat.code('events/subscribe', subscribing('http://10.0.0.1/', secret)), -32602);
    assert.is(await chat.code('events/subscribe', subscribing('https://127.0.0.1:1/', secret)), -32015);
    assert.is(posts.length, 2);
    await server.close();
    box.close();
  });
