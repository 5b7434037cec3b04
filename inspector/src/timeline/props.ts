/** What the timeline is given: rows of spans that only grow at their end, and where the cursor is. Times are milliseconds of the server's clock, ascending. */
import type { TimelineRow } from '../../../src/inspector/model/index.ts';

export type { StateSpan, TimelineMark, TimelineRow, WireSpan } from '../../../src/inspector/model/index.ts';

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
