/** Echo over HTTP of the same server without telemetry, with it and no SDK, with all spans, and scraped each second. */
import { OURS } from '../contenders.ts';
import { callAll, isEcho } from '../http.ts';
import { echo } from '../http-requests.ts';
import type { Measured } from '../measured.ts';
import { inTurns, type Runner, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing, type Serving, serve } from '../serving.ts';

export const WITHOUT_SDK = `${OURS}, otel() and no SDK`;
export const ALL_SPANS = `${OURS}, all spans, batching SDK`;
export const SCRAPED = `${OURS}, scraped each second`;
/** How each is called. */
export const TRACED_WAY = 'modern';
/** Requests in flight. */
export const TRACED_SIZE = 32;

const SERVERS = [
  { who: OURS, argument: 'none' },
  { who: WITHOUT_SDK, argument: 'api' },
  { who: ALL_SPANS, argument: 'spans' },
  { who: SCRAPED, argument: 'scraped' },
] as const;

const TEXT = 'x'.repeat(64);
/** Turns are as short as one can be, and many: what else the machine does hits neighbours alike. */
const TURNS_A_ROUND = 5;

export async function measureTelemetry(_contenders: unknown, scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('telemetry');
  const runners = SERVERS.map(
    ({ who, argument }): Runner<Serving> => ({
      who,
      way: TRACED_WAY,
      start: () => serve('servers/telemetry.mjs', argument),
    }),
  );
  const call = (running: Serving, ms: number): Promise<Measured> =>
    callAll(running.url, isEcho(TEXT), { ms }, TRACED_SIZE, () => echo(running.url, { way: TRACED_WAY }, TEXT));
  await inTurns({
    gathering,
    figures: { calls: '/s', p50: 'ms', p99: 'ms', cpu: 'µs' },
    runners,
    sizes: [TRACED_SIZE],
    rounds: scale.rounds * (scale.name === 'tiny' ? 1 : TURNS_A_ROUND),
    prepare: (running) => warmUp(scale.warmMs, (ms) => call(running, ms)),
    async turn(running) {
      const [{ perSecond, p50, p99, calls }, micros] = await costing(running, () => call(running, scale.ms));
      return { calls: perSecond, p50, p99, cpu: micros / calls };
    },
  });
  return gathering.all;
}
