/** One server with many idle sessions: opens them, weighs the server, calls among them, ends them. */

import { callAll, openSessionOn } from './http.ts';
import { HttpConnection } from './http-connection.ts';
import { callInSession, end, ping } from './http-requests.ts';
import { type Measured, median } from './measured.ts';
import { type Serving, serve } from './serving.ts';

/** Bytes, once garbage has been collected. */
export interface Weight {
  readonly heap: number;
  readonly rss: number;
}

export interface Hosted {
  /** Weights: with one session, with all just opened, with all at rest, after calls in all of them, after all have ended. */
  readonly before: Weight;
  readonly opened: Weight;
  readonly idle: Weight;
  readonly called: Weight;
  readonly after: Weight;
  /** Milliseconds that opening one takes: `initialize` and `notifications/initialized`, one session after the other. Medians. */
  readonly opening: { readonly first: number; readonly all: number; readonly last: number };
  /** The longest that a call took while no other session was open, and while all others went to rest, in milliseconds. */
  readonly longest: { readonly still: number; readonly resting: number };
  /** Calls with one session open, and with all: the first in each since it was at rest, and more of them. */
  readonly alone: Record<1 | 32, Measured>;
  readonly waking: Measured;
  readonly among: Record<1 | 32, Measured>;
  /** Sessions that still answer after all were ended. */
  readonly left: number;
}

/** The young generation has all its room at once: Node would enlarge it in steps, and a session would seem to weigh that. */
const STEADY = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16'];
const TEXT = 'x'.repeat(64);
/** Sessions that warm the server up, and are gone before it is weighed. */
const WARM_UP = 1_000;
/** How many of the sessions opened first, and last, are looked at. */
const EDGE = 100;
/** Milliseconds after which a session that nobody uses is at rest (docs/adr/0009 says ten seconds at most). */
const REST_MS = 12_000;
/** Milliseconds between two calls meanwhile. */
const PAUSE_MS = 2;

/** Starts a server with that many tools, and measures it. @throws {Error} when an answer is not what it must be */
export async function host(sessions: number, tools: number): Promise<Hosted> {
  const serving = await serve(...STEADY, 'servers/sessions.mjs', String(tools));
  const { url } = serving;
  let connection = await HttpConnection.open(url);
  try {
    const warm = await open(connection, url, WARM_UP);
    await call(url, warm.ids, 20_000, 32);
    connection = await reopened(connection, url);
    await endAll(connection, url, warm.ids);

    const one = await open(connection, url, 1);
    const alone = { 1: await call(url, one.ids, 3_000, 1), 32: await call(url, one.ids, 20_000, 32) };
    // What the sessions before it leave behind goes when they would have gone to rest.
    const still = await callMeanwhile(url, one.ids);
    const before = await weigh(serving);
    connection = await reopened(connection, url);
    const many = await open(connection, url, sessions);
    const opened = await weigh(serving);
    const resting = await callMeanwhile(url, one.ids);
    const idle = await weigh(serving);
    const waking = await call(url, many.ids, sessions, 32);
    const among = { 1: await call(url, many.ids, 3_000, 1), 32: await call(url, many.ids, 20_000, 32) };
    const called = await weigh(serving);
    connection = await reopened(connection, url);
    await endAll(connection, url, many.ids);
    const left = await answering(connection, url, many.ids);
    const after = await weigh(serving);
    const opening = {
      first: median(many.took.slice(0, EDGE)),
      all: median(many.took),
      last: median(many.took.slice(-EDGE)),
    };
    return { before, opened, idle, called, after, opening, longest: { still, resting }, alone, waking, among, left };
  } finally {
    connection.close();
    await serving.stop();
  }
}

/** Opens sessions, one after the other. @returns their ids, and the milliseconds that each took */
async function open(
  connection: HttpConnection,
  url: URL,
  count: number,
): Promise<{ readonly ids: readonly string[]; readonly took: readonly number[] }> {
  const ids: string[] = [];
  const took: number[] = [];
  while (ids.length < count) {
    const started = performance.now();
    ids.push(await openSessionOn(connection, url));
    took.push(performance.now() - started);
  }
  return { ids, took };
}

/** Calls echo, each time in the next session. */
function call(url: URL, ids: readonly string[], count: number, inFlight: number): Promise<Measured> {
  const calls = ids.map((id) => callInSession(url, id, TEXT));
  let at = 0;
  return callAll(url, TEXT, count, inFlight, () => {
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

/** Calls in one session until all others rest. @returns the milliseconds that the longest call took */
async function callMeanwhile(url: URL, [id = '']: readonly string[]): Promise<number> {
  const connection = await HttpConnection.open(url);
  const call = callInSession(url, id, TEXT);
  const until = performance.now() + REST_MS;
  let longest = 0;
  for (let n = 0; performance.now() < until; n += 1) {
    const started = performance.now();
    const { status, head, body } = await connection.exchange(call.withId(n));
    longest = Math.max(longest, performance.now() - started);
    if (status !== 200) throw new Error(`expected 200, got ${head}\n${body}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  connection.close();
  return longest;
}

async function endAll(connection: HttpConnection, url: URL, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const { status, head, body } = await connection.exchange(end(url, id));
    if (status !== 204) throw new Error(`DELETE: expected 204, got ${head}\n${body}`);
  }
}

/** How many of these sessions are there: a ping in any other gets 404. */
async function answering(connection: HttpConnection, url: URL, ids: readonly string[]): Promise<number> {
  let count = 0;
  for (const id of ids) if ((await connection.exchange(ping(url, id))).status !== 404) count += 1;
  return count;
}

/** A new connection for one that was idle, and that the server may have closed. */
function reopened(connection: HttpConnection, url: URL): Promise<HttpConnection> {
  connection.close();
  return HttpConnection.open(url);
}

async function weigh(serving: Serving): Promise<Weight> {
  const weight = await serving.ask('weight');
  if (typeof weight !== 'object' || weight === null || !('heap' in weight) || !('rss' in weight))
    throw new Error(`expected bytes of heap and resident memory, got ${JSON.stringify(weight)}`);
  return { heap: Number(weight.heap), rss: Number(weight.rss) };
}
