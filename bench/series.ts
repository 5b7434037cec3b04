/** What is measured, in one shape: a series is one figure of one contender, round by round. */
import { median } from './measured.ts';

/** The parts of the suite; `--only` takes one. */
export const PARTS = [
  'http',
  'stdio',
  'sessions',
  'lists',
  'start',
  'streams',
  'broadcast',
  'large',
  'durable',
  'audit',
  'client',
  'rules',
  'guard',
  'hop',
  'gateway',
  'telemetry',
] as const;
export type Part = (typeof PARTS)[number];

export interface Series {
  readonly part: Part;
  readonly measure: string;
  readonly unit: string;
  /** Who: the name of a contender. */
  readonly who: string;
  /** How it was called: a way over HTTP, an era over stdio, a command. */
  readonly way: string;
  /** Of what: requests in flight, tools, sessions. 0 where that says nothing. */
  readonly size: number;
  /** One figure for each round; null where the contender failed in it. */
  readonly rounds: readonly (number | null)[];
}

/** The middle of what was measured, with the least and the most. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spread(values: readonly (number | null)[]): Spread | undefined {
  const there = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (there.length === 0) return undefined;
  return { median: median(there), least: Math.min(...there), most: Math.max(...there) };
}

/** One divided by the other, round by round: what slows the machine for a while hits both. */
export function ratio(one: Series | undefined, other: Series | undefined): Spread | undefined {
  return byRound(one, other, (value, beside) => (beside === 0 ? null : value / beside));
}

/** One less the other, round by round. */
export function difference(one: Series | undefined, other: Series | undefined): Spread | undefined {
  return byRound(one, other, (value, beside) => value - beside);
}

/** What a comparison yields for the rounds in which neither failed. */
function byRound(
  one: Series | undefined,
  other: Series | undefined,
  compare: (value: number, beside: number) => number | null,
): Spread | undefined {
  return (
    one &&
    other &&
    spread(
      one.rounds.map((value, round) => {
        const beside = other.rounds[round] ?? null;
        return value === null || beside === null ? null : compare(value, beside);
      }),
    )
  );
}

/** Gathers figures into series, in the order in which they come first. */
export class Gathering {
  readonly #part: Part;
  readonly #series = new Map<string, Omit<Series, 'rounds'> & { readonly rounds: (number | null)[] }>();

  constructor(part: Part) {
    this.#part = part;
  }

  /** One more round. @param value null for a contender that failed */
  add(what: Omit<Series, 'part' | 'rounds'>, value: number | null): void {
    const key = [what.measure, what.who, what.way, what.size].join('|');
    const found = this.#series.get(key);
    if (found) found.rounds.push(value);
    else this.#series.set(key, { part: this.#part, ...what, rounds: [value] });
  }

  get all(): readonly Series[] {
    return [...this.#series.values()];
  }
}
