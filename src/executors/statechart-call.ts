/** Runs an author's statechart for one call, from its initial state to a final one. */
import { type AnyStateMachine, createActor } from 'xstate';
import type { ActorSystem } from '../actor/actor-system.ts';
import { timersOf, type XStateTimers } from '../clock.ts';
import type { Context } from '../input/context.ts';
import { provideInput } from '../input/invocations.ts';
import { liveMachine } from '../inspection/inspected-machine.ts';

export interface StatechartDeps {
  readonly system: ActorSystem;
  /** Runs a machine whose call survives this process. Undefined if the call does not. */
  outliving?(run: StatechartCall): Promise<unknown> | undefined;
}

/** A machine that runs for one call, with its address in the inspector. */
export interface StatechartCall {
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly input: unknown;
  readonly ctx: Context;
  readonly address: string;
}

/** Makes a tool's handler from a machine. */
export type StatechartRunner = (name: string, machine: AnyStateMachine) => (args: unknown, ctx: Context) => unknown;

/**
 * The handler passes the checked arguments to the machine as its input, and returns the machine's output. If the
 * machine fails, the handler throws the machine's error. `ctx.signal` and the deadline of the call stop the machine, so
 * a machine need not end.
 */
export function statechartRunner(host: StatechartDeps): StatechartRunner {
  const timers = timersOf(host.system.clock);
  let runs = 0;
  return (name, machine) => (args, ctx) => {
    runs += 1;
    const address = `machine/${name}/${runs}`;
    const outliving = host.outliving?.({ name, machine, input: args, ctx, address });
    return outliving ?? run({ name, machine, input: args, ctx, address }, host, timers);
  };
}

function run(
  { name, machine, input, ctx, address }: StatechartCall,
  { system: { inspection, clock } }: StatechartDeps,
  timers: XStateTimers,
): Promise<unknown> {
  const { signal } = ctx;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const actor = createActor(machine, {
      input,
      clock: timers,
      // XState's default logger writes to stdout, which may belong to the protocol.
      logger: (...said: unknown[]) => ctx.log.debug(said.length === 1 ? said[0] : said),
    });
    provideInput(actor, ctx);
    const stop = (): void => void actor.stop();
    const ended = (why: string): void => {
      signal.removeEventListener('abort', stop);
      inspection.gone(address, why);
    };
    actor.subscribe({
      complete() {
        const { status, output } = actor.getSnapshot();
        ended(status === 'done' ? 'reached its final state' : 'the call ended');
        if (status === 'done') resolve(output);
        else reject(signal.reason);
      },
      // Without an error listener, XState throws the error globally, which ends the process.
      error(error) {
        ended('failed');
        reject(error);
      },
    });
    signal.addEventListener('abort', stop, { once: true });
    const facts = () => ({ tool: name, arguments: input, principal: ctx.principal });
    inspection.born(address, liveMachine({ actor, address, label: name, inspection, now: () => clock.now(), facts }));
    actor.start();
  });
}
