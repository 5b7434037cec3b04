/** Subscriptions over HTTP: each is the stream of its own request, and closing that ends it. */
import * as assert from 'uvu/assert';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { states } from '../../system/crash/support.ts';
import { answered, call, refused, send } from '../http/modern.ts';
import { serving } from '../http/session.ts';
import { type Answer, openSession, type Stage } from '../http/support.ts';
import { flicker, offer, short } from './support.ts';

const test = suite('subscriptions over HTTP');

const TOOLS = { toolsListChanged: true };
const DOC = { resourceSubscriptions: ['doc://1'] };

function listen(stage: Stage, notifications: object, id: string | number = 1, headers = {}): Promise<Answer> {
  return send(stage.url, 'subscriptions/listen', { id, params: { notifications }, headers, agent: false });
}

/** The next message of a stream, in short. */
async function next(answer: Answer): Promise<string> {
  return short(await answer.events.message());
}

/** Resolves once so many subscriptions are open. */
async function openCount(stage: Stage, count: number): Promise<void> {
  while (states(stage.server).get('subscriptions') !== `open (${count})`)
    await answered(await call(stage.url, 'echo', { text: 'x' }));
}

test('is a stream that is acknowledged at once, and says what was asked for', () =>
  serving(
    async (stage) => {
      const answer = await listen(stage, { ...TOOLS, ...DOC });
      assert.is(answer.status, 200);
      assert.is(answer.headers['content-type'], 'text/event-stream');
      assert.is(answer.headers['x-accel-buffering'], 'no');
      assert.is(await next(answer), '1 acknowledged');
      flicker(stage.server);
      stage.server.resourceUpdated('doc://1');
      stage.server.resourceUpdated('doc://2');
      await stage.clock.advance(10);
      assert.equal([await next(answer), await next(answer)], ['1 tools', '1 doc://1']);
      assert.ok(answer.events.seen.every(({ id }) => id === undefined));
      answer.cut();
    },
    {},
    offer,
  ));

test('closing the stream ends it: nothing more is sent for it, and the others hear on', () =>
  serving(
    async (stage) => {
      const [going, staying] = [await listen(stage, TOOLS), await listen(stage, TOOLS)];
      assert.equal([await next(going), await next(staying)], ['1 acknowledged', '1 acknowledged']);
      going.cut();
      await openCount(stage, 1);
      const sent: string[] = [];
      const stop = stage.server.inspect((record) => {
        if (record.type === 'wire' && record.direction === 'out') sent.push(record.text);
      });
      flicker(stage.server);
      await stage.clock.advance(10);
      stop();
      assert.is(await next(staying), '1 tools');
      assert.is(sent.length, 1);
      staying.cut();
    },
    {},
    offer,
  ));

test('clients with the same id each receive only what they asked for', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const [tools, doc] = [await listen(stage, TOOLS, 'same'), await listen(stage, DOC, 'same')];
      assert.equal([await next(tools), await next(doc)], ['same acknowledged', 'same acknowledged']);
      const own = await session.get();
      stage.server.resourceUpdated('doc://1');
      await stage.clock.advance(10);
      flicker(stage.server);
      await stage.clock.advance(10);
      assert.equal([await next(tools), await next(doc)], ['same tools', 'same doc://1']);
      assert.is(await next(own), 'tools');
      assert.equal(
        [tools, doc].map(({ events }) => events.seen.length),
        [2, 2],
      );
      for (const answer of [tools, doc, own]) answer.cut();
    },
    {},
    offer,
  ));

test('a silent stream gets comments, which keep it open, for as long as it likes', () =>
  serving(
    async (stage) => {
      const answer = await listen(stage, TOOLS);
      await next(answer);
      for (let minute = 1; minute <= 30; minute += 1) {
        await stage.clock.advance(60_000);
        await answer.events.comment(minute);
      }
      flicker(stage.server);
      await stage.clock.advance(10);
      assert.is(await next(answer), '1 tools');
      answer.cut();
    },
    { keepAliveMs: 60_000, stallMs: 120_000 },
    offer,
  ));

test('when the server closes, the stream ends with the result of the subscription', () =>
  serving(
    async (stage) => {
      const answers = [await listen(stage, TOOLS), await listen(stage, TOOLS)];
      for (const answer of answers) await next(answer);
      flicker(stage.server);
      const closed = stage.server.close();
      for (const answer of answers) {
        assert.equal([await next(answer), await next(answer)], ['1 tools', '1 over']);
        assert.equal(await answer.events.rest(), []);
      }
      await closed;
      assert.is(stage.clock.now(), 0);
    },
    {},
    offer,
  ));

test('is a stream also where answers are to be JSON, and refused to a client that takes no stream', () =>
  serving(
    async (stage) => {
      const answer = await listen(stage, TOOLS);
      assert.is(await next(answer), '1 acknowledged');
      answer.cut();
      const deaf = await refused(await listen(stage, TOOLS, 9, { accept: 'application/json' }), 200, -32600, 9);
      assert.match(deaf.error?.message ?? '', /^Accept: expected text\/event-stream/);
      await openCount(stage, 0);
    },
    { response: 'json' },
    offer,
  ));

test('so many are open of all clients together and no more, and requests have their own room', () =>
  serving(
    async (stage) => {
      const answers = [await listen(stage, TOOLS), await listen(stage, TOOLS)];
      for (const answer of answers) assert.is(await next(answer), '1 acknowledged');
      const full = await refused(await listen(stage, TOOLS), 429, -31001, 1);
      assert.match(full.error?.message ?? '', 'maxStatelessListens');
      await answered(await call(stage.url, 'echo', { text: 'x' }));
      answers[0]?.cut();
      await openCount(stage, 1);
      const third = await listen(stage, TOOLS);
      assert.is(await next(third), '1 acknowledged');
      answers[1]?.cut();
      third.cut();
    },
    { server: { limits: { maxStatelessListens: 2, maxStatelessInFlight: 1 } } },
    offer,
  ));

/** Rounds of 800 KB: more than the buffers of a socket take. */
const ROUNDS = atScale({ quick: 20, full: 40, proof: 40 });

test('a client that reads nothing of its stream delays no other client, and is dropped', () =>
  serving(
    async (stage) => {
      const uris = Array.from({ length: 200 }, (_, index) => `doc://${'x'.repeat(4_000)}${index}`);
      const deaf = await listen(stage, { resourceSubscriptions: uris }, 'deaf');
      const well = await listen(stage, { resourceSubscriptions: [uris[0]] }, 'well');
      await next(well);
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const uri of uris) stage.server.resourceUpdated(uri);
        await stage.clock.advance(10);
        assert.is(await next(well), `well ${uris[0]}`);
      }
      const emitter = [...states(stage.server)].find(([actor, state]) => /^emitter/.test(actor) && /\(/.test(state));
      assert.match(emitter?.[1] ?? '', /\(\d+\)$/);
      assert.ok(Number(/\((\d+)\)/.exec(emitter?.[1] ?? '')?.[1]) <= 200, emitter?.[1]);
      await stage.clock.advance(60_000);
      await openCount(stage, 1);
      assert.ok(stage.told.some((line) => line.includes('stallMs')));
      await settled();
      deaf.cut();
      well.cut();
    },
    { stallMs: 30_000, server: { limits: { maxMessageBytes: 8_000_000 } } },
    offer,
  ));
