/** Props of the chart: the statechart, and its state at the cursor. */
import type { ChartNode, Next, Stepped } from '../../../src/inspector/frames.ts';

export interface ChartProps {
  /** The {@link ChartFrame.id}, the key of its layout. */
  readonly id: string;
  readonly chart: ChartNode;
  /** The paths of the active states, as in {@link Stepped.active}, without their ancestors. */
  readonly active: readonly string[];
  /** Default: `active`. */
  readonly status?: Stepped['status'];
  /** The edges of the last step: they glow and fade. `seq` is the step's, so that the same edge glows again. */
  readonly taken?: { readonly seq: number; readonly edges: readonly string[] };
  /** The possible transitions, as in {@link ActorView.next}. */
  readonly next?: readonly Next[];
  /** The running timers. */
  readonly delays?: readonly RunningDelay[];
  /** The current time by the server's clock, for comparison with `due`. Read when `delays` change. */
  readonly now?: number;
  /** False: the clock stands still, as at a cursor in the past. Default: true. */
  readonly running?: boolean;
  /** The number of visits of each state (by path) and each edge (by id). */
  readonly visits?: Visits;
  /** Dims everything unvisited. */
  readonly coverage?: boolean;
  readonly selected?: ChartSelection;
  readonly onSelect?: (selected: ChartSelection | undefined) => void;
  /** The effect of a tried event, drawn in addition to the current state. */
  readonly whatIf?: { readonly edges: readonly string[]; readonly active: readonly string[] };
}

export interface RunningDelay {
  /** As in {@link Timed.event}: equal to the `on` of its edges. */
  readonly event: string;
  /** In milliseconds of the server's clock. */
  readonly due: number;
  /** The whole duration. */
  readonly lasts: number;
}

export interface Visits {
  readonly states: ReadonlyMap<string, number>;
  readonly edges: ReadonlyMap<string, number>;
}

export type ChartSelection =
  | { readonly kind: 'state'; readonly path: string }
  | { readonly kind: 'edge'; readonly id: string };
