/** The data that a server holds about each handle, whether or not its instance is in memory: owner, lifetime, status. */

import type { Limits } from '../../core/kernel/limits.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { ActorRow } from '../../core/store/store.ts';
import type { Footprint } from './footprint.ts';
import type { HandleCourse, HandleStatus } from './handle-messages.ts';
import type { MachineKind } from './machine-definition.ts';

/** All dates are milliseconds since 1970. */
export interface HandleRecord {
  readonly handle: string;
  /** The id of its actor in the store. */
  readonly id: string;
  /** The name of its machine. */
  readonly name: string;
  readonly principal: string;
  readonly created: number;
  /** Date of the last use. */
  used: number;
  status: HandleStatus;
  /** The id in the log under which its machine failed in this process. */
  incident: string | undefined;
  /** The status in the store. */
  written: HandleStatus;
  /** Its invocations are running: the instance is activated after a restart without a call. */
  atWork: boolean;
  /** Something will continue it without a use: a delay, an invocation, or the answer to a question. It is then not idle. */
  pending: boolean;
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

/** The lifetime of the handles of a machine, from the machine's options and the server's limits. */
interface Lifetime {
  readonly ttlMs: number;
  readonly idleMs: number;
}

export function lifetimeOf(
  kind: Pick<MachineKind, 'ttlMs' | 'idleMs'> | undefined,
  principal: string,
  limits: Limits,
): Lifetime {
  const ttlMs = kind?.ttlMs ?? limits.handleTtlMs;
  return {
    ttlMs: principal === ANONYMOUS ? Math.min(ttlMs, limits.handleAnonymousTtlMs) : ttlMs,
    // An author who asks for a longer life wants it also without use.
    idleMs: kind?.idleMs ?? Math.max(kind?.ttlMs ?? 0, limits.handleIdleMs),
  };
}

/** Returns the date at which a handle expires. */
export function deadlineOf({ created, used, pending }: HandleRecord, { ttlMs, idleMs }: Lifetime): number {
  return pending ? created + ttlMs : Math.min(created + ttlMs, used + idleMs);
}

/** The milliseconds for which an expired handle is remembered: not longer than it may live, so that short lives leave little behind. */
function rememberedMs({ ttlMs }: Lifetime, limits: Limits): number {
  return Math.min(limits.handleRememberMs, ttlMs);
}

/**
 * Returns the date at which the store may delete the handle. It leaves room for uses that are not written, and for reporting
 * that the handle has expired.
 */
function forgottenAt(entry: HandleRecord, { ttlMs, idleMs }: Lifetime, limits: Limits): number {
  const { created, used, pending } = entry;
  const life = pending ? created + ttlMs : Math.min(created + ttlMs, used + idleMs + Math.ceil(idleMs / LAG));
  return life + rememberedMs({ ttlMs, idleMs }, limits);
}

/** Returns whether the store would delete the handle too early. */
export function isStale(entry: HandleRecord, lifetime: Lifetime, limits: Limits): boolean {
  const needed = Math.min(deadlineOf(entry, lifetime), entry.created + lifetime.ttlMs) + rememberedMs(lifetime, limits);
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
    expires: entry.forgotten,
  };
}

function statusOf({ status, atWork, pending }: HandleRecord): string {
  if (status !== 'active' || !pending) return status;
  return atWork ? AT_WORK : PENDING;
}

/** Creates the record of a row. Its date of last use is as exact as the row allows. */
export function recordOf(row: ActorRow, lifetime: Lifetime, limits: Limits, footprint: Footprint): HandleRecord {
  const { id, name, principal, created, status, expires = Number.POSITIVE_INFINITY } = row;
  const { idleMs } = lifetime;
  const known = status === 'done' || status === 'failed' || status === 'ended' ? status : 'active';
  const pending = status === AT_WORK || status === PENDING;
  return {
    handle: id.slice(actorId(name, '').length),
    id,
    name,
    principal,
    created,
    used: pending ? created : Math.max(created, expires - rememberedMs(lifetime, limits) - idleMs),
    status: known,
    incident: undefined,
    written: known,
    atWork: status === AT_WORK,
    pending,
    trace: undefined,
    forgotten: expires,
    footprint,
  };
}
