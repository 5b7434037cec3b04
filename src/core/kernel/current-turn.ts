/** The turn that this thread is running, so that the watchdog can name what blocks it. Costs two writes a turn. */
import type { Mail } from '../messages/mailbox.ts';

export interface Turn {
  readonly address: string;
  /** The current message; undefined after the turn. */
  readonly acts: Mail | undefined;
}

/** Turns nest, because a message can cause further messages: this is the innermost. */
export const currentTurn: { turn: Turn | undefined } = { turn: undefined };
