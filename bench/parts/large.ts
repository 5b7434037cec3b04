/** One call with a large argument over HTTP: how long it takes, and what it costs the server. */
import type { Contender } from '../contenders.ts';
import { keepingAgent, prepare } from '../posting.ts';
import { inTurns } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing } from '../serving.ts';
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
      const post = prepare(
        running.url,
        callerOf(running, 0),
        'tools/call',
        { name: 'size', arguments: { text } },
        agent,
      );
      const [{ answer, took }, micros] = await costing(running, async () => {
        const started = performance.now();
        return { answer: await post(), took: performance.now() - started };
      });
      if (!answer.includes(`"${text.length}"`)) throw new Error(`expected its length, got ${answer.slice(0, 300)}`);
      return { call: took, cpu: micros / 1_000 };
    },
  });
  agent.destroy();
  return gathering.all;
}
