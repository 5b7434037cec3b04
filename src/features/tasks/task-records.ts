/** The tasks in a durable store: each has a row, a snapshot that changes, and its call, which does not change. */

import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import { isoOf } from '../../core/kernel/clock.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { ErrorCode } from '../../core/protocol/errors.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow, Store, Write } from '../../core/store/store.ts';
import { StoreError } from '../../core/store/store.ts';
import type { RequestLog } from '../asking/request-log.ts';
import { callOf, isCall, type StoredCall } from '../asking/request-log.ts';
import type { TaskSnapshot } from './task-snapshot.ts';

/** The stored data of a task besides the state of its actor. */
export interface TaskRecord {
  readonly id: string;
  readonly tool: string;
  readonly owner: string;
  /** The session that created it. */
  readonly session: string | undefined;
  /** The id of its interactive request, under which its steps are stored. */
  readonly identity: string;
  /** Number of rounds in which it asked its client before it became a task. */
  readonly round: number;
  /** Its position in lists. */
  readonly ordinal: number;
  readonly ttlMs: number;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** The span of the request that created it, as a `traceparent`. */
  readonly trace?: string | undefined;
  /** The scopes that its call needed, and that each look at it needs. */
  readonly needed: readonly string[];
}

interface TaskRecordsOptions {
  readonly system: ActorSystem;
  readonly store: Store;
  readonly requestLog: RequestLog;
  readonly limits: Pick<Limits, 'maxTasks'>;
}

const VERSION = '1';
const CALL = 'call';

/** A task that was read. */
export interface StoredTask {
  readonly record: TaskRecord;
  readonly task: TaskSnapshot;
}

/** Tasks that are read at a time: a store in a database answers them together. */
const READS = 64;

export class TaskRecords {
  readonly #options: TaskRecordsOptions;
  /** Tasks that exist but could not be read. */
  readonly #unread = new Set<string>();

