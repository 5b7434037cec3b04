/** A server whose storage is damaged: what exists and cannot be read is never said to be unknown, never begun anew, never written over. */

import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { Db } from '../../../src/features/sqlite/sqlite-database.ts';
import { type Server, type StoreAnswer, StoreError, sqlite } from '../../../src/index.ts';
import { pings, serving } from '../../core/http/session.ts';
import { ask, type Message, openSession, type Session, type Stage, textIn } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';
import { type OtherQuery, TestStore } from '../../harness/test-store.ts';
import { orderMachine, orderOptions } from '../machines/shop.ts';

const test = suite('damaged storage');
const folder = mkdtempSync(join(tmpdir(), 'troupe-damage-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

const DAMAGED = /is damaged/;
const KEY = 'a-random-key-0001';
const PAGE = 4_096;
const ROWS = 0x0d;

/** What a server has stored, and clients know of. */
interface Made {
  readonly session: Session;
  readonly handle: string;
  readonly task: string;
}

let runs = 0;

function offer(server: Server): void {
  server.machine('order', orderMachine, orderOptions);
  server.tool('work', { task: 'required' }, () => 'worked');
  server.tool('count_up', { input: z.object({ text: z.string() }) }, () => {
    runs += 1;
    return `run ${runs}`;
  });
}

function modern(method: string, params: JsonObject, key?: string) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
    ...(key === undefined ? {} : { 'io.troupe/idempotency-key': key }),
  };
  const name = params.name ?? params.taskId;
  return {
    headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': String(name) },
    body: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } },
  };
}

async function send({ url }: Stage, method: string, params: JsonObject, key?: string): Promise<Message> {
  return (await ask(url, modern(method, params, key))).json();
}

const look = (stage: Stage, handle: string): Promise<Message> =>
  send(stage, 'tools/call', { name: 'order_get', arguments: { handle } });
const keyed = (stage: Stage): Promise<Message> =>
  send(stage, 'tools/call', { name: 'count_up', arguments: { text: 'a' } }, KEY);

let written: { readonly made: Made; readonly path: string } | undefined;

/** A closed store of a server that was used. */
async function used(): Promise<{ readonly made: Made; readonly path: string }> {
  if (written) return written;
  const path = join(folder, 'used.db');
  let made: Made | undefined;
  await serving(
    async (stage) => {
      const session = await openSession(stage.url);
      await (await session.call(1, 'count_up', { text: 'in a session' })).text();
      const created = await send(stage, 'tools/call', { name: 'order_create', arguments: { customer: 'Ada' } });
      const { structuredContent } = created.result ?? {};
      const handle = isObject(structuredContent) ? String(structuredContent.handle) : '';
      const task = String((await send(stage, 'tools/call', { name: 'work', arguments: {} })).result?.taskId);
      assert.is(textIn(await keyed(stage)), `run ${runs}`);
      assert.is((await look(stage, handle)).error, undefined);
      made = { session, handle, task };
    },
    { server: { store: sqlite(path) } },
    offer,
  );
  assert.ok(made);
  written = { made, path };
  return written;
}

/** Another process on a copy of that store, of which something was changed. */
async function afterDamage(
  damage: (path: string) => void,
  body: (stage: Stage, made: Made, session: Session) => Promise<void>,
): Promise<void> {
  const { made, path } = await used();
  files += 1;
  const copy = join(folder, `copy-${files}.db`);
  for (const end of ['', '-mark']) copyFileSync(`${path}${end}`, `${copy}${end}`);
  damage(copy);
  await serving(
    async (stage) => {
      const { id, headers } = made.session;
      const post = (message: unknown) => ask(stage.url, { headers, body: message });
      await body(stage, made, { ...made.session, id, post });
    },
    { server: { store: sqlite(copy) } },
    offer,
  );
}

/** As a bit that a disk has turned in rows, of which the indexes know nothing. */
const inRows =
  (change: string) =>
  (path: string): void => {
    const db = new Db(path);
    db.run(change);
    db.close();
  };

