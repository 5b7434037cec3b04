/** The history of an instance: the events that its machine received, in order, and their replay. */
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  initialTransition,
  transition,
} from 'xstate';
import { jsonLength } from '../../core/execution/size.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { isObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { JournalEvent } from '../../core/store/store.ts';
import { serializeSnapshot } from './serializable.ts';

/** Formats the events of a turn. The machine has already processed them; data that JSON cannot represent is omitted. */
export function historyOf(events: readonly AnyEventObject[], most: number): string {
  try {
    if (jsonLength(events, most) <= most) return toText(events);
  } catch {
    // A cycle or a bigint: only the event's type is recorded.
  }
  return toText(events.map(({ type }) => ({ type, left_out: true })));
}

/**
 * Replays a history without effects: no actions run and nothing is invoked, because the results of invocations are in the
 * history. The history must be complete and belong to one version of the machine.
 *
 * @throws {StoreError | Error} for an invalid history
 */
export function replay(machine: AnyStateMachine, history: readonly JournalEvent[]): AnyMachineSnapshot | undefined {
  const states: AnyMachineSnapshot[] = [];
  for (const { kind, data, seq } of history) {
    if (kind === 'undone') {
      states.pop();
      continue;
    }
    const before = states.at(-1);
    if (kind === IGNORED && before) {
      states.push(before);
      continue;
    }
    const events = eventsOf(data, `turn ${seq}`);
    if (kind === 'created') {
      states.push(initialTransition(machine, events[0]?.input)[0]);
      continue;
    }
    let snapshot = before;
    if (!snapshot) throw new Error(`turn ${seq}: expected the creation of the instance before it, got none`);
    for (const event of events) if (event.type !== ENDED) [snapshot] = transition(machine, snapshot, event);
    states.push(snapshot);
  }
  return states.at(-1);
}

/** The event in the history with which a client ended an instance. */
export const ENDED = 'troupe.ended';
/** The kind of a turn whose event the state did not accept: a message of another instance. */
export const IGNORED = 'ignored';
/** The event that created the instance, with its input. */
export const CREATED = 'troupe.created';

function eventsOf(data: string, what: string): readonly AnyEventObject[] {
  const value: unknown = fromText(data, what);
  if (Array.isArray(value) && value.every(isEvent)) return value;
  throw new Error(`${what}: expected a list of events, got ${data.slice(0, 80)}`);
}

export function isEvent(value: unknown): value is AnyEventObject {
  return isObject(value) && typeof value.type === 'string';
}

/** Returns a digest of a machine's state, context, output and status, without its children. */
export function hashOf(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): string {
  return hashOfStored(serializeSnapshot(machine.getPersistedSnapshot(snapshot), Number.POSITIVE_INFINITY));
}

/** The same for a stored snapshot. */
export function hashOfStored({ status, value, context, output }: Readonly<Record<string, unknown>>): string {
  const text = toText(sorted({ status, value, context, output }));
  return sha256(text);
}

/** Sorts the keys of objects, because JSON preserves the order in which they were written. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}
