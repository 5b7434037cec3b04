/** The lifecycle of one question to a client: answered, declined, cancelled or expired. Pure. */
import { setup } from 'xstate';

export type AskEvent =
  /** An answer arrived. */
  | { type: 'answer' }
  /** The user declined. */
  | { type: 'decline' }
  /** The user closed the question without an answer. */
  | { type: 'cancel' }
  /** The time limit has passed, or the handler has ended. */
  | { type: 'expire' };

export const askMachine = setup({
  types: { events: {} as AskEvent },
}).createMachine({
  id: 'ask',
  initial: 'asked',
  states: {
    asked: { on: { answer: 'answered', decline: 'declined', cancel: 'cancelled', expire: 'expired' } },
    answered: { type: 'final' },
    declined: { type: 'final' },
    cancelled: { type: 'final' },
    expired: { type: 'final' },
  },
});
