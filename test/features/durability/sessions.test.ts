/** Legacy sessions that outlive their process: killed at once, stopped in order, ended by their clients. */
import * as assert from 'uvu/assert';
import { openSession, type Session, textIn } from '../../core/http/support.ts';
import { conclusive, suite, timeLimit } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { atScale } from '../../harness/scale.ts';
import { elapse, until } from '../../harness/wait.ts';
import { DurableServer, FULL } from './process.ts';

const test = suite('durable sessions');
const server = new DurableServer();

timeLimit(FULL ? 1_200_000 : 60_000);
test.after(() => server.remove());

/** The number of an event in its stream. */
function numberOf(id: string | undefined): number {
  return Number(id?.slice(id.lastIndexOf('_') + 1));
}

/** The events of a stream that was cut after `count` of them. */
async function cutAfter(session: Session, id: number, count: number): Promise<{ ids: string[]; places: number[] }> {
  const answer = await session.call(id, 'count', { to: 5, ms: 60_000 }, { progressToken: id });
  const ids: string[] = [];
  const places: number[] = [];
  while (places.length < count) {
    const event = await answer.events.next();
    ids.push(String(event.id));
    if (event.data) places.push(JSON.parse(event.data).params.progress);
  }
  answer.cut();
  return { ids, places };
}

const COUNT = atScale({ quick: 8, full: 60, proof: 1_000 });
const STREAMS = atScale({ quick: 3, full: 8, proof: 50 });
const CALLS = atScale({ quick: 6, full: 30, proof: 200 });

/** What was there when the process was killed. */
interface Scene {
  readonly sessions: readonly Session[];
  readonly cut: readonly { readonly ids: readonly string[] }[];
  /** Its call of `look` was on its way. */
  readonly looking: Session;
  /** Its client had ended it while ten calls ran in it. */
  readonly ended: Session;
  readonly watching: Session;
  readonly owned: Session;
  readonly calling: Session;
  /** By the id of the call, what its client was told. */
  readonly acked: ReadonlyMap<number, string>;
  readonly restartedIn: number;
}

const charge = (session: Session, id: number, round: string): ReturnType<Session['call']> =>
  session.call(id, 'charge', { key: `${round}-${id}`, ms: (id * 37) % 150 });

/** Calls in flight, while the process is killed. @returns what their client was told before */
async function killDuringCalls(session: Session, round: string, afterMs: number): Promise<Map<number, string>> {
  const acked = new Map<number, string>();
  const going = Array.from({ length: CALLS }, async (_, index) => {
    try {
      const answer = await charge(session, index + 1, round);
      acked.set(index + 1, textIn(await answer.json()));
    } catch {
      // The process was killed before it had answered.
    }
  });
  await until(() => acked.size > 0, 'a result');
  await elapse(afterMs, 'more calls are answered');
  await server.kill();
  await Promise.all(going);
  return acked;
}

/** Repeats every call. Fails where one that was answered is answered otherwise, or where any has run twice. */
async function repeatAll(session: Session, round: string, acked: ReadonlyMap<number, string>): Promise<void> {
  for (let id = 1; id <= CALLS; id += 1) {
    const again = await (await charge(session, id, round)).json();
    const known = acked.get(id);
    if (known !== undefined) assert.is(textIn(again), known);
    else if (again.error) assert.is(again.error.code, -32600);
  }
  const keys = server.ran().filter((key) => key.startsWith(`${round}-`));
  conclusive(() => assert.is(new Set(keys).size, keys.length, 'a call was run twice'));
}

async function play(): Promise<Scene> {
  await server.start();
  const { url } = server;
  const sessions: Session[] = [];
  for (let index = 0; index < COUNT; index += 1)
    sessions.push(await openSession(url, '2025-11-25', { authorization: `p${index % 50}` }));
  const cut = await Promise.all(sessions.slice(0, STREAMS).map((session) => cutAfter(session, 7, 1)));
  const ended = await openSession(url);
  const running = Array.from({ length: 10 }, async (_, index) =>
    (await ended.call(index + 1, 'charge', { key: 'ended', ms: 60_000 })).text(),
  );
  await until(() => server.ran().length >= running.length, 'the calls to run');
  assert.is((await ended.delete()).status, 204);
  assert.not.ok((await Promise.all(running)).join('').includes('charged'));
  const watching = await openSession(url);
  const uri = 'notes://a';
  await (await watching.post({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri } })).text();
  const owned = await openSession(url, '2025-11-25', { authorization: 'me' });
  const looking = await openSession(url);
  const lost = looking.call(1, 'look', { key: 'look', ms: 60_000 }).catch(() => undefined);
  await until(() => server.ran().includes('look'), 'the call to run');
  const calling = await openSession(url);
  const acked = await killDuringCalls(calling, '0', 40);
  await lost;
  await server.start();
  return { sessions, cut, looking, ended, watching, owned, calling, acked, restartedIn: server.startedIn };
}

let scene: Scene | undefined;
/** The kill is one for the tests after it. */
async function after(): Promise<Scene> {
  scene ??= await play();
  return scene;
}