const kindIs = (kind: string): string => `kind = CAST('${kind}' AS BLOB)`;

test('nothing is said of a store that is as it was', () =>
  afterDamage(
    () => {},
    async (stage, { handle, task }, session) => {
      const before = runs;
      assert.is((await look(stage, handle)).error, undefined);
      assert.is((await send(stage, 'tasks/get', { taskId: task })).error, undefined);
      assert.is(await pings(session), 200);
      assert.is(textIn(await keyed(stage)), `run ${before}`);
      assert.not.match(stage.told.join('\n'), /damaged/);
    },
  ));

for (const [what, change] of [
  ['the row', `UPDATE actor SET crc = crc + 1 WHERE ${kindIs('handle')}`],
  ['the snapshot', `UPDATE actor SET snapshot_crc = snapshot_crc + 1 WHERE ${kindIs('handle')}`],
  ['a timer', `UPDATE timer SET crc = crc + 1 WHERE instr(actor, CAST('handle/' AS BLOB)) = 1`],
] as const)
  (what === 'the row' ? test : test.full)(
    `R-42: a handle of which ${what} is damaged is neither unknown, nor served, nor recreated`,
    () =>
      afterDamage(inRows(change), async (stage, { handle }) => {
        for (let time = 0; time < 2; time += 1) {
          const { error, result } = await look(stage, handle);
          assert.match(String(error?.message ?? JSON.stringify(result)), DAMAGED);
          assert.is(error?.code, -32603);
        }
        const sent = await send(stage, 'tools/call', { name: 'order_add_item', arguments: { handle, sku: 'tea' } });
        assert.match(String(sent.error?.message), DAMAGED);
        const other = await look(stage, 'x'.repeat(22));
        assert.match(JSON.stringify(other.result), /unknown handle/);
        assert.match(stage.told.join('\n'), /the stored data differs from what was written/);
      }),
  );

for (const [what, change] of [
  ['the row', `UPDATE actor SET crc = crc + 1 WHERE ${kindIs('session')}`],
  ['the snapshot', `UPDATE actor SET snapshot_crc = snapshot_crc + 1 WHERE ${kindIs('session')}`],
] as const)
  (what === 'the row' ? test : test.full)(
    `R-42: a session of which ${what} is damaged is not answered with 404, which would begin another`,
    () =>
      afterDamage(inRows(change), async (stage, _made, session) => {
        for (let time = 0; time < 2; time += 1) {
          const answer = await session.post({ jsonrpc: '2.0', id: 1, method: 'ping' });
          assert.is(answer.status, 500);
          assert.match(await answer.text(), DAMAGED);
        }
        const other = await ask(stage.url, { headers: { ...session.headers, 'mcp-session-id': 'x' }, body: {} });
        assert.not.match(await other.text(), DAMAGED);
      }),
  );

for (const [what, change] of [
  ['the row', `UPDATE actor SET crc = crc + 1 WHERE ${kindIs('task')}`],
  ['the snapshot', `UPDATE actor SET snapshot_crc = snapshot_crc + 1 WHERE ${kindIs('task')}`],
] as const)
  (what === 'the row' ? test : test.full)(`R-42: a task of which ${what} is damaged is not unknown`, () =>
    afterDamage(inRows(change), async (stage, { task }) => {
      for (const method of ['tasks/get', 'tasks/cancel']) {
        const { error } = await send(stage, method, { taskId: task });
        assert.match(String(error?.message), DAMAGED);
        assert.is(error?.code, -32603);
      }
      const { error } = await send(stage, 'tasks/get', { taskId: 'x'.repeat(22) });
      assert.match(String(error?.message), /unknown task/);
    }),
  );

/** Without its own secret a server does not start. */
const DAMAGE_REPLIES = "UPDATE reply SET crc = crc + 1 WHERE actor <> CAST('server/secret' AS BLOB)";

