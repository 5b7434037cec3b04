/** Progress over HTTP: a call whose handler reports many times, answered with a stream of events; events for each second. */
import type { Contender } from '../contenders.ts';
import { keepingAgent, prepare } from '../posting.ts';
import { inTurns } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing } from '../serving.ts';
import { callerOf, inEachWay } from '../serving-ways.ts';

/** Streams that are read at once. */
const STREAMS = 8;

export async function measureStreams(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('streams');
  const agent = keepingAgent();
  const { events } = scale;
  await inTurns({
    gathering,
    figures: { events: '/s', cpu: 'µs' },
    runners: inEachWay(contenders),
    sizes: [events],
    rounds: scale.rounds,
    async turn(running) {
      const { url } = running;
      const post = (stream: number): (() => Promise<string>) => {
        const params = { name: 'count', arguments: { n: events }, _meta: { progressToken: `token ${stream}` } };
        return prepare(url, callerOf(running, stream), 'tools/call', params, agent);
      };
      const [{ streams, ms }, cpu] = await costing(running, () => readFor(scale.ms, events, post));
      return { events: (streams * events * 1_000) / ms, cpu: cpu / (streams * events) };
    },
  });
  agent.destroy();
  return gathering.all;
}

/** Reads streams, some at once, for a while. @throws {Error} when one lacks an event, or has them in another order */
async function readFor(
  ms: number,
  events: number,
  posting: (stream: number) => () => Promise<string>,
): Promise<{ streams: number; ms: number }> {
  const started = performance.now();
  let streams = 0;
  const reader = async (post: () => Promise<string>): Promise<void> => {
    do {
      const text = await post();
      let last = 0;
      for (const [, progress] of text.matchAll(/"progress":(\d+)/g)) {
        last += 1;
        if (Number(progress) !== last) throw new Error(`expected event ${last}, got ${progress}`);
      }
      if (last !== events || !text.includes('"counted"'))
        throw new Error(`expected ${events} events and the result, got ${last} events and ${text.slice(-300)}`);
      streams += 1;
    } while (performance.now() - started < ms);
  };
  await Promise.all(Array.from({ length: STREAMS }, (_, stream) => reader(posting(stream))));
  return { streams, ms: performance.now() - started };
}
