/** The data that a server holds about each handle, whether or not its instance is in memory: owner, lifetime, status. */

import type { Limits } from '../../core/kernel/limits.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { ActorRow } from '../../core/store/store.ts';
import type { Footprint } from './footprint.ts';
import type { HandleCourse, LiveStatus } from './handle-messages.ts';
import type { MachineKind } from './machine-definition.ts';

/** All dates are milliseconds since 1970. */
export interface HandleRecord {
  readonly handle: string;
  /** The id of its actor in the store. */
  readonly id: string;
  /** The name of its machine. */
  readonly name: string;
  /** Its owner, to which it counts. Of an instance that several principals share, a text that is none of theirs. */
  readonly principal: string;
  /** Its key; undefined without one, and until its instance was in memory. */
  key: string | undefined;
  /** The messages that the earlier instance of its key has taken, for a new one ({@link StoredInstance.inbox}). */
  readonly inbox?: Readonly<Record<string, number>> | undefined;
  readonly created: number;
  /** Date of the last use. */
  used: number;
  status: LiveStatus;
  /** The id in the log under which its machine failed in this process. */
  incident: string | undefined;
  /** The status in the store. */
  written: LiveStatus;
  /** Its invocations are running: the instance is activated after a restart without a call. */
  atWork: boolean;
  /** Something will continue it without a use: a delay, an invocation, or the answer to a question. It is then not idle. */
  pending: boolean;
  /** The dates of its schedules as its timers in the store follow them ({@link planOf}); undefined without schedules. */
  plan: string | undefined;
  /** The span of the request that created it, as a `traceparent`; known once its instance was in memory. */
  trace: string | undefined;
  /** The date in the store at which the store deletes it. */
  forgotten: number;
  /** Its share of the owner's quota. */
  readonly footprint: Footprint;
  /** The latest changes by a person in a view that no model has seen, oldest first. Lost with the process. */
  unseen?: string[] | undefined;
  /** The changes without a call that no model has seen. Lost with the process. */
  course?: HandleCourse | undefined;
}

/** Maximum number of changes that are kept for a model. */
const MAX_UNSEEN = 10;

/** Notes a change by a person in a view, for the next answer to a model. */
export function noteUnseen(entry: HandleRecord, change: string): void {
  entry.unseen = [...(entry.unseen ?? []), change].slice(-MAX_UNSEEN);
}

/** The status of the row of an instance with running invocations. Most rows have the status of the handle. */
const AT_WORK = 'active, at work';
/** The status of the row of an instance that waits for a delay or an answer. */
const PENDING = 'active, pending';
/** Between one of these and the plan of its schedules. */
const PLANNED = ', scheduled ';

/** The stored date of the last use may lag by this fraction of the idle time, because not every use is written. */
const LAG = 8;

export function actorId(name: string, handle: string): string {
  return `handle/${name}/${handle}`;
}

/** The addresses of its resources. */
export function handleUri(machine: string, handle: string): string {
  return `troupe://${machine}/${handle}`;
}

export function chartUri(machine: string, handle: string): string {
  return `${handleUri(machine, handle)}/chart`;
}

/** The handle's address in the inspector and in logs. It is shortened because the full id may be the handle's only protection. */
export function handleAddress({ name, handle }: Pick<HandleRecord, 'name' | 'handle'>): string {
  return `handle/${name}/${handle.slice(0, 8)}`;
}

/** The principal to which the instance of a tenant counts. */
export function tenantOwner(tenant: string): string {
  return `tenant ${tenant}`;
}

/** The principal to which all instances of a machine count that several principals share. */
export function sharedOwner(machine: string): string {
  return `key ${machine}`;
}

/** The resource of an instance with a key. */
export function keyUri(machine: string, key: string): string {
  return handleUri(machine, encodeURIComponent(key));
}

/** The lifetime of the handles of a machine, from the machine's options and the server's limits. */
interface Lifetime {
  readonly ttlMs: number;
  readonly idleMs: number;
  /** It does not expire while it is active, and afterwards for want of use only. */
  readonly keep: boolean;
}

