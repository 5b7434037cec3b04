/** A statechart as plain data: its states, and what leads out of each. Types only; pages and recordings hold it as it is here. */

export interface ChartNode {
  /** Its own name; of the whole machine, the machine's id. */
  readonly key: string;
  /** Where it is, such as `paying.charging`; the empty text for the whole machine. */
  readonly path: string;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  /** Its parent begins in it. */
  readonly initial: boolean;
  readonly description?: string;
  readonly tags?: readonly string[];
  /** The names of the actions on entry and exit. */
  readonly entry?: readonly string[];
  readonly exit?: readonly string[];
  /** What it invokes while it lasts. */
  readonly invokes: readonly string[];
  readonly edges: readonly ChartEdge[];
  readonly nodes: readonly ChartNode[];
}

/** A transition. */
export interface ChartEdge {
  /** Unique within the chart: the path of its source, `#`, and its number there, such as `paying.charging#2`. */
  readonly id: string;
  /** As XState has it: an event's type, a pattern of them (`a.*`), one of XState's own, or the empty text for one without an event. */
  readonly on: string;
  /** The same for people, such as `pay`, `after 30 s`, `charge failed`. */
  readonly label: string;
  /** The guard's name; absent where there is none, the empty text where it has none. */
  readonly guard?: string;
  /** The names of its actions. */
  readonly actions?: readonly string[];
  /** The paths of the states that it leads to; empty for one that stays. */
  readonly targets: readonly string[];
  readonly description?: string;
}
