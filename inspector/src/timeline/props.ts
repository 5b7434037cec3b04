/**
 * Props of the timeline: rows of spans that only grow at their end, and the cursor. Times are milliseconds of the
 * server's clock, ascending.
 */
import type { TimelineRow } from '../../../src/inspector/model/index.ts';

export type { StateSpan, TimelineMark, TimelineRow, WireSpan } from '../../../src/inspector/model/index.ts';

export interface TimelineProps {
  /** `strip`: along the bottom, only the rows' colours; `full`: the tab. */
  readonly form: 'strip' | 'full';
  readonly rows: readonly TimelineRow[];
  /** The times of all records: long idle times between them are folded. Times may be appended in place. */
  readonly moments: readonly number[];
  /** Changes whenever an array has changed. */
  readonly version: number;
  /** The end of the timeline: the server's time now while live, the last record's in a recording. */
  readonly until: number;
  /** False for a recording. Default: true. */
  readonly live?: boolean;
  /** The position of the cursor; absent: at the end. */
  readonly cursor?: number;
  readonly onCursor: (at: number) => void;
  /** Moves to the previous or next record. */
  readonly onStep: (by: -1 | 1) => void;
  readonly onLive: () => void;
  /** The time range of the filter. */
  readonly brush?: { readonly from: number; readonly to: number };
  readonly onBrush: (brush: { readonly from: number; readonly to: number } | undefined) => void;
  readonly selected?: string;
  /** Selects a row by its `id`, or one of its records. */
  readonly onSelect: (id: string, seq?: number) => void;
  /** Formats a time for the axis and the slider's text. Default: `+1.234 s` from the first moment. */
  readonly clock?: (at: number) => string;
}
