/** What a client missed is sent again: by Last-Event-ID, only to the session whose stream it was, none lost and none twice (R-06, R-07a, S-05). */
import * as assert from 'uvu/assert';
import type { Server } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { SCALE, times } from '../../harness/scale.ts';
import { flood } from './flood.ts';
import { change, changed, noticed, pings, serving, watch } from './session.ts';
import { type Answer, openSession, type Session, type SseEvent, type Stage, textIn } from './support.ts';

const test = suite('http replay');

/** Messages of a call in these tests: 19 of progress, and the result as the 20th. */
const ALL = 20;

/** Which of the 20 messages an event is. */
function place({ data = '' }: SseEvent): number {
  const { params, result } = JSON.parse(data);
  return result === undefined ? params.progress : ALL;
}

/** Reads the next `count` messages. @returns their places, and the last event id that came with or before them */
async function read({ events }: Answer, count: number): Promise<{ places: number[]; last: string | undefined }> {
  const places: number[] = [];
  let last: string | undefined;
  while (places.length < count || (count === 0 && last === undefined)) {
    const event = await events.next();
    last = event.id ?? last;
    if (event.data) places.push(place(event));
  }
  return { places, last };
}

const places = (events: readonly SseEvent[]): number[] => events.flatMap((event) => (event.data ? [place(event)] : []));
const after = (seen: number): number[] => Array.from({ length: ALL - seen }, (_, index) => seen + index + 1);
const back = (session: Session, last: string | undefined): Promise<Answer> => session.get({ 'last-event-id': last });

/** A call whose messages the test sends: `drive(5)` sends those up to the fifth. */
async function driven(
  { held }: Stage,
  session: Session,
  key: string,
): Promise<{ answering: Promise<Answer>; drive(to: number): void; signal: AbortSignal }> {
  const answering = session.call(key, 'held', { key }, { progressToken: key });
  const { ctx, finish } = await held(key);
  let sent = 0;
  return {
    answering,
    signal: ctx.signal,
    drive(to) {
      while (sent < to) {
        sent += 1;
        if (sent === ALL) finish();
        else ctx.progress(sent);
      }
    },
  };
}

for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
  const first = revision === '2025-11-25' ? 0 : 1;
  const all = Array.from({ length: ALL + 1 - first }, (_, index) => first + index);
  /** Quick: at both ends, and in the middle. */
  const cuts = SCALE === 'quick' ? all.filter((cut) => cut === first || cut % 9 === 1 || cut === ALL) : all;

  test(`R-06: a ${revision} stream that was cut after any of its events is replayed from there`, () =>
    serving(async ({ url }) => {
      const session = await openSession(url, revision);
      for (const cut of cuts) {
        const answer = await session.call(cut, 'count', { to: ALL - 1 }, { progressToken: cut });
        const { places: before, last } = await read(answer, cut);
        answer.cut();
        const again = await back(session, last);
        assert.is(again.status, cut === ALL ? 204 : 200);
        assert.equal([...before, ...places(await again.events.rest())], after(0), `cut after ${cut}`);
      }
    }));

  test(`a ${revision} handler whose stream was cut continues, and the client receives all events when it reconnects`, () =>
    serving(async (stage) => {
      const session = await openSession(stage.url, revision);
      for (const cut of cuts.filter((each) => each > 0)) {
        const { answering, drive, signal } = await driven(stage, session, `cut ${cut}`);
        drive(cut);
        const answer = await answering;
        const { places: before, last } = await read(answer, cut);
        answer.cut();
        drive(ALL);
        assert.not(signal.aborted);
        const again = await back(session, last);
        assert.equal([...before, ...places(await again.events.rest())], after(0), `cut after ${cut}`);
      }
    }));

  test(`a ${revision} client that reconnects before the end receives the later events live`, () =>
    serving(async (stage) => {
      const session = await openSession(stage.url, revision);
      for (const cut of cuts.filter((each) => each > 0 && each < ALL - 1)) {
        const { answering, drive } = await driven(stage, session, `cut ${cut}`);
        drive(cut);
        const answer = await answering;
        const { places: before, last } = await read(answer, cut);
        answer.cut();
        drive(cut + 1);
        const again = await back(session, last);
        before.push(...(await read(again, 1)).places);
        drive(ALL);
        assert.equal([...before, ...places(await again.events.rest())], after(0), `cut after ${cut}`);
      }
    }));

  test(`a ${revision} client that comes back while its old connection seems open takes the stream over`, () =>
    serving(async (stage) => {
      const session = await openSession(stage.url, revision);
      for (const cut of [1, 7, ALL - 1]) {
        const { answering, drive } = await driven(stage, session, `cut ${cut}`);
        drive(cut);
        const old = await answering;
        const { places: before, last } = await read(old, cut);
        const again = await back(session, last);
        drive(ALL);
        assert.equal([...before, ...places(await again.events.rest())], after(0), `cut after ${cut}`);
        assert.equal(places(old.events.seen), before);
        old.cut();
      }
    }));
}

