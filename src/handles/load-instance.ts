/** Reads an instance from the store, and decides what it goes on with. */
import { StoreError } from '../store/store.ts';
import type { ActivatedFrom } from './activation.ts';
import { HandleError } from './handle-error.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceDeps } from './instance-deps.ts';
import { readStored, resume, type StoredInstance } from './restore.ts';

export interface LoadedInstance {
  readonly from: Extract<ActivatedFrom, { readonly kept: unknown }>;
  readonly kept: StoredInstance;
  readonly data: string;
  /** Of the machine that has left it so. */
  readonly version: string;
}

/** @throws {StoreError | HandleError} where it is not there, or cannot be read by any machine here */
export async function loadInstance(entry: HandleRecord, host: InstanceDeps): Promise<LoadedInstance> {
  const kind = host.kindOf(entry.name);
  const stored = await host.store.load(entry.id);
  // The store forgets what expires. Everything else that it does not find is damage, and rejects.
  if (!stored) throw unknownHandle(entry.name);
  if (!stored.snapshot)
    throw new StoreError('corrupt', `${entry.id}: expected a snapshot, as with every handle, got none: restore a copy`);
  const { data, version } = stored.snapshot;
  const kept = readStored(data, handleAddress(entry));
  const resumption = resume(kind, version, kept);
  entry.used = Math.max(entry.used, kept.used);
  return { from: { kind, resumption, kept, timers: stored.timers }, kept, data, version };
}

/** The same for a handle that never was and for another's: nobody can tell which (S-04). */
export function unknownHandle(name: string): HandleError {
  return new HandleError('unknown', `there is no such handle of "${name}": list yours, or make a new one`);
}

/** What the caller of a handle is told whose row in the store is damaged: whether it is the caller's, nobody can tell either. */
export function damagedHandle(name: string): HandleError {
  return new HandleError(
    'storage',
    `the storage of this server is damaged where this handle of "${name}" is: nothing has happened, and a new one does not replace it. Ask the operator to restore a copy`,
  );
}

/** What a caller hears where an instance cannot be read, or not be kept. */
export function storageError(error: unknown, incident: string): HandleError {
  const fault = error instanceof StoreError ? error.fault : 'failed';
  if (fault === 'corrupt')
    return new HandleError(
      'failed',
      `the storage of this server is damaged: what it has of this is not what was written, so nothing is served or changed (incident ${incident}). Ask the operator to restore a copy`,
      { incident, cause: error },
    );
  const why =
    fault === 'full'
      ? 'the disk of this server is full, so nothing has happened: try again later'
      : fault === 'busy'
        ? 'the store of this server is busy, so nothing has happened: try again later'
        : 'the store of this server fails, and nobody knows whether this has happened: look at the instance before you try again';
  return new HandleError('storage', `${why} (incident ${incident})`, {
    incident,
    cause: error,
  });
}

/** A call has found its instance leaving memory, and was not served: it may be made again. */
export class Deactivating extends HandleError {
  constructor() {
    super('busy', 'this instance leaves memory now, because its machine is replaced or the server stops: call again');
  }
}
