/** Event streams of a session: when an answer becomes one, what goes on which, and how they are kept, let go and ended (2025-11-25 transports). */
import * as assert from 'uvu/assert';
import type { Server } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { change, changed, LEGACY, messagesOf, noticed, pings, refusal, serving, watch } from './session.ts';
import { type Answer, type HeldCall, openSession, type Session, type SseEvent, type Stage, textIn } from './support.ts';

const test = suite('http streams');

const form = ({ headers }: Answer): string => (headers['content-type'] ?? 'none').replace(/;.*/, '');
const withData = (events: readonly SseEvent[]): readonly SseEvent[] => events.filter(({ data }) => data);

const moreNotes = (server: Server): void => {
  for (const id of ['b', 'c', 'd']) server.resource(`notes://${id}`, {}, () => id);
};

/** A call of `held` whose progress has the token of its key. */
async function holding({ held }: Stage, session: Session, key: string): Promise<[HeldCall, Promise<Answer>]> {
  const answering = session.call(key, 'held', { key }, { progressToken: key });
  return [await held(key), answering];
}

test('a message of a handler leaves at once, not with the response', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const [{ ctx, finish }, answering] = await holding(stage, session, 'a');
    ctx.progress(1);
    const { events } = await answering;
    assert.is((await events.message()).params?.progress, 1);
    ctx.progress(2);
    assert.is((await events.message()).params?.progress, 2);
    finish();
    assert.is(textIn(await events.message()), 'done');
    assert.equal(await events.rest(), []);
  }));

test('each event has an id of its own: the name of its stream, of 72 random bits, and its place in it', () =>
  serving(async ({ url }) => {
    const ids = new Set<string>();
    const streams = new Set<string>();
    for (const revision of ['2025-06-18', '2025-11-25']) {
      const session = await openSession(url, revision);
      for (let call = 0; call < 20; call += 1) {
        const { events } = await session.call(call, 'count', { to: 3 }, { progressToken: call });
        const seen = await events.rest();
        const parts = seen.map(({ id = '' }) => /^([\w-]{12,})_(\d+)$/.exec(id)?.slice(1) ?? [id]);
        for (const { id } of seen) ids.add(id ?? '');
        assert.is(new Set(parts.map(([stream]) => stream)).size, 1);
        streams.add(parts[0]?.[0] ?? '');
        const places = parts.map(([, place]) => Number(place));
        assert.equal(
          places,
          places.map((_, index) => (places[0] ?? 0) + index),
        );
      }
    }
    assert.is(streams.size, 40);
    assert.is(ids.size, 20 * 4 + 20 * 5);
  }));

test('text that would break lines of a stream arrives as it was', () =>
  serving(async ({ url }) => {
    const session = await openSession(url);
    const text = `a\nb\r\nc\rd\u2028e\u2029f\u0085g \ud83d\ude00 data: x\n\nid: 1\n${'é'.repeat(500_000)}`;
    const answer = await session.post(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text } } },
      { accept: 'text/event-stream' },
    );
    const [message] = await messagesOf(answer);
    assert.ok(message && textIn(message) === text);
  }));

test('streams open at once carry each the messages of their own request', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const own = await session.get();
    const keys = Array.from({ length: 10 }, (_, index) => `call ${index}`);
    const calls = await Promise.all(keys.map((key) => holding(stage, session, key)));
    for (let round = 1; round <= 3; round += 1)
      for (const [{ ctx }] of calls) {
        ctx.progress(round);
        ctx.log.info(ctx.requestId);
      }
    for (const [{ ctx, finish }] of [...calls].reverse()) finish(String(ctx.requestId));
    for (const [{ ctx }, answering] of calls) {
      const key = ctx.requestId;
      const messages = await messagesOf(await answering);
      assert.equal(
        messages.map(
          ({ method, params, id }) => params?.progressToken ?? params?.data ?? `${method ?? 'answers'} ${id}`,
        ),
        [key, key, key, key, key, key, `answers ${key}`],
      );
    }
    await change(stage, 'notes://a');
    assert.equal(withData(own.events.seen), []);
    own.cut();
  }));