test('a client may be cut off again and again, after each single event', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const { answering, drive } = await driven(stage, session, 'a');
    drive(1);
    let answer = await answering;
    let { places: seen, last } = await read(answer, 1);
    for (let sent = 2; sent <= ALL; sent += 1) {
      answer.cut();
      drive(sent);
      answer = await back(session, last);
      const more = await read(answer, 1);
      last = more.last;
      seen = [...seen, ...more.places];
    }
    assert.equal(seen, after(0));
    assert.equal(places(await answer.events.rest()), []);
  }));

test('a replay has the events that were sent, with their ids, as often as it is asked for', () =>
  serving(async ({ url }) => {
    const session = await openSession(url);
    const { events } = await session.call(1, 'count', { to: 19 }, { progressToken: 1 });
    const sent = (await events.rest()).map(({ id, data }) => ({ id, data }));
    for (const from of [0, 0, 10, 19]) {
      const again = await back(session, sent[from]?.id);
      const replayed = (await again.events.rest()).filter(({ data }) => data).map(({ id, data }) => ({ id, data }));
      assert.equal(replayed, sent.slice(from + 1));
    }
  }));

test('a replay has the events of its own stream only', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const calls = await Promise.all(['a', 'b', 'c'].map((key) => driven(stage, session, key)));
    for (let to = 1; to <= 10; to += 1) for (const { drive } of calls) drive(to);
    const lasts: (string | undefined)[] = [];
    for (const { answering } of calls) {
      const answer = await answering;
      lasts.push((await read(answer, 5)).last);
      answer.cut();
    }
    for (const { drive } of calls) drive(ALL);
    for (const [index, key] of ['a', 'b', 'c'].entries()) {
      const again = await back(session, lasts[index]);
      const messages = (await again.events.rest()).flatMap(({ data }) => (data ? [JSON.parse(data)] : []));
      assert.equal(
        messages.map(({ id, params }) => id ?? params.progressToken),
        after(5).map(() => key),
      );
    }
  }));

test("the session's own stream is replayed too, and then sends events live", () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      await watch(session, 'notes://a', 'notes://b', 'notes://c', 'notes://d', 'notes://e');
      const own = await session.get();
      await change(stage, 'notes://a', 'notes://b');
      await changed(own);
      await changed(own);
      const last = own.events.seen.findLast(({ data }) => data?.includes('notes://a'))?.id;
      own.cut();
      await change(stage, 'notes://c');
      await noticed(session);
      await change(stage, 'notes://d');
      const again = await back(session, last);
      assert.is(again.status, 200);
      assert.equal(
        [await changed(again), await changed(again), await changed(again)],
        ['notes://b', 'notes://c', 'notes://d'],
      );
      // A stream beside it is a reserve: nothing that was told comes there.
      const other = await session.get();
      await change(stage, 'notes://e');
      assert.is(await changed(again), 'notes://e');
      assert.equal(
        other.events.seen.filter(({ data }) => data),
        [],
      );
      again.cut();
      other.cut();
    },
    {},
    (server: Server) => {
      for (const id of ['b', 'c', 'd', 'e']) server.resource(`notes://${id}`, {}, () => id);
    },
  ));

