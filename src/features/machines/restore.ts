/** Checks a stored snapshot against the machine that resumes it, or migrates it to another version. */
import {
  type AnyActorLogic,
  type AnyStateMachine,
  type AnyStateNode,
  createActor,
  getStateNodes,
  type StateValue,
} from 'xstate';
import { nodeOf } from '../../core/kernel/charts/chart.ts';
import { activeNodes } from '../../core/kernel/xstate-internals.ts';
import { describe, isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { acceptedInWords } from './event-acceptance.ts';
import { HandleError } from './handle-error.ts';
import type { MachineKind } from './machine-definition.ts';
import { serializeSnapshot } from './serializable.ts';

/** The stored data of an instance, in one row. */
export interface StoredInstance {
  readonly snapshot: JsonObject;
  /** The number of the last change. */
  readonly turn: number;
  /** Date of the last use, in milliseconds since 1970. */
  readonly used: number;
  readonly entries: Readonly<Record<string, number>>;
  /** The reason of its quarantine, if it is quarantined. */
  readonly failure?: string | undefined;
  /** The span of the request that created it, as a `traceparent`. */
  readonly trace?: string | undefined;
  /** The number of its last message to another instance, and of the last row that withdraws one. */
  readonly sent?: number | undefined;
  /** The numbers of the last messages that it has taken, by the handles of their senders; the latest sender last. */
  readonly inbox?: Readonly<Record<string, number>> | undefined;
  /** The key of the instance. */
  readonly key?: string | undefined;
}

export function writeStored(stored: StoredInstance): string {
  return toText(stored);
}

/** @throws {StoreError | HandleError} for data that {@link writeStored} did not write */
export function readStored(data: string, what: string): StoredInstance {
  const value = fromText(data, what);
  if (isObject(value)) {
    const { snapshot, turn, used, entries, failure, trace, key, sent, inbox } = value;
    if (isJsonObject(snapshot) && typeof turn === 'number' && typeof used === 'number' && isCounts(entries))
      return {
        ...{ snapshot, turn, used, entries },
        ...{ failure: textOf(failure), trace: textOf(trace), key: textOf(key) },
        ...{ sent: typeof sent === 'number' ? sent : undefined, inbox: isCounts(inbox) ? inbox : undefined },
      };
  }
  throw new HandleError('failed', `${what}: expected a stored instance, got ${describe(value)}`);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function isCounts(value: unknown): value is Record<string, number> {
  return isObject(value) && Object.values(value).every((count) => typeof count === 'number');
}

/** The machine and snapshot from which an instance resumes. */
export interface Resumption {
  readonly machine: AnyStateMachine;
  readonly version: string;
  readonly snapshot: JsonObject;
  /** The snapshot was just migrated. Timers that exist in both versions keep their dates. */
  readonly migrated: boolean;
}

/**
 * Selects the machine and the snapshot from which an instance resumes.
 *
 * @throws {HandleError} `refused` if no machine here can read it; the stored instance stays unchanged
 */
export function resume(kind: MachineKind, version: string, stored: StoredInstance): Resumption {
  const { snapshot } = stored;
  if (version === kind.version) {
    checkRestorable(kind.machine, snapshot, kind, version);
    return { machine: kind.machine, version, snapshot, migrated: false };
  }
  const ended = snapshot.status !== 'active';
  const migrated = ended ? undefined : migrate(kind, version, snapshot);
  if (migrated) return { machine: kind.machine, version: kind.version, snapshot: migrated, migrated: true };
  const machine = kind.previous?.[version];
  if (!machine) throw foreign(kind, version);
  checkRestorable(machine, snapshot, kind, version);
  return { machine, version, snapshot, migrated: false };
}

function foreign({ name, version }: MachineKind, other: string): HandleError {
  return new HandleError(
    'refused',
    `version ${other} of "${name}" created this instance. This server has version ${version} and cannot migrate it. The instance stays unchanged: the operator can give the machine a "migrate", or list ${other} in "previous". Create a new one to continue now.`,
  );
}

function migrate(kind: MachineKind, version: string, { value, context }: JsonObject): JsonObject | undefined {
  const { machine, name } = kind;
  const migrated = kind.migrate?.({ version, value: value ?? null, context: context ?? null });
  if (migrated === undefined) return undefined;
  const where = `machine "${name}": migrate from version ${version}`;
  if (!isObject(migrated) || !isValue(migrated.value))
    throw new TypeError(`${where}: expected { value, context }, got ${describe(migrated)}`);
  if (!hasState(machine, migrated.value))
    throw new TypeError(
      `${where}: expected a state of version ${kind.version}, got unknown state ${acceptedInWords(migrated.value)}`,
    );
  const snapshot = machine.resolveState({ value: migrated.value, context: migrated.context });
  const actor = createActor(machine, { snapshot });
  // The invocations of its states start now, because they did not run under this version.
  const children: Record<string, unknown> = {};
  for (const node of activeNodes(snapshot))
    for (const { id, src, input, systemId, onSnapshot } of node.invoke) {
      const logic = logicOf(machine, src);
      if (!logic) continue;
      const resolvedInput: unknown =
        typeof input === 'function'
          ? input({ context: snapshot.context, event: { type: 'xstate.init' }, self: actor })
          : input;
      const child = createActor(logic, { id, input: resolvedInput }).getPersistedSnapshot();
      children[id] = { snapshot: child, src, systemId, syncSnapshot: onSnapshot !== undefined };
    }
  const persisted = machine.getPersistedSnapshot(snapshot);
  return serializeSnapshot({ ...persisted, children }, Number.POSITIVE_INFINITY);
}

/** Returns the delays of its current states in milliseconds, by the ids of their timers, as the machine would start them. */
export function delaysOf(machine: AnyStateMachine, { value, context }: JsonObject): ReadonlyMap<string, number> {
  const delays = new Map<string, number>();
  if (!isValue(value)) return delays;
  for (const node of getStateNodes(machine.root, value))
    for (const { delay, eventType } of node.after) {
      const named: unknown = typeof delay === 'string' ? machine.implementations.delays[delay] : delay;
      const ms: unknown =
        typeof named === 'function' ? named({ context, event: { type: 'xstate.init' } }, undefined) : named;
      if (typeof ms === 'number') delays.set(eventType, ms);
    }
  return delays;
}

/** A snapshot must not select what runs: its states and children must be those of the machine (S-02). */
function checkRestorable(machine: AnyStateMachine, snapshot: JsonObject, kind: MachineKind, version: string): void {
  const fault = differencesFrom(machine, snapshot);
  if (fault === undefined) return;
  throw new HandleError(
    'refused',
    `this instance ${fault}, which version ${version} of "${kind.name}" does not have. A changed machine needs a new version and a "migrate". The instance stays unchanged.`,
  );
}

/** Describes the part of a snapshot that the machine does not have; undefined if it has everything. */
export function differencesFrom(machine: AnyStateMachine, { value, children, status }: JsonObject): string | undefined {
  // An instance that failed at its start has no state.
  if (status === 'error') return undefined;
  return !isValue(value) || !hasState(machine, value)
    ? `is in state ${acceptedInWords(value)}`
    : unknownChild(machine, children);
}

function unknownChild(machine: AnyStateMachine, children: JsonValue | undefined): string | undefined {
  if (!isObject(children)) return undefined;
  for (const [id, child] of Object.entries(children)) {
    const src: unknown = isObject(child) ? child.src : undefined;
    if (typeof src !== 'string' || !logicOf(machine, src)) return `has invoked ${describe(src)} as "${id}"`;
  }
  return undefined;
}

/** Finds logic by its name as XState does: named logic of the machine, or the inline logic of an invocation. */
function logicOf(machine: AnyStateMachine, src: unknown): AnyActorLogic | undefined {
  if (typeof src !== 'string') return undefined;
  const inline = /^xstate\.invoke\.(\d+)\.(.*)$/.exec(src);
  if (!inline) {
    const { actors } = machine.implementations;
    const named: unknown = Object.hasOwn(actors, src) ? actors[src] : undefined;
    return isLogic(named) ? named : undefined;
  }
  const [, index = '', id = ''] = inline;
  const config: unknown = nodeOf(machine.root, id)?.config.invoke;
  const invoked: unknown = Array.isArray(config) ? config[Number(index)] : config;
  const logic: unknown = isObject(invoked) ? invoked.src : undefined;
  return isLogic(logic) ? logic : undefined;
}

function isLogic(value: unknown): value is AnyActorLogic {
  return isObject(value) && typeof value.transition === 'function' && typeof value.getInitialSnapshot === 'function';
}

function isValue(value: unknown): value is StateValue {
  return typeof value === 'string' || (isObject(value) && Object.values(value).every(isValue));
}

function hasState(machine: AnyStateMachine, value: StateValue): boolean {
  return isStateOf(machine.root, value);
}

function isStateOf(node: AnyStateNode, value: StateValue): boolean {
  if (typeof value === 'string') return Object.hasOwn(node.states, value);
  return Object.entries(value).every(([key, inner]) => {
    const child = Object.hasOwn(node.states, key) ? node.states[key] : undefined;
    // A region without states has an empty value.
    return child !== undefined && inner !== undefined && (isEmpty(inner) || isStateOf(child, inner));
  });
}

function isEmpty(value: StateValue): boolean {
  return typeof value === 'object' && Object.keys(value).length === 0;
}
