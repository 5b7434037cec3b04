/** What the timeline is given: rows of spans that only grow at their end, and where the cursor is. Times are milliseconds of the server's clock, ascending. */

export interface TimelineProps {
  /** `strip`: along the bottom, only the rows' colours; `full`: the tab. */
  readonly form: 'strip' | 'full';
  readonly rows: readonly TimelineRow[];
  /** The times of all records: where there is none for long, the time between is folded. May be pushed to in place. */
  readonly moments: readonly number[];
  /** Changes whenever anything in the arrays has changed. */
  readonly version: number;
  /** Until when there is something to see: the server's time now while live, the last record's in a recording. */
  readonly until: number;
  /** Whether it goes on; a recording does not. Default: it does. */
  readonly live?: boolean;
  /** Where the cursor is; absent: at the end. */
  readonly cursor?: number;
  readonly onCursor: (at: number) => void;
  /** To the record before or after. */
  readonly onStep: (by: -1 | 1) => void;
  readonly onLive: () => void;
  /** The part that everything is filtered to. */
  readonly brush?: { readonly from: number; readonly to: number };
  readonly onBrush: (brush: { readonly from: number; readonly to: number } | undefined) => void;
  readonly selected?: string;
  /** A row, by its `id`, or one record in it. */
  readonly onSelect: (id: string, seq?: number) => void;
  /** A time, for people: for the axis and the slider's text. Default: `+1.234 s` from the first moment. */
  readonly clock?: (at: number) => string;
}

export interface TimelineRow {
  /** An actor's address, or `wire` and the connection. */
  readonly id: string;
  readonly label: string;
  /** A glyph or word for the kind, shown before the label. */
  readonly kind: string;
  readonly depth?: number;
  /** Each lasts until the next begins; the last until {@link TimelineRow.until}. */
  readonly states: readonly StateSpan[];
  /** Exchanges: they may overlap, and are packed below each other. */
  readonly wire?: readonly WireSpan[];
  readonly marks: readonly TimelineMark[];
  /** When it was gone. Absent: it lives. */
  readonly until?: number;
}

export interface StateSpan {
  readonly at: number;
  readonly seq: number;
  readonly state: string;
}

export interface WireSpan {
  readonly seq: number;
  readonly at: number;
  /** Absent: it is open. */
  readonly end?: number;
  readonly label: string;
  readonly outcome: 'ok' | 'error' | 'open';
}

export interface TimelineMark {
  readonly at: number;
  readonly seq: number;
  readonly kind: 'crashed' | 'unhandled' | 'dropped' | 'gap';
  readonly text: string;
}
