/** Pages of a task list, oldest first (2025-11-25). */
import type { Outcome, TaskState } from '../messages/results.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';

export interface Listed {
  readonly task: { look(): TaskState };
  /** Its position in lists; later tasks have greater numbers. */
  readonly record: { readonly ordinal: number };
}

/**
 * @param newest the greatest ordinal so far
 * @throws {ProtocolError} for an unknown cursor
 */
export function pageOf(all: Iterable<Listed>, cursor: string | undefined, pageSize: number, newest: number): Outcome {
  const after = cursor === undefined ? 0 : readCursor(cursor, newest);
  const tasks: TaskState[] = [];
  let last = after;
  for (const { task, record } of all) {
    if (record.ordinal <= after) continue;
    if (tasks.length === pageSize)
      return { ok: true, result: { kind: 'tasks', tasks, nextCursor: `t${last.toString(36)}` } };
    tasks.push(task.look());
    last = record.ordinal;
  }
  return { ok: true, result: { kind: 'tasks', tasks, nextCursor: undefined } };
}

function readCursor(cursor: string, newest: number): number {
  const [, digits] = /^t([0-9a-z]{1,10})$/.exec(cursor) ?? [];
  const ordinal = digits === undefined ? Number.NaN : Number.parseInt(digits, 36);
  if (ordinal <= newest) return ordinal;
  throw new ProtocolError(ErrorCode.InvalidParams, 'params.cursor: unknown cursor. Start again without one.');
}
