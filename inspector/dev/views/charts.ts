/** Charts for screenshots: our own, that of an example, and some that are hard to draw. Not shipped. */
import { createMachine } from 'xstate';
import { readChart } from '../../../src/core/kernel/charts/chart.ts';
import type { ChartNode } from '../../../src/inspector/frames.ts';

const nasty = createMachine({
  id: 'deployment',
  initial: 'idle',
  on: { abort: '.aborted', 'log.*': {} },
  states: {
    idle: { on: { start: 'preparing', configure: { actions: 'saveConfig' } }, after: { 30000: 'idle' } },
    preparing: {
      initial: 'cloning',
      onDone: 'running',
      on: { cancel: 'idle' },
      invoke: { src: 'workspace', onError: 'failed' },
      states: {
        cloning: { invoke: { src: 'gitClone', onDone: 'installing', onError: '#deployment.failed' } },
        installing: {
          invoke: { src: 'npmCi', onDone: [{ guard: 'hasCache', target: 'ready' }, { target: 'warming' }] },
          on: { retry: 'cloning' },
        },
        warming: { after: { 5000: 'ready' } },
        ready: { type: 'final' },
      },
    },
    running: {
      type: 'parallel',
      onDone: 'succeeded',
      on: { pause: 'paused', fail: { guard: 'isFatal', target: 'failed' } },
      states: {
        build: {
          initial: 'compiling',
          states: {
            compiling: {
              on: { compiled: 'linking', error: { guard: 'canRetry', target: 'compiling', reenter: true } },
            },
            linking: { on: { linked: 'done', broken: 'compiling' } },
            done: { type: 'final' },
          },
        },
        tests: {
          initial: 'queued',
          states: {
            queued: { on: { slot: 'executing' } },
            executing: {
              entry: 'openReport',
              on: { passed: 'green', failed: 'red', flaky: { target: 'queued', guard: 'attemptsLeft' } },
            },
            red: { on: { rerun: 'queued' }, after: { 60000: '#deployment.failed' } },
            green: { type: 'final' },
          },
        },
        watch: {
          initial: 'on',
          states: { on: { on: { mute: 'off' } }, off: { on: { unmute: 'on' } }, last: { type: 'history' } },
        },
      },
    },
    paused: { on: { resume: 'running', 'resume.last': 'running.watch.last' }, after: { 600000: 'aborted' } },
    failed: {
      on: { retry: [{ guard: 'attemptsLeft', target: 'preparing' }, { target: 'aborted' }], inspect: 'failed' },
    },
    succeeded: { type: 'final' },
    aborted: { type: 'final' },
  },
});

const nested = createMachine({
  id: 'connection',
  initial: 'connecting',
  states: {
    connecting: { on: { open: 'ready', fail: 'closed' }, after: { 10000: 'closed' } },
    ready: {
      initial: 'idle',
      on: { close: 'closed', reset: '.idle', error: 'closed' },
      states: {
        idle: { on: { call: 'active' }, after: { 600000: 'hibernating' } },
        active: {
          initial: 'running',
          on: { done: 'idle' },
          states: {
            running: { on: { ask: 'asking' } },
            asking: { on: { answered: 'running', declined: 'running' }, after: { 60000: '#connection.ready.idle' } },
          },
        },
        hibernating: { on: { call: 'active', wake: 'idle' } },
      },
    },
    closed: { type: 'final' },
  },
});

/** Five regions of twelve states, with lines from each to the next. */
const regions = createMachine({
  id: 'regions',
  type: 'parallel',
  states: Object.fromEntries(
    Array.from({ length: 5 }, (_, region) => [
      `region${region}`,
      {
        initial: `s${region}_0`,
        states: Object.fromEntries(
          Array.from({ length: 12 }, (_, state) => [
            `s${region}_${state}`,
            {
              on: {
                [`next${region}`]: `s${region}_${(state + 1) % 12}`,
                ...(state % 3 === 1 && { [`skip${region}`]: `s${region}_${(state + 4) % 12}` }),
                ...(state % 5 === 2 && {
                  [`jump${region}`]: `#regions.region${(region + 1) % 5}.s${(region + 1) % 5}_4`,
                }),
              },
              ...(state % 6 === 0 && {
                initial: 'in',
                states: { in: { on: { deep: 'out' } }, out: { on: { back: 'in' } } },
              }),
            },
          ]),
        ),
      },
    ]),
  ),
});

export async function all(): Promise<{ readonly [name: string]: ChartNode }> {
  const { inputRequestMachine } = await import('../../../machines/input-request.ts');
  const { handleMachine } = await import('../../../machines/handle.ts');
  const { interactiveRequestMachine } = await import('../../../machines/interactive-request.ts');
  const { supervisorMachine } = await import('../../../machines/supervisor.ts');
  const { taskMachine } = await import('../../../machines/task.ts');
  const { orderMachine } = await import('../../../examples/order/order.ts');
  return {
    nasty: readChart(nasty),
    nested: readChart(nested),
    regions: readChart(regions),
    ask: readChart(inputRequestMachine.machine),
    handle: readChart(handleMachine.machine),
    request: readChart(interactiveRequestMachine.machine),
    supervisor: readChart(supervisorMachine),
    task: readChart(taskMachine.machine),
    order: readChart(orderMachine),
  };
}
