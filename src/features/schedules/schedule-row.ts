/** The stored data of a schedule: its last slot, from which the next one follows, the slot that runs, and the last result. */
import { isObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { Stored, Write } from '../../core/store/store.ts';
import type { LastRun } from './schedule-messages.ts';
import type { SlotProgress } from './schedule-slots.ts';

const VERSION = '1';
/** Milliseconds for which the data of a schedule stays that no program has any more, after its next slot. */
const KEPT_MS = 30 * 86_400_000;

/** A slot whose handler has begun. */
export interface RunningSlot {
  /** Its date, in milliseconds since 1970. */
  readonly at: number;
  readonly missed: number;
  readonly attempt: number;
  /** True: an operator or the program has asked for it, and its date is that of the request. */
  readonly manual?: true;
}

export interface StoredSchedule extends SlotProgress {
  /** The text of the pattern. */
  readonly timing: string;
  readonly running?: RunningSlot | undefined;
  readonly result?: LastRun | undefined;
}

/** @param next the date of the next slot */
export function writesOfSchedule(
  id: string,
  name: string,
  stored: StoredSchedule,
  now: number,
  next: number | undefined,
): readonly Write[] {
  const created = Math.round(stored.anchor);
  const expires = Math.round(Math.max(now, next ?? 0)) + KEPT_MS;
  return [
    { type: 'actor', actor: { id, kind: 'schedule', name, principal: '', status: 'live', created, expires } },
    { type: 'snapshot', actor: id, version: VERSION, data: toText(stored) },
  ];
}

/** Reads the data of a schedule. @returns undefined for none @throws {StoreError | Error} for data that this module has not written */
export function readSchedule(id: string, stored: Stored | undefined): StoredSchedule | undefined {
  const { snapshot } = stored ?? {};
  if (snapshot?.version !== VERSION) return undefined;
  const value = fromText(snapshot.data, id);
  if (isSchedule(value)) return value;
  throw new Error(`${id}: expected a stored schedule, got ${snapshot.data.slice(0, 80)}`);
}

function isSchedule(value: unknown): value is StoredSchedule {
  if (!isObject(value)) return false;
  const { last, anchor, timing, running, result } = value;
  return areNumbers(last, anchor) && typeof timing === 'string' && isRunning(running) && isResult(result);
}

function isRunning(value: unknown): boolean {
  return value === undefined || (isObject(value) && areNumbers(value.at, value.missed, value.attempt));
}

function isResult(value: unknown): boolean {
  return (
    value === undefined ||
    (isObject(value) && areNumbers(value.began, value.tookMs) && typeof value.scheduledFor === 'string')
  );
}

function areNumbers(...values: readonly unknown[]): boolean {
  return values.every((value) => typeof value === 'number' && Number.isFinite(value));
}
