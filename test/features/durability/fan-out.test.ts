/** Changes for thousands of durable streams: a few writes at a time, responses of the store in slices, and no job that a slow store stops. */

import * as assert from 'uvu/assert';
import { resolveHttpOptions } from '../../../src/core/http/http-options.ts';
import { HttpSession } from '../../../src/core/http/http-session.ts';
import { OpenResponses } from '../../../src/core/http/open-responses.ts';
import { Sweeper } from '../../../src/core/http/sweeper.ts';
import type { Write } from '../../../src/core/store/store.ts';
import { StorePace } from '../../../src/core/store/store-pace.ts';
import { createServer, type Server, type Store, sqlite } from '../../../src/index.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { flicker, mostInOneTurn, offer, turn } from '../../core/emitters/support.ts';
import { folder, host } from '../../core/store/support.ts';
import { RecordingHost } from '../../core/transports/support.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';

const test = suite('durable fan-out');
const MANY = 600;
/** Most writes that a broadcast leaves with the store: two slices, and the few that may wait. */
const MOST_WAITING = 3 * 32;

const place = folder();
test.after(() => place.remove());
let files = 0;
const file = (): Store => sqlite(`${place.path}/${files++}.db`);

test('R-44 the responses of one transaction run the output of its clients in slices, in order', async () => {
  const store = file();
  await store.open(host());
  const durable: number[] = [];
  const most = await mostInOneTurn(
    () => durable.length,
    async () => {
      await Promise.all(
        Array.from({ length: MANY }, async (_, index) => {
          const actor = `session/${index}`;
          await store.commit([{ type: 'event', actor, stream: 's', seq: 1, kind: 'message', data: 'x' }]);
          durable.push(index);
        }),
      );
    },
  );
  assert.equal(
    durable,
    Array.from({ length: MANY }, (_, index) => index),
  );
  assert.ok(most > 0 && most <= MANY / 2, `${most} were let through in one turn`);
  await store.close();
});

/** A store that counts the batches that wait. */
class CountingStore extends TestStore {
  waiting = 0;
  most = 0;

  override async write(writes: readonly Write[]): Promise<void> {
    this.waiting += 1;
    this.most = Math.max(this.most, this.waiting);
    await this.inner.commit(writes);
    this.waiting -= 1;
  }

  override close(): Promise<void> {
    return this.inner.close();
  }
}

interface Listener {
  /** How often it was notified. */
  notified(): number;
  /** Resolves when it is notified for the first time. */
  readonly first: Promise<void>;
  readonly ended: Promise<void>;
}

const CHANGED = 'notifications/tools/list_changed';
const ACCEPT = 'application/json, text/event-stream';

