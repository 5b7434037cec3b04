/** In whose turn this thread is, for whoever must name what blocks it: two writes a turn, and read by nobody else. */
import type { Mail } from '../messages/mailbox.ts';

export interface Turn {
  readonly address: string;
  /** The mail that is acted on; undefined once the turn is over. */
  readonly acts: Mail | undefined;
}

/** Turns lie within turns, as mail leads to mail: this is the innermost. */
export const currentTurn: { turn: Turn | undefined } = { turn: undefined };
