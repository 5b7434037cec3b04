/**
 * The lifecycle of a call that outlives its request: it works, waits for input, resumes, and ends. Pure. Both eras have
 * these states ("Task Status").
 */
import { Chart } from './chart/chart.ts';

export type TaskEvent =
  /** Its handler has asked a question. */
  | { type: 'ask' }
  /** A question was answered, and none is open. */
  | { type: 'answered' }
  /** Its handler has ended with a result (which may report a failure) or with an error. */
  | { type: 'complete' }
  | { type: 'fail' }
  /** Its client cancelled it, its time to live has passed, or the server stops. */
  | { type: 'cancel' };

/** As the specification names them. */
type TaskState = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

export const taskMachine = new Chart<TaskEvent, 'open', TaskState>({
  id: 'task',
  initial: 'working',
  states: {
    working: {
      tags: ['open'],
      on: {
        ask: { target: 'input_required', description: 'its handler asks something' },
        complete: { target: 'completed', description: 'also with a result that tells of a failure' },
        fail: { target: 'failed', description: 'with an error' },
        cancel: { target: 'cancelled', description: "by its client, its time to live, or the server's stop" },
      },
    },
    input_required: {
      tags: ['open'],
      on: {
        answered: { target: 'working', description: 'nothing is open any more' },
        complete: 'completed',
        fail: 'failed',
        cancel: 'cancelled',
      },
    },
    completed: { type: 'final' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
  },
});
