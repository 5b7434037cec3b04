/** The lifecycle of the run of a script: it computes, calls tools, waits, and ends. Pure. */
import { Chart } from './chart/chart.ts';

export type ScriptRunEvent =
  /** The engine runs the script until it needs the result of a call. */
  | { type: 'compute' }
  /** At least one call runs, and the script needs one of the results. */
  | { type: 'call' }
  /** Only the client can continue it: a question is open, or the sign-in has ended. */
  | { type: 'ask' }
  /** Other people must decide about a call. */
  | { type: 'hold' }
  /** A task of a tool that runs only as one must end. */
  | { type: 'follow' }
  /** Only a time is missing. */
  | { type: 'sleep' }
  /** The script has returned. */
  | { type: 'return' }
  /** The script has thrown an error, or is no JavaScript. */
  | { type: 'fail' }
  /** The script exceeded a limit, took another way than before, or its client did not return in time. */
  | { type: 'stop' }
  /** The client cancelled the call of the script. */
  | { type: 'cancel' };

export type ScriptRunState =
  | 'computing'
  | 'calling'
  | 'waiting for client'
  | 'waiting for approval'
  | 'waiting for task'
  | 'waiting for clock'
  | 'returned'
  | 'failed'
  | 'stopped'
  | 'cancelled';

const ON = {
  compute: 'computing',
  call: 'calling',
  ask: 'waiting for client',
  hold: 'waiting for approval',
  follow: 'waiting for task',
  sleep: 'waiting for clock',
  return: 'returned',
  fail: 'failed',
  stop: 'stopped',
  cancel: 'cancelled',
} as const;

/** `waiting`: nothing of it runs. `alone`: it continues without its client, also in another process. */
export const scriptRunMachine = new Chart<ScriptRunEvent, 'waiting' | 'alone', ScriptRunState>({
  id: 'script run',
  initial: 'computing',
  states: {
    computing: { description: 'a thread runs the script', on: ON },
    calling: { description: 'calls of the script are in flight', on: ON },
    'waiting for client': { description: 'questions of its calls are open', tags: ['waiting'], on: ON },
    'waiting for approval': { description: 'other people decide about a call', tags: ['waiting', 'alone'], on: ON },
    'waiting for task': { description: 'a call is a task', tags: ['waiting', 'alone'], on: ON },
    'waiting for clock': { description: 'the script sleeps', tags: ['waiting', 'alone'], on: ON },
    returned: { type: 'final' },
    failed: { type: 'final' },
    stopped: { type: 'final' },
    cancelled: { type: 'final' },
  },
});