test('notifications of the session come on its own stream, and no response does', () =>
  serving(async (stage) => {
    for (const revision of LEGACY) {
      const session = await openSession(stage.url, revision);
      await watch(session, 'notes://a');
      const own = await session.get();
      assert.is(own.status, 200);
      assert.is(form(own), 'text/event-stream');
      assert.match(String(own.headers['cache-control']), /no-cache/);
      assert.is(own.headers['x-accel-buffering'], 'no');
      const [{ finish }, answering] = await holding(stage, session, revision);
      await change(stage, 'notes://a');
      assert.is(await changed(own), 'notes://a');
      stage.server.tool(`of ${revision}`.replaceAll(' ', '-'), {}, () => 'x');
      await stage.clock.advance(10);
      assert.is((await own.events.message()).method, 'notifications/tools/list_changed');
      finish();
      const answer = await answering;
      assert.is(form(answer), 'application/json');
      assert.is(textIn(await answer.json()), 'done');
      assert.is(withData(own.events.seen).length, 2);
      own.cut();
    }
  }));

test('CVE-2026-33946: a second stream of the session waits as a reserve: each message goes to one of them', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      await watch(session, 'notes://a', 'notes://b', 'notes://c');
      const [first, second] = [await session.get(), await session.get()];
      assert.equal([first.status, second.status], [200, 200]);
      await change(stage, 'notes://a', 'notes://b');
      assert.equal([await changed(first), await changed(first)], ['notes://a', 'notes://b']);
      first.cut();
      await noticed(session);
      await change(stage, 'notes://c');
      assert.is(await changed(second), 'notes://c');
      assert.is(withData(second.events.seen).length, 1);
      second.cut();
    },
    {},
    moreNotes,
  ));

test('messages without a stream are stored for the next stream, equal messages once', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      await watch(session, 'notes://a', 'notes://b', 'notes://c');
      await change(stage, 'notes://a', 'notes://b', 'notes://a');
      const first = await session.get();
      assert.equal([await changed(first), await changed(first)], ['notes://a', 'notes://b']);
      first.cut();
      await noticed(session);
      await change(stage, 'notes://c');
      const second = await session.get();
      assert.is(await changed(second), 'notes://c');
      second.cut();
    },
    {},
    moreNotes,
  ));

test('a change that repeats without a stream is stored once', () =>
  serving(async (stage) => {
    const uris = Array.from({ length: 200 }, (_, index) => `many://${index}`);
    for (const uri of uris) stage.server.resource(uri, {}, () => 'x');
    const session = await openSession(stage.url);
    await watch(session, ...uris);
    for (let round = 0; round < 5; round += 1) {
      for (const uri of uris) stage.server.resourceUpdated(uri);
      await stage.clock.advance(10);
    }
    const own = await session.get();
    await change(stage, 'notes://a');
    const seen: string[] = [];
    while (seen.length < uris.length) seen.push(await changed(own));
    assert.equal([...seen].sort(), [...uris].sort());
    own.cut();
  }));

test('messages without a stream all reach the next stream, however few events are stored', () =>
  serving(
    async (stage) => {
      const uris = Array.from({ length: 50 }, (_, index) => `many://${index}`);
      for (const uri of uris) stage.server.resource(uri, {}, () => 'x');
      const session = await openSession(stage.url);
      await watch(session, ...uris);
      await change(stage, ...uris);
      const own = await session.get();
      const seen: string[] = [];
      while (seen.length < uris.length) seen.push(await changed(own));
      assert.equal(seen, uris);
      own.cut();
    },
    { maxReplayEvents: 5 },
  ));

test('an answer pinned by the author to JSON stays JSON, whatever its handler sends and however long it takes', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const counted = await session.call(1, 'count', { to: 3 }, { progressToken: 1 });
      assert.is(form(counted), 'application/json');
      assert.is(textIn(await counted.json()), 'counted to 3');
      const [{ ctx, finish }, answering] = await holding(stage, session, 'a');
      ctx.progress(1);
      await stage.clock.advance(5_000);
      ctx.closeStream();
      finish('late');
      const answer = await answering;
      assert.is(form(answer), 'application/json');
      assert.is(textIn(await answer.json()), 'late');
    },
    { response: 'json', keepAliveMs: 1_000 },
  ));

