/** Runs an author's statechart for one call, from its initial state to its final one: a statechart as a tool. */
import { type AnyStateMachine, createActor } from 'xstate';
import { lendAsking } from '../asking/invocations.ts';
import { pathOf } from '../charts/paths.ts';
import { type Clock, timersOf } from '../clock.ts';
import type { Context } from '../execution/context.ts';
import type { Inspection } from '../inspect.ts';

export interface MachineHost {
  readonly clock: Clock;
  readonly inspection: Inspection;
}

/** Makes the handler of a tool from its machine. */
export type MachineRunner = (name: string, machine: AnyStateMachine) => (args: unknown, ctx: Context) => unknown;

/**
 * The handler gives the machine the checked arguments as its input, and returns its output. It fails with whatever the machine
 * fails with. `ctx.signal` stops the machine, and so does the deadline of the call: a machine need not end by itself.
 */
export function machineRunner(host: MachineHost): MachineRunner {
  const timers = timersOf(host.clock);
  let runs = 0;
  return (name, machine) => (args, ctx) => {
    runs += 1;
    return run(machine, args, ctx, timers, host.inspection, `machine/${name}/${runs}`);
  };
}

function run(
  machine: AnyStateMachine,
  input: unknown,
  ctx: Context,
  clock: ReturnType<typeof timersOf>,
  inspection: Inspection,
  address: string,
): Promise<unknown> {
  const { signal } = ctx;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const actor = createActor(machine, {
      input,
      clock,
      // XState's own writes to stdout, which may belong to the protocol.
      logger: (...said: unknown[]) => ctx.log.debug(said.length === 1 ? said[0] : said),
    });
    lendAsking(actor, ctx);
    const state = (): string => pathOf(actor.getSnapshot());
    let last = state();
    const stop = (): void => void actor.stop();
    const ended = (why: string): void => {
      signal.removeEventListener('abort', stop);
      inspection.gone(address, why);
    };
    actor.subscribe({
      next() {
        const now = state();
        if (now === last) return;
        last = now;
        if (inspection.on) inspection.record({ type: 'state', actor: address, state: now });
      },
      complete() {
        const { status, output } = actor.getSnapshot();
        ended(status === 'done' ? 'it came to its final state' : 'its call ended');
        if (status === 'done') resolve(output);
        else reject(signal.reason);
      },
      // Without it, an actor that nothing invoked ends the process with its error.
      error(error) {
        ended('it failed');
        reject(error);
      },
    });
    signal.addEventListener('abort', stop, { once: true });
    inspection.born(address, { kind: 'machine', state });
    actor.start();
  });
}