test('R-07a: a handler does not notice that its client has dropped the stream, and its result can be fetched', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const calls = await Promise.all(
      Array.from({ length: times(100, { quick: 20 }) }, (_, index) => driven(stage, session, `call ${index}`)),
    );
    const lasts: (string | undefined)[] = [];
    for (const { answering, drive } of calls) {
      drive(1);
      const answer = await answering;
      lasts.push((await read(answer, 1)).last);
      answer.cut();
    }
    await noticed(session);
    for (const { drive, signal } of calls) {
      assert.not(signal.aborted);
      drive(ALL);
    }
    for (const last of lasts) {
      const { events } = await back(session, last);
      assert.equal(places(await events.rest()), after(1));
    }
  }));

test('a handler continues when its client leaves before anything was sent', () =>
  serving(async ({ url, held }) => {
    const session = await openSession(url);
    const leaving = new AbortController();
    const answering = session.call('a', 'held', { key: 'a' }, undefined, leaving.signal);
    const { ctx, finish } = await held('a');
    leaving.abort();
    await answering.catch(() => {});
    await noticed(session);
    assert.not(ctx.signal.aborted);
    finish();
    assert.is(textIn(await (await session.call('a', 'echo', { text: 'the id is free' })).json()), 'the id is free');
  }));

test('a finished stream can be replayed for replayMs, and is 404 afterwards', () =>
  serving(
    async ({ url, clock }) => {
      const session = await openSession(url);
      const { events } = await session.call(1, 'count', { to: 19 }, { progressToken: 1 });
      const [first] = await events.rest();
      await clock.advance(59_000);
      assert.is((await (await back(session, first?.id)).events.rest()).filter(({ data }) => data).length, ALL);
      await clock.advance(61_000);
      const late = await back(session, first?.id);
      assert.is(late.status, 404);
      await late.text();
      assert.is(await pings(session), 200);
    },
    { replayMs: 60_000, sessionIdleMs: 600_000 },
  ));

test('a stream whose handler still runs is kept beyond replayMs', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const { answering, drive } = await driven(stage, session, 'a');
      drive(1);
      const answer = await answering;
      const { last } = await read(answer, 1);
      answer.cut();
      await noticed(session);
      await stage.clock.advance(300_000);
      drive(ALL);
      const { events } = await back(session, last);
      assert.equal(places(await events.rest()), after(1));
    },
    { replayMs: 60_000, sessionIdleMs: 600_000, server: { limits: { timeoutMs: 600_000 } } },
  ));

test('replayMs counts from the end of a stream, not from when its client was cut off', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const { answering, drive } = await driven(stage, session, 'a');
      drive(1);
      const answer = await answering;
      const { last } = await read(answer, 1);
      answer.cut();
      await noticed(session);
      await stage.clock.advance(50_000);
      drive(ALL);
      await stage.clock.advance(50_000);
      const { status, events } = await back(session, last);
      assert.is(status, 200);
      assert.equal(places(await events.rest()), after(1));
    },
    { replayMs: 60_000, sessionIdleMs: 600_000, server: { limits: { timeoutMs: 600_000 } } },
  ));

test('an id whose followers are no longer all kept is 404: part of them is worse than none', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url);
      const { events } = await session.call(1, 'count', { to: 19 }, { progressToken: 1 });
      const sent = (await events.rest()).filter(({ data }) => data);
      assert.is(sent.length, ALL);
      for (const seen of [1, 10, 14]) {
        const { status, text } = await back(session, sent[seen - 1]?.id);
        assert.is(status, 404, String(seen));
        await text();
      }
      for (const seen of [15, 16, 19])
        assert.equal(places(await (await back(session, sent[seen - 1]?.id)).events.rest()), after(seen));
    },
    { maxReplayEvents: 5 },
  ));

test('maxReplayBytes bounds what is kept, too', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url);
      const { events } = await session.call(1, 'say', { lines: 200 });
      const sent = (await events.rest()).filter(({ data }) => data);
      const { status, text } = await back(session, sent[0]?.id);
      assert.is(status, 404);
      await text();
      const again = (await (await back(session, sent.at(-2)?.id)).events.rest()).filter(({ data }) => data);
      assert.equal(again, [sent.at(-1)]);
    },
    { maxReplayBytes: 2_000 },
  ));

