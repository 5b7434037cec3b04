/** The lifecycle of one question to a client: it is answered, refused, or nobody answers in time. Pure. */
import { setup } from 'xstate';

export type AskEvent =
  /** An answer came. */
  | { type: 'answer' }
  /** The user said no. */
  | { type: 'decline' }
  /** The user closed the question without an answer. */
  | { type: 'cancel' }
  /** Its time is over, or whoever asked has gone. */
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
