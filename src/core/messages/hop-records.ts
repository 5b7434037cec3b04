/** The port through which the entry of a forwarded request reports it to the inspection. Types only. */

/** The other node of a forwarded request, and the number of its exchange on the link: the same at both nodes. */
export interface Hop {
  readonly node: string;
  readonly number: number;
}

/**
 * The end of a forwarded request at its entry: `answered`, `left` (its client disconnected), or the failure of the link
 * that ended it.
 */
export type HopEnd = 'answered' | 'left' | 'unreachable' | 'lost' | 'cut' | 'full';

export interface HopRecords {
  /** The record of the client's message that is being processed; 0 for none. */
  readonly cause: number;
  /**
   * An exchange was sent to its owner.
   *
   * @param cause the record of the client's message; 0 if it has none yet
   * @returns that record; 0 without a viewer
   */
  sent(connection: string, text: string, cause: number, hop: Hop): number;
  /** A message of the owner passes to the client. */
  message(connection: string, text: string, cause: number): void;
  ended(cause: number, hop: Hop, end: HopEnd): void;
}