test('R-02: sessions and their streams go on after a kill, without a new initialize', async () => {
  const { sessions, cut, restartedIn } = await after();
  const from = performance.now();
  const served = await Promise.all(
    sessions.slice(STREAMS).map(async (session) => textIn(await (await session.call(9, 'look', { key: 'a' })).json())),
  );
  assert.equal(new Set(served), new Set(['looked at a']));
  const usable = performance.now() - from;
  const took: number[] = [];
  for (const [index, { ids }] of cut.entries()) {
    const before = performance.now();
    const last = ids.at(-1);
    const resumed = await sessions[index]?.get({ 'last-event-id': last });
    assert.is(resumed?.status, 200);
    const event = await resumed?.events.next();
    took.push(performance.now() - before);
    // Its process is gone: the client is told so, instead of waiting for ever.
    assert.is(JSON.parse(event?.data ?? '{}').error?.code, -32603);
    assert.not.ok(ids.includes(String(event?.id)), 'an event id came twice');
    assert.is(numberOf(event?.id), numberOf(last) + 1);
  }
  const worst = Math.max(...took);
  const whole = (ms: number): string => `${Math.round(ms)} ms`;
  process.stdout.write(
    `R-02: started in ${whole(restartedIn)}, ${COUNT} sessions called in ${whole(usable)}, worst first event ${whole(worst)}\n`,
  );
  assert.ok(worst <= (FULL ? 200 : 1_000), `the first resumed event took ${worst} ms`);
});

test('S-05: an event id that no event has, or that is another session’s, is 404 after a restart too', async () => {
  const { sessions, cut } = await after();
  const [mine, other] = sessions;
  const id = cut[0]?.ids.at(-1);
  for (const [session, forged] of [
    [other, id],
    [mine, `${id}9`],
    [mine, 'AAAAAAAAAAAA_1'],
  ] as const)
    assert.is((await session?.get({ 'last-event-id': forged }))?.status, 404, String(forged));
});

test('S-03: after a restart a session serves only its principal, and no other principal learns that it exists', async () => {
  // One that nobody has woken yet.
  const { owned: mine } = await after();
  const foreign = { authorization: 'you' };
  for (const answer of [
    await mine.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, foreign),
    await mine.get(foreign),
    await mine.delete(foreign),
  ])
    assert.is(answer.status, 404);
  assert.is((await mine.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).status, 200);
});

test('R-01: a result that a client has is repeated after a kill, and a call that had begun does not run twice', async () => {
  const { calling, acked } = await after();
  await repeatAll(calling, '0', acked);
  for (let round = 1; round < (FULL ? 100 : 1); round += 1) {
    const session = await openSession(server.url, '2025-11-25', { authorization: `r${round}` });
    const told = await killDuringCalls(session, String(round), (round * 53) % 120);
    await server.start();
    await repeatAll(session, String(round), told);
  }
});

test('R-01: a call that changes nothing is run again when its outcome is lost', async () => {
  const { looking } = await after();
  const looks = (): number => server.ran().filter((key) => key === 'look').length;
  assert.is(looks(), 1);
  const again = looking
    .call(1, 'look', { key: 'look', ms: 60_000 }, {}, AbortSignal.timeout(2_000))
    .catch(() => 'runs');
  await until(() => looks() >= 2, 'a second look');
  assert.is(await again, 'runs');
});

test('R-24: a session that was ended while calls ran stays so: no restart brings it back', async () => {
  const { ended } = await after();
  assert.is((await ended.post({ jsonrpc: '2.0', id: 'b', method: 'ping' })).status, 404);
});

test('a session that watches a resource is notified of it after a kill', async () => {
  const { watching } = await after();
  const own = await watching.get();
  for (;;) {
    const message = await own.events.message();
    if (message.method === 'notifications/resources/updated') break;
  }
  own.cut();
});

test.full(
  'R-25: a deploy loses nothing: what ran ends or is refused, streams say when to come back, and sessions go on',
  async () => {
    await after();
    const session = await openSession(server.url);
    const ranBefore = server.ran().length;
    const own = await session.get();
    const calls = Array.from({ length: atScale({ quick: 8, full: 20, proof: 200 }) }, async (_, id) => {
      const answer = await session.call(id + 1, 'charge', { key: `${id}`, ms: 300 });
      return { id, text: textIn(await answer.json()) };
    });
    const long = await session.call('long', 'count', { to: 5, ms: 60_000 }, { progressToken: 'long' });
    const first = await long.events.next();
    await until(() => server.ran().length >= ranBefore + calls.length, 'the calls to run');
    const { code: exit, ms } = await server.stop();
    assert.is(exit, 0, server.told);
    assertFigure(ms, 10_500, 'the stop');
    const acked = await Promise.all(calls);
    await own.events.rest();
    const said = own.events.seen.at(-1);
    assert.is(said?.id, undefined, 'the last that a stream says is when to come back');
    assert.ok(said?.retry);
    // What did not end in time is told so: -31003.
    assert.is(JSON.parse((await long.events.rest()).at(-1)?.data ?? '{}').error?.code, -31003);
    await server.start();
    for (const { id, text } of acked)
      assert.is(textIn(await (await session.call(id + 1, 'charge', { key: `${id}`, ms: 300 })).json()), text);
    assert.is(server.ran().length, ranBefore + calls.length);
    assert.is((await session.get({ 'last-event-id': first.id })).status, 200);
  },
);
