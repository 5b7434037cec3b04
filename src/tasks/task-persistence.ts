/** The options of a task and its persistence: clients see only its durable state. */

import type { ActorSystem } from '../actor/actor.ts';
import { SnapshotWriter } from '../actor/snapshot-writer.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { Outcome } from '../messages/results.ts';
import type { TaskSnapshot, TaskState } from '../messages/task-messages.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { messageOf } from '../protocol/json.ts';
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

interface Kept {
  readonly snapshot: TaskSnapshot;
  readonly look: TaskState;
}

export class TaskPersistence {
  readonly #options: TaskOptions;
  readonly #saving: SnapshotWriter<Kept> | undefined;
  /** The last durable state. */
  #durable: TaskState | undefined;

  constructor(options: TaskOptions) {
    this.#options = options;
    const { system, id, changed, keep } = options;
    if (!keep) return;
    this.#saving = new SnapshotWriter<Kept>({
      clock: system.clock,
      save: ({ snapshot }) => keep(snapshot),
      saved: ({ look }) => {
        this.#durable = look;
        changed(look);
      },
      failed: (error) => void system.incident(`persisting ${taskAddress(id)}`, error),
    });
  }

  /** Sets the durable state of a new task. */
  begins(look: TaskState): void {
    if (this.#saving) this.#durable = look;
  }

  /** The state that clients may see; undefined if nothing is persisted. */
  get durable(): TaskState | undefined {
    return this.#durable;
  }

  changed(look: TaskState, rest: () => Pick<TaskSnapshot, 'questions' | 'replies'>): void {
    if (!this.#saving) return this.#options.changed(look);
    const { status, message, createdAt, updatedAt, outcome } = look;
    this.#saving.changed({ snapshot: { status, message, createdAt, updatedAt, outcome, ...rest() }, look });
  }

  /** Sends an acknowledgement once the change is durable. */
  settle(request: RequestView, outcome: () => Outcome): void {
    if (!this.#saving) return respond(request, outcome());
    this.#saving.after((error) => respond(request, error === undefined ? outcome() : unkept(error)));
  }

  end(why: Error): void {
    this.#saving?.end(why);
  }
}

/** Returns the address of a task. It is shortened because the full id gives access to the task. */
export function taskAddress(id: string): string {
  return `task/${id.slice(0, 8)}`;
}

function unkept(error: unknown): Outcome {
  const message = `this server could not persist the change: ${messageOf(error)}. Try again`;
  return { ok: false, error: { code: ErrorCode.InternalError, message } };
}
