/** Echo over stdio, in each era: calls for each second, how long one takes, and what it costs the server, with 1 and 64 in flight. */
import type { Contender } from '../contenders.ts';
import { inTurns, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing } from '../serving.ts';
import { StdioEcho } from '../stdio.ts';

const IN_FLIGHT = [1, 64];

export async function measureStdio(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('stdio');
  await inTurns<StdioEcho, 'calls' | 'p50' | 'p99' | 'cpu'>({
    gathering,
    figures: { calls: '/s', p50: 'ms', p99: 'ms', cpu: 'µs' },
    runners: contenders.flatMap(({ name, kind, stdio, eras }) =>
      eras.map((era) => ({
        who: name,
        way: era,
        start: () => StdioEcho.start({ server: stdio, args: ['stdio', '3'], era, handshake: kind !== 'floor' }),
      })),
    ),
    sizes: IN_FLIGHT,
    rounds: scale.rounds,
    prepare: (running) => warmUp(scale.warmMs, (ms) => running.call({ ms }, Math.max(...IN_FLIGHT))),
    async turn(running, size) {
      const [{ perSecond, p50, p99, calls }, micros] = await costing(running, () =>
        running.call({ ms: scale.ms }, size),
      );
      return { calls: perSecond, p50, p99, cpu: micros / calls };
    },
  });
  return gathering.all;
}