test('unread events stay within the bounds: the answer comes, after progress that only grows', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const { answering, drive } = await driven(stage, session, 'a');
      drive(1);
      const answer = await answering;
      const { last } = await read(answer, 1);
      answer.cut();
      await noticed(session);
      drive(ALL);
      const { status, events } = await back(session, last);
      assert.is(status, 200);
      const seen = places(await events.rest());
      assert.is(seen.at(-1), ALL);
      assert.equal(
        seen,
        [...new Set(seen)].sort((a, b) => a - b),
      );
    },
    { maxReplayEvents: 5 },
  ));

test('an event id that is unknown is 404', () =>
  serving(async ({ url }) => {
    const session = await openSession(url);
    const { events } = await session.call(1, 'count', { to: 3 }, { progressToken: 1 });
    const id = (await events.rest()).at(-1)?.id ?? '';
    const stream = id.replace(/_.*/, '');
    for (const other of [
      'x',
      '_',
      '_1',
      'a b',
      '0',
      '__proto___1',
      `${stream}`,
      `${stream}_`,
      `${stream}_-1`,
      `${stream}_99`,
    ]) {
      const { status, text } = await back(session, other);
      assert.is(status, 404, other);
      await text();
    }
    for (const odd of [`${stream}_1e0`, `${stream}_01`, `${stream}_1.0`, `${stream}_0x1`, `${stream}_ 1`]) {
      const { status, text } = await back(session, odd);
      assert.is(status, 404, odd);
      await text();
    }
    assert.is(await pings(session), 200);
  }));

const FORGED = times(10_000, { quick: 300 });

test(`S-05: ${FORGED} forged event ids return no event of another session`, () =>
  serving(async ({ url }) => {
    const [mine, theirs] = [await openSession(url), await openSession(url)];
    const ids: string[] = [];
    for (let call = 0; call < 10; call += 1) {
      const { events } = await theirs.call(call, 'count', { to: 9 }, { progressToken: `theirs ${call}` });
      ids.push(...(await events.rest()).flatMap(({ id }) => (id ? [id] : [])));
    }
    const own = (await (await mine.call(1, 'count', { to: 9 }, { progressToken: 1 })).events.rest())[0]?.id ?? '';
    const random = lottery(20_260_728);
    const headers = { accept: 'text/event-stream', 'mcp-session-id': mine.id };
    const answers = await flood(
      url,
      Array.from({ length: FORGED }, (_, index) => {
        const id = ids[index] ?? mutated(ids[random(ids.length)] ?? '', own, random);
        // A client may well ask for its own stream.
        const forged = id.startsWith(own.replace(/_.*/, '_')) ? ids[0] : id;
        return { method: 'GET', headers: { ...headers, 'last-event-id': forged ?? '' } };
      }),
    );
    const seen = new Set(answers.map(({ status, body }) => `${status} ${body}`));
    assert.is(seen.size, 1, [...seen].join('\n'));
    assert.match([...seen].join(), /^404 /);
  }));

/** Numbers below a bound, the same in every run. */
function lottery(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** An id of another session's stream, changed a little, or not at all. */
function mutated(id: string, own: string, random: (below: number) => number): string {
  const at = random(id.length);
  switch (random(6)) {
    case 0:
      return `${id.slice(0, at)}${String.fromCharCode(0x21 + random(94))}${id.slice(at + 1)}`;
    case 1:
      return id.slice(0, at) + id.slice(at + 1);
    case 2:
      return `${id.replace(/_.*/, '')}_${random(100)}`;
    case 3:
      return `${own},${id}`;
    case 4:
      return `${own.slice(0, at)}${id.slice(at)}`;
    default:
      return `${id}${String.fromCharCode(0x21 + random(94))}`;
  }
}

test('many streams that were read to the end do not evict one that waits for its client', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url, '2025-11-25');
    const { answering, drive } = await driven(stage, session, 'unread');
    drive(3);
    const answer = await answering;
    const { last } = await read(answer, 3);
    answer.cut();
    drive(ALL);
    for (let nth = 0; nth < 100; nth += 1) {
      const read = await session.call(nth, 'count', { to: 1 }, { progressToken: nth });
      await read.events.rest();
    }
    const again = await back(session, last);
    assert.is(again.status, 200);
    assert.equal(places(await again.events.rest()), after(3));
  }));
