import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import type { Write } from '../../../src/core/store/store.ts';
import { handleUri } from '../../../src/features/machines/handle-record.ts';
import { Db } from '../../../src/features/sqlite/sqlite-database.ts';
import { type Server, sqlite } from '../../../src/index.ts';
import { crowd, pings, serving } from '../../core/http/session.ts';
import {
  type Answer,
  ask,
  initialize,
  openSession,
  type Session,
  type Stage,
  textIn,
} from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { Disk } from '../machines/support.ts';

const test = suite('reads on a durable store');

const READS = { readOnlyHint: true, idempotentHint: true } as const;
const ME = { authorization: 'me' };

const counter = setup({
  types: { context: {} as { count: number }, events: {} as { type: 'add' } },
}).createMachine({
  context: { count: 0 },
  on: { add: { actions: assign({ count: ({ context }) => context.count + 1 }) } },
});

/** Ends the task that works. */
let finish = (): void => {};

function define(server: Server): void {
  const text = z.object({ text: z.string() });
  server.tool('read', { annotations: READS, input: text }, ({ text }) => text);
  server.tool('put', { annotations: { idempotentHint: true }, input: text }, ({ text }) => text);
  server.tool('write', { input: text }, ({ text }) => text);
  server.tool('work', { task: 'allowed' }, () => {
    return new Promise<string>((resolve) => {
      finish = () => resolve('worked');
    });
  });
  server.machine('counter', counter, { events: { add: true }, view: ({ context }) => ({ count: context.count }) });
}

const NONE = (): boolean => false;
const ALL = (): boolean => true;

/** A disk on which some batches wait until the test releases them. */
class SlowDisk extends Disk {
  /** Which batches wait from now on. */
  holds: (writes: readonly Write[]) => boolean = NONE;
  readonly #slow: (() => void)[] = [];

