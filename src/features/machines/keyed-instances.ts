/**
 * The instances of keys: finds the key of a call and the node that owns its instance, and there creates the instance with its
 * first event. A look creates nothing.
 */
import { type AnyMachineSnapshot, initialTransition } from 'xstate';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { NodeCallError, type NodeCalls } from '../../core/messages/node-calls.ts';
import { cellIn } from '../../core/protocol/cell.ts';
import { describe, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { ANONYMOUS, PROGRAM } from '../../core/protocol/principals.ts';
import type { Store } from '../../core/store/store.ts';
import type { HandleDirectory } from './directory.ts';
import { refusalOf } from './event-acceptance.ts';
import { HandleError } from './handle-error.ts';
import type { HandleEvent, HandleView } from './handle-messages.ts';
import { actorId, deadlineOf, type HandleRecord, lifetimeOf, sharedOwner, tenantOwner } from './handle-record.ts';
import type { IdempotentCalls } from './idempotent-calls.ts';
import { nextEvents } from './instance-view.ts';
import { answerFromText, answerInText, callInText, errorInText, readCall } from './keyed-call-texts.ts';
import type { KeyedAnswer, KeyedCall, KeyedOperation } from './keyed-calls.ts';
import { canonicalKey, handleOfKey } from './keys.ts';
import { damagedHandle, MovedElsewhere, unknownKey } from './load-instance.ts';
import type { Caller, KeyedKind, MachineKind } from './machine-definition.ts';
import { authIn, includes, roleOf } from './roles.ts';
import { eventFor, notInRole } from './serve-call.ts';

/** A machine whose instances have keys. */
export type KeyedMachine = MachineKind & { readonly keyed: KeyedKind };

/** The handles of this node, as the instances of keys use them. */
export interface OwnInstances {
  /** @throws {HandleError} */
  callOn(
    entry: HandleRecord,
    operation: Exclude<KeyedOperation, { readonly type: 'create' }>,
    caller: Caller,
    key: string | undefined,
  ): Promise<KeyedAnswer>;
  /** Creates an instance. It is in the directory when this returns, and durable when it resolves. @throws {HandleError} */
  createOf(
    kind: KeyedMachine,
    handle: string,
    key: string,
    input: JsonObject,
    caller: Caller,
    inbox: HandleRecord['inbox'],
  ): Promise<HandleView>;
  /** The messages that a stored instance has taken. @throws {StoreError} */
  inboxOf(entry: HandleRecord): Promise<HandleRecord['inbox']>;
  /** @throws {HandleError} for an event that no caller, or not this one, may send */
  checkEvent(kind: MachineKind, event: HandleEvent, caller: Caller): void;
}

interface KeyedInstancesOptions {
  readonly system: Pick<ActorSystem, 'incident' | 'log'>;
  readonly limits: Limits;
  readonly store: Pick<Store, 'isDamaged'>;
  readonly directory: HandleDirectory;
  readonly idempotent: IdempotentCalls;
  readonly own: OwnInstances;
  readonly calls: NodeCalls;
  /** The machine that is offered under a name. @throws {HandleError} */
  kindOf(name: string): MachineKind;
  /** Milliseconds since 1970. */
  date(): number;
}

/** The name of the service between nodes. */
const SERVICE = 'machines';
/** A principal that no instance knows. */
const STRANGER = 'a principal that no instance knows';
/** Number of attempts for a call whose cell moves. */
const TRIES = 5;

export class KeyedInstances {
  readonly #options: KeyedInstancesOptions;
  /** The machines of which the log has warned. */
  readonly #warned = new Set<string>();

  constructor(options: KeyedInstancesOptions) {
    this.#options = options;
    options.calls.serve(SERVICE, async (body) => {
      try {
        return answerInText(await this.#serve(readCall(body)));
      } catch (error) {
        if (error instanceof HandleError) return errorInText(error);
        throw error;
      }
    });
  }

  /**
   * Serves a call at the node that owns the instance.
   *
   * @param address the key that the call names; undefined for the key of the caller itself
   * @throws {HandleError}
   */
  async call(
    kind: KeyedMachine,
    address: string | undefined,
    operation: KeyedOperation,
    caller: Caller,
    idempotencyKey?: string,
  ): Promise<KeyedAnswer> {
    const key = keyOf(kind, address, caller);
    const call = { machine: kind.name, key, operation, caller, idempotencyKey };
    const cell = cellIn(handleIn(kind, key));
    // A key has a handle, and a handle has a cell.
    if (cell === undefined) throw unknownKey(kind.name);
    const { date, limits } = this.#options;
    // The reply of a call that an owner has served is kept for as long (see commitOf).
    const end = date() + limits.graceMs;
    for (let tries = 1; ; tries += 1) {
      const leave = this.#options.calls.enter(cell);
      try {
        return leave ? await this.#serve(call) : await this.#forward(cell, call);
      } catch (error) {
        if (!(error instanceof MovedElsewhere) || !error.unserved || tries === TRIES || date() > end) throw error;
      } finally {
        leave?.();
      }
    }
  }

  async #forward(cell: number, call: KeyedCall): Promise<KeyedAnswer> {
    const { type } = call.operation;
    // An instance recognizes a message that it has taken.
    const isMessage = call.operation.type === 'event' && call.operation.message !== undefined;
    const repeatable = isMessage || type === 'get' || type === 'look' || call.idempotencyKey !== undefined;
    try {
      return answerFromText(await this.#options.calls.call(cell, SERVICE, callInText(call), repeatable));
    } catch (error) {
      if (!(error instanceof NodeCallError)) throw error;
      throw new HandleError(error.reason === 'unreachable' ? 'busy' : 'storage', error.message, { cause: error });
    }
  }

  /** Serves a call at this node, which owns the instance. */
  async #serve({ machine, key, operation, caller, idempotencyKey }: KeyedCall): Promise<KeyedAnswer> {
    const kind = this.#options.kindOf(machine);
    if (!isKeyed(kind)) throw unknownKey(machine);
    if (operation.type === 'event') this.#options.own.checkEvent(kind, operation.event, caller);
    if (idempotencyKey === undefined || operation.type === 'get' || operation.type === 'look')
      return this.#run(kind, key, operation, caller, undefined);
    // Callers of one instance choose their keys apart.
    const own = `${caller.principal} ${idempotencyKey}`;
    const run = async (): Promise<HandleView> => viewIn(await this.#run(kind, key, operation, caller, own));
    const { idempotent } = this.#options;
    const repeat = async (earlier: string): Promise<HandleView> => {
      // The role decides again.
      const now = viewIn(await this.#run(kind, key, { type: 'get' }, caller, undefined));
      return idempotent.viewOf(earlier) ?? now;
    };
    return idempotent.once(actorId(machine, handleIn(kind, key)), own, repeat, run);
  }

  #run(
    kind: KeyedMachine,
    key: string,
    operation: KeyedOperation,
    caller: Caller,
    reply: string | undefined,
  ): Promise<KeyedAnswer> {
    const { own } = this.#options;
    const entry = this.#entryOf(kind, key);
    const isOver = entry?.status === 'done' || entry?.status === 'ended';
    if (entry && operation.type === 'create' && !isOver)
      return Promise.reject(
        new HandleError('refused', `there is a "${kind.name}" with this key already.`, { tools: ['get'] }),
      );
    if (entry && operation.type !== 'create' && !(isOver && operation.type === 'event'))
      return own.callOn(entry, operation, caller, reply);
    if (entry && operation.type === 'event' && operation.message)
      return this.#afterEnd(kind, key, operation, caller, entry);
    return this.#begin(kind, key, operation, caller, reply, entry);
  }

  /** A message may be the last one that an ended instance has taken. Any other begins a new instance. */
  async #afterEnd(
    kind: KeyedMachine,
    key: string,
    operation: Extract<KeyedOperation, { readonly type: 'event' }>,
    caller: Caller,
    ended: HandleRecord,
  ): Promise<KeyedAnswer> {
    try {
      return await this.#options.own.callOn(ended, operation, caller, undefined);
    } catch (error) {
      if (!(error instanceof HandleError) || error.reason !== 'ended') throw error;
      const isThere = this.#options.directory.entry(ended.id) === ended;
      if (!isThere) return this.#run(kind, key, operation, caller, undefined);
      return this.#begin(kind, key, operation, caller, undefined, ended);
    }
  }

  /** The record of a key's instance; undefined if there is none, or its time is over. */
  #entryOf(kind: KeyedMachine, key: string): HandleRecord | undefined {
    const { directory, store, limits, date } = this.#options;
    const id = actorId(kind.name, handleIn(kind, key));
    const entry = directory.entry(id);
    if (!entry && store.isDamaged(id)) throw damagedHandle(kind.name);
    if (!entry || deadlineOf(entry, lifetimeOf(kind, entry.principal, limits)) > date()) return entry;
    directory.replace(entry);
    return undefined;
  }

  /**
   * Serves an operation on a key without an instance, or whose instance has ended. Whether the first event is accepted is decided
   * before anything is written.
   */
  async #begin(
    kind: KeyedMachine,
    key: string,
    operation: KeyedOperation,
    caller: Caller,
    reply: string | undefined,
    ended: HandleRecord | undefined,
  ): Promise<KeyedAnswer> {
    const { own, system, directory } = this.#options;
    const { name, keyed } = kind;
    const handle = handleIn(kind, key);
    const given = operation.type === 'create' ? operation.input : {};
    const input = { ...given, key, principal: keyed.kind === 'principal' ? key : caller.principal };
    const snapshot = initialOf(kind, input);
    const role = roleOf(kind, { key, handle }, caller, snapshot, system);
    const rule = operation.type === 'create' ? true : this.#mayCreate(kind, key, caller);
    if (!role || rule === 'unknown') throw unknownKey(name);
    const next = rule === true ? nextEvents(snapshot, kind.events, role) : { accepts: [] };
    if (operation.type === 'get' || operation.type === 'look') return absent(kind, key, next, operation.type);
    if (operation.type !== 'event' && operation.type !== 'create') throw unknownKey(name);
    const isOnlyForOne = operation.type === 'event' && operation.create === false;
    if (rule !== true || isOnlyForOne)
      throw new HandleError(isOnlyForOne ? 'unknown' : 'refused', `there is no "${name}" with this key.`, {
        tools: ['create'],
      });
    if (operation.type === 'event') {
      const { event } = operation;
      if (!includes(role, event.type)) throw notInRole(event.type, next);
      const why = refusalOf(snapshot, eventFor(kind, event, caller));
      if (why !== undefined) throw new HandleError('refused', why, { next });
    }
    if (caller.isProgram) this.#warnOfMember(kind, key, snapshot);
    // The new instance recognizes what the earlier one has taken.
    const inbox = ended && (await own.inboxOf(ended));
    if (ended && directory.entry(ended.id) !== ended) return this.#run(kind, key, operation, caller, reply);
    if (ended) directory.replace(ended);
    const created = own.createOf(kind, handle, key, input, caller, inbox);
    const entry = directory.entry(actorId(name, handle));
    if (operation.type === 'create' || !entry) return created;
    // The first in the mailbox: other calls of this key may come before the instance is durable.
    const answer = own.callOn(entry, operation, caller, reply);
    answer.catch(() => {});
    await created;
    return answer;
  }

  /** Says once for each machine that the program has become a member of an instance that it creates: no client has its role. */
  #warnOfMember(kind: KeyedMachine, key: string, { context }: AnyMachineSnapshot): void {
    const { roles } = kind.keyed;
    if (!roles || this.#warned.has(kind.name)) return;
    const roleFor = (principal: string): unknown => {
      try {
        return roles.of({ auth: undefined, principal, key, context });
      } catch {
        // It reads the sign-in, which neither has.
        return undefined;
      }
    };
    const role = roleFor(PROGRAM);
    if (typeof role !== 'string' || roleFor(STRANGER) === role) return;
    this.#warned.add(kind.name);
    this.#options.system.log(
      'warning',
      `machine "${kind.name}": the program created an instance, and roles.of gives the principal "${PROGRAM}" the role ${JSON.stringify(role)} in it, which no client can have. Give the role to no creator, or to members that the event names; send with { create: false } if the event is for an instance that exists`,
      { event: 'program' },
    );
  }

  /** @returns `unknown` for a caller who may not create, and so may not know that there is no instance */
  #mayCreate({ name, keyed: { create } }: KeyedMachine, key: string, caller: Caller): true | 'absent' | 'unknown' {
    if (create === 'create') return 'absent';
    if (create === 'event' || caller.isProgram) return true;
    const { system } = this.#options;
    try {
      const may = create({ auth: authIn(caller), principal: caller.principal, key });
      if (may !== true && may !== false)
        system.incident(`create of machine "${name}"`, new TypeError(`expected true or false, got ${describe(may)}`));
      return may === true ? true : 'unknown';
    } catch (error) {
      system.incident(`create of machine "${name}"`, error);
      return 'unknown';
    }
  }
}

