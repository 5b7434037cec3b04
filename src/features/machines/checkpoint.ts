/** The position of a statechart within its call, as text: its snapshot, the count of each invocation's starts, and its timers with their dates. */
import type { AnyStateMachine } from 'xstate';
import { fingerprint, readChart } from '../../core/kernel/charts/chart.ts';
import { describe, isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { isEvent } from './event-history.ts';
import type { HostedMachine, Scheduled } from './hosted-machine.ts';
import { differencesFrom } from './restore.ts';
import { NotSerializable, serializeSnapshot } from './serializable.ts';

/** A timer of XState and the date at which it is due, in milliseconds since 1970. */
export interface DueTimer extends Omit<Scheduled, 'key' | 'mark' | 'delay'> {
  readonly due: number;
}

interface Checkpoint {
  readonly snapshot: JsonObject;
  readonly entries: Readonly<Record<string, number>>;
  readonly timers: readonly DueTimer[];
}

/** Nesting that XState adds around a context: children and their children. */
const NESTING = 16;

const versions = new WeakMap<AnyStateMachine, string>();

/** Changes with the states, transitions and invocations of a machine. A checkpoint of one version is invalid in another. */
function versionOf(machine: AnyStateMachine): string {
  const known = versions.get(machine) ?? fingerprint(readChart(machine));
  versions.set(machine, known);
  return known;
}

/** @throws {NotSerializable | Error} for a snapshot that cannot be stored */
export function writeCheckpoint(
  { machine, entries, persisted }: Pick<HostedMachine, 'machine' | 'entries'> & { readonly persisted: unknown },
  timers: readonly DueTimer[],
  limits: { readonly maxDepth: number; readonly maxHandleLength: number },
): string {
  const snapshot = serializeSnapshot(persisted, limits.maxDepth + NESTING);
  const text = toText({ version: versionOf(machine), snapshot, entries, timers });
  if (text.length <= limits.maxHandleLength) return text;
  throw new NotSerializable(
    `expected at most ${limits.maxHandleLength} characters of state, got ${text.length} (the server's option is limits.maxHandleLength)`,
  );
}

/** @throws {Error} for a checkpoint of another version of the machine, which is never misread */
export function readCheckpoint(text: string, machine: AnyStateMachine, tool: string): Checkpoint {
  const value = fromText(text, `the checkpoint of tool "${tool}"`);
  if (!isObject(value) || !isJsonObject(value.snapshot) || !isCounts(value.entries) || !isTimers(value.timers))
    throw new Error(`the checkpoint of tool "${tool}": expected a stored checkpoint, got ${describe(value)}`);
  const { version, snapshot, entries, timers } = value;
  if (version === versionOf(machine) && differencesFrom(machine, snapshot) === undefined)
    return { snapshot, entries, timers };
  throw new Error(
    `this call started on another version of tool "${tool}", and this server no longer has its machine. The work done so far is not undone. Find out how far the call got before you repeat it`,
  );
}

function isCounts(value: unknown): value is Record<string, number> {
  return isObject(value) && Object.values(value).every((count) => typeof count === 'number');
}

function isTimers(value: unknown): value is readonly DueTimer[] {
  return Array.isArray(value) && value.every(isTimer);
}

function isTimer(value: unknown): value is DueTimer {
  if (!isObject(value)) return false;
  const { source, target, id, event, due } = value;
  return (
    typeof source === 'string' &&
    typeof target === 'string' &&
    typeof id === 'string' &&
    typeof due === 'number' &&
    isEvent(event)
  );
}
