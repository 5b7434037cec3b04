/** What a task is made with, and how it is kept: clients see of it what is durable. */

import type { ActorSystem } from '../actor/actor.ts';
import { SnapshotWriter } from '../actor/snapshot-writer.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { Outcome } from '../messages/results.ts';
import type { TaskSnapshot, TaskState } from '../messages/task-messages.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { messageOf } from '../protocol/json.ts';
import { respond } from '../requests/respond.ts';

export interface TaskOptions extends ActorSystem {
  readonly id: string;
  /** The name of the tool that is called. */
  readonly tool: string;
  readonly ttlMs: number;
  readonly pollMs: number;
  /** It looks otherwise than before. */
  changed(task: TaskState): void;
  /** What it was, when it was kept; undefined for one that begins. */
  readonly was?: TaskSnapshot | undefined;
  /** Resolves when this is durable; absent where nothing is. Clients see no more of it than that. */
  keep?(snapshot: TaskSnapshot): Promise<void>;
  /** Its handler is gone, and somebody has answered: it is to be run anew. */
  revive(): void;
  /** Its handler has ended, be it long after the task. */
  handlerEnded(): void;
  /** Counts so many bytes more, which its client makes it hold. @returns why there is no room for them */
  room(bytes: number): string | undefined;
  /** Counts a result in place of the call. @returns what is kept: it, or why there is no room for it */
  result(outcome: Outcome): Outcome;
  incident(where: string, error: unknown): string;
}

interface Kept {
  readonly snapshot: TaskSnapshot;
  readonly look: TaskState;
}

export class TaskPersistence {
  readonly #options: TaskOptions;
  readonly #saving: SnapshotWriter<Kept> | undefined;
  /** As it was when it was last durable. */
  #durable: TaskState | undefined;

  constructor(options: TaskOptions) {
    this.#options = options;
    const { clock, id, incident, changed, keep } = options;
    if (!keep) return;
    this.#saving = new SnapshotWriter<Kept>({
      clock,
      save: ({ snapshot }) => keep(snapshot),
      saved: ({ look }) => {
        this.#durable = look;
        changed(look);
      },
      failed: (error) => void incident(`persisting ${taskAddress(id)}`, error),
    });
  }

  /** It is durable as it begins. */
  begins(look: TaskState): void {
    if (this.#saving) this.#durable = look;
  }

  /** As clients may see it; undefined where nothing is kept. */
  get durable(): TaskState | undefined {
    return this.#durable;
  }

  changed(look: TaskState, rest: () => Pick<TaskSnapshot, 'questions' | 'replies'>): void {
    if (!this.#saving) return this.#options.changed(look);
    const { status, message, createdAt, updatedAt, outcome } = look;
    this.#saving.changed({ snapshot: { status, message, createdAt, updatedAt, outcome, ...rest() }, look });
  }

  /** Answers what says that something has happened, once that is durable. */
  settle(request: ActiveRequest, outcome: () => Outcome): void {
    if (!this.#saving) return respond(request, outcome());
    this.#saving.after((error) => respond(request, error === undefined ? outcome() : unkept(error)));
  }

  end(why: Error): void {
    this.#saving?.end(why);
  }
}

/** The whole id is the key to the task. */
export function taskAddress(id: string): string {
  return `task/${id.slice(0, 8)}`;
}

function unkept(error: unknown): Outcome {
  const message = `this server could not persist the change: ${messageOf(error)}. Try again`;
  return { ok: false, error: { code: ErrorCode.InternalError, message } };
}
