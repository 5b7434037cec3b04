/** Sessions over HTTP: how fast they open, what an idle one weighs, and what thousands of them cost those who call. */
import type { Contender } from '../contenders.ts';
import { callAll, isEcho, openSession, openSessionOn, openSessions } from '../http.ts';
import { HttpConnection } from '../http-connection.ts';
import { echo, end } from '../http-requests.ts';
import { inTurns, tell, within } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { type Serving, serve } from '../serving.ts';
import { inEachWay } from '../serving-ways.ts';
import { undisturbed } from '../stolen.ts';

/** The young generation has all its room at once: Node would enlarge it in steps, and a session would seem to weigh that. */
export const STEADY = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16'];
const TEXT = 'x'.repeat(64);
const CATALOGUES = [1, 200];
const AT_ONCE = 8;
/** Sessions that warm a server up, and are there when it is weighed first. */
const WARM_UP = 100;
/** How many are opened one by one, to compare the first with the last. */
const EDGE = 100;
/** Sessions whose resident memory says something of one. */
const JUDGED = 200;
/** Milliseconds after which a server counts as stuck. */
const LONGEST_MS = 300_000;
/** Milliseconds between two calls while all go to rest. */
const PAUSE_MS = 2;

export async function measureSessions(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('sessions');
  const hosting = contenders.filter(({ kind, ways }) => kind !== 'floor' && ways.includes('session'));
  const there: Hosted[] = [];
  try {
    // No goal asks what a session of a peer weighs, and to open enough of them takes its time.
    for (const contender of hosting.filter(({ kind }) => kind === 'ours' || scale.peerSessions > 0))
      for (const tools of CATALOGUES) {
        try {
          there.push(await within(hosted(contender, tools, scale), LONGEST_MS));
        } catch (error) {
          tell(contender.name, 'session', error);
        }
      }
    // While these go to rest.
    const rested = rest(scale);
    await measureOpening(gathering, hosting, scale);
    await rested;
    await weighAll(gathering, there, scale);
    const crowded = there.find(({ contender, tools }) => contender.kind === 'ours' && tools === CATALOGUES[0]);
    if (crowded) await measureAmong(gathering, crowded, scale);
  } finally {
    await Promise.all(there.map(({ serving }) => serving.stop()));
  }
  return gathering.all;
}

async function measureOpening(gathering: Gathering, hosting: readonly Contender[], scale: Scale): Promise<void> {
  await inTurns({
    gathering,
    figures: { opened: '/s' },
    runners: inEachWay(hosting).filter(({ way }) => way === 'session'),
    sizes: [AT_ONCE],
    rounds: scale.rounds,
    turn: async ({ url }, size) => ({ opened: (await openSessions(url, { ms: scale.ms }, size)).perSecond }),
  });
}

/** A server that is weighed, and the sessions that it is weighed with. */
interface Hosted {
  readonly contender: Contender;
  readonly tools: number;
  readonly serving: Serving;
  readonly sessions: number;
  readonly ids: string[];
}

/** Starts a server, and lets it open and serve sessions before it is weighed. */
async function hosted(contender: Contender, tools: number, scale: Scale): Promise<Hosted> {
  const serving = await serve(...STEADY, contender.http, 'http', String(tools));
  try {
    const sessions = contender.kind === 'ours' ? scale.sessions : scale.peerSessions;
    const { ids } = await openSessions(serving.url, { calls: Math.min(WARM_UP, sessions) }, AT_ONCE);
    await callIn(serving.url, ids, scale.warmMs, AT_ONCE);
    return { contender, tools, serving, sessions, ids: [...ids] };
  } catch (error) {
    await serving.stop();
    throw error;
  }
}

async function weighAll(gathering: Gathering, there: readonly Hosted[], scale: Scale): Promise<void> {
  const before = new Map<Hosted, Weight>();
  for (const host of there) before.set(host, await weigh(host.serving));
  for (const host of there) {
    const { contender, serving, sessions, ids } = host;
    try {
      ids.push(...(await within(openSessions(serving.url, { calls: sessions }, AT_ONCE), LONGEST_MS)).ids);
    } catch (error) {
      tell(contender.name, 'session', error);
      before.delete(host);
    }
  }
  const ours = there.find(({ contender }) => contender.kind === 'ours');
  if (ours) {
    const longest = await longestCallWhile(ours, rest(scale));
    const what = { measure: 'longest call while all go to rest', unit: 'ms', who: ours.contender.name, way: 'session' };
    gathering.add({ ...what, size: ours.sessions }, longest);
  }
  for (const host of there) {
    const { contender, tools, serving, sessions } = host;
    const [was, is] = [before.get(host), await weigh(serving)];
    const what = { unit: 'B', who: contender.name, way: 'session', size: tools };
    gathering.add({ ...what, measure: 'heap' }, was ? (is.heap - was.heap) / sessions : null);
    // Of a few, what the process does beside weighs more.
    if (sessions < JUDGED) continue;
    gathering.add({ ...what, measure: 'resident' }, was ? (is.rss - was.rss) / sessions : null);
  }
}

