/** Echo over stdio, in each era: calls for each second, how long one takes, and what it costs the server, with 1 and 64 in flight. */
import type { Contender } from '../contenders.ts';
import { inTurns, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { StdioEcho } from '../stdio.ts';

const IN_FLIGHT = [1, 64];

export async function measureStdio(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('stdio');
  const figures = ['calls', 'p50', 'p99', 'cpu'] as const;
  const warm = new WeakSet<StdioEcho>();
  await inTurns<StdioEcho>({
    runners: contenders.flatMap(({ name, kind, stdio, eras }) =>
      eras.map((era) => ({
        who: name,
        way: era,
        start: () => StdioEcho.start({ server: stdio, args: ['stdio', '3'], era, handshake: kind !== 'floor' }),
      })),
    ),
    sizes: IN_FLIGHT,
    rounds: scale.rounds,
    async turn(running, { who, way }, size) {
      if (!warm.has(running)) await warmUp(scale.warmMs, (ms) => running.call({ ms }, Math.max(...IN_FLIGHT)));
      warm.add(running);
      const before = await running.processorTime();
      const { perSecond, p50, p99, calls } = await running.call({ ms: scale.ms }, size);
      const cpu = ((await running.processorTime()) - before) / calls;
      gathering.add({ measure: 'calls', unit: '/s', who, way, size }, perSecond);
      gathering.add({ measure: 'p50', unit: 'ms', who, way, size }, p50);
      gathering.add({ measure: 'p99', unit: 'ms', who, way, size }, p99);
      gathering.add({ measure: 'cpu', unit: 'µs', who, way, size }, cpu);
    },
    failed({ who, way }, size) {
      for (const measure of figures) gathering.add({ measure, unit: '', who, way, size }, null);
    },
  });
  return gathering.all;
}
