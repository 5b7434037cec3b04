/** The history of an instance: what its machine was given, in order; and what that makes of the machine, when it is given again. */
import { createHash } from 'node:crypto';
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  initialTransition,
  transition,
} from 'xstate';
import { isObject } from '../protocol/json.ts';
import { jsonLength } from '../results/size.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { JournalEvent } from '../store/store.ts';
import { serializeSnapshot } from './serializable.ts';

/** The events of a turn as text. The machine has taken them already: what JSON cannot say of them is left out. */
export function historyOf(events: readonly AnyEventObject[], most: number): string {
  try {
    if (jsonLength(events, most) <= most) return toText(events);
  } catch {
    // A cycle, or a bigint: told by its type alone.
  }
  return toText(events.map(({ type }) => ({ type, left_out: true })));
}

/**
 * What a history makes of its machine, without doing anything: actions are not run, and nothing is invoked; what invoked work
 * came to is in the history. It must be whole: from the beginning of the instance, on one version of its machine.
 *
 * @throws {StoreError | Error} for a history that is none
 */
export function replay(machine: AnyStateMachine, history: readonly JournalEvent[]): AnyMachineSnapshot | undefined {
  const states: AnyMachineSnapshot[] = [];
  for (const { kind, data, seq } of history) {
    if (kind === 'undone') {
      states.pop();
      continue;
    }
    const events = eventsOf(data, `turn ${seq}`);
    if (kind === 'created') {
      states.push(initialTransition(machine, events[0]?.input)[0]);
      continue;
    }
    let snapshot = states.at(-1);
    if (!snapshot) throw new Error(`turn ${seq}: expected the beginning of the instance before it, got none`);
    for (const event of events) if (event.type !== ENDED) [snapshot] = transition(machine, snapshot, event);
    states.push(snapshot);
  }
  return states.at(-1);
}

/** The event in the history by which a client has ended an instance. */
export const ENDED = 'troupe.ended';
/** The one by which it was created; its input is with it. */
export const CREATED = 'troupe.created';

function eventsOf(data: string, what: string): readonly AnyEventObject[] {
  const value: unknown = fromText(data, what);
  if (Array.isArray(value) && value.every(isEvent)) return value;
  throw new Error(`${what}: expected events in a list, got ${data.slice(0, 80)}`);
}

export function isEvent(value: unknown): value is AnyEventObject {
  return isObject(value) && typeof value.type === 'string';
}

/** Names what a machine has come to: its state, context, output and status; not what its children keep. */
export function hashOf(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): string {
  return hashOfStored(serializeSnapshot(machine.getPersistedSnapshot(snapshot), Number.POSITIVE_INFINITY));
}

/** The same of what was kept. */
export function hashOfStored({ status, value, context, output }: Readonly<Record<string, unknown>>): string {
  const text = toText(sorted({ status, value, context, output }));
  return createHash('sha256').update(text).digest('base64url');
}

/** With the keys of objects in one order: JSON keeps that in which they were written. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}
