/** Closing the response of a modern request cancels it (R-07b): its handler hears at once, and nothing more is sent for it. */
import { Agent } from 'node:http';
import * as assert from 'uvu/assert';
import { wait } from '../../../src/testing/arrivals.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { times } from '../../harness/scale.ts';
import { busy } from '../../system/fuzz/conversation.ts';
import { answered, call, modern } from './modern.ts';
import { Raw, rawRequest } from './raw.ts';
import { serving } from './session.ts';
import { type Answer, type HeldCall, openSession, type Stage } from './support.ts';

const test = suite('closing a modern response');

const CALLS = times(100, { quick: 40 });
const token = { progressToken: 'p' };

/** Resolves with the time when a handler's signal is aborted. */
function aborted({ ctx }: HeldCall): Promise<number> {
  const waiting = wait<number>({ what: 'the signal', ms: 5_000, arrived: () => 'it was not aborted' });
  ctx.signal.addEventListener('abort', () => waiting.settle(performance.now()));
  return waiting.promise;
}

/** Collects what the server sends from now on, whoever could still get it. */
function sent(stage: Stage): { readonly texts: string[]; stop(): void } {
  const texts: string[] = [];
  const stop = stage.server.inspect((record) => {
    if (record.type === 'wire' && record.direction === 'out') texts.push(record.text);
  });
  return { texts, stop };
}

interface Streaming {
  readonly call: HeldCall;
  readonly answer: Answer;
}

async function streaming(stage: Stage, key: string): Promise<Streaming> {
  const asked = call(stage.url, 'held', { key }, { meta: token, agent: false });
  const held = await stage.held(key);
  held.ctx.progress(1);
  const answer = await asked;
  await answer.events.message();
  return { call: held, answer };
}

test(`R-07b: aborts the handlers of ${CALLS} streams within 50 ms each, and sends nothing more for them`, () =>
  serving(async (stage) => {
    const streams = await Promise.all(Array.from({ length: CALLS }, (_, index) => streaming(stage, `s${index}`)));
    const wire = sent(stage);
    let slowest = 0;
    for (const { call: held, answer } of streams) {
      const gone = aborted(held);
      const started = performance.now();
      answer.cut();
      slowest = Math.max(slowest, (await gone) - started);
      held.ctx.progress(2);
      held.ctx.log.error('too late');
      held.finish('too late');
    }
    assertFigure(slowest, 50, 'the slowest abort');
    await settled();
    assert.equal(wire.texts, []);
    wire.stop();
    assert.equal(busy(stage.server), []);
    for (const { answer } of streams) assert.is(answer.events.seen.length, 1);
  }));

test(`aborts all of them when ${CALLS} leave at the same moment, and those who stay get their answers`, () =>
  serving(async (stage) => {
    const streams = await Promise.all(Array.from({ length: CALLS }, (_, index) => streaming(stage, `s${index}`)));
    const stays = await streaming(stage, 'stays');
    const all = Promise.all(streams.map(({ call: held }) => aborted(held)));
    for (const { answer } of streams) answer.cut();
    await all;
    for (const { call: held } of streams) held.finish('too late');
    assert.not(stays.call.ctx.signal.aborted);
    stays.call.finish('stayed');
    const events = await stays.answer.events.rest();
    assert.match(events.at(-1)?.data ?? '', 'stayed');
    assert.equal(busy(stage.server), []);
  }));

test('cancels a request that has not been answered with anything yet', () =>
  serving(async (stage) => {
    const raw = await Raw.open(stage.url);
    raw.write(rawCall('silent', 5));
    const held = await stage.held('silent');
    const gone = aborted(held);
    const wire = sent(stage);
    raw.cut();
    await gone;
    held.finish('too late');
    await settled();
    assert.equal(wire.texts, []);
    wire.stop();
  }));

test('cancels every request that was pipelined on the connection', () =>
  serving(async (stage) => {
    const raw = await Raw.open(stage.url);
    raw.write(['a', 'b', 'c'].map((key, id) => rawCall(key, id)).join(''));
    const calls = [await stage.held('a')];
    // A server may begin with the next at once, or when the one before is answered.
    const next = stage.held('b').then(
      (held) => void calls.push(held),
      () => {},
    );
    await Promise.race([next, call(stage.url, 'echo', { text: 'x' })]);
    if (calls.length > 1) calls.push(await stage.held('c'));
    const gone = Promise.all(calls.map(aborted));
    raw.cut();
    await gone;
    for (const { finish } of calls) finish('too late');
    await settled();
    assert.equal(busy(stage.server), []);
  }));

test('is no cancellation once the answer is there, and leaves the other requests of the connection alone', () =>
  serving(async (stage) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let nth = 0; nth < 20; nth += 1) {
      const result = await answered(await call(stage.url, 'echo', { text: String(nth) }, { agent, id: nth }), nth);
      assert.equal(result.content, [{ type: 'text', text: String(nth) }]);
    }
    const asked = call(stage.url, 'held', { key: 'kept' }, { agent });
    const { ctx, finish } = await stage.held('kept');
    assert.not(ctx.signal.aborted);
    finish();
    await answered(await asked);
    agent.destroy();
  }));

test('of one client says nothing to another that has the same id in flight', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const inSession = session.call(1, 'held', { key: 'session' });
    const other = call(stage.url, 'held', { key: 'other' }, { id: 1 });
    const [one, two] = [await stage.held('session'), await stage.held('other')];
    const { answer, call: held } = await streaming(stage, 'leaves');
    const gone = aborted(held);
    answer.cut();
    await gone;
    assert.equal([one.ctx.signal.aborted, two.ctx.signal.aborted], [false, false]);
    one.finish('one');
    two.finish('two');
    assert.equal((await answered(await inSession)).content, [{ type: 'text', text: 'one' }]);
    assert.equal((await answered(await other)).content, [{ type: 'text', text: 'two' }]);
  }));

function rawCall(key: string, id: number): string {
  const { headers = {}, body } = modern('tools/call', { id, params: { name: 'held', arguments: { key } } });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  const common = ['Host: localhost', 'Content-Type: application/json', 'Accept: application/json, text/event-stream'];
  return rawRequest('POST', '/mcp', [...common, ...lines], JSON.stringify(body));
}
