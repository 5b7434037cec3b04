/** The options of a task and its persistence: clients see only its durable state. */

import type { ActorSystem } from '../actor/actor.ts';
import { type GatedWrites, OutputGate } from '../actor/output-gate.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { Outcome, TaskState } from '../messages/results.ts';
import type { TaskSnapshot } from '../messages/task-snapshot.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { respond } from '../requests/respond.ts';

export interface TaskOptions {
  readonly system: ActorSystem;
  readonly id: string;
  /** The name of the called tool. */
  readonly tool: string;
  readonly ttlMs: number;
  readonly pollMs: number;
  /** Reports a change of the visible state. */
  changed(task: TaskState): void;
  /** The stored state; undefined for a new task. */
  readonly was?: TaskSnapshot | undefined;
  /** Resolves when the snapshot is durable; undefined without a durable store. Clients do not see newer states. */
  keep?(snapshot: TaskSnapshot): Promise<void>;
  /** Runs the call again: its handler ended with an earlier process, and an answer has arrived. */
  revive(): void;
  /** Reports that its handler has ended, possibly long after the task. */
  handlerEnded(): void;
  /**
   * Counts additional bytes that its client makes it hold.
   *
   * @returns the exceeded limit if there is no room
   */
  room(bytes: number): string | undefined;
  /**
   * Counts the result in place of the call.
   *
   * @returns the outcome to store: the result, or an error if there is no room for it
   */
  result(outcome: Outcome): Outcome;
}

interface PersistedTask {
  readonly snapshot: TaskSnapshot;
  readonly look: TaskState;
}

/** Writes the newest state of a task. */
class TaskWrites implements GatedWrites<PersistedTask> {
  readonly #options: TaskOptions;
  readonly #keep: (snapshot: TaskSnapshot) => Promise<void>;
  /** The newest state that is not part of a commit. */
  next: PersistedTask | undefined;
  /** The last durable state. */
  last: TaskState | undefined;

  constructor(options: TaskOptions, keep: (snapshot: TaskSnapshot) => Promise<void>) {
    this.#options = options;
    this.#keep = keep;
  }

  take(): PersistedTask {
    const { next } = this;
    if (!next) throw new Error('expected a state to persist');
    this.next = undefined;
    return next;
  }

  commit({ snapshot }: PersistedTask): Promise<void> {
    return this.#keep(snapshot);
  }

  durable({ look }: PersistedTask): void {
    this.last = look;
    this.#options.changed(look);
  }

  rejected(batch: PersistedTask, error: unknown): 'retry' {
    this.next ??= batch;
    this.failed(error);
    return 'retry';
  }

  failed(error: unknown): void {
    const { id, system } = this.#options;
    system.incident(`persisting ${taskAddress(id)}`, error);
  }
}

export class TaskPersistence {
  readonly #options: TaskOptions;
  /** Undefined without a durable store. */
  readonly #writes: TaskWrites | undefined;
  readonly #output: OutputGate<PersistedTask> | undefined;

  constructor(options: TaskOptions) {
    this.#options = options;
    if (!options.keep) return;
    this.#writes = new TaskWrites(options, options.keep);
    this.#output = new OutputGate(this.#writes, options.system);
  }

  /** Sets the durable state of a new task. */
  begins(look: TaskState): void {
    if (this.#writes) this.#writes.last = look;
  }

  /** The state that clients may see; undefined if nothing is persisted. */
  get durable(): TaskState | undefined {
    return this.#writes?.last;
  }

  changed(look: TaskState, rest: () => Pick<TaskSnapshot, 'questions' | 'replies'>): void {
    if (!this.#writes || !this.#output) return this.#options.changed(look);
    if (this.#output.closed) return;
    const { status, message, createdAt, updatedAt, outcome } = look;
    this.#writes.next = { snapshot: { status, message, createdAt, updatedAt, outcome, ...rest() }, look };
    this.#output.add(true);
  }

  /** Sends an acknowledgement once the change is durable. */
  settle(request: RequestView, outcome: () => Outcome): void {
    if (!this.#output) return respond(request, outcome());
    this.#output.after(
      () => respond(request, outcome()),
      (why) => respond(request, unkept(why)),
    );
  }

  /** Rejects the acknowledgements that wait. The newest state is still committed, once. */
  end(why: Error): void {
    if (!this.#writes || !this.#output || this.#output.closed) return;
    this.#output.close(why.message, why);
    const { next } = this.#writes;
    if (next) this.#writes.commit(next).catch((error: unknown) => this.#writes?.failed(error));
  }
}

/** Returns the address of a task. It is shortened because the full id gives access to the task. */
export function taskAddress(id: string): string {
  return `task/${id.slice(0, 8)}`;
}

function unkept(why: string): Outcome {
  const message = `this server could not persist the change: ${why}. Try again`;
  return { ok: false, error: { code: ErrorCode.InternalError, message } };
}
