/** Calls in a session that enter at another node than its owner, beside calls at the owner and beside a bare hop. */
import { type Amount, callAll, isEcho, openSession } from '../http.ts';
import { echo } from '../http-requests.ts';
import { inTurns, type Runner } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { type Serving, serve } from '../serving.ts';

export const HOPS = {
  local: 'at its owner',
  forwarded: 'at another node',
  bare: 'bare node:http and one socket',
} as const;

/** Requests in flight. */
export const HOP_SIZE = 32;
/** Calls for each second of the second run, in which no node is busy. */
export const CALM = 1_000;
/** Calls until both nodes have compiled what they need: after 4,000, a hop cost up to four times as much. */
const WARM_CALLS = 20_000;
const TEXT = 'x'.repeat(64);
/** Tries until both nodes reach each other, and milliseconds between two. */
const TRIES = 100;
const PAUSE_MS = 50;

interface Nodes {
  readonly entry: Serving;
  readonly owner: Serving;
  /** The node that is called. */
  readonly url: URL;
  readonly session: string;
}

export async function measureHop(_contenders: unknown, scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('hop');
  const runners = (['local', 'forwarded', 'bare'] as const).map(
    (hop): Runner<Nodes> => ({ who: HOPS[hop], way: 'session', start: () => start(hop) }),
  );
  const call = ({ url, session }: Nodes, amount: Amount, most?: number) =>
    callAll(url, isEcho(TEXT), amount, HOP_SIZE, () => echo(url, { way: 'session', session }, TEXT), most);
  await inTurns({
    gathering,
    figures: { calls: '/s', p50: 'ms', entry: 'µs', owner: 'µs', cpu: 'µs', calmP50: 'ms', calmP99: 'ms' },
    runners,
    sizes: [HOP_SIZE],
    rounds: scale.rounds,
    prepare: (running) => call(running, { calls: scale.name === 'tiny' ? HOP_SIZE : WARM_CALLS }),
    async turn(running) {
      const used = () => Promise.all([running.entry.processorTime(), running.owner.processorTime()]);
      const before = await used();
      const { calls, perSecond, p50 } = await call(running, { ms: scale.ms });
      const after = await used();
      const [entry, owner] = [(after[0] - before[0]) / calls, (after[1] - before[1]) / calls];
      const calm = await call(running, { ms: scale.ms }, CALM);
      return { calls: perSecond, p50, entry, owner, cpu: entry + owner, calmP50: calm.p50, calmP99: calm.p99 };
    },
  });
  return gathering.all;
}

async function start(hop: keyof typeof HOPS): Promise<Nodes & { stop(): Promise<void> }> {
  const file = hop === 'bare' ? 'servers/floor-hop.mjs' : 'servers/node.mjs';
  const [entry, owner] = await Promise.all([serve(file, 'entry'), serve(file, 'owner')]);
  const { url } = hop === 'local' ? owner : entry;
  const address = async (of: Serving): Promise<string> => String((await of.ask('address')) || of.url.host);
  await entry.ask(`link ${await address(owner)}`);
  await owner.ask(`link ${await address(entry)}`);
  const stop = async (): Promise<void> => void (await Promise.all([entry.stop(), owner.stop()]));
  return { entry, owner, url, session: hop === 'bare' ? '' : await openedSession(owner.url), stop };
}

/** The owner claims its cells and both nodes open their links meanwhile. */
async function openedSession(url: URL): Promise<string> {
  for (let tries = 1; ; tries += 1)
    try {
      return await openSession(url);
    } catch (error) {
      if (tries === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
}
