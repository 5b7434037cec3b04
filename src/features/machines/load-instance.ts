/** Loads an instance from the store and selects the machine that resumes it. */
import { StoreError } from '../../core/store/store.ts';
import type { ActivatedFrom } from './activation.ts';
import { HandleError } from './handle-error.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import { readStored, resume, type StoredInstance } from './restore.ts';

interface LoadedInstance {
  readonly from: Extract<ActivatedFrom, { readonly stored: unknown }>;
  readonly stored: StoredInstance;
  readonly data: string;
  /** The version of the machine that stored it. */
  readonly version: string;
}

/** @throws {StoreError | HandleError} if it is missing, or no machine here can read it */
export async function loadInstance(entry: HandleRecord, host: InstanceServices): Promise<LoadedInstance> {
  const kind = host.machines.kindOf(entry.name);
  const row = await host.store.load(entry.id);
  // The store deletes expired handles. Any other missing handle is damage, and loading it throws.
  if (!row) throw unknownHandle(entry.name);
  if (!row.snapshot) throw new StoreError('corrupt', `${entry.id}: expected a snapshot, got none. Restore a backup`);
  const { data, version } = row.snapshot;
  const stored = readStored(data, handleAddress(entry));
  const resumption = resume(kind, version, stored);
  entry.used = Math.max(entry.used, stored.used);
  entry.trace = stored.trace;
  entry.key = stored.key;
  return { from: { kind, resumption, stored, timers: row.timers }, stored, data, version };
}

/** The same error for a handle that does not exist and for one of another principal (S-04). */
export function unknownHandle(name: string): HandleError {
  return new HandleError('unknown', `unknown handle of "${name}".`, { tools: ['list', 'create'] });
}

/** The same error for a key without an instance that the caller may know of. */
export function unknownKey(name: string): HandleError {
  return new HandleError('unknown', `no "${name}" that you may use has this key.`);
}

/** The error for a handle whose row in the store is damaged. It does not reveal whether the handle belongs to the caller. */
export function damagedHandle(name: string): HandleError {
  return new HandleError(
    'storage',
    `the stored data of this handle of "${name}" is damaged. Nothing has happened, and a new handle does not replace this one. Ask the operator to restore a backup.`,
  );
}

/** The error for an instance that cannot be read or persisted. */
export function storageError(error: unknown, incident: string): HandleError {
  const fault = error instanceof StoreError ? error.fault : 'failed';
  if (fault === 'corrupt')
    return new HandleError(
      'failed',
      `the stored data is damaged, so the server neither reads nor changes it (incident ${incident}). Ask the operator to restore a backup.`,
      { incident, cause: error },
    );
  const why =
    fault === 'full'
      ? 'the disk of this server is full. Nothing has happened. Try again later'
      : fault === 'busy'
        ? 'the store of this server is busy. Nothing has happened. Try again later'
        : 'the store of this server failed, and the outcome is unknown. Look at the instance before you try again';
  return new HandleError('storage', `${why} (incident ${incident})`, {
    incident,
    cause: error,
  });
}

/** The error for a call whose key could not be persisted, so that the call did not begin. */
export function callNotBegun(cause: StoreError): HandleError {
  const why = cause.fault === 'full' ? 'the disk of this server is full' : 'the store of this server does not respond';
  return new HandleError('storage', `${why}. Nothing has happened. Try again later`, { cause });
}

/** The instance is leaving memory and has not served the call. The call may be repeated. */
export class Deactivating extends HandleError {
  constructor() {
    super(
      'busy',
      'this instance is leaving memory because its machine is being replaced or the server is stopping. Call again.',
    );
  }
}

export class MovedElsewhere extends HandleError {
  /** True if the instance has not served the call. */
  readonly unserved: boolean;

  constructor(unserved: boolean) {
    super('busy', 'another node takes over this instance. Call again.');
    this.unserved = unserved;
  }
}
