/** The persistence of a task: clients see only its durable state. */

import { type GatedWrites, OutputGate } from '../../core/kernel/output-gate.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome, TaskState } from '../../core/messages/results.ts';
import { ErrorCode } from '../../core/protocol/errors.ts';
import { respond } from '../../core/requests/active-request.ts';
import type { TaskEntry } from './task-entry.ts';
import type { TaskSnapshot } from './task-snapshot.ts';

interface PersistedTask {
  readonly snapshot: TaskSnapshot;
  readonly look: TaskState;
}

/** Writes the newest state of a task. */
class TaskWrites implements GatedWrites<PersistedTask> {
  readonly #entry: TaskEntry;
  /** The newest state that is not part of a commit. */
  next: PersistedTask | undefined;
  /** The last durable state. */
  last: TaskState | undefined;

  constructor(entry: TaskEntry) {
    this.#entry = entry;
  }

  take(): PersistedTask {
    const { next } = this;
    if (!next) throw new Error('expected a state to persist');
    this.next = undefined;
    return next;
  }

  commit({ snapshot }: PersistedTask): Promise<void> {
    return this.#entry.save(snapshot);
  }

  durable({ look }: PersistedTask): void {
    this.last = look;
    this.#entry.changed(look);
  }

  rejected(batch: PersistedTask, error: unknown): 'retry' {
    this.next ??= batch;
    this.failed(error);
    return 'retry';
  }

  failed(error: unknown): void {
    const { record, system } = this.#entry;
    system.incident(`persisting ${taskAddress(record.id)}`, error);
  }
}

export class TaskPersistence {
  readonly #entry: TaskEntry;
  /** Undefined without a durable store. */
  readonly #writes: TaskWrites | undefined;
  readonly #output: OutputGate<PersistedTask> | undefined;

  constructor(entry: TaskEntry) {
    this.#entry = entry;
    if (!entry.durable) return;
    this.#writes = new TaskWrites(entry);
    this.#output = new OutputGate(this.#writes, entry.system);
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
    if (!this.#writes || !this.#output) return this.#entry.changed(look);
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

  /** Rejects the acknowledgements that wait, and writes nothing more. */
  discard(why: Error): void {
    this.#output?.close(why.message, why);
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
  return `task/${id.slice(0, 10)}`;
}

function unkept(why: string): Outcome {
  const message = `this server could not persist the change: ${why}. Try again`;
  return { ok: false, error: { code: ErrorCode.InternalError, message } };
}
