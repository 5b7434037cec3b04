/** The servers behind the mounts of an inspected server, with their calls as far as they were observed. */
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { type Timing, timing } from './percentiles.ts';
import { displayName } from './tree.ts';
import { statusAt, type WireExchange } from './wire-exchange.ts';

export interface UpstreamLine extends Omit<Timing, 'method'> {
  readonly name: string;
  /** The actor of the mount. */
  readonly actor: string;
  /** The state of the mount, such as `offering.current`. */
  readonly state: string;
  /** Number of connections. */
  readonly connections: number;
  /** Calls without a response. */
  readonly open: number;
}

/** @returns one line for each mount, in the order of their names */
export function upstreamsOf(model: Model, seq = LIVE): readonly UpstreamLine[] {
  const lines = [...model.actors.values()];
  const mounts = lines.filter((line) => line.kind === 'mount' && line.aliveAt(seq));
  if (mounts.length === 0) return [];
  const calls = new Map<string, WireExchange[]>(mounts.map(({ address }) => [address, []]));
  for (const exchange of model.exchanges.all.until(seq))
    if (exchange.origin && exchange.direction === 'out')
      calls.get(model.actor(exchange.connection)?.parent ?? '')?.push(exchange);
  return mounts
    .map((line): UpstreamLine => {
      const { address } = line;
      const own = calls.get(address) ?? [];
      const ended = own.filter((exchange) => statusAt(exchange, seq) !== 'open');
      const { method: _, ...times } = timing('', ended);
      return {
        ...times,
        name: displayName(line),
        actor: address,
        state: line.standing(seq)?.state ?? '',
        connections: lines.filter((other) => other.parent === address && other.aliveAt(seq)).length,
        open: own.length - ended.length,
      };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
