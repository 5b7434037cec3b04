/** Sessions of a durable store in one process: they leave memory, and wake; keys make calls without a session unique; nothing leaks. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { pathOf } from '../../../src/core/kernel/charts/paths.ts';
import type { StoreAnswer, Write } from '../../../src/core/store/store.ts';
import { StoreError } from '../../../src/core/store/store.ts';
import { memoryStore, type Store, sqlite } from '../../../src/index.ts';
import { crowd, pings, serving } from '../../core/http/session.ts';
import { ask, openSession, type Stage, textIn } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { type OtherQuery, TestStore } from '../../harness/test-store.ts';
import { elapse, until } from '../../harness/wait.ts';

const test = suite('sessions that sleep');
const folder = mkdtempSync(join(tmpdir(), 'troupe-sleep-'));
let files = 0;
test.after(() => rmSync(folder, { recursive: true, force: true }));
const store = (): Store => sqlite(join(folder, `${files++}.db`));
/** A store for what the file makes no difference to. The thread of a file takes 50 ms of processor time to start. */
const anyStore = (): Store => (SCALE === 'quick' ? new TestStore() : store());

const settle = (): Promise<void> => elapse(60, 'the store, which has a thread of its own, does its work');

/** Lets the time pass after which sessions sleep. @param awake how many do not, because they are used */
async function sleepAll(stage: Stage, awake = 0): Promise<void> {
  await settle();
  await stage.clock.advance(70_000);
  await until(async () => {
    // One that was not at rest yet sleeps later.
    if (stage.sessions() > awake) await stage.clock.advance(1_000);
    return stage.sessions() <= awake;
  });
  await settle();
}

test('R-22: an unused session leaves memory, and wakes with its next request', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      await (await session.call(1, 'echo', { text: 'a' })).text();
      await sleepAll(stage);
      assert.is(stage.sessions(), 0);
      const [one, two] = await Promise.all([
        session.call(2, 'echo', { text: 'b' }),
        session.call(3, 'echo', { text: 'c' }),
      ]);
      assert.equal([textIn(await one.json()), textIn(await two.json())], ['b', 'c']);
      assert.is(stage.sessions(), 1);
    },
    { server: { store: store() } },
  ));

test('its streams are there when it wakes, and go on with new ids', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const counted = await session.call(1, 'count', { to: 3 }, { progressToken: 1 });
      const events = await counted.events.rest();
      const last = events.at(-1);
      await sleepAll(stage);
      assert.is(stage.sessions(), 0);
      const again = await session.get({ 'last-event-id': counted.events.seen[0]?.id });
      assert.equal(
        (await again.events.rest()).map(({ id }) => id),
        counted.events.seen.slice(1).map(({ id }) => id),
      );
      assert.is((await session.get({ 'last-event-id': last?.id })).status, 204);
    },
    { server: { store: store() } },
  ));

test('a session that is being read, or that watches a resource, stays', () =>
  serving(
    async (stage) => {
      const read = await openSession(stage.url);
      const own = await read.get();
      const watching = await openSession(stage.url);
      const body = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'notes://a' } };
      await (await watching.post(body)).text();
      await sleepAll(stage, 2);
      assert.is(stage.sessions(), 2);
      own.cut();
    },
    { server: { store: anyStore() } },
  ));

test('R-30: sessions that open and end leave nothing in memory, and a foreign id none either', () =>
  serving(
    async (stage) => {
      await crowd(atScale({ quick: 9, full: 300, proof: 300 }), 10, async (index) => {
        const session = await openSession(stage.url);
        if (index % 3 === 0) await (await session.call(1, 'echo', { text: 'x' })).text();
        await (await session.delete()).text();
        const stranger = { 'mcp-session-id': `none-${index}`, 'mcp-protocol-version': '2025-11-25' };
        await (await ask(stage.url, { method: 'GET', headers: stranger })).text();
        await (await ask(stage.url, { method: 'DELETE', headers: stranger })).text();
      });
      assert.is(stage.sessions(), 0);
      assert.equal(
        stage.told.filter((line) => line.startsWith('error')),
        [],
      );
    },
    { server: { store: anyStore() } },
  ));