function posted(message: object, session?: string): Request {
  return new Request('http://localhost/mcp', {
    method: 'POST',
    headers: { accept: ACCEPT, 'content-type': 'application/json', ...(session ? { 'mcp-session-id': session } : {}) },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
}

async function openSession(server: Server): Promise<string> {
  const clientInfo = { name: 'listener', version: '1.0.0' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const opened = await server.fetch(posted({ id: 1, method: 'initialize', params }));
  await opened.text();
  const session = opened.headers.get('mcp-session-id') ?? '';
  await server.fetch(posted({ method: 'notifications/initialized' }, session));
  return session;
}

async function listen(server: Server): Promise<Listener> {
  const session = await openSession(server);
  const headers = { accept: ACCEPT, 'mcp-session-id': session };
  const { body } = await server.fetch(new Request('http://localhost/mcp', { headers }));
  const decoder = new TextDecoder();
  let text = '';
  let notify = (): void => {};
  const first = new Promise<void>((resolve) => {
    notify = resolve;
  });
  const read = async (): Promise<void> => {
    if (!body) throw new Error('expected a stream');
    for await (const bytes of body) {
      text += decoder.decode(bytes);
      if (text.includes(CHANGED)) notify();
    }
  };
  return { notified: () => text.split(CHANGED).length - 1, first, ended: read() };
}

test.full(
  'R-44 a change for many durable streams is written a few at a time, and another client’s call is never behind all of them',
  async () => {
    const clock = new SimulatedClock();
    const store = new CountingStore(file());
    const limits = { maxSessionsPerPrincipal: MANY + 10 };
    const server = createServer({ name: 'changing', version: '1.0.0', clock, store, limits, log: () => {} });
    offer(server);
    const bystander = await openSession(server);
    const listeners: Listener[] = [];
    // Many at once, because each waits for the disk.
    while (listeners.length < MANY)
      listeners.push(...(await Promise.all(Array.from({ length: 100 }, () => listen(server)))));
    while (store.waiting > 0) await turn();
    store.most = 0;
    const told = (): number => listeners.filter(({ notified }) => notified() > 0).length;
    flicker(server);
    clock.pass(10);
    const call = posted({ id: 2, method: 'tools/call', params: { name: 'good', arguments: {} } }, bystander);
    const toldBefore = server.fetch(call).then(async (response) => {
      assert.match(await response.text(), 'good');
      return told();
    });
    await Promise.all(listeners.map(({ first }) => first));
    assert.ok((await toldBefore) < MANY, 'the call was answered after all were notified');
    assert.ok(store.most <= MOST_WAITING, `${store.most} batches waited`);
    await server.close();
    for (const { ended, notified } of listeners) {
      await ended;
      assert.is(notified(), 1);
    }
  },
);

test('R-44 a slice waits for the store, and begins without it after 10 ms if the store does not respond', async () => {
  const clock = new SimulatedClock();
  let respond = (): void => {};
  const caughtUp = (): Promise<void> =>
    new Promise<void>((resolve) => {
      respond = resolve;
    });
  const pace = new StorePace(clock, { durable: true, caughtUp });
  let begun = 0;
  const begin = (): void => {
    begun += 1;
  };
  pace.soon(begin);
  await settled();
  assert.is(begun, 0);
  respond();
  await settled();
  assert.is(begun, 1);
  assert.is(clock.timers, 0);
  pace.soon(begin);
  await settled();
  clock.pass(9);
  assert.is(begun, 1);
  clock.pass(1);
  assert.is(begun, 2);
  respond();
  await settled();
  assert.is(begun, 2);
  new StorePace(clock, { durable: false, caughtUp: () => undefined }).soon(begin);
  await settled();
  assert.is(begun, 3);
});

class DurableHost extends RecordingHost {
  readonly dormantSessions = { wake: () => Promise.resolve(undefined) };
}

test('R-44 thousands of sessions hibernate in slices, and a session that is used between two slices does not', () => {
  const transport = new DurableHost();
  const { clock } = transport;
  const keeper = { sleepsAfterMs: 1_000, used() {}, gate() {} };
  const sessions = Array.from(
    { length: MANY },
    (_, index) =>
      new HttpSession(
        { id: String(index), principal: 'p', dialect: undefined as never, keeper: keeper as never },
        { options: { sessionIdleMs: 1_000_000 } } as never,
        clock.now(),
      ),
  );
  const slept: HttpSession[] = [];
  const sweeper = new Sweeper({
    host: transport,
    options: resolveHttpOptions({}),
    open: new OpenResponses(),
    sessions: () => sessions,
    end() {},
    sleep: (session) => void slept.push(session),
  });
  clock.pass(5_000);
  assert.ok(slept.length > 0 && slept.length <= MANY / 2, `${slept.length} hibernated in one turn`);
  sessions.at(-1)?.used(clock.now());
  for (let turns = 0; slept.length < MANY - 1; turns += 1) {
    assert.ok(turns < MANY, `${slept.length} hibernated`);
    clock.turn();
  }
  clock.turn();
  assert.is(slept.length, MANY - 1);
  sweeper.end();
});
