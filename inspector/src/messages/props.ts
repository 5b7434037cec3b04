/** What the lanes are given: who there is, and every message in the order of the stream. */
import type { Plain } from '../../../src/inspector/frames.ts';
import type { MessageRow } from '../../../src/inspector/model/index.ts';

export type { MessageRow } from '../../../src/inspector/model/index.ts';

export interface MessagesProps {
  /** In the order in which they stand side by side. Senders that are none of them stand in a lane at the edge. */
  readonly lanes: readonly MessageLane[];
  /** Ascending by `seq`. May be pushed to in place. */
  readonly rows: readonly MessageRow[];
  /** Changes whenever anything in the arrays has changed. */
  readonly version: number;
  /** A lane for each actor, or for each kind of them. */
  readonly by: 'actor' | 'kind';
  readonly onBy: (by: 'actor' | 'kind') => void;
  /** The selected record's `seq`. */
  readonly selected?: number;
  readonly onSelect: (seq: number | undefined) => void;
  /** The records that led to the selected one, and that it led to. */
  readonly chain?: { readonly causes: ReadonlySet<number>; readonly effects: ReadonlySet<number> };
  /** The record at the time cursor: later ones are dimmed. Absent: live, and the newest is kept in view. */
  readonly cursor?: number;
  /** What a record says, for the pointer that rests on it. Asked for only then. */
  readonly data: (seq: number) => Plain | undefined;
  /** A time, for people. Default: `+1.234 s` from the first row. */
  readonly clock?: (at: number) => string;
}

export interface MessageLane {
  /** An actor's address; `client` (or `client` and a connection) for the wire. */
  readonly id: string;
  readonly label: string;
  readonly kind: string;
  /** It is gone. */
  readonly gone?: boolean;
}
