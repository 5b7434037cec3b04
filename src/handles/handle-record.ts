/** What a server knows of each handle while it is not in memory: whose it is, how long it lives, and what became of it. */

import type { Limits } from '../limits.ts';
import type { HandleStatus } from '../messages/handle-messages.ts';
import { ANONYMOUS } from '../quota.ts';
import type { ActorRow } from '../store/store.ts';
import type { Footprint } from './footprint.ts';
import type { MachineKind } from './machine-definition.ts';

/** All dates in milliseconds since 1970. */
export interface HandleRecord {
  readonly handle: string;
  /** In the store. */
  readonly id: string;
  /** Of its machine. */
  readonly name: string;
  readonly principal: string;
  readonly created: number;
  /** When it was used last. */
  used: number;
  status: HandleStatus;
  /** The status as the store has it. */
  written: HandleStatus;
  /** What it invoked runs: it goes on after a restart without being asked. */
  atWork: boolean;
  /** When the store forgets it, as it was written last. */
  forgotten: number;
  /** What it takes of its owner's quota. */
  readonly footprint: Footprint;
}

/** The row's status of an instance that is at work; the others have that of the handle. */
const AT_WORK = 'active, at work';

/** Of the time for want of use, the part by which what the store knows of it may lag behind: not every look is written. */
const LAG = 8;

export function actorId(name: string, handle: string): string {
  return `handle/${name}/${handle}`;
}

/** The handle's place in the inspector and in logs: the id itself may be the key to it. */
export function handleAddress({ name, handle }: Pick<HandleRecord, 'name' | 'handle'>): string {
  return `handle/${name}/${handle.slice(0, 6)}`;
}

/** How long handles of a machine live, by what its author says and the server allows. */
export interface Lifetime {
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
    idleMs: kind?.idleMs ?? limits.handleIdleMs,
  };
}

/** When a handle expires. */
export function deadlineOf({ created, used }: HandleRecord, { ttlMs, idleMs }: Lifetime): number {
  return Math.min(created + ttlMs, used + idleMs);
}

/** When the store may forget it: late enough for the uses that are not written, and for telling that it has expired. */
function forgottenAt(entry: HandleRecord, { ttlMs, idleMs }: Lifetime, limits: Limits): number {
  const { created, used } = entry;
  return Math.min(created + ttlMs, used + idleMs + Math.ceil(idleMs / LAG)) + limits.handleRememberMs;
}

/** Whether the store would forget it too early, as things stand. */
export function isStale(entry: HandleRecord, lifetime: Lifetime, limits: Limits): boolean {
  const needed = Math.min(deadlineOf(entry, lifetime), entry.created + lifetime.ttlMs) + limits.handleRememberMs;
  return entry.forgotten < needed;
}

/** The entry's row, written as it stands now. */
export function rowOf(entry: HandleRecord, lifetime: Lifetime, limits: Limits): ActorRow {
  entry.forgotten = forgottenAt(entry, lifetime, limits);
  entry.written = entry.status;
  return {
    id: entry.id,
    kind: 'handle',
    name: entry.name,
    principal: entry.principal,
    status: entry.status === 'active' && entry.atWork ? AT_WORK : entry.status,
    created: entry.created,
    expires: entry.forgotten,
  };
}

/** The entry of a row; when it was used last is known only as well as the row says. */
export function recordOf(row: ActorRow, lifetime: Lifetime, limits: Limits, footprint: Footprint): HandleRecord {
  const { id, name, principal, created, status, expires = Number.POSITIVE_INFINITY } = row;
  const { idleMs } = lifetime;
  const known = status === 'done' || status === 'failed' || status === 'ended' ? status : 'active';
  return {
    handle: id.slice(actorId(name, '').length),
    id,
    name,
    principal,
    created,
    used: Math.max(created, expires - limits.handleRememberMs - idleMs),
    status: known,
    written: known,
    atWork: status === AT_WORK,
    forgotten: expires,
    footprint,
  };
}