test('an answer pinned by the author to a stream is one, also when nothing comes before it', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const echoed = await session.call(1, 'echo', { text: 'hi' });
      assert.is(form(echoed), 'text/event-stream');
      assert.is(textIn((await messagesOf(echoed))[0] ?? { jsonrpc: '' }), 'hi');
      const { status, events } = await session.post({ jsonrpc: '2.0', id: 2, method: 'tools/none' });
      assert.is(status, 200);
      assert.is((await events.message()).error?.code, -32601);
    },
    { response: 'sse' },
  ));

test('Accept rules which form an answer takes', () =>
  serving(async ({ url }) => {
    const session = await openSession(url);
    const [json, sse] = ['application/json', 'text/event-stream'];
    for (const [accept, quiet, spoken] of [
      [undefined, json, sse],
      ['*/*', json, sse],
      ['application/json, text/event-stream', json, sse],
      ['text/event-stream;q=0.9 , application/json;q=0.1', json, sse],
      ['TEXT/EVENT-STREAM,Application/JSON; charset=utf-8', json, sse],
      ['text/html, */*;q=0.1', json, sse],
      ['application/json', json, json],
      ['text/event-stream', sse, sse],
    ] as const)
      for (const [name, args, expected] of [
        ['echo', { text: 'x' }, quiet],
        ['count', { to: 2 }, spoken],
      ] as const) {
        const params = { name, arguments: args, _meta: { progressToken: 1 } };
        const answer = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { accept });
        assert.is(form(answer), expected, `${name} for "${accept}"`);
        assert.ok((await messagesOf(answer)).at(-1)?.result);
      }
    const call = { jsonrpc: '2.0', id: 1, method: 'ping' };
    for (const accept of ['text/html', 'application/xml, text/plain', 'application/jsonp']) {
      const { status, message } = await refusal(session.post(call, { accept }));
      assert.is(status, 406, accept);
      assert.match(message, /application\/json.*text\/event-stream|text\/event-stream.*application\/json/);
    }
    assert.is((await refusal(session.get({ accept: 'application/json' }))).status, 406);
  }));

test('a stream on which nothing is sent gets a comment every keepAliveMs', () =>
  serving(
    async ({ url, clock }) => {
      const session = await openSession(url);
      const { events, cut } = await session.get();
      for (const n of [1, 2, 3]) {
        await clock.advance(1_000);
        await events.comment(n);
      }
      assert.equal(withData(events.seen), []);
      cut();
    },
    { keepAliveMs: 1_000 },
  ));

test('an answer that takes longer than keepAliveMs becomes a stream, so that it can be kept alive', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const [{ finish }, answering] = await holding(stage, session, 'a');
      await stage.clock.advance(1_000);
      const answer = await answering;
      assert.is(form(answer), 'text/event-stream');
      await stage.clock.advance(1_000);
      await answer.events.comment(1);
      finish('at last');
      assert.is(textIn(await answer.events.message()), 'at last');
      await answer.events.rest();
    },
    { keepAliveMs: 1_000 },
  ));

test('a cancelled request ends its response without a result', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const [{ ctx }, silent] = await holding(stage, session, 'silent');
    const [spoken, answering] = await holding(stage, session, 'spoken');
    spoken.ctx.progress(1);
    const { events } = await answering;
    for (const requestId of ['silent', 'spoken']) {
      const answer = await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
      assert.is(answer.status, 202);
    }
    assert.ok(ctx.signal.aborted && spoken.ctx.signal.aborted);
    assert.not.match(await (await silent).text(), /"result"/);
    assert.not.match(JSON.stringify(await events.rest()), /result/);
    assert.is(await pings(session), 200);
  }));

test('an id that is in use is refused to the second request, and the first gets its answer', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const [{ finish }, first] = await holding(stage, session, 'a');
    const { code } = await refusal(session.call('a', 'echo', { text: 'intruder' }));
    assert.is(code, -32600);
    finish('mine');
    assert.is(textIn(await (await first).json()), 'mine');
    assert.is(textIn(await (await session.call('a', 'echo', { text: 'again' })).json()), 'again');
  }));

