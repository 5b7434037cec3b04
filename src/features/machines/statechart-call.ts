/**
 * Runs a statechart for one call, from its initial state or its last checkpoint to a final state. With a store, its effects and
 * questions wait until the checkpoint that led to them is durable, and another process resumes it there.
 */
import type { AnyActorRef, AnyStateMachine } from 'xstate';
import type { Context } from '../../core/execution/context.ts';
import type { Answers, Questions } from '../../core/execution/questions.ts';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import { actorPath } from '../../core/kernel/charts/system-actors.ts';
import { steadyDate, timersOf, type XStateTimers } from '../../core/kernel/clock.ts';
import { liveMachine } from '../../core/kernel/inspection/inspected-machine.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import { type GatedWrites, OutputGate } from '../../core/kernel/output-gate.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { type Checkpoints, checkpointsOf } from '../asking/asking-context.ts';
import type { Invoked } from '../asking/invocations.ts';
import { type DueTimer, readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import type { Effect } from './deferred-effects.ts';
import type { StepProvider } from './durable-steps.ts';
import { HostedMachine } from './hosted-machine.ts';

interface StatechartCallOptions extends ActorSystem {
  readonly limits: Pick<Limits, 'maxDepth' | 'maxHandleLength'>;
  /** Calls may survive the process: the store is durable. */
  readonly durable: boolean;
}

interface StatechartCallDeps extends StatechartCallOptions {
  readonly timers: XStateTimers;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  date(): number;
}

/** A machine that runs for one call, with its address in the inspector. */
interface CallOfMachine {
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly input: unknown;
  readonly ctx: Context;
  readonly address: string;
}

/** Makes a tool's handler from a machine. */
type StatechartRunner = (name: string, machine: AnyStateMachine) => (args: unknown, ctx: Context) => Promise<unknown>;

/**
 * The handler passes the checked arguments to the machine as its input, and returns the machine's output. If the
 * machine fails, the handler throws the machine's error. `ctx.signal` and the deadline of the call stop the machine, so
 * a machine need not end.
 */
export function statechartRunner(options: StatechartCallOptions): StatechartRunner {
  const deps = { ...options, timers: timersOf(options.clock), date: steadyDate(options.clock) };
  let runs = 0;
  return (name, machine) => (input, ctx) =>
    new Promise((resolve, reject) => {
      runs += 1;
      const call = { name, machine, input, ctx, address: `machine/${name}/${runs}` };
      new StatechartCall(call, deps, resolve, reject).begin();
    });
}

/** A checkpoint as text, and the earliest due date of its timers. */
interface Pending {
  readonly text: string;
  readonly due: number | undefined;
}

/** Writes the checkpoint of a run. A run whose checkpoint cannot be made durable fails. */
class CheckpointWrites implements GatedWrites<Pending | undefined> {
  readonly #checkpoints: Checkpoints | undefined;
  next: Pending | undefined;

  constructor(checkpoints: Checkpoints | undefined) {
    this.#checkpoints = checkpoints;
  }

  take(): Pending | undefined {
    return this.next;
  }

  async commit(pending: Pending | undefined): Promise<void> {
    if (pending) await this.#checkpoints?.storage()?.saveCheckpoint(pending.text, pending.due);
  }

  durable(): void {}

  rejected(): 'discard' {
    return 'discard';
  }
}

class StatechartCall {
  readonly #run: CallOfMachine;
  /** Undefined for a call that ends with its process. */
  readonly #checkpoints: Checkpoints | undefined;
  readonly #host: StatechartCallDeps;
  readonly #resolve: (output: unknown) => void;
  readonly #reject: (error: unknown) => void;
  readonly #hosted: HostedMachine;
  /** The timers of the checkpoint; undefined for a new run. */
  readonly #storedTimers: readonly DueTimer[] | undefined;
  /** The timers by key: XState's object and the date at which it is due. */
  #timers = new Map<string, { readonly mark: object; readonly due: number }>();
  /** Each change is checkpointed, because the machine has asked something or its call is a task. */
  #checkpointing: boolean;
  /** Resolves when the checkpoint of its first question is durable. */
  #firstCheckpoint: Promise<void> | undefined;
  #onFirstCheckpoint: (() => void) | undefined;
  readonly #writes: CheckpointWrites;
  /** Holds back effects and input requests until the checkpoint that led to them is durable. */
  readonly #output: OutputGate<Pending | undefined>;
  /** `catching up`: the timers that fell due while no process ran the call fire before anything else. */
  #phase: 'catching up' | 'running' | 'ended' = 'running';
  /** The machine has changed since its last turn. */
  #changed = false;

  constructor(
    run: CallOfMachine,
    host: StatechartCallDeps,
    resolve: (output: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    const { name, machine, input, ctx } = run;
    ctx.signal.throwIfAborted();
    const checkpoints = host.durable ? checkpointsOf(ctx) : undefined;
    this.#run = run;
    this.#checkpoints = checkpoints;
    this.#host = host;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#writes = new CheckpointWrites(checkpoints);
    this.#output = new OutputGate(this.#writes, host);
    const before = checkpoints?.before === undefined ? undefined : readCheckpoint(checkpoints.before, machine, name);
    this.#checkpointing = checkpoints?.lasting ?? false;
    if (checkpoints?.lasting) this.#firstCheckpoint = Promise.resolve();
    this.#hosted = new HostedMachine(machine, before ?? { input }, {
      timers: host.timers,
      asking: checkpoints ? this.#asking : ctx,
      ...(checkpoints ? { steps: (actor: AnyActorRef) => this.#steps(actor, checkpoints) } : { defers: false }),
      log: (message) => ctx.log.debug(message),
      changed: () => this.#markChanged(),
    });
    this.#storedTimers = before?.timers;
  }

  begin(): void {
    const { address, ctx, name, input } = this.#run;
    const { inspection, clock } = this.#host;
    const hosted = this.#hosted;
    ctx.signal.addEventListener('abort', this.#aborted, { once: true });
    const facts = () => ({
      tool: name,
      arguments: input,
      principal: ctx.principal,
      ...(this.#checkpoints ? { kept: this.#checkpointing } : {}),
    });
    const { actor } = hosted;
    inspection.born(address, liveMachine({ actor, address, label: name, inspection, now: () => clock.now(), facts }));
    hosted.start();
    if (!this.#storedTimers) return this.#turn();
    // Overdue timers fire now.
    const now = this.#host.date();
    for (const timer of [...this.#storedTimers].sort((a, b) => a.due - b.due))
      hosted.schedule(timer, Math.max(0, timer.due - now));
    for (const { key, mark, source, id } of hosted.scheduled()) {
      const known = this.#storedTimers.find((timer) => timer.source === source && timer.id === id);
      if (known) this.#timers.set(key, { mark, due: known.due });
    }
    const crash = hosted.takeCrash();
    if (crash) return this.#fail(crash.error);
    // This checkpoint is already durable. Overdue timers come before the effects of this state.
    const effects = hosted.takeEffects();
    if (this.#storedTimers.every(({ due }) => due > now)) return this.#runEffects(effects);
    this.#phase = 'catching up';
    this.#host.clock.after(0, () => {
      if (this.#phase === 'catching up') this.#phase = 'running';
      this.#runEffects(effects);
    });
  }

  readonly #aborted = (): void => {
    const reason: unknown = this.#run.ctx.signal.reason;
    this.#end('the call ended', () => this.#reject(reason));
  };

  /** Handles all changes in one turn of the event loop together. */
  #markChanged(): void {
    if (this.#changed || this.#phase === 'ended') return;
    this.#changed = true;
    queueMicrotask(() => this.#turn());
  }

  #turn(): void {
    if (this.#phase !== 'running' || !this.#output.still) return;
    this.#changed = false;
    const hosted = this.#hosted;
    hosted.takeEvents();
    const { status, error } = hosted.snapshot;
    const crash = hosted.takeCrash() ?? (status === 'error' ? { error } : undefined);
    if (crash) return this.#fail(crash.error);
    const checkpoint = this.#checkpointing ? this.#checkpoint() : undefined;
    const due = Math.min(...[...this.#timers.values()].map((timer) => timer.due));
    const effects = hosted.takeEffects();
    if (checkpoint === undefined || !this.#checkpoints?.storage()) return this.#runEffects(effects);
    this.#writes.next = { text: checkpoint, due: Number.isFinite(due) ? due : undefined };
    this.#output.add(true);
    this.#output.after(
      () => this.#runEffects(effects),
      (_why, error) => this.#fail(error),
    );
  }

  /** Runs the effects once the checkpoint that led to them is durable, if there is one. */
  #runEffects(effects: readonly Effect[]): void {
    if (this.#phase === 'ended') return;
    this.#onFirstCheckpoint?.();
    const failed = this.#hosted.run(effects);
    if (failed) return this.#fail(failed.error);
    // The effects may have changed the machine, or it has changed in the meantime.
    if (this.#changed) return queueMicrotask(() => this.#turn());
    const { status, output } = this.#hosted.snapshot;
    if (status === 'done') this.#end('reached its final state', () => this.#resolve(output));
  }

  #fail(error: unknown): void {
    this.#end('failed', () => this.#reject(error));
  }

  #end(why: string, settle: () => void): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#run.ctx.signal.removeEventListener('abort', this.#aborted);
    this.#hosted.stop();
    this.#onFirstCheckpoint?.();
    this.#host.inspection.gone(this.#run.address, why);
    settle();
  }

  /**
   * Creates a checkpoint.
   *
   * @returns undefined if it cannot be stored; another process then resumes from an earlier checkpoint or starts again
   */
  #checkpoint(): string | undefined {
    const hosted = this.#hosted;
    const { limits, date, log } = this.#host;
    try {
      const now = date();
      const before = this.#timers;
      this.#timers = new Map();
      const timers = hosted.scheduled().map(({ key, mark, delay, source, target, id, event }): DueTimer => {
        const known = before.get(key);
        const due = known?.mark === mark ? known.due : Math.ceil(now + delay);
        this.#timers.set(key, { mark, due });
        return { source, target, id, event, due };
      });
      const { machine, entries } = hosted;
      return writeCheckpoint({ machine, entries, persisted: hosted.persisted() }, timers, limits);
    } catch (error) {
      this.#checkpointing = false;
      this.#firstCheckpoint = Promise.resolve();
      log(
        'warning',
        `tool "${this.#run.name}" cannot save a checkpoint, so a restart runs the call again from its last checkpoint or from the start: ${messageOf(error)}`,
        errorFields('program', error),
      );
      return undefined;
    }
  }

  readonly #asking: Invoked = {
    ask: async <const Q extends Questions>(
      questions: Q,
      { signal, by }: { readonly signal: AbortSignal; readonly by: AnyActorRef },
    ): Promise<Answers<Q>> => {
      // The client may retry from here on, so the question is sent once its checkpoint is durable.
      this.#firstCheckpoint ??= this.#startCheckpointing();
      await this.#firstCheckpoint;
      signal.throwIfAborted();
      const [named] = Object.entries(questions);
      if (!named) throw new TypeError('expected a question, got none');
      const [name, question] = named;
      const key = this.#entryOf(by);
      const answers = await this.#run.ctx.ask({ [key]: question }, { signal });
      // Each question is renamed on the way to the client and back. Its answer has the type of the question.
      return { [name]: answers[key] } as Answers<Q>;
    },
  };

  #startCheckpointing(): Promise<void> {
    this.#checkpointing = true;
    const first = new Promise<void>((resolve) => {
      this.#onFirstCheckpoint = resolve;
    });
    this.#markChanged();
    return first;
  }

  /** Returns a name of the invocation that is the same in every process, and differs each time its state is entered. */
  #entryOf(actor: AnyActorRef): string {
    const path = actorPath(actor);
    const entry = this.#hosted.entries[path] ?? 1;
    return entry > 1 ? `${path}.${entry}` : path;
  }

  #steps(actor: AnyActorRef, checkpoints: Checkpoints): StepProvider {
    const entry = this.#entryOf(actor);
    const { ctx } = this.#run;
    const call = checkpoints.storage()?.key ?? ctx.requestId;
    return {
      key: sha256(`${call} ${entry}`),
      step: (name, fn) => ctx.step(`${entry}/${name}`, fn),
    };
  }
}