test('a repeated call has the result that it had, and is not run again; another call with its id is run', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const first = session.call(1, 'held', { key: 'a' });
      (await stage.held('a')).finish('once');
      assert.is(textIn(await (await first).json()), 'once');
      assert.is(textIn(await (await session.call(1, 'held', { key: 'a' })).json()), 'once');
      assert.is(textIn(await (await session.call(1, 'echo', { text: 'new' })).json()), 'new');
    },
    { server: { store: anyStore() } },
  ));

function modern(
  id: number,
  key: string,
  text: string,
): { readonly headers: Record<string, string>; readonly body: object } {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.troupe/idempotency-key': key,
  };
  return {
    headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'count_up' },
    body: { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'count_up', arguments: { text }, _meta } },
  };
}

test('an idempotency key makes a request without a session unique: for its principal, its tool and its arguments', () => {
  let runs = 0;
  return serving(
    async ({ url }) => {
      const key = 'a-random-key-0001';
      const call = async (given: string, text: string, who = 'me') => {
        const { headers, body } = modern(1, given, text);
        return (await ask(url, { headers: { ...headers, authorization: who }, body })).json();
      };
      assert.is(textIn(await call(key, 'a')), 'a 1');
      assert.is(textIn(await call(key, 'a')), 'a 1');
      assert.is((await call(key, 'b')).error?.code, -32600);
      assert.is(textIn(await call(key, 'a', 'you')), 'a 2');
      assert.is((await call('short', 'a')).error?.code, -32602);
      assert.is(runs, 2);
    },
    { server: { store: anyStore() }, authenticate: ({ header }) => header('authorization') },
    (server) => {
      server.tool('count_up', { input: z.object({ text: z.string() }) }, () => {
        runs += 1;
        return `a ${runs}`;
      });
    },
  );
});

/** A store that is durable by its own account, and refuses or delays what it is told to. */
function faulty(): {
  readonly store: Store;
  full: boolean;
  hold: Promise<void> | undefined;
  holdLoad: Promise<void> | undefined;
  /** Readings of sessions so far. */
  loads: number;
  /** The n-th reading of streams from now fails. */
  failStreamsIn: number;
} {
  const none = undefined as Promise<void> | undefined;
  const fault = { store: memoryStore(), full: false, hold: none, holdLoad: none, loads: 0, failStreamsIn: 0 };
  fault.store = new (class extends TestStore {
    override async write(writes: readonly Write[]): Promise<void> {
      await fault.hold;
      if (fault.full) throw new StoreError('full', 'the disk is full');
      await super.write(writes);
    }

    override async read(query: OtherQuery): Promise<StoreAnswer> {
      if (query.type === 'load') fault.loads += 1;
      if (query.type === 'load') await fault.holdLoad;
      if (query.type === 'streams') fault.failStreamsIn -= 1;
      if (query.type === 'streams' && fault.failStreamsIn === 0)
        throw new StoreError('failed', 'the disk cannot be read');
      return super.read(query);
    }
  })(fault.store);
  return fault;
}

test('R-25: a session that is asked for while its server stops is not said to be gone', () => {
  const fault = faulty();
  return serving(
    async (stage) => {
      const session = await openSession(stage.url);
      await sleepAll(stage);
      let found = (): void => {};
      fault.holdLoad = new Promise((resolve) => {
        found = resolve;
      });
      const { loads } = fault;
      const asked = session.post({ jsonrpc: '2.0', id: 1, method: 'ping' });
      await until(() => fault.loads > loads, 'the session to be read');
      const closed = stage.server.close();
      await settle();
      found();
      // With 404 its client would open another, though this one is there after a restart.
      assert.is((await asked).status, 503);
      await closed;
    },
    { server: { store: fault.store } },
  );
});