  constructor(options: TaskRecordsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the task is durable.
   *
   * @throws {Error} if it cannot be persisted; in that case there is no task
   */
  create(
    record: TaskRecord,
    task: TaskSnapshot,
    { request, replies }: { readonly request: RequestView; readonly replies: StoredCall['replies'] },
    more: readonly Write[],
  ): Promise<void> {
    const actor = actorOfTask(record.id);
    const expires = expiryOf(record);
    const data = toText({ ...callOf(request), replies });
    const call: Write = { type: 'reply', actor, request: CALL, data, expires };
    return this.#options.store.commit([...this.#writes(record, task), call, ...more]);
  }

  /** Resolves when the current state is durable. The records of its call are deleted when it ends. */
  save(record: TaskRecord, task: TaskSnapshot): Promise<void> {
    const { requestLog, store } = this.#options;
    const ended = task.status !== 'working' && task.status !== 'input_required';
    // If the call asked for input before it became a task, its request states may still be replayed. Keep the step log, so that
    // they are rejected.
    const steps = ended && record.round === 0 ? [requestLog.deletion(record.identity)] : [];
    return store.commit([...this.#writes(record, task), ...steps]);
  }

  forget({ id, identity, round }: TaskRecord): void {
    const { requestLog, store, system } = this.#options;
    const writes: Write[] = [{ type: 'forget', actor: actorOfTask(id) }];
    if (round === 0) writes.push(requestLog.deletion(identity));
    store
      .commit(writes)
      .catch((error: unknown) =>
        system.log(
          'warning',
          `cannot delete a task from the store yet; the next sweep does: ${messageOf(error)}`,
          errorFields('store', error),
        ),
      );
  }

  /** Deletes a task with the steps of its call, also those whose request states are then unknown. @throws {StoreError} */
  erase({ id, identity }: TaskRecord): Promise<void> {
    const { requestLog, store } = this.#options;
    return store.commit([{ type: 'forget', actor: actorOfTask(id) }, requestLog.deletion(identity)]);
  }

  /** Loads the stored tasks, oldest first. A task that cannot be read is omitted and logged. */
  async take(cells: readonly number[] | undefined): Promise<readonly StoredTask[]> {
    const { store, limits, system } = this.#options;
    const found: StoredTask[] = [];
    const now = system.clock.date();
    const rows = await store.list({ kind: 'task', cells, limit: limits.maxTasks });
    const live = rows.filter((row) => isLive(row, now));
    while (live.length > 0)
      for (const task of await Promise.all(live.splice(0, READS).map((row) => this.read(row))))
        if (task) found.push(task);
    return found;
  }

  /**
   * The rows of the tasks of an owner at all nodes, oldest first.
   *
   * @param after the last row of the previous page
   * @throws {StoreError}
   */
  list(
    owner: string,
    after: Pick<ActorRow, 'created' | 'id'> | undefined,
    limit: number,
  ): Promise<readonly ActorRow[]> {
    return this.#options.store.list({ kind: 'task', principal: owner, after, limit });
  }

  /**
   * Reads a task. One that is damaged is logged.
   *
   * @returns undefined if it is damaged, has expired, or was deleted after it was listed
   * @throws {StoreError}
   */
  async read(row: ActorRow): Promise<StoredTask | undefined> {
    if (!isLive(row, this.#options.system.clock.date())) return undefined;
    try {
      return await this.#read(row);
    } catch (error) {
      if (error instanceof StoreError && error.fault !== 'corrupt') throw error;
      if (this.#unread.has(row.id)) return undefined;
      this.#unread.add(row.id);
      this.#options.system.log('error', `cannot recover a task of tool "${row.name}": ${messageOf(error)}`, {
        ...errorFields('store', error),
        element: `tool ${row.name}`,
      });
      return undefined;
    }
  }

  /** True if the store has damaged data of this task, so that it could not be restored. */
  isDamaged(id: string): boolean {
    const actor = actorOfTask(id);
    return this.#unread.has(actor) || this.#options.store.isDamaged(actor);
  }

  /** @throws {StoreError} */
  async call({ id }: TaskRecord): Promise<StoredCall> {
    const text = await this.#options.store.reply(actorOfTask(id), CALL);
    const call = text === undefined ? undefined : fromText(text, 'the stored call of a task');
    if (!isCall(call)) throw damaged('its call');
    return call;
  }

  async #read(row: ActorRow): Promise<StoredTask | undefined> {
    const stored = await this.#options.store.load(row.id);
    if (!stored) return undefined;
    const { snapshot } = stored;
    if (!snapshot) throw damaged('its snapshot');
    if (snapshot.version !== VERSION)
      throw new StoreError('corrupt', `expected a snapshot of version ${VERSION}, got one of ${snapshot.version}`);
    const kept = fromText(snapshot.data, 'the stored snapshot of a task');
    if (!isTaskCallData(kept)) throw damaged('its snapshot');
    const { session, identity, round, ordinal, ttlMs, trace, task, needed } = kept;
    const { name: tool, principal: owner, created } = row;
    const id = idOfTask(row);
    return { record: { id, tool, owner, session, identity, round, ordinal, ttlMs, trace, created, needed }, task };
  }

  #writes(record: TaskRecord, task: TaskSnapshot): readonly Write[] {
    const { id, tool, owner, session, identity, round, ordinal, ttlMs, trace, created, needed } = record;
    const actor = actorOfTask(id);
    const row = { id: actor, kind: 'task', name: tool, principal: owner, created, expires: expiryOf(record) } as const;
    const kept = (now: TaskSnapshot): string =>
      toText({ session, identity, round, ordinal, ttlMs, trace, needed, task: now });
    return [
      { type: 'actor', actor: { ...row, status: task.status } },
      { type: 'snapshot', actor, version: VERSION, data: this.#text(kept, task) },
    ];
  }

  /** Data that JSON cannot represent could not have been sent to a client either. */
  #text(kept: (task: TaskSnapshot) => string, task: TaskSnapshot): string {
    try {
      return kept(task);
    } catch (error) {
      if (!task.outcome) throw error;
      const message = `the result of this task could not be written as JSON: ${messageOf(error)}`;
      this.#options.system.log('warning', message, errorFields('program', error));
      const outcome = { ok: false, error: { code: ErrorCode.InternalError, message } } as const;
      return kept({ ...task, status: 'failed', message, outcome });
    }
  }
}

const PREFIX = 'task/';

export function actorOfTask(id: string): string {
  return PREFIX + id;
}

export function idOfTask({ id }: Pick<ActorRow, 'id'>): string {
  return id.slice(PREFIX.length);
}

function isLive({ expires }: ActorRow, now: number): boolean {
  return expires === undefined || expires > now;
}

export function expiryOf({ created, ttlMs }: TaskRecord): number {
  return created + ttlMs;
}

/** The initial state of a task. */
export function firstOf(created: number): TaskSnapshot {
  const at = isoOf(created);
  const questions = { open: [], keys: [] };
  return {
    status: 'working',
    message: undefined,
    createdAt: at,
    updatedAt: at,
    outcome: undefined,
    questions,
    replies: {},
  };
}

function damaged(what: string): StoreError {
  return new StoreError('corrupt', `${what}: the stored data is damaged`);
}

interface TaskCallData
  extends Pick<TaskRecord, 'session' | 'identity' | 'round' | 'ordinal' | 'ttlMs' | 'trace' | 'needed'> {
  readonly task: TaskSnapshot;
}

function isTaskCallData(value: unknown): value is TaskCallData {
  if (!isObject(value) || !isObject(value.task)) return false;
  const { identity, round, ordinal, ttlMs, trace, task, needed } = value;
  return (
    typeof identity === 'string' &&
    typeof round === 'number' &&
    typeof ordinal === 'number' &&
    typeof ttlMs === 'number' &&
    (trace === undefined || typeof trace === 'string') &&
    Array.isArray(needed) &&
    needed.every((scope) => typeof scope === 'string') &&
    typeof task.status === 'string' &&
    isObject(task.questions) &&
    isObject(task.replies)
  );
}
