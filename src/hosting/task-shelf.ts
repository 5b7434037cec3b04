/** The tasks that a server has, by id and by owner, and how many more it has room for. */
import type { Timer } from '../clock.ts';
import type { Client } from '../messages/client.ts';
import type { InFlight } from '../messages/in-flight.ts';
import type { TaskStatus } from '../protocol/tasks.ts';
import { ANONYMOUS, type Excess, type Reservation } from '../quota.ts';
import type { Quotas } from './quotas.ts';
import type { TaskRecord } from './task-records.ts';
import type { Left } from './task-revival.ts';

/** What a task takes of the server's quotas: until it is forgotten, and as long as its handler runs. */
export interface Place {
  readonly task: Reservation;
  readonly bytes: Reservation;
}

export interface Kept extends Left {
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

export class TaskShelf {
  readonly #quotas: Pick<Quotas, 'tasks' | 'retained'>;
  readonly #kept = new Map<string, Kept>();
  /** The same by owner, the oldest first. */
  readonly #of = new Map<string, Map<string, Kept>>();
  /** The greatest ordinal that was given. */
  newest = 0;

  constructor(quotas: Pick<Quotas, 'tasks' | 'retained'>) {
    this.#quotas = quotas;
  }

  all(): readonly Kept[] {
    return [...this.#kept.values()];
  }

  get(id: string): Kept | undefined {
    return this.#kept.get(id);
  }

  of(owner: string): Iterable<Kept> {
    return this.#of.get(owner)?.values() ?? [];
  }

  add(kept: Kept): void {
    const { id, owner, ordinal } = kept.record;
    this.#kept.set(id, kept);
    const own = this.#of.get(owner) ?? new Map<string, Kept>();
    this.#of.set(owner, own.set(id, kept));
    this.newest = Math.max(this.newest, ordinal);
  }

  remove({ record: { id, owner } }: Kept): void {
    this.#kept.delete(id);
    const own = this.#of.get(owner);
    own?.delete(id);
    if (own?.size === 0) this.#of.delete(owner);
  }

  /** Why this request cannot become another task. What its message takes, its task takes over. */
  full({ client: { principal, session }, bytes, held }: InFlight): Excess | undefined {
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