test('R-30: clients that disconnect while their session is read leave nothing behind', () => {
  const fault = faulty();
  return serving(
    async (stage) => {
      const session = await openSession(stage.url);
      for (const method of ['POST', 'GET']) {
        await sleepAll(stage);
        assert.is(stage.sessions(), 0);
        let found = (): void => {};
        fault.holdLoad = new Promise((resolve) => {
          found = resolve;
        });
        const cut = new AbortController();
        const { headers } = session;
        const body = method === 'POST' ? { jsonrpc: '2.0', id: 1, method: 'ping' } : undefined;
        const asked = [1, 2, 3].map(() => ask(stage.url, { method, headers, body, signal: cut.signal }));
        await settle();
        cut.abort();
        await Promise.allSettled(asked);
        await settle();
        found();
        await settle();
      }
      // Each would count as one of three exchanges for ever.
      await until(async () => (await pings(session)) === 200);
      await sleepAll(stage);
      assert.is(stage.sessions(), 0);
    },
    { server: { store: fault.store }, maxExchanges: 3 },
  );
});

test('an operator sees a session idle, hibernating and active again', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const seen: string[] = [];
      stage.server.inspect((record) => {
        if (record.type === 'step' && record.actor.startsWith('session/'))
          seen.push(`${record.event.type}: ${pathOf(record.snapshot)}`);
        if (record.type === 'gone' && record.actor.startsWith('session/')) seen.push(record.why);
      });
      await (await session.call(1, 'echo', { text: 'a' })).text();
      await stage.clock.advance(12_000);
      await (await session.call(2, 'echo', { text: 'b' })).text();
      await sleepAll(stage);
      assert.is(await pings(session), 200);
      assert.equal(seen, [
        'rest: ready.idle',
        'use: ready.active',
        'rest: ready.idle',
        'hibernate: hibernating',
        'idle: hibernating',
        'restored: initializing',
        'initialized: ready.active',
      ]);
    },
    { server: { store: anyStore() } },
  ));

test('R-22: a session whose streams could not be read once is found by the next request', () => {
  const fault = faulty();
  return serving(
    async (stage) => {
      const session = await openSession(stage.url);
      await sleepAll(stage);
      assert.is(stage.sessions(), 0);
      // The first reading is that of the repository.
      fault.failStreamsIn = 2;
      assert.is(await pings(session), 503);
      assert.is(await pings(session), 200);
    },
    { server: { store: fault.store } },
  );
});

test('R-01: the output gate: no byte of an answer leaves before it is durable', () => {
  const fault = faulty();
  return serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const answering = session.call(1, 'held', { key: 'a' });
      const call = await stage.held('a');
      let release = (): void => {};
      fault.hold = new Promise<void>((resolve) => {
        release = resolve;
      });
      call.finish('told');
      const first = await Promise.race([answering, settle().then(() => 'held back')]);
      assert.is(first, 'held back');
      release();
      assert.is(textIn(await (await answering).json()), 'told');
    },
    { server: { store: fault.store } },
  );
});

test('R-18: while the disk is full a call that changes something is refused and not run; reads go on, and all does later', () => {
  const fault = faulty();
  let runs = 0;
  return serving(
    async (stage) => {
      const session = await openSession(stage.url);
      fault.full = true;
      const refused = await (await session.call(1, 'change')).json();
      assert.is(refused.error?.code, -32603);
      assert.is(runs, 0);
      assert.is(await pings(session), 200);
      fault.full = false;
      await stage.clock.advance(1_000);
      assert.is(textIn(await (await session.call(2, 'change')).json()), 'changed');
      assert.is(runs, 1);
    },
    { server: { store: fault.store } },
    (server) => {
      server.tool('change', {}, () => {
        runs += 1;
        return 'changed';
      });
    },
  );
});
