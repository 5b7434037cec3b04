/** Polls and streams of random subscribers, over restarts, gaps and repeats: the same events, in the same order, and no silent loss. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { memory, memoryStore, type Store, sqlite } from '../../../src/index.ts';
import { SimulatedClock, settled, type TestClient } from '../../../src/testing/testing.ts';
import { random } from '../../core/store/support.ts';
import { conclusive, suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { eventStage, INPUT, lastCursor, PAYLOAD, poll, streamed } from './support.ts';

const test = suite('readers of events');
const folder = mkdtempSync(join(tmpdir(), 'troupe-readers-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** An event that was emitted. */
interface Emitted {
  readonly id: string;
  readonly to: string;
  readonly secret: boolean;
}

/** One subscription, read in one way. Each entry of `read` is an id, or a gap. */
interface Reader {
  readonly principal: string;
  readonly to: string | undefined;
  /** The number of events that were emitted before it began. */
  readonly from: number;
  cursor: string | undefined;
  client: TestClient | undefined;
  readonly read: ({ readonly id: string } | 'gap')[];
}

const GAP_EVENTS = 30;
const STEPS = atScale({ quick: 30, full: 60, proof: 60 });
/** The runs with a file. A busy disk takes a minute for each of them, and the others have a store in memory. */
const FILES = 2;

function open(store: Store, clock: SimulatedClock) {
  const stage = eventStage({ store }, clock);
  const note = stage.server.event('note', {
    ...{
      description: 'd',
      payload: { ...PAYLOAD, properties: { ...PAYLOAD.properties, secret: { type: 'boolean' } } },
    },
    input: INPUT,
    match: ({ data }, args, who) =>
      (args.to === undefined || args.to === data.to) && (who.principal === 'ada' || data.secret !== true),
    retain: { events: GAP_EVENTS },
  });
  return { ...stage, note };
}

/** Takes what a stream has sent since it was opened. */
function take(reader: Reader, opened: TestClient): void {
  for (const { method, params } of opened.notifications) {
    const { eventId, truncated } = (params ?? {}) as JsonObject;
    if (method === 'notifications/events/active' && truncated === true) reader.read.push('gap');
    if (method === 'notifications/events/event') reader.read.push({ id: String(eventId) });
  }
  reader.cursor = lastCursor(opened) || reader.cursor;
}

/** Every event that a reader misses is in front of a gap, and it reads the others once and in order. */
function check(reader: Reader, emitted: readonly Emitted[], seed: number): void {
  const expected = emitted
    .slice(reader.from)
    .filter(({ to, secret }) => (reader.to ?? to) === to && (reader.principal === 'ada' || !secret))
    .map(({ id }) => id);
  let at = 0;
  let gap = false;
  for (const entry of reader.read) {
    if (entry === 'gap') {
      gap = true;
      continue;
    }
    const place = expected.indexOf(entry.id, at);
    conclusive(() => {
      assert.ok(place >= at, `seed ${seed}: ${entry.id} comes again, or is for another reader`);
      assert.ok(place === at || gap, `seed ${seed}: ${expected.slice(at, place)} are missing without a gap`);
    });
    at = place + 1;
    gap = false;
  }
  conclusive(() => assert.ok(at === expected.length || gap, `seed ${seed}: ${expected.slice(at)} never came`));
}

test('R-90: polls and streams give the same events in the same order, over restarts, and each gap is reported', async () => {
  for (let seed = 1; seed <= atScale({ quick: 1, full: 10, proof: 40 }); seed += 1) {
    const [path, inner] = [join(folder, `${seed}.db`), memoryStore()];
    const store = (): Store => (seed <= FILES ? sqlite(path) : new TestStore(inner));
    const chance = random(seed);
    const pick = <T>(...of: readonly T[]): T => of[Math.floor(chance() * of.length)] as T;
    const clock = new SimulatedClock(1_000_000);
    let stage = open(store(), clock);
    await stage.server.listen(memory().transport);
    const emitted: Emitted[] = [];
    const readers: { readonly poll: Reader; readonly stream: Reader }[] = [];
    const clients = new Map<string, TestClient>();
    const as = async (principal: string): Promise<TestClient> => {
      const client = clients.get(principal) ?? (await stage.as(principal));
      clients.set(principal, client);
      return client;
    };
    const params = ({ to, cursor }: Reader): JsonObject => ({
      ...(to === undefined ? { arguments: {} } : { arguments: { to } }),
      cursor: cursor ?? null,
    });
    const polls = async (reader: Reader): Promise<void> => {
      const page = await poll(await as(reader.principal), 'note', { ...params(reader), maxEvents: pick(1, 5, 200) });
      if (page.truncated) reader.read.push('gap');
      reader.read.push(...page.ids.map((id) => ({ id })));
      reader.cursor = page.cursor;
      if (page.hasMore) await polls(reader);
    };
    const cut = async (reader: Reader): Promise<void> => {
      const { client } = reader;
      if (!client) return;
      await settled();
      take(reader, client);
      reader.client = undefined;
      await client.close().catch(() => {});
    };
    const streams = async (reader: Reader): Promise<void> => {
      const client = await stage.as(reader.principal);
      reader.client = client;
      void client.modern('events/stream', { name: 'note', ...params(reader) }).catch(() => {});
      await until(() => streamed(client).length > 0);
    };
    for (let step = 0; step < STEPS; step += 1) {
      switch (pick('emit', 'emit', 'emit', 'poll', 'cut', 'begin', 'restart')) {
        case 'emit':
          for (let n = pick(1, 3, 12); n > 0; n -= 1) {
            const again = emitted.length > 0 && chance() < 0.2 ? emitted.at(-1) : undefined;
            const event = again ?? { id: `e${emitted.length}`, to: pick('a', 'b'), secret: chance() < 0.3 };
            const { id, to, secret } = event;
            await stage.note.emit({ n, to, secret }, { id });
            if (!again) emitted.push(event);
          }
          break;
        case 'poll':
          if (readers.length > 0) await polls(pick(...readers).poll);
          break;
        case 'cut': {
          if (readers.length === 0) break;
          const { stream } = pick(...readers);
          if (stream.client) await cut(stream);
          else await streams(stream);
          break;
        }
        case 'begin': {
          if (readers.length >= 4) break;
          const to = pick(undefined, 'a', 'b');
          const of = { principal: pick('ada', 'bob'), to, from: emitted.length, cursor: undefined, client: undefined };
          const pair = { poll: { ...of, read: [] }, stream: { ...of, read: [] } };
          readers.push(pair);
          await polls(pair.poll);
          await streams(pair.stream);
          break;
        }
        case 'restart':
          for (const { stream } of readers) await cut(stream);
          clients.clear();
          await stage.server.close();
          stage = open(store(), clock);
          await stage.server.listen(memory().transport);
          break;
      }
    }
    // Each reader gets one of these last: a stream that has sent it has sent all before.
    for (const to of ['a', 'b']) {
      await stage.note.emit({ n: 0, to, secret: false }, { id: `end-${to}` });
      emitted.push({ id: `end-${to}`, to, secret: false });
    }
    for (const { poll: polled, stream } of readers) {
      await polls(polled);
      if (!stream.client) await streams(stream);
      const last = `event end-${stream.to ?? 'b'}`;
      await until(() => stream.client !== undefined && streamed(stream.client).at(-1) === last);
      await cut(stream);
      check(polled, emitted, seed);
      check(stream, emitted, seed);
    }
    await stage.server.close();
  }
});
