/** Echo over HTTP: calls for each second, how long one takes, and what it costs the server, with 1, 32 and 256 in flight. */
import type { Contender } from '../contenders.ts';
import { callAll, isEcho } from '../http.ts';
import { echo, type PreparedCall } from '../http-requests.ts';
import type { Measured } from '../measured.ts';
import { inTurns, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing } from '../serving.ts';
import { type Called, callerOf, inEachWay } from '../serving-ways.ts';
import { findWrk, wrk } from '../wrk.ts';

const TEXT = 'x'.repeat(64);

/** Echo over HTTP, with wrk where it is installed and there is the time for it. */
export async function measureHttp(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const found = scale.name === 'full' ? await findWrk() : undefined;
  const gathering = new Gathering('http');
  const call = (running: Called, connection: number): PreparedCall =>
    echo(running.url, callerOf(running, connection), TEXT);
  const verified = (running: Called, inFlight: number, ms: number): Promise<Measured> =>
    callAll(running.url, isEcho(TEXT), { ms }, inFlight, (connection) => call(running, connection));
  const most = Math.max(...scale.inFlight);
  await inTurns({
    gathering,
    figures: { calls: '/s', p50: 'ms', p99: 'ms', cpu: 'µs' },
    runners: inEachWay(contenders),
    sizes: scale.inFlight,
    rounds: scale.rounds,
    // Each answer of this is looked at, also where wrk measures then, which looks at the status alone.
    prepare: (running) => warmUp(scale.warmMs, (ms) => verified(running, most, ms)),
    async turn(running, size) {
      const [{ perSecond, p50, p99, calls }, micros] = await costing(running, () =>
        found
          ? wrk(
              found,
              running.url,
              running.callers.map((_, connection) => call(running, connection)),
              size,
              scale.ms,
            )
          : verified(running, size, scale.ms),
      );
      return { calls: perSecond, p50, p99, cpu: micros / calls };
    },
  });
  return gathering.all;
}
