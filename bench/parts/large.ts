/** One call with a large argument over HTTP: how long it takes, and what it costs the server. */
import type { Contender } from '../contenders.ts';
import { keepingAgent, prepare } from '../posting.ts';
import { inTurns } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { callerOf, inEachWay } from '../serving-ways.ts';

export async function measureLarge(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('large');
  const agent = keepingAgent();
  const text = 'x'.repeat(scale.characters);
  await inTurns({
    gathering,
    figures: { call: 'ms', cpu: 'ms' },
    runners: inEachWay(contenders),
    sizes: [scale.characters],
    rounds: scale.rounds,
    async turn(running) {
      const { url, processorTime } = running;
      const post = prepare(url, callerOf(running, 0), 'tools/call', { name: 'size', arguments: { text } }, agent);
      const before = await processorTime();
      const started = performance.now();
      const answer = await post();
      const took = performance.now() - started;
      if (!answer.includes(`"${text.length}"`)) throw new Error(`expected its length, got ${answer.slice(0, 300)}`);
      return { call: took, cpu: ((await processorTime()) - before) / 1_000 };
    },
  });
  agent.destroy();
  return gathering.all;
}
