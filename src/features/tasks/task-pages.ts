/** The pages of `tasks/list`: of the tasks of one process, or of those that all nodes have in their store. */
import type { Outcome, TaskState } from '../../core/messages/results.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import type { ActorRow } from '../../core/store/store.ts';
import { actorOfTask, idOfTask, type StoredTask, type TaskRecords } from './task-records.ts';
import type { TaskTable } from './task-table.ts';

/** A page that a client has asked for. */
interface PageQuery {
  /** The owner whose tasks the client may use. */
  readonly owner: string;
  readonly cursor: string | undefined;
  readonly size: number;
  /** Returns whether the client has a scope that a look at a task needs. */
  has(scope: string): boolean;
}

/**
 * A page of the tasks of this process, in the order in which they were created.
 *
 * @throws {ProtocolError} for an unknown cursor
 */
export function taskPage(table: TaskTable, { owner, cursor, size, has }: PageQuery): Outcome {
  const after = cursor === undefined ? 0 : ordinalIn(cursor, table.newest);
  const all = [...table.of(owner)].filter(({ record }) => record.needed.every(has));
  const tasks: TaskState[] = [];
  let last = after;
  for (const { task, record } of all.sort((a, b) => a.record.ordinal - b.record.ordinal)) {
    if (record.ordinal <= after) continue;
    if (tasks.length === size) return page(tasks, `t${last.toString(36)}`);
    tasks.push(task.look());
    last = record.ordinal;
  }
  return page(tasks, undefined);
}

/** The tasks of a node, and those of all nodes. */
interface SharedTasks {
  readonly table: TaskTable;
  readonly records: TaskRecords;
  readonly pollMs: number;
}

/** Maximum number of rows that are read at a time, with results of calls. */
const READS = 64;

/**
 * A page of the tasks of all nodes, in the order of their dates and ids, which every node knows: numbers are those of one
 * node. The owner of a task may be dead.
 *
 * @throws {ProtocolError} for an unknown cursor. @throws {StoreError}
 */
export async function sharedTaskPage(
  { table, records, pollMs }: SharedTasks,
  { owner, cursor, size, has }: PageQuery,
): Promise<Outcome> {
  let after = cursor === undefined ? undefined : positionIn(cursor);
  const limit = Math.min(READS, size + 1);
  const look = async (row: ActorRow): Promise<TaskState | undefined> => {
    const entry = table.get(idOfTask(row));
    const stored = entry ? undefined : await records.read(row);
    const { needed } = entry?.record ?? stored?.record ?? {};
    if (!needed?.every(has)) return undefined;
    return entry?.task.look() ?? (stored && stateOf(stored, pollMs));
  };
  const tasks: TaskState[] = [];
  let next = '';
  for (;;) {
    const rows = await records.list(owner, after, limit);
    for (const [index, task] of (await Promise.all(rows.map(look))).entries()) {
      after = rows[index];
      if (!task || !after) continue;
      if (tasks.length === size) return page(tasks, next);
      tasks.push(task);
      // Of a task that the client may see: a cursor shows its id.
      next = `t${after.created.toString(36)}.${task.id}`;
    }
    if (rows.length < limit) return page(tasks, undefined);
  }
}

function page(tasks: readonly TaskState[], nextCursor: string | undefined): Outcome {
  return { ok: true, result: { kind: 'tasks', tasks, nextCursor } };
}

/** A stored task as a list shows it: without its open questions. */
function stateOf({ record: { id, ttlMs }, task }: StoredTask, pollMs: number): TaskState {
  const { status, message, createdAt, updatedAt, outcome } = task;
  return { id, status, message, createdAt, updatedAt, ttlMs, pollMs, inputs: {}, outcome };
}

/** @throws {ProtocolError} */
function ordinalIn(cursor: string, newest: number): number {
  const [, digits] = /^t([0-9a-z]{1,10})$/.exec(cursor) ?? [];
  const ordinal = digits === undefined ? Number.NaN : Number.parseInt(digits, 36);
  if (ordinal <= newest) return ordinal;
  throw unknownCursor();
}

/** @throws {ProtocolError} */
function positionIn(cursor: string): Pick<ActorRow, 'created' | 'id'> {
  const [, created, id] = /^t([0-9a-z]{1,10})\.([\w-]{22,64})$/.exec(cursor) ?? [];
  if (created === undefined || id === undefined) throw unknownCursor();
  return { created: Number.parseInt(created, 36), id: actorOfTask(id) };
}

function unknownCursor(): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, 'params.cursor: unknown cursor. Start again without one.');
}