export function isKeyed(kind: MachineKind): kind is KeyedMachine {
  return kind.keyed !== undefined;
}

/** The handle of a key. A session's key is a handle itself, because the id of a session is secret. */
export function handleIn({ name, keyed: { kind } }: Pick<KeyedMachine, 'keyed' | 'name'>, key: string): string {
  return kind === 'session' ? key : handleOfKey(name, kind, key);
}

/**
 * Returns the key of a call.
 *
 * @param address the key that it names; undefined for the caller's own. Only the program names that of another caller
 * @throws {HandleError} for a caller without one, or a key of another caller
 */
function keyOf(kind: Pick<KeyedMachine, 'keyed' | 'name'>, address: string | undefined, caller: Caller): string {
  const { keyed, name } = kind;
  if (keyed.kind === 'argument') {
    try {
      return canonicalKey(address);
    } catch (error) {
      throw new HandleError('refused', `${keyed.argument ?? 'key'}: ${messageOf(error)}`);
    }
  }
  if (caller.isProgram || caller.isInstance || caller.inView) {
    const isKey =
      address !== undefined && address !== '' && (keyed.kind !== 'session' || cellIn(address) !== undefined);
    if (!isKey) throw unknownKey(name);
    return address;
  }
  const own = ownKey(kind, caller);
  if (address !== undefined && address !== own) throw unknownKey(name);
  return own;
}

