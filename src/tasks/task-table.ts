/** The tasks that a server has, by id and by owner, and how many more it has room for. */
import type { Timer } from '../clock.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { Client } from '../messages/client-facts.ts';
import type { TaskStatus } from '../protocol/task-params.ts';
import { ANONYMOUS, type Excess, type Reservation } from '../quota.ts';
import type { Quotas } from '../server-quotas.ts';
import type { TaskRecord } from './task-records.ts';
import type { Interrupted } from './task-recovery.ts';

/** What a task takes of the server's quotas: until it is forgotten, and as long as its handler runs. */
export interface Place {
  readonly task: Reservation;
  readonly bytes: Reservation;
}

export interface TaskEntry extends Interrupted {
  readonly timer: Timer;
  readonly place: Place;
  forgotten: boolean;
  /** Where it was created, as far as that is there: it is told of changes. */
  session: Client['session'];
  /** What that was told last. */
  told: TaskStatus;
}

/** Bytes that a task takes while it runs, beside its call and what its client has replied; and once it has ended, beside its result. Measured with Node 20. */
const TASK_BYTES = 24_000;
export const ENDED_TASK_BYTES = 14_000;

export class TaskTable {
  readonly #quotas: Pick<Quotas, 'tasks' | 'retained'>;
  readonly #kept = new Map<string, TaskEntry>();
  /** The same by owner, the oldest first. */
  readonly #of = new Map<string, Map<string, TaskEntry>>();
  /** The greatest ordinal that was given. */
  newest = 0;

  constructor(quotas: Pick<Quotas, 'tasks' | 'retained'>) {
    this.#quotas = quotas;
  }

  all(): readonly TaskEntry[] {
    return [...this.#kept.values()];
  }

  get(id: string): TaskEntry | undefined {
    return this.#kept.get(id);
  }

  of(owner: string): Iterable<TaskEntry> {
    return this.#of.get(owner)?.values() ?? [];
  }

  add(kept: TaskEntry): void {
    const { id, owner, ordinal } = kept.record;
    this.#kept.set(id, kept);
    const own = this.#of.get(owner) ?? new Map<string, TaskEntry>();
    this.#of.set(owner, own.set(id, kept));
    this.newest = Math.max(this.newest, ordinal);
  }

  remove({ record: { id, owner } }: TaskEntry): void {
    this.#kept.delete(id);
    const own = this.#of.get(owner);
    own?.delete(id);
    if (own?.size === 0) this.#of.delete(owner);
  }

  /** Why this request cannot become another task. What its message takes, its task takes over. */
  full({ client: { principal, session }, bytes, held }: ActiveRequest): Excess | undefined {
    const { tasks, retained } = this.#quotas;
    return tasks.excess(principal) ?? retained.excess(principal, TASK_BYTES + (held ? 0 : bytes), session?.id);
  }

  /** Counts a task that is there, or is about to be. */
  take({ owner, session }: Pick<TaskRecord, 'owner' | 'session'>, bytes: number): Place {
    const { tasks, retained } = this.#quotas;
    const principal = owner.startsWith(OF_PRINCIPAL) ? owner.slice(OF_PRINCIPAL.length) : ANONYMOUS;
    return { task: tasks.take(principal), bytes: retained.take(principal, TASK_BYTES + bytes, session) };
  }
}

export function release({ task, bytes }: Place): void {
  task.release();
  bytes.release();
}

const OF_PRINCIPAL = 'principal ';

/** Who a task belongs to: its principal; where nobody is known the session, and without one whoever has the id (2025-11-25 tasks, "Task Isolation and Access Control"). */
export function ownerOf({ principal, session }: Client): string {
  return session && principal === ANONYMOUS ? `session ${session.id}` : OF_PRINCIPAL + principal;
}
