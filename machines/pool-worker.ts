/** The lifecycle of one thread of the pool: its call, whether that call was aborted, and how the thread ends. Pure. */
import { Chart } from './chart/chart.ts';

export type PoolWorkerEvent =
  /** A call is sent to the thread. */
  | { type: 'run' }
  /** The module is loaded, and the handler runs. */
  | { type: 'began' }
  /** The handler has returned or thrown. */
  | { type: 'done' }
  /** The caller needs the result no more. */
  | { type: 'abort' }
  /** The module was registered again: the thread finishes its call and takes no other. */
  | { type: 'retire' }
  /** The thread is terminated. */
  | { type: 'end' }
  /** The thread has exited. */
  | { type: 'exit' };

/** *free*: the thread can take a call. *aborted*: its call was aborted and has not ended. *handling*: the handler of its call runs. *ending*: it is being terminated. */
type PoolWorkerTag = 'free' | 'aborted' | 'handling' | 'ending';

export const poolWorkerMachine = new Chart<PoolWorkerEvent, PoolWorkerTag>({
  id: 'pool-worker',
  initial: 'offered',
  states: {
    offered: {
      initial: 'free',
      on: { end: 'ending', exit: { target: 'exited', description: 'it crashed' } },
      states: {
        free: { tags: ['free'], on: { run: 'loading', retire: '#ending' } },
        loading: { on: { began: 'running', done: 'free', abort: 'aborted', retire: '#retired.loading' } },
        running: { tags: ['handling'], on: { done: 'free', abort: 'aborting', retire: '#retired.running' } },
        aborted: {
          description: 'its module is still being loaded',
          tags: ['aborted'],
          on: { began: 'aborting', done: 'free', retire: '#retired.aborted' },
        },
        aborting: {
          description: 'its handler may still react to the abort',
          tags: ['aborted', 'handling'],
          on: { done: 'free', retire: '#retired.aborting' },
        },
      },
    },
    retired: {
      id: 'retired',
      initial: 'running',
      on: { end: 'ending', exit: 'exited', done: { target: 'ending', description: 'it takes no other call' } },
      states: {
        loading: { on: { began: 'running', abort: 'aborted' } },
        running: { tags: ['handling'], on: { abort: 'aborting' } },
        aborted: { tags: ['aborted'], on: { began: 'aborting' } },
        aborting: { tags: ['aborted', 'handling'] },
      },
    },
    ending: { id: 'ending', tags: ['ending'], on: { exit: 'exited' } },
    exited: { type: 'final' },
  },
});
