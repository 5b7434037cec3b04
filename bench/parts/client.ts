/** Troupe's client beside a bare loop and the official client: echo over HTTP and over stdio, all against the same server. */
import { type Contender, FLOOR, OURS } from '../contenders.ts';
import { at } from '../measured.ts';
import { inTurns, type Runner, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { type Serving, serve } from '../serving.ts';
import { STEADY, weigh } from './sessions.ts';

export const OFFICIAL_CLIENT = '@modelcontextprotocol/client 2.4';

/** How clients are called: the transport, and the era. */
export const CLIENT_WAYS = [
  { way: 'HTTP, session', http: true, era: 'legacy', most: 32 },
  { way: 'HTTP, modern', http: true, era: 'modern', most: 32 },
  { way: 'stdio, legacy', http: false, era: 'legacy', most: 64 },
  { way: 'stdio, modern', http: false, era: 'modern', most: 64 },
] as const;

const CLIENTS = [
  [FLOOR, 'loop'],
  [OURS, 'troupe'],
  [OFFICIAL_CLIENT, 'official'],
] as const;

/** Idle clients that are weighed, and how many come before them. */
const MOST_IDLE = 1_000;
const WARM_UP = 20;

/** The clients are processes of their own, so that the processor time of each is known. */
export async function measureClient(_: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('client');
  const server = await serve('servers/contender.mjs', 'http', '3');
  try {
    for (const most of [32, 64])
      await inTurns<Serving, 'calls' | 'p50' | 'p99' | 'cpu'>({
        gathering,
        figures: { calls: '/s', p50: 'ms', p99: 'ms', cpu: 'µs' },
        runners: CLIENT_WAYS.filter((one) => one.most === most).flatMap(({ way, http, era }) =>
          CLIENTS.map(
            ([who, file]): Runner<Serving> => ({
              who,
              way,
              start: () => serve(`clients/${file}.mjs`, http ? server.url.href : 'stdio', era),
            }),
          ),
        ),
        sizes: [1, most],
        rounds: scale.rounds,
        prepare: (client) => warmUp(scale.warmMs, (ms) => call(client, ms, most)),
        async turn(client, inFlight) {
          const { perSecond, p50, p99, cpu } = await call(client, scale.ms, inFlight);
          return { calls: perSecond, p50, p99, cpu };
        },
      });
    await weighIdle(gathering, server.url, scale);
  } finally {
    await server.stop();
  }
  return gathering.all;
}

/** Weighs idle clients, once they are at rest. In memory, each is weighed with its session of the server. */
async function weighIdle(gathering: Gathering, url: URL, scale: Scale): Promise<void> {
  const count = Math.min(MOST_IDLE, scale.sessions);
  const ways = CLIENT_WAYS.filter(({ http }) => http).flatMap(({ way, era }) => [
    { way, era, target: url.href },
    { way: `memory, ${era}`, era, target: 'memory' },
  ]);
  const idle = await Promise.all(
    ways.map(async ({ way, era, target }) => ({
      way,
      client: await serve(...STEADY, 'clients/idle.mjs', target, era),
    })),
  );
  try {
    const before = [];
    for (const { client } of idle) {
      await client.ask(`open ${WARM_UP}`);
      before.push(await weigh(client));
      await client.ask(`open ${count}`);
    }
    await new Promise((resolve) => setTimeout(resolve, scale.restMs));
    for (const [at, { way, client }] of idle.entries()) {
      const [was, is] = [before[at], await weigh(client)];
      const what = { unit: 'B', who: OURS, way, size: count };
      gathering.add({ ...what, measure: 'heap' }, was ? (is.heap - was.heap) / count : null);
      gathering.add({ ...what, measure: 'resident' }, was ? (is.rss - was.rss) / count : null);
    }
  } finally {
    await Promise.all(idle.map(({ client }) => client.stop()));
  }
}

/** Lets a client call for a while. @throws {Error} if an answer is not the echo */
async function call(client: Serving, ms: number, inFlight: number) {
  const answer = await client.ask(`call ${ms} ${inFlight}`);
  if (!isCalled(answer)) throw new Error(`expected the times of its calls, got ${JSON.stringify(answer)}`);
  const { fault, took, seconds, micros } = answer;
  if (fault !== undefined) throw new Error(fault);
  const sorted = Float64Array.from(took).sort();
  const calls = took.length;
  return { calls, perSecond: calls / seconds, p50: at(sorted, 0.5), p99: at(sorted, 0.99), cpu: micros / calls };
}

/** What a client of `bench/clients` tells of its calls. */
interface Called {
  readonly fault?: string;
  /** Milliseconds of each call. */
  readonly took: readonly number[];
  readonly seconds: number;
  /** Microseconds of processor time that the client used. */
  readonly micros: number;
}

function isCalled(answer: unknown): answer is Called {
  return typeof answer === 'object' && answer !== null && 'took' in answer && Array.isArray(answer.took);
}
