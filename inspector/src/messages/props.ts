/** Props of the messages: the actors, and every message in the order of the stream. */
import type { Plain } from '../../../src/inspector/frames.ts';
import type { MessageRow } from '../../../src/inspector/model/index.ts';

export type { MessageRow } from '../../../src/inspector/model/index.ts';

export interface MessagesProps {
  /** In the order of the lanes. Senders without a lane share one at the edge. */
  readonly lanes: readonly MessageLane[];
  /** Ascending by `seq`. Rows may be appended in place. */
  readonly rows: readonly MessageRow[];
  /** Changes whenever an array has changed. */
  readonly version: number;
  /** A lane for each actor, or for each kind of them. */
  readonly by: 'actor' | 'kind';
  readonly onBy: (by: 'actor' | 'kind') => void;
  /** The selected record's `seq`. */
  readonly selected?: number;
  readonly onSelect: (seq: number | undefined) => void;
  /** The causes and effects of the selected record. */
  readonly chain?: { readonly causes: ReadonlySet<number>; readonly effects: ReadonlySet<number> };
  /** The record at the time cursor: later ones are dimmed. Absent: live, the newest stays in view. */
  readonly cursor?: number;
  /** The numbers of progress notifications of calls, by the `seq` of the call. They are rows only if unfolded. */
  readonly reports: ReadonlyMap<number, number>;
  readonly unfolded: ReadonlySet<number>;
  /** Folds or unfolds the progress of a call. */
  readonly onFold: (seq: number) => void;
  /** The data of a record, requested when the pointer rests on it. */
  readonly data: (seq: number) => Plain | undefined;
  /** Formats a time. Default: `+1.234 s` from the first row. */
  readonly clock?: (at: number) => string;
}

export interface MessageLane {
  /** An actor's address; `client` (or `client` and a connection) for the wire. */
  readonly id: string;
  readonly label: string;
  readonly kind: string;
  /** True if it has ended. */
  readonly gone?: boolean;
}
