/** Subscriptions of webhooks in a cluster: the owner of their cell serves the requests, which come to any node and over any transport. */
import * as assert from 'uvu/assert';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { cellOfSubscriber } from '../../../../src/features/events/delivery/subscriber-cell.ts';
import { memory, type Server } from '../../../../src/index.ts';
import { connect } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { loggedServer } from '../../../harness/memory.ts';
import { MemoryDatabase, type MemoryProcess } from '../../../harness/memory-nodes.ts';
import { HANG_MS, until } from '../../../harness/wait.ts';
import { idsOf, type Receiver, receiver, subscription } from './support.ts';

const test = suite('subscriptions of webhooks at several nodes');

interface Node {
  readonly server: Server;
  readonly process: MemoryProcess;
  readonly logged: readonly string[];
  emit(n: number): Promise<unknown>;
}

async function start(database: MemoryDatabase, name: string, { origin }: Receiver): Promise<Node> {
  const process = database.process(name);
  const { server, logged } = loggedServer({
    store: process.store,
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
    // A call waits as long for the owner of its cell.
    limits: { graceMs: HANG_MS },
    events: { callbacks: { allow: [origin] } },
    http: { authenticate: ({ header }) => ({ principal: (header('authorization') ?? '').slice('Bearer '.length) }) },
  });
  const note = server.event('note', {
    description: 'A note was taken.',
    payload: { type: 'object', properties: { n: { type: 'number' } } },
  });
  await server.listen(memory().transport);
  return { server, process, logged, emit: (n) => note.emit({ n }, { id: `e${n}` }) };
}

type Send = (method: string, params: JsonObject) => Promise<JsonObject>;

/** Sends requests of a principal to a server, each with the result, or the error as it is on the wire. */
type Way = (server: Server, principal: string) => Promise<Send>;

const WAYS: Readonly<Record<string, Way>> = {
  async memory(server, principal) {
    const client = await connect(server, { auth: { principal } });
    return (method, params) =>
      client.modern(method, params).catch(({ code, message }) => ({ error: { code, message } }));
  },
  async 'a session over HTTP'(server, principal) {
    const headers = {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ authorization: `Bearer ${principal}`, 'mcp-protocol-version': '2025-11-25' },
    };
    let session: string | null = null;
    const post = async (method: string, params: JsonObject): Promise<JsonObject> => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      const response = await server.fetch(
        new Request('http://localhost/mcp', {
          ...{ method: 'POST', body, headers: session === null ? headers : { ...headers, 'mcp-session-id': session } },
        }),
      );
      session ??= response.headers.get('mcp-session-id');
      const text = await response.text();
      const { result, error } = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text);
      return result ?? { error: { code: error.code, message: error.message } };
    };
    await post('initialize', {
      ...{ protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    });
    return post;
  },
};

/** Principals whose subscriptions belong to a node. */
function principalsOf({ process }: Node, count: number, about: string): readonly string[] {
  const found: string[] = [];
  for (let n = 0; found.length < count; n += 1) {
    const principal = `${about} ${n}`;
    if (process.database.ownerOf(cellOfSubscriber(principal)) === process.id) found.push(principal);
  }
  return found;
}

for (const [name, way] of Object.entries(WAYS))
  test(`R-84: the owner of its cell serves a subscription that another node gets (${name})`, async () => {
    const hook = await receiver();
    const database = new MemoryDatabase(systemClock);
    const [here, owner] = [await start(database, 'one', hook), await start(database, 'two', hook)];
    await until(() => [here, owner].every(({ server }) => (server.cluster()?.cells ?? 0) > 0));
    const principals = principalsOf(owner, 8, name);
    const subscriptions: string[] = [];
    // The session of a principal may be at either node.
    for (const principal of principals) {
      const [send, other] = [await way(here.server, principal), await way(owner.server, principal)];
      const params = subscription(hook.url);
      const { id, cursor, error } = await send('events/subscribe', params);
      assert.is(error, undefined);
      assert.is(typeof cursor, 'string');
      subscriptions.push(String(id));
      const refreshed = await other('events/subscribe', params);
      assert.equal([refreshed.id, Object(refreshed.deliveryStatus).active], [id, true]);
      const unknown = await send('events/subscribe', { ...params, name: 'other' });
      assert.equal(unknown.error, { code: -32_011, message: 'there is no event type "other"' });
    }
    // An event comes again if its cell moves meanwhile.
    const receivers = (event: string): readonly string[] => {
      const posts = hook.posts.filter(({ id }) => id === event);
      return posts.map((post) => post.subscription);
    };
    const [first = '', ...rest] = subscriptions;
    await here.emit(1);
    await until(
      () => subscriptions.every((id) => receivers('e1').includes(id)),
      () => `8 deliveries, got ${idsOf(hook).length}`,
    );
    const { delivery } = subscription(hook.url);
    const send = await way(here.server, principals[0] ?? '');
    const { error } = await send('events/unsubscribe', { name: 'note', arguments: {}, delivery });
    assert.is(error, undefined);
    await here.emit(2);
    await until(() => rest.every((id) => receivers('e2').includes(id)));
    assert.not.ok(receivers('e2').includes(first));
    assert.equal(
      [...here.logged, ...owner.logged].filter((line) => line.startsWith('error')),
      [],
    );
    for (const { server } of [here, owner]) await server.close();
    await hook.close();
  });