test('closeStream lets go of the client, which comes back for the rest', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    for (const [key, progress, comesFirst] of [
      ['nothing said, back before the answer', 0, true],
      ['nothing said, back after the answer', 0, false],
      ['something said, back before the answer', 2, true],
      ['something said, back after the answer', 2, false],
    ] as const) {
      const [{ ctx, finish }, answering] = await holding(stage, session, key);
      for (let done = 1; done <= progress; done += 1) ctx.progress(done);
      ctx.closeStream(50);
      const left = await (await answering).events.rest();
      assert.is(left[0]?.data, '', key);
      assert.is(withData(left).length, progress);
      assert.is(left.filter(({ retry }) => retry !== undefined).at(-1)?.retry, '50');
      assert.not(ctx.signal.aborted);
      const last = left.filter(({ id }) => id !== undefined).at(-1)?.id;
      const back = () => session.get({ 'last-event-id': last });
      if (!comesFirst) {
        ctx.progress(10);
        finish(key);
      }
      const { status, events } = await back();
      assert.is(status, 200);
      if (comesFirst) {
        ctx.progress(10);
        finish(key);
      }
      assert.is((await events.message()).params?.progress, 10);
      assert.is(textIn(await events.message()), key);
      assert.equal(withData(await events.rest()), []);
    }
  }));

test('closeStream can let go of a client again and again', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const [{ ctx, finish }, answering] = await holding(stage, session, 'a');
    ctx.closeStream(10);
    let { events } = await answering;
    const seen: unknown[] = [];
    let last: string | undefined;
    const readOut = async (): Promise<void> => {
      for (const { id, data } of await events.rest()) {
        last = id ?? last;
        if (data) seen.push(JSON.parse(data).params.progress);
      }
    };
    for (let done = 1; done <= 5; done += 1) {
      await readOut();
      ({ events } = await session.get({ 'last-event-id': last }));
      ctx.progress(done);
      ctx.closeStream(10);
    }
    await readOut();
    assert.equal(seen, [1, 2, 3, 4, 5]);
    // Nobody is there to be let go of.
    ctx.closeStream(10);
    finish('polled');
    ({ events } = await session.get({ 'last-event-id': last }));
    assert.is(textIn(await events.message()), 'polled');
  }));

test('closeStream does nothing where the client knows no id to come back with', () =>
  serving(async (stage) => {
    for (const revision of LEGACY.slice(1, 3)) {
      const session = await openSession(stage.url, revision);
      const [{ ctx, finish }, answering] = await holding(stage, session, revision);
      ctx.closeStream(10);
      finish('still here');
      assert.is(textIn(await (await answering).json()), 'still here');
    }
  }));

test('closeStream before 2025-11-25 lets go once an event with an id was sent', () =>
  serving(async (stage) => {
    for (const revision of LEGACY.slice(1, 3)) {
      const session = await openSession(stage.url, revision);
      const [{ ctx, finish }, answering] = await holding(stage, session, revision);
      ctx.progress(1);
      ctx.closeStream(10);
      const left = await (await answering).events.rest();
      assert.is(withData(left).length, 1);
      finish('later');
      const { events } = await session.get({ 'last-event-id': left.findLast(({ id }) => id)?.id });
      assert.is(textIn(await events.message()), 'later');
    }
  }));

test('closeStream in 2024-11-05 does nothing', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url, '2024-11-05');
    const [{ ctx, finish }, answering] = await holding(stage, session, 'a');
    ctx.progress(1);
    ctx.closeStream(10);
    finish('same stream');
    const messages = await messagesOf(await answering);
    assert.is(textIn(messages.at(-1) ?? { jsonrpc: '' }), 'same stream');
  }));

test('streams are ended properly when the server closes', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const own = await session.get();
    const [{ ctx, finish }, answering] = await holding(stage, session, 'a');
    ctx.progress(1);
    const { events } = await answering;
    const closed = stage.close();
    finish('before I go');
    await closed;
    assert.is((await events.message()).params?.progress, 1);
    assert.is(textIn(await events.message()), 'before I go');
    await events.rest();
    await own.events.rest();
  }));

test('response: "sse" begins the stream at once, with an id to come back with', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url, '2025-11-25');
      const answer = await session.call(1, 'held', { key: 'k' });
      const call = await stage.held('k');
      const { id, data } = await answer.events.next();
      assert.is(data, '');
      answer.cut();
      call.finish('done');
      const again = await session.get({ 'last-event-id': id ?? '' });
      assert.match((await again.events.next()).data ?? '', 'done');
    },
    { response: 'sse' },
  ));
