/** The tasks that a server has, by id and by owner, and how many more it has room for. */
import type { Timer } from '../clock.ts';
import type { Client } from '../messages/client.ts';
import type { Limits } from '../options.ts';
import type { TaskStatus } from '../protocol/tasks.ts';
import { ANONYMOUS } from '../quota.ts';
import type { Left } from './task-revival.ts';

export interface Kept extends Left {
  readonly timer: Timer;
  forgotten: boolean;
  /** Where it was created, as far as that is there: it is told of changes. */
  session: Client['session'];
  /** What that was told last. */
  told: TaskStatus;
}

export class TaskShelf {
  readonly #limits: Limits;
  readonly #kept = new Map<string, Kept>();
  /** The same by owner, the oldest first. */
  readonly #of = new Map<string, Map<string, Kept>>();
  /** Those that are not durable yet, by owner. */
  readonly #coming = new Map<string, number>();
  #allComing = 0;
  /** Handlers that run on although their tasks are forgotten: they keep their places. */
  orphans = 0;
  /** The greatest ordinal that was given. */
  newest = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
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

  /** One more takes its place; or does so no longer. */
  reserve(owner: string, places: 1 | -1): void {
    this.#allComing += places;
    const coming = (this.#coming.get(owner) ?? 0) + places;
    if (coming > 0) this.#coming.set(owner, coming);
    else this.#coming.delete(owner);
  }

  /** Why there is no room for another task. */
  full(client: Client): string | undefined {
    const { maxTasks, maxTasksPerPrincipal } = this.#limits;
    if (this.#kept.size + this.#allComing + this.orphans >= maxTasks)
      return `this server keeps ${maxTasks} tasks, which is its limit: try again later (the server's option is limits.maxTasks)`;
    const owner = ownerOf(client);
    const own = (this.#of.get(owner)?.size ?? 0) + (this.#coming.get(owner) ?? 0);
    if (client.principal !== ANONYMOUS && own >= maxTasksPerPrincipal)
      return `this principal has ${own} tasks, which is its limit: try again when some are forgotten (the server's option is limits.maxTasksPerPrincipal)`;
    return undefined;
  }
}

/** Who a task belongs to: its principal; where nobody is known the session, and without one whoever has the id (2025-11-25 tasks, "Task Isolation and Access Control"). */
export function ownerOf({ principal, session }: Client): string {
  return session && principal === ANONYMOUS ? `session ${session.id}` : `principal ${principal}`;
}
