/** The view of an instance that clients receive. */
import type { AnyMachineSnapshot } from 'xstate';
import { jsonLength } from '../../core/execution/size.ts';
import { isoOf } from '../../core/kernel/clock.ts';
import type { JsonValue } from '../../core/protocol/json.ts';
import { acceptedBy, continuesAlone } from './event-acceptance.ts';
import { failureOf } from './failures.ts';
import type { HandleAsk, HandleView } from './handle-messages.ts';
import { deadlineOf, type HandleRecord, handleAddress, lifetimeOf } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import type { MachineKind } from './machine-definition.ts';
import type { Role } from './role-types.ts';
import { EVERY_RIGHT, includes } from './roles.ts';
import { NotSerializable, serializable } from './serializable.ts';

/** @param failure the reason of its quarantine, if it is quarantined @param pending see `HandleRecord.pending` */
export function instanceView(
  entry: HandleRecord,
  kind: MachineKind,
  host: InstanceServices,
  snapshot: AnyMachineSnapshot,
  turn: number,
  asks: readonly HandleAsk[],
  failure: string | undefined,
  pending: boolean,
  role: Role = EVERY_RIGHT,
): HandleView {
  const { status } = entry;
  // The record learns with the commit what this turn has left pending.
  const deadline = deadlineOf({ ...entry, pending }, lifetimeOf(kind, entry.principal, host.limits));
  const why = failure ?? (status === 'failed' ? failureOf(entry, host, snapshot.error) : undefined);
  return {
    handle: entry.handle,
    ...(entry.key === undefined ? {} : { key: entry.key }),
    machine: entry.name,
    status,
    state: snapshot.value ?? null,
    view: shown(entry, kind, host, snapshot, role),
    ...(status === 'active' ? nextEvents(snapshot, kind.events, role) : { accepts: [] }),
    ...(asks.length === 0 ? {} : { asks }),
    version: turn,
    // The output was checked when it was stored.
    ...(status === 'done' && snapshot.output !== undefined ? { output: asJson(snapshot.output) } : {}),
    ...(why === undefined ? {} : { failure: why }),
    created: isoOf(entry.created),
    expires: dateText(deadline),
  };
}

/** A date as clients read it; the empty text for an instance that does not expire. */
export function dateText(date: number): string {
  return Number.isFinite(date) ? isoOf(Math.round(date)) : '';
}

/** Returns the events that are accepted now; without any, also whether anything else leads out of the state. */
export function nextEvents(
  snapshot: AnyMachineSnapshot,
  listed: readonly string[],
  role: Role = EVERY_RIGHT,
): Pick<HandleView, 'accepts' | 'deadEnd'> {
  const all = acceptedBy(snapshot, listed);
  const accepts = all.filter((type) => includes(role, type));
  return { accepts, ...(all.length > 0 || continuesAlone(snapshot, listed) ? {} : { deadEnd: true }) };
}

/** Calls the author's `view`. If that throws, the rest is shown without it, because the instance is not at fault. */
function shown(
  entry: HandleRecord,
  kind: MachineKind,
  host: InstanceServices,
  snapshot: AnyMachineSnapshot,
  role: Role,
): JsonValue | undefined {
  // An instance that failed at its start has no state.
  const own = role.view ? role : kind;
  if (!own.view || snapshot.value === undefined) return undefined;
  const { maxDepth, maxResultLength } = host.limits;
  try {
    const view = serializable(own.view(snapshot), 'view', maxDepth);
    if (jsonLength(view, maxResultLength) > maxResultLength)
      throw new NotSerializable(
        `view: expected at most ${maxResultLength} characters (the server's option is limits.maxResultLength)`,
      );
    return view === undefined ? undefined : asJson(view);
  } catch (error) {
    host.incident(`view of ${handleAddress(entry)}`, error);
    return undefined;
  }
}

/** Only for values that `serializable` returned. */
function asJson(value: unknown): JsonValue {
  return value as JsonValue;
}
