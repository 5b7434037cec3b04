/** How things end over HTTP: a session that its client ends while it works, and a server that closes. */
import * as assert from 'uvu/assert';
import { ErrorCode } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { busy } from '../../system/fuzz/conversation.ts';
import { Fixture, nodeCommand } from '../transports/support.ts';
import { answered, call, refused } from './modern.ts';
import { PING, refusal, serving } from './session.ts';
import { type Answer, ask, type HeldCall, openSession, type Session, type Stage, serveHttp } from './support.ts';

const test = suite('the end of a session, and of a server');

interface Running {
  readonly asked: Promise<Answer>;
  readonly held: HeldCall;
}

async function running(stage: Stage, key: string, asked: Promise<Answer>, speaks: boolean): Promise<Running> {
  // A response that ends is no failure of whoever waits for it later.
  asked.catch(() => {});
  const held = await stage.held(key);
  if (speaks) held.ctx.log.info('begun');
  return { asked, held };
}

function inSession(stage: Stage, session: Session, count: number, from = 0): Promise<Running[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) => {
      const key = `${session.id} ${from + index}`;
      return running(stage, key, session.call(from + index, 'held', { key }), index % 2 === 0);
    }),
  );
}

/** What a response brought until it ended, properly or not. */
async function everything({ asked }: Running): Promise<string> {
  try {
    return await (await asked).text();
  } catch (error) {
    return String(error);
  }
}

test('R-24: DELETE aborts 100 calls that run, ends their responses without a result, and the session is gone for good', () =>
  serving(async (stage) => {
    const session = await openSession(stage.url);
    const bystander = await openSession(stage.url);
    const calls = await inSession(stage, session, 100);
    const [other] = await inSession(stage, bystander, 1);
    const stream = await session.get();
    assert.is((await session.delete()).status, 204);
    for (const { held } of calls) assert.is(held.ctx.signal.aborted, true);
    for (const one of calls) assert.not.match(await everything(one), '"result"');
    await stream.events.rest();
    for (const { held } of calls) {
      held.ctx.log.info('too late');
      held.finish('too late');
    }
    await settled();
    for (const answer of [session.post(PING), session.get(), session.delete(), session.call(1, 'echo', { text: 'x' })])
      assert.is((await refusal(answer)).status, 404);
    assert.is(stage.sessions(), 1);
    other?.held.finish('unharmed');
    assert.match(await (other ? everything(other) : ''), 'unharmed');
    assert.equal(busy(stage.server), []);
  }));

test('R-25: a server that closes answers what is in flight, in a session or without, and takes nothing new', async () => {
  const stage = await serveHttp();
  const sessions = await Promise.all(Array.from({ length: 20 }, () => openSession(stage.url)));
  const legacy = (await Promise.all(sessions.map((session) => inSession(stage, session, 5)))).flat();
  const modern = await Promise.all(
    Array.from({ length: 100 }, (_, id) => {
      const key = `modern ${id}`;
      return running(stage, key, call(stage.url, 'held', { key }, { id, meta: { progressToken: id } }), false);
    }),
  );
  for (const [index, { held }] of modern.entries()) if (index % 2 === 0) held.ctx.progress(1);
  const closed = stage.server.close();
  const late = await call(stage.url, 'echo', { text: 'late' }, { agent: false }).catch((error: unknown) => error);
  // Either nobody listens any more, or it is said that it is too late.
  if (!(late instanceof Error)) await refused(late as Answer, 503, ErrorCode.ShuttingDown, 1);
  for (const { held } of [...legacy, ...modern]) assert.not(held.ctx.signal.aborted);
  for (const { held } of [...legacy, ...modern]) held.finish('finished');
  for (const one of [...legacy, ...modern]) assert.match(await everything(one), '"text":"finished"');
  await closed;
});

test('R-25: the GET streams of sessions end with when to come back, at once or when the rest has ended', async () => {
  const stage = await serveHttp({ retryMs: 2_345 });
  const sessions = await Promise.all(Array.from({ length: 50 }, () => openSession(stage.url)));
  const streams = await Promise.all(sessions.map((session) => session.get()));
  const closed = stage.server.close();
  for (const { events } of streams) {
    await events.rest();
    // It begins with an event that has an id; what it ends with is no event.
    assert.equal(events.seen.slice(1), [{ retry: '2345' }]);
  }
  await closed;
});

test('a call that exceeds the grace time is aborted, and the server closes all the same', async () => {
  const stage = await serveHttp({ server: { limits: { graceMs: 500 } } });
  const key = 'for ever';
  const { asked, held } = await running(stage, key, call(stage.url, 'held', { key }), false);
  const closed = stage.server.close();
  await stage.clock.advance(500);
  const answer = await asked;
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
  await refused(answer, 503, ErrorCode.ShuttingDown, 1);
  assert.is(held.ctx.signal.aborted, true);
  await closed;
});

test('a client that never reads its stream does not keep a server from closing', async () => {
  const stage = await serveHttp();
  const session = await openSession(stage.url);
  const { asked, held } = await running(stage, 'k', session.call(1, 'held', { key: 'k' }), true);
  // Its head has come; the body is left where it is.
  await asked;
  held.ctx.log.info('x'.repeat(100_000));
  const closed = stage.server.close();
  held.finish();
  await settled();
  await stage.clock.advance(10_000);
  await closed;
});

test('a closed server does not listen on its port, and the port is free', async () => {
  const stage = await serveHttp();
  await stage.close();
  await ask(stage.url, { body: PING, agent: false }).then(
    () => assert.unreachable('it answered'),
    (error: Error) => assert.match(error.message, 'ECONNREFUSED'),
  );
  const again = await serveHttp({ port: Number(new URL(stage.url).port) });
  assert.is(again.url, stage.url);
  await again.close();
});

test('R-25: a process that is asked to stop answers first, tells its streams when to come back, and exits with 0', async () => {
  const fixture = new Fixture('../http/drain.ts', 'pipe', nodeCommand).read();
  await fixture.until(() => fixture.out.includes('\n'));
  const url = fixture.out.trim();
  const sessions = await Promise.all(Array.from({ length: 20 }, () => openSession(url)));
  const streams = await Promise.all(sessions.map((session) => session.get()));
  const calls = sessions.map((session) => session.call(1, 'wait'));
  const modern = Array.from({ length: 20 }, (_, id) => call(url, 'wait', {}, { id }));
  const all = Promise.all([...calls, ...modern]);
  await fixture.said('40 wait');
  const started = performance.now();
  fixture.process.kill('SIGTERM');
  for (const [id, answer] of (await all).entries())
    assert.equal((await answered(answer, id < 20 ? 1 : id - 20)).content, [{ type: 'text', text: 'waited' }]);
  for (const { events } of streams) {
    await events.rest();
    assert.match(events.seen.at(-1)?.retry ?? '', /^\d+$/);
    assert.is(events.seen.at(-1)?.id, undefined);
  }
  assert.equal(await fixture.exited, { code: 0, signal: null });
  const took = performance.now() - started;
  assertFigure(took, 5_000, 'the end of the process');
});