/** Calls and openings on a server with all its idle sessions, and on one that has none, in turns. */
async function measureAmong(gathering: Gathering, crowded: Hosted, scale: Scale): Promise<void> {
  const alone = await hosted(crowded.contender, crowded.tools, { ...scale, sessions: 1 });
  const [who, way] = [crowded.contender.name, 'session'];
  const both = [alone, crowded];
  try {
    for (let round = 0; round < scale.rounds; round += 1)
      for (const { serving, ids, sessions } of both) {
        const one = await undisturbed(() => callIn(serving.url, ids.slice(0, 1), scale.ms, 1));
        gathering.add({ measure: 'a call in one session', unit: 'ms', who, way, size: sessions }, one.p50);
        const each = await undisturbed(() => callIn(serving.url, ids, scale.ms, 32));
        gathering.add(
          { measure: 'calls, each in the next session', unit: '/s', who, way, size: sessions },
          each.perSecond,
        );
      }
    await openSessions(alone.serving.url, { calls: Math.min(WARM_UP, scale.sessions) }, AT_ONCE);
    for (let n = 0; n < Math.min(EDGE, scale.sessions); n += 1)
      for (const { serving, ids, sessions } of both) {
        const connection = await HttpConnection.open(serving.url);
        const started = performance.now();
        ids.push(await openSessionOn(connection, serving.url));
        gathering.add({ measure: 'opening one', unit: 'ms', who, way, size: sessions }, performance.now() - started);
        connection.close();
      }
    if (scale.name === 'quick') return;
    const full = await weigh(crowded.serving);
    await endAll(crowded);
    await rest(scale);
    const heap = full.heap - (await weigh(crowded.serving)).heap;
    gathering.add({ measure: 'heap given back', unit: 'B', who, way, size: crowded.sessions }, heap / crowded.sessions);
  } finally {
    await alone.serving.stop();
  }
}

/** Calls echo, each time in the next session. */
function callIn(url: URL, ids: readonly string[], ms: number, inFlight: number) {
  const calls = ids.map((session) => echo(url, { way: 'session', session }, TEXT));
  let at = 0;
  return callAll(url, isEcho(TEXT), { ms }, inFlight, () => {
    let current = 0;
    return {
      get id() {
        return current;
      },
      withId(id) {
        const next = calls[at++ % calls.length];
        if (next === undefined) throw new Error('expected at least one session, got none');
        const bytes = next.withId(id);
        current = next.id;
        return bytes;
      },
    };
  });
}

function rest({ restMs }: Scale): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, restMs));
}

/** Calls in one session meanwhile. @returns the milliseconds that the longest call took */
async function longestCallWhile({ serving: { url } }: Hosted, meanwhile: Promise<void>): Promise<number> {
  const session = await openSession(url);
  const connection = await HttpConnection.open(url);
  const call = echo(url, { way: 'session', session }, TEXT);
  let isOver = false;
  void meanwhile.then(() => {
    isOver = true;
  });
  let longest = 0;
  for (let n = 0; !isOver; n += 1) {
    const started = performance.now();
    const { status, head, body } = await connection.exchange(call.withId(n));
    longest = Math.max(longest, performance.now() - started);
    if (status !== 200) throw new Error(`expected 200, got ${head}\n${body}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  connection.close();
  return longest;
}

async function endAll({ serving: { url }, ids }: Hosted): Promise<void> {
  const connection = await HttpConnection.open(url);
  for (const id of ids) {
    const { status, head, body } = await connection.exchange(end(url, id));
    if (status !== 204) throw new Error(`DELETE: expected 204, got ${head}\n${body}`);
  }
  connection.close();
}

/** Bytes, once garbage has been collected. */
interface Weight {
  readonly heap: number;
  readonly rss: number;
}

export async function weigh(serving: Serving): Promise<Weight> {
  const weight = await serving.ask('weight');
  if (typeof weight !== 'object' || weight === null || !('heap' in weight) || !('rss' in weight))
    throw new Error(`expected bytes of heap and resident memory, got ${JSON.stringify(weight)}`);
  return { heap: Number(weight.heap), rss: Number(weight.rss) };
}