  override async write(writes: readonly Write[]): Promise<void> {
    if (this.holds(writes)) await new Promise<void>((resolve) => this.#slow.push(resolve));
    await super.write(writes);
  }

  override release(): void {
    this.holds = NONE;
    for (const resolve of this.#slow.splice(0)) resolve();
  }
}

/** Serves from a disk that the test slows down, where each request says who sends it. */
function withDisk(body: (stage: Stage, store: SlowDisk) => Promise<void>): Promise<void> {
  const store = new SlowDisk();
  return serving(
    (stage) => body(stage, store).finally(() => store.release()),
    { server: { store }, authenticate: ({ header }) => header('authorization') ?? 'somebody' },
    define,
  );
}

/** What the store was told since. */
function writesOf({ batches }: Disk, since: number): readonly Write[] {
  return batches.slice(since).flat();
}

/** Runs until the server has served requests that came later: what could have been answered by then is. */
async function laterRequestsAreServed(session: Session): Promise<void> {
  for (let trip = 0; trip < 8; trip += 1) assert.is(await pings(session), 200);
}

/** The body of an answer that is awaited, once it is there. */
interface Pending {
  readonly body: Promise<string>;
  answered: boolean;
}

function pending(answer: Promise<Answer>): Pending {
  const one: Pending = { body: answer.then((got) => got.text()), answered: false };
  one.body.then(
    () => {
      one.answered = true;
    },
    () => {},
  );
  return one;
}

function structured(text: string): Readonly<Record<string, unknown>> {
  return Object(JSON.parse(text).result?.structuredContent);
}

const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A call without a session, whose idempotency key makes it unique. */
function keyed(stage: Stage, name: string, key = 'a-random-key-0001'): Promise<Answer> {
  const _meta = { ...MODERN_META, 'io.troupe/idempotency-key': key };
  return ask(stage.url, {
    headers: { ...ME, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { text: 'a' }, _meta } },
  });
}

test('R-46: calls of a read-only tool leave no rows, in a session and with a key; those of other tools do', () =>
  withDisk(async (stage, store) => {
    const session = await openSession(stage.url, '2025-11-25', ME);
    const before = store.batches.length;
    for (let id = 1; id <= 20; id += 1)
      assert.is(textIn(await (await session.call(id, 'read', { text: `${id}` })).json()), `${id}`);
    assert.is(textIn(await (await keyed(stage, 'read')).json()), 'a');
    assert.equal(writesOf(store, before), []);
    for (const [name, id] of [
      ['put', 21],
      ['write', 22],
    ] as const) {
      const since = store.batches.length;
      assert.is(textIn(await (await session.call(id, name, { text: name })).json()), name);
      assert.ok(
        writesOf(store, since).some(({ type }) => type === 'reply'),
        `${name} left no reply`,
      );
    }
  }));

test('R-46: lists, resources, prompts, pings and rejected requests leave no rows either', () =>
  withDisk(async (stage, store) => {
    const session = await openSession(stage.url, '2025-11-25', ME);
    const before = store.batches.length;
    for (const [id, [method, params]] of (
      [
        ['ping', {}],
        ['tools/list', {}],
        ['resources/list', {}],
        ['resources/read', { uri: 'notes://a' }],
        ['prompts/list', {}],
        ['tools/call', { name: 'no such tool' }],
        ['no/such/method', {}],
      ] as const
    ).entries())
      assert.is((await session.post({ jsonrpc: '2.0', id, method, params })).status, 200, method);
    assert.equal(writesOf(store, before), []);
  }));

test('R-26: calls that write leave no more replies in the file than their session may have, without a sweep', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-growth-'));
  const file = join(folder, 'growth.db');
  const most = 16;
  const text = 'x'.repeat(2_000);
  try {
    await serving(
      async (stage) => {
        const session = await openSession(stage.url);
        await crowd(atScale({ quick: 4, full: 20, proof: 20 }) * most, 8, async (id) =>
          assert.is(textIn(await (await session.call(id, 'write', { text })).json()), text),
        );
      },
      { server: { store: sqlite(file), limits: { maxRepliesPerSession: most } } },
      define,
    );
    const db = new Db(file);
    // The secret of the server is a reply, too.
    const [row] = db
      .prepare("SELECT CAST(count(*) AS REAL) FROM reply WHERE actor <> CAST('server/secret' AS BLOB)")
      .all();
    db.close();
    assert.is(row?.[0], most);
    // The log is written back and emptied when the store closes. All 320 replies would be 700 KB.
    const { size } = statSync(file);
    assert.ok(size <= 300_000, `the file has ${size} bytes`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a read does not wait for the replies of other calls, nor for other sessions', () =>
  withDisk(async (stage, store) => {
    const session = await openSession(stage.url, '2025-11-25', ME);
    const other = await openSession(stage.url, '2025-11-25', { authorization: 'you' });
    const holding = session.call(1, 'held', { key: 'a' });
    const call = await stage.held('a');
    store.holds = ALL;
    call.finish('kept');
    const opening = ask(stage.url, { body: initialize('2025-11-25'), headers: { authorization: 'third' } });
    const written = pending(holding);
    for (const reader of [session, other])
      assert.is(textIn(await (await reader.call(2, 'read', { text: 'now' })).json()), 'now');
    assert.not.ok(written.answered, 'the answer of a call that writes left before it was durable');
    store.release();
    assert.is(textIn(JSON.parse(await written.body)), 'kept');
    assert.is((await opening).status, 200);
  }));

test('R-45: output that depends on the state of a session waits until that state is durable', () =>
  withDisk(async (stage, store) => {
    const other = await openSession(stage.url, '2025-11-25', { authorization: 'you' });
    const opened = await ask(stage.url, { body: initialize('2025-11-25'), headers: ME });
    await opened.text();
    const headers = { ...ME, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
    const post = (body: object): Pending => pending(ask(stage.url, { headers, body }));
    store.holds = ALL;
    const ready = post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    await laterRequestsAreServed(other);
    // Were the process to end now, the session would not be initialized, and this call would be rejected.
    const read = post({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'read', arguments: { text: 'a' } },
    });
    const listed = post({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
    await laterRequestsAreServed(other);
    assert.equal([ready.answered, read.answered, listed.answered], [false, false, false]);
    store.release();
    assert.is(textIn(JSON.parse(await read.body)), 'a');
    await Promise.all([ready.body, listed.body]);
  }));

/** What shows the state of an instance, read by another session of its principal. */
const LOOKS: Readonly<Record<string, (session: Session, handle: string) => Promise<Answer>>> = {
  counter_get: (session, handle) => session.call('get', 'counter_get', { handle }),
  counter_list: (session) => session.call('list', 'counter_list', {}),
  'resources/read of the instance': (session, handle) =>
    session.post({
      jsonrpc: '2.0',
      id: 'read',
      method: 'resources/read',
      params: { uri: handleUri('counter', handle) },
    }),
};

for (const [what, look] of Object.entries(LOOKS))
  (what === 'counter_get' ? test : test.full)(
    `R-45: ${what} does not show a change of an instance that could still be lost`,
    () =>
      withDisk(async (stage, store) => {
        const writer = await openSession(stage.url, '2025-11-25', ME);
        const reader = await openSession(stage.url, '2025-11-25', ME);
        const other = await openSession(stage.url, '2025-11-25', { authorization: 'you' });
        const created = await (await writer.call(1, 'counter_create')).text();
        const handle = String(structured(created).handle);
        const before = await (await look(reader, handle)).text();
        assert.match(before, /count\W+0/);
        // The marker of the call that writes becomes durable; what the instance becomes does not.
        store.holds = (writes) => writes.some(({ type }) => type === 'snapshot');
        const added = pending(writer.call(2, 'counter_add', { handle }));
        await laterRequestsAreServed(other);
        const seen = pending(look(reader, handle));
        await laterRequestsAreServed(other);
        const early = seen.answered ? await seen.body : '';
        assert.not.match(early, /count\W+1/);
        store.release();
        await added.body;
        assert.match(await seen.body, /count\W+[01]/);
        assert.match(await (await look(reader, handle)).text(), /count\W+1/);
      }),
  );

for (const [method, by] of [
  ['tasks/get', 'id'],
  ['tasks/list', 'none'],
] as const)
  test(`R-45: ${method} does not show the end of a task that could still be lost`, () =>
    withDisk(async (stage, store) => {
      const session = await openSession(stage.url, '2025-11-25', ME);
      const other = await openSession(stage.url, '2025-11-25', { authorization: 'you' });
      const params = { name: 'work', arguments: {}, task: {} };
      const called = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const { task } = Object((await called.json()).result);
      const look = async (id: number): Promise<string> => {
        const asked = by === 'id' ? { taskId: task.taskId } : {};
        return (await session.post({ jsonrpc: '2.0', id, method, params: asked })).text();
      };
      assert.match(await look(2), '"status":"working"');
      store.holds = ALL;
      finish();
      await laterRequestsAreServed(other);
      assert.match(await look(3), '"status":"working"');
      store.release();
      let last = await look(4);
      for (let id = 5; !last.includes('"status":"completed"'); id += 1) last = await look(id);
    }));
