/** What clients see of an instance. */
import type { AnyMachineSnapshot } from 'xstate';
import { isoOf } from '../clock.ts';
import type { HandleAsk, HandleView } from '../messages/handle-messages.ts';
import type { JsonValue } from '../protocol/json.ts';
import { jsonLength } from '../results/size.ts';
import { acceptedBy, failureOf } from './event-acceptance.ts';
import { deadlineOf, type HandleRecord, handleAddress, lifetimeOf } from './handle-record.ts';
import type { InstanceDeps } from './instance-deps.ts';
import type { MachineKind } from './machine-definition.ts';
import { NotSerializable, serializable } from './serializable.ts';

/** @param failure why it was set aside, where it was */
export function instanceView(
  entry: HandleRecord,
  kind: MachineKind,
  host: InstanceDeps,
  snapshot: AnyMachineSnapshot,
  turn: number,
  asks: readonly HandleAsk[],
  failure: string | undefined,
): HandleView {
  const { status } = entry;
  const deadline = deadlineOf(entry, lifetimeOf(kind, entry.principal, host.limits));
  const why = failure ?? (status === 'failed' ? failureOf(snapshot.error) : undefined);
  return {
    handle: entry.handle,
    machine: entry.name,
    status,
    state: snapshot.value ?? null,
    view: shown(entry, kind, host, snapshot),
    accepts: status === 'active' ? acceptedBy(snapshot, kind.events) : [],
    ...(asks.length === 0 ? {} : { asks }),
    version: turn,
    // It was found fit for JSON when it was kept.
    ...(status === 'done' && snapshot.output !== undefined ? { output: asJson(snapshot.output) } : {}),
    ...(why === undefined ? {} : { failure: why }),
    created: isoOf(entry.created),
    expires: isoOf(Math.round(deadline)),
  };
}

/** What the author's `view` makes of it. One that fails is no fault of the instance: the rest is shown without it. */
function shown(
  entry: HandleRecord,
  kind: MachineKind,
  host: InstanceDeps,
  snapshot: AnyMachineSnapshot,
): JsonValue | undefined {
  // One that failed at its beginning has no state to look at.
  if (!kind.view || snapshot.value === undefined) return undefined;
  const { maxDepth, maxResultLength } = host.limits;
  try {
    const view = serializable(kind.view(snapshot), 'view', maxDepth);
    if (jsonLength(view, maxResultLength) > maxResultLength)
      throw new NotSerializable(
        `view: longer than ${maxResultLength} characters (the server's option is limits.maxResultLength)`,
      );
    return view === undefined ? undefined : asJson(view);
  } catch (error) {
    host.incident(`the view of ${handleAddress(entry)}`, error);
    return undefined;
  }
}

/** What `serializable` has let pass. */
function asJson(value: unknown): JsonValue {
  return value as JsonValue;
}