test('R-42: a call whose reply is damaged is not run again, with a key or in a session', () =>
  afterDamage(inRows(DAMAGE_REPLIES), async (stage, _made, session) => {
    const before = runs;
    const { error } = await keyed(stage);
    assert.match(String(error?.message), DAMAGED);
    assert.is(error?.code, -32603);
    const params = { name: 'count_up', arguments: { text: 'in a session' } };
    const again = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    assert.match(await again.text(), DAMAGED);
    assert.is(runs, before);
    assert.match(stage.told.join('\n'), /the reply to .* the stored data differs from what was written/);
  }));

test('R-41: an index that is damaged hides no handle, no session and no task: it is rebuilt from the rows', async () => {
  const { made, path } = await used();
  const file = readFileSync(path);
  let rebuilt = 0;
  for (let at = file.indexOf(made.handle); at >= 0; at = file.indexOf(made.handle, at + 1)) {
    if (file[Math.floor(at / PAGE) * PAGE] === ROWS) continue;
    if (SCALE === 'quick' && rebuilt > 0) break;
    const turn = (copy: string): void => {
      const bytes = Buffer.from(file);
      bytes[at] = (bytes[at] ?? 0) ^ 4;
      writeFileSync(copy, bytes);
    };
    await afterDamage(turn, async (stage, { handle, task }, session) => {
      if (/was rebuilt from the rows/.test(stage.told.join('\n'))) rebuilt += 1;
      assert.is((await send(stage, 'tasks/get', { taskId: task })).error, undefined);
      assert.is(await pings(session), 200);
      const { error } = await look(stage, handle);
      // A timer has no other place than the index that it is in.
      if (error) assert.match(error.message, DAMAGED);
    });
  }
  assert.ok(rebuilt > 0);
});

test('R-43: a server does not start on a store that was cut to nothing, or whose file is gone', async () => {
  for (const damage of [(path: string) => writeFileSync(path, ''), (path: string) => rmSync(path)]) {
    const refused = await afterDamage(damage, () => Promise.reject(new Error('it has started'))).catch(
      (error: unknown) => error,
    );
    assert.ok(refused instanceof StoreError, String(refused));
    assert.is(refused.fault, 'corrupt');
    assert.match(refused.message, /Restore a backup/);
    const path = join(folder, `copy-${files}.db`);
    assert.not.ok(existsSync(path) && readFileSync(path).length > 0);
  }
});

/** A durable store that finds out, once it is told to, that rows have gone since it was opened. */
class FailingStore extends TestStore {
  hidden = false;

  override read(query: OtherQuery): Promise<StoreAnswer> {
    if (this.hidden && (query.type === 'load' || query.type === 'reply')) return Promise.reject(gone(query.actor));
    return super.read(query);
  }
}

const gone = (what: string): StoreError => new StoreError('corrupt', `${what}: the row exists, and is not found`);

test('R-42: data lost while the server runs is not reported as unknown', async () => {
  const store = new FailingStore();
  let made: Made | undefined;
  const serve = (body: (stage: Stage) => Promise<void>): Promise<void> => serving(body, { server: { store } }, offer);
  await serve(async (stage) => {
    const session = await openSession(stage.url);
    const created = await send(stage, 'tools/call', { name: 'order_create', arguments: { customer: 'Ada' } });
    const { structuredContent } = created.result ?? {};
    const handle = isObject(structuredContent) ? String(structuredContent.handle) : '';
    const task = String((await send(stage, 'tools/call', { name: 'work', arguments: {} })).result?.taskId);
    await keyed(stage);
    made = { session, handle, task };
  });
  const before = runs;
  await serve(async (stage) => {
    assert.ok(made);
    store.hidden = true;
    for (let time = 0; time < 2; time += 1) {
      assert.match(String((await look(stage, made.handle)).error?.message), DAMAGED);
      const answer = await ask(stage.url, {
        headers: made.session.headers,
        body: { jsonrpc: '2.0', id: 1, method: 'ping' },
      });
      assert.is(answer.status, 500);
      assert.match(await answer.text(), DAMAGED);
      assert.match(String((await keyed(stage)).error?.message), DAMAGED);
    }
    assert.is(runs, before);
    assert.is((await send(stage, 'tasks/get', { taskId: made.task })).error, undefined);
  });
});
