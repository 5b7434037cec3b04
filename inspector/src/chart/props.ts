/** What the statechart's picture is given: the chart, and what is true of it at the moment of the cursor. */
import type { ChartNode, Next, Stepped } from '../../../src/inspector/frames.ts';

export interface ChartProps {
  /** The {@link ChartFrame.id}: its layout is kept under it. */
  readonly id: string;
  readonly chart: ChartNode;
  /** The paths of the active states, as {@link Stepped.active} has them; those around them follow. */
  readonly active: readonly string[];
  /** Default: `active`. */
  readonly status?: Stepped['status'];
  /** The edges of the last step: they glow, and fade. `seq` is the step's, so that the same edge glows again. */
  readonly taken?: { readonly seq: number; readonly edges: readonly string[] };
  /** What could happen next, as {@link ActorView.next} has it. */
  readonly next?: readonly Next[];
  /** The delays that run. */
  readonly delays?: readonly RunningDelay[];
  /** Milliseconds of the server's clock: what `due` is compared with. Read when `delays` change. */
  readonly now?: number;
  /** False: the clock stands, as it does at a cursor in the past. Default: true. */
  readonly running?: boolean;
  /** How often each state (by path) was entered and each edge (by id) was taken. */
  readonly visits?: Visits;
  /** Dims what was never visited. */
  readonly coverage?: boolean;
  readonly selected?: ChartSelection;
  readonly onSelect?: (selected: ChartSelection | undefined) => void;
  /** What an event would lead to: drawn beside what is. */
  readonly whatIf?: { readonly edges: readonly string[]; readonly active: readonly string[] };
}

export interface RunningDelay {
  /** As {@link Timed.event} has it: equal to the `on` of the edges that it leads along. */
  readonly event: string;
  /** In milliseconds of the server's clock. */
  readonly due: number;
  /** How long it is in all. */
  readonly lasts: number;
}

export interface Visits {
  readonly states: ReadonlyMap<string, number>;
  readonly edges: ReadonlyMap<string, number>;
}

export type ChartSelection =
  | { readonly kind: 'state'; readonly path: string }
  | { readonly kind: 'edge'; readonly id: string };
