/** The tasks of a server by id and by owner, and their quotas. */

import type { Excess } from '../../core/kernel/quota.ts';
import type { Quotas } from '../../core/kernel/server-quotas.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { TaskState } from '../../core/messages/results.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { TaskEntry, TaskReservation } from './task-entry.ts';
import type { TaskRecord } from './task-records.ts';

/** Bytes of a running task, without its call and its client's replies. Measured with Node 20. */
const TASK_BYTES = 24_000;

export class TaskTable {
  readonly #quotas: Pick<Quotas, 'tasks' | 'retained'>;
  readonly #byId = new Map<string, TaskEntry>();
  /** The tasks by owner, oldest first. */
  readonly #of = new Map<string, Map<string, TaskEntry>>();
  /** The greatest ordinal so far. */
  newest = 0;

  constructor(quotas: Pick<Quotas, 'tasks' | 'retained'>) {
    this.#quotas = quotas;
  }

  all(): readonly TaskEntry[] {
    return [...this.#byId.values()];
  }

  get(id: string): TaskEntry | undefined {
    return this.#byId.get(id);
  }

  of(owner: string): Iterable<TaskEntry> {
    return this.#of.get(owner)?.values() ?? [];
  }

  /** Returns the task of a client with this id; undefined for an unknown task and for one of another owner. */
  own(client: ClientFacts, id: string): TaskEntry | undefined {
    const entry = this.#byId.get(id);
    if (!entry || entry.record.owner !== ownerOf(client)) return undefined;
    // The task may have been restored in the meantime.
    if (client.session?.id === entry.record.session) entry.session = client.session;
    return entry;
  }

  /** Returns a task as its client sees it; undefined for an unknown task and for one of another owner. */
  look(client: ClientFacts, id: string): TaskState | undefined {
    return this.own(client, id)?.task.look();
  }

  /** The scopes that the call of a task needed; undefined if this client has no such task. */
  neededFor(client: ClientFacts, id: string): readonly string[] | undefined {
    return this.own(client, id)?.record.needed;
  }

  add(entry: TaskEntry): void {
    const { id, owner, ordinal } = entry.record;
    this.#byId.set(id, entry);
    const own = this.#of.get(owner) ?? new Map<string, TaskEntry>();
    this.#of.set(owner, own.set(id, entry));
    this.newest = Math.max(this.newest, ordinal);
  }

  remove({ record: { id, owner } }: TaskEntry): void {
    this.#byId.delete(id);
    const own = this.#of.get(owner);
    own?.delete(id);
    if (own?.size === 0) this.#of.delete(owner);
  }

  /** Returns the exceeded limit if this request cannot become another task. The task takes over the bytes of the message. */
  full({ client: { principal, session }, bytes, held }: RequestView): Excess | undefined {
    const { tasks, retained } = this.#quotas;
    return tasks.excess(principal) ?? retained.excess(principal, TASK_BYTES + (held ? 0 : bytes), session?.id);
  }

  /** Counts a task that exists or is about to be created. */
  take({ owner, session }: Pick<TaskRecord, 'owner' | 'session'>, bytes: number): TaskReservation {
    const { tasks, retained } = this.#quotas;
    const principal = owner.startsWith(OF_PRINCIPAL) ? owner.slice(OF_PRINCIPAL.length) : ANONYMOUS;
    return { task: tasks.take(principal), bytes: retained.take(principal, TASK_BYTES + bytes, session) };
  }
}

/** The beginning of the owner of the tasks of a principal. */
export const OF_PRINCIPAL = 'principal ';

/**
 * Returns the owner of a task: its principal; if that is anonymous, its session; without a session, anyone with the id
 * (2025-11-25 tasks, "Task Isolation and Access Control").
 */
export function ownerOf({ principal, session }: ClientFacts): string {
  return session && principal === ANONYMOUS ? `session ${session.id}` : OF_PRINCIPAL + principal;
}
