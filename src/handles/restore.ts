/** What an instance goes on from: its snapshot as it was kept, checked against the machine that is to read it, or made fit for another version. */
import {
  type AnyActorLogic,
  type AnyStateMachine,
  type AnyStateNode,
  createActor,
  getStateNodes,
  type StateValue,
} from 'xstate';
import { describe, isJsonObject, isObject, type JsonObject, type JsonValue, messageOf } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import { acceptedInWords } from './event-acceptance.ts';
import { HandleError } from './handle-error.ts';
import type { MachineKind } from './machine-definition.ts';
import { serializeSnapshot } from './serializable.ts';

/** What is kept of an instance in one row. */
export interface StoredInstance {
  readonly snapshot: JsonObject;
  /** Grows with each change. */
  readonly turn: number;
  /** When it was used last, in milliseconds since 1970. */
  readonly used: number;
  readonly entries: Readonly<Record<string, number>>;
  /** Why it was set aside, where it was. */
  readonly failure?: string | undefined;
}

export function writeStored(kept: StoredInstance): string {
  return toText(kept);
}

/** @throws {StoreError | HandleError} for what was not written by {@link writeStored} */
export function readStored(data: string, what: string): StoredInstance {
  const value = fromText(data, what);
  if (isObject(value)) {
    const { snapshot, turn, used, entries, failure } = value;
    if (isJsonObject(snapshot) && typeof turn === 'number' && typeof used === 'number' && isCounts(entries))
      return { snapshot, turn, used, entries, failure: typeof failure === 'string' ? failure : undefined };
  }
  throw new HandleError('failed', `${what}: expected what this server keeps of an instance, got ${describe(value)}`);
}

function isCounts(value: unknown): value is Record<string, number> {
  return isObject(value) && Object.values(value).every((count) => typeof count === 'number');
}

/** Where an instance goes on. */
export interface Resumption {
  readonly machine: AnyStateMachine;
  readonly version: string;
  readonly snapshot: JsonObject;
  /** It was made fit for this version just now: its timers begin where they were, if they are the same. */
  readonly migrated: boolean;
}

/**
 * Which machine an instance goes on with, and from what.
 *
 * @throws {HandleError} `refused` where no machine here can read it: it stays as it is
 */
export function resume(kind: MachineKind, version: string, kept: StoredInstance): Resumption {
  const { snapshot } = kept;
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
    `this instance was made by version ${other} of "${name}"; this server has version ${version}, and no way from one to the other. It is kept as it is: its operator can give the machine a "migrate", or ${other} in "previous". Make a new one to go on now.`,
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
      `${where}: expected a state of version ${kind.version}, got ${acceptedInWords(migrated.value)}, which it does not have`,
    );
  const snapshot = machine.resolveState({ value: migrated.value, context: migrated.context });
  const begun = createActor(machine, { snapshot });
  // What its states invoke begins anew; it was not running under this version.
  const children: Record<string, unknown> = {};
  for (const node of snapshot._nodes)
    for (const { id, src, input, systemId, onSnapshot } of node.invoke) {
      const logic = logicOf(machine, src);
      if (!logic) continue;
      const given: unknown =
        typeof input === 'function'
          ? input({ context: snapshot.context, event: { type: 'xstate.init' }, self: begun })
          : input;
      const child = createActor(logic, { id, input: given }).getPersistedSnapshot();
      children[id] = { snapshot: child, src, systemId, syncSnapshot: onSnapshot !== undefined };
    }
  const persisted = machine.getPersistedSnapshot(snapshot);
  return serializeSnapshot({ ...persisted, children }, Number.POSITIVE_INFINITY);
}

/** The delays of the states that it is in, as the machine would begin them: by the ids of their timers, in milliseconds. */
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

/** Nothing in a snapshot may choose what runs: states and children must be the machine's own (S-02). */
function checkRestorable(machine: AnyStateMachine, snapshot: JsonObject, kind: MachineKind, version: string): void {
  const fault = differencesFrom(machine, snapshot);
  if (fault === undefined) return;
  throw new HandleError(
    'refused',
    `this instance ${fault}, which version ${version} of "${kind.name}" does not have: a machine that changes needs a new version, and a "migrate". The instance is kept as it is.`,
  );
}

/** What of a snapshot its machine does not have, in words; undefined where it has all of it. */
export function differencesFrom(machine: AnyStateMachine, { value, children, status }: JsonObject): string | undefined {
  // One that failed at its very beginning has no state.
  if (status === 'error') return undefined;
  return !isValue(value) || !hasState(machine, value)
    ? `is in state ${acceptedInWords(value)}`
    : strangeChild(machine, children);
}

function strangeChild(machine: AnyStateMachine, children: JsonValue | undefined): string | undefined {
  if (!isObject(children)) return undefined;
  for (const [id, child] of Object.entries(children)) {
    const src: unknown = isObject(child) ? child.src : undefined;
    if (typeof src !== 'string' || !logicOf(machine, src)) return `has invoked ${describe(src)} as "${id}"`;
  }
  return undefined;
}

/** The logic of that name, as XState finds it: the machine's own, or that of an invocation that names none. */
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

function nodeOf(node: AnyStateNode, id: string): AnyStateNode | undefined {
  if (node.id === id) return node;
  for (const child of Object.values(node.states)) {
    const found = nodeOf(child, id);
    if (found) return found;
  }
  return undefined;
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
    // A region without states of its own has an empty value.
    return child !== undefined && inner !== undefined && (isEmpty(inner) || isStateOf(child, inner));
  });
}

function isEmpty(value: StateValue): boolean {
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** For the log: why an instance cannot be read. */
export function unreadable(id: string, error: unknown): string {
  return `${id} cannot be read: ${messageOf(error)}`;
}