/** The same; undefined for a caller without a key. */
export function keyIfAny(
  kind: Pick<KeyedMachine, 'keyed' | 'name'>,
  address: string | undefined,
  caller: Caller,
): string | undefined {
  try {
    return keyOf(kind, address, caller);
  } catch {
    return undefined;
  }
}

function ownKey({ keyed, name }: Pick<KeyedMachine, 'keyed' | 'name'>, caller: Caller): string {
  switch (keyed.kind) {
    case 'tenant': {
      const auth = authIn(caller);
      const tenant = auth && keyed.tenantOf?.(auth);
      if (typeof tenant === 'string' && tenant !== '') return tenant;
      throw new HandleError('refused', `you belong to no tenant, and each tenant has its own "${name}".`);
    }
    case 'session': {
      const session = caller.session ?? caller.ctx?.session?.id;
      if (session !== undefined) return handleOfKey(name, 'session', session);
      throw new HandleError('refused', `each session has its own "${name}", and this client has no session.`);
    }
    default:
      if (caller.principal !== ANONYMOUS) return caller.principal;
      throw new HandleError('refused', `each user has their own "${name}", and this caller has not signed in.`);
  }
}

/** The principal to which an instance counts. */
export function ownerOfKey({ keyed: { kind }, name }: KeyedMachine, key: string, caller: Caller): string {
  if (kind === 'principal') return key;
  if (kind === 'session') return caller.isProgram || caller.isInstance ? ANONYMOUS : caller.principal;
  return kind === 'tenant' ? tenantOwner(key) : sharedOwner(name);
}

/** The snapshot with which a new instance would begin. */
function initialOf({ name, machine }: KeyedMachine, input: JsonObject): AnyMachineSnapshot {
  try {
    return initialTransition(machine, input)[0];
  } catch (error) {
    throw new HandleError('failed', `a new "${name}" could not start with this input: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function absent(
  { name }: KeyedMachine,
  key: string,
  next: Pick<HandleView, 'accepts' | 'deadEnd'>,
  type: 'get' | 'look',
): KeyedAnswer {
  const view: HandleView = {
    ...{ handle: '', key, machine: name, status: 'absent', state: 'absent', view: undefined },
    ...{ accepts: next.accepts, version: 0, created: '', expires: '' },
  };
  return type === 'get' ? view : { ...view, asks: [], timers: [], blocked: [], now: '' };
}

/** An answer that is no list of problems. */
export function viewIn(answer: KeyedAnswer): HandleView {
  if ('machine' in answer) {
    const { asks, ...view } = answer;
    return asks === undefined ? view : { ...view, asks };
  }
  throw new HandleError('refused', answer.join('\n'));
}
