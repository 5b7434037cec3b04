/** The lifecycle of the run of a script: it computes, calls tools, waits, and ends. Pure. */
import { Chart } from './chart/chart.ts';

export type ScriptRunEvent =
  /** The engine gets results, and runs the script until it needs another one. If it has lost the script, it begins again. */
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
  /** The script has ended before calls that it does not await. */
  | { type: 'finish' }
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
  | 'finishing'
  | 'returned'
  | 'failed'
  | 'stopped'
  | 'cancelled';

/** A limit and the client end a run in any state. */
const STOPS = { stop: 'stopped', cancel: 'cancelled' } as const;

/** `waiting`: nothing of it runs. `alone`: it continues without its client, also in another process. */
export const scriptRunMachine = new Chart<ScriptRunEvent, 'waiting' | 'alone', ScriptRunState>({
  id: 'script run',
  initial: 'computing',
  states: {
    computing: {
      description: 'a thread runs the script',
      on: {
        ...{ compute: 'computing', call: 'calling', ask: 'waiting for client', hold: 'waiting for approval' },
        ...{ follow: 'waiting for task', sleep: 'waiting for clock' },
        ...{ finish: 'finishing', return: 'returned', fail: 'failed', ...STOPS },
      },
    },
    calling: {
      description: 'calls of the script are in flight',
      on: {
        ...{
          compute: 'computing',
          ask: 'waiting for client',
          hold: 'waiting for approval',
          follow: 'waiting for task',
        },
        ...STOPS,
      },
    },
    'waiting for client': {
      description: 'questions of its calls are open',
      tags: ['waiting'],
      on: {
        ...{ compute: 'computing', call: 'calling', hold: 'waiting for approval', follow: 'waiting for task' },
        ...STOPS,
      },
    },
    'waiting for approval': {
      description: 'other people decide about a call',
      tags: ['waiting', 'alone'],
      on: { compute: 'computing', call: 'calling', ask: 'waiting for client', ...STOPS },
    },
    'waiting for task': {
      description: 'a call is a task',
      tags: ['waiting', 'alone'],
      on: { compute: 'computing', call: 'calling', ask: 'waiting for client', ...STOPS },
    },
    'waiting for clock': {
      description: 'the script sleeps',
      tags: ['waiting', 'alone'],
      on: { compute: 'computing', ...STOPS },
    },
    finishing: {
      description: 'the script has ended, and calls that it does not await have some time',
      on: { return: 'returned', fail: 'failed', ...STOPS },
    },
    returned: { type: 'final' },
    failed: { type: 'final' },
    stopped: { type: 'final' },
    cancelled: { type: 'final' },
  },
});
