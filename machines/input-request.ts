/** The lifecycle of one input request: where it waits for its answer, and how it ends. Pure. */
import { Chart } from './chart/chart.ts';

export type InputRequestEvent =
  /** It goes to the client of a session over its stream. */
  | { type: 'send' }
  /** An answer arrived. */
  | { type: 'answer' }
  /** The user declined. */
  | { type: 'decline' }
  /** The user closed the form without an answer, or the client responded with an error. */
  | { type: 'cancel' }
  /** The answer is no longer needed: the time limit has passed, or the handler continues without it. */
  | { type: 'withdraw' };

/** `streamed`: the client of a session knows it, so its withdrawal is sent, too. */
export const inputRequestMachine = new Chart<InputRequestEvent, 'streamed'>({
  id: 'input request',
  initial: 'pending',
  states: {
    pending: {
      description: 'it is part of the response to its request, or of a task',
      on: { send: 'sent', answer: 'answered', decline: 'declined', cancel: 'cancelled', withdraw: 'withdrawn' },
    },
    sent: {
      description: "over a session's stream",
      tags: ['streamed'],
      on: { answer: 'answered', decline: 'declined', cancel: 'cancelled', withdraw: 'withdrawn' },
    },
    answered: { type: 'final' },
    declined: { type: 'final' },
    cancelled: { type: 'final' },
    withdrawn: { type: 'final' },
  },
});