export function lifetimeOf(
  kind: Pick<MachineKind, 'ttlMs' | 'idleMs' | 'keyed'> | undefined,
  principal: string,
  limits: Limits,
): Lifetime {
  const ttlMs = kind?.ttlMs ?? limits.handleTtlMs;
  return {
    ttlMs: principal === ANONYMOUS ? Math.min(ttlMs, limits.handleAnonymousTtlMs) : ttlMs,
    // An author who asks for a longer life wants it also without use.
    idleMs: kind?.idleMs ?? Math.max(kind?.ttlMs ?? 0, limits.handleIdleMs),
    keep: kind?.keyed?.keep === true && principal !== ANONYMOUS,
  };
}

/** Returns the date at which a handle expires; infinite for never. */
export function deadlineOf(
  { created, used, pending, status }: Pick<HandleRecord, 'created' | 'used' | 'pending' | 'status'>,
  { ttlMs, idleMs, keep }: Lifetime,
): number {
  if (keep) return status === 'active' ? Number.POSITIVE_INFINITY : used + idleMs;
  return pending ? created + ttlMs : Math.min(created + ttlMs, used + idleMs);
}

/** The milliseconds for which an expired handle is remembered: not longer than it may live, so that short lives leave little behind. */
function rememberedMs({ ttlMs }: Pick<Lifetime, 'ttlMs'>, limits: Limits): number {
  return Math.min(limits.handleRememberMs, ttlMs);
}

/**
 * Returns the date at which the store may delete the handle. It leaves room for uses that are not written, and for reporting
 * that the handle has expired.
 */
function forgottenAt(entry: HandleRecord, { ttlMs, idleMs, keep }: Lifetime, limits: Limits): number {
  const { created, used, pending, status } = entry;
  const lag = Math.ceil(idleMs / LAG);
  if (keep)
    return (status === 'active' ? Number.POSITIVE_INFINITY : used + idleMs + lag) + rememberedMs({ ttlMs }, limits);
  const life = pending ? created + ttlMs : Math.min(created + ttlMs, used + idleMs + lag);
  return life + rememberedMs({ ttlMs }, limits);
}

/** Returns whether the store would delete the handle too early. */
export function isStale(entry: HandleRecord, lifetime: Lifetime, limits: Limits): boolean {
  const deadline = deadlineOf(entry, lifetime);
  const life = lifetime.keep ? deadline : Math.min(deadline, entry.created + lifetime.ttlMs);
  const needed = life + rememberedMs(lifetime, limits);
  return entry.forgotten < needed;
}

/** Creates the row of a record and notes that it was written. */
export function rowOf(entry: HandleRecord, lifetime: Lifetime, limits: Limits): ActorRow {
  entry.forgotten = forgottenAt(entry, lifetime, limits);
  entry.written = entry.status;
  return {
    id: entry.id,
    kind: 'handle',
    name: entry.name,
    principal: entry.principal,
    status: statusOf(entry),
    created: entry.created,
    expires: Number.isFinite(entry.forgotten) ? entry.forgotten : undefined,
  };
}

function statusOf({ status, atWork, pending, plan }: HandleRecord): string {
  if (status !== 'active' || !pending) return status;
  return `${atWork ? AT_WORK : PENDING}${plan === undefined ? '' : PLANNED + plan}`;
}

/** Creates the record of a row. Its date of last use is as exact as the row allows. */
export function recordOf(row: ActorRow, lifetime: Lifetime, limits: Limits, footprint: Footprint): HandleRecord {
  const { id, name, principal, created, expires = Number.POSITIVE_INFINITY } = row;
  const [status, plan] = row.status.split(PLANNED);
  const { idleMs } = lifetime;
  const known = status === 'done' || status === 'failed' || status === 'ended' ? status : 'active';
  const pending = status === AT_WORK || status === PENDING;
  const lastUsed = Number.isFinite(expires) ? expires - rememberedMs(lifetime, limits) - idleMs : created;
  return {
    handle: id.slice(actorId(name, '').length),
    id,
    name,
    principal,
    key: undefined,
    created,
    used: pending ? created : Math.max(created, lastUsed),
    status: known,
    incident: undefined,
    written: known,
    atWork: status === AT_WORK,
    pending,
    plan,
    trace: undefined,
    forgotten: expires,
    footprint,
  };
}
