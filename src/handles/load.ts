/** Reads an instance from the store, and decides what it goes on with. */
import { StoreError } from '../store/store.ts';
import type { From } from './awake.ts';
import { addressOf, type Entry } from './entry.ts';
import { HandleError } from './error.ts';
import type { InstanceHost } from './host.ts';
import { type KeptInstance, readKept, resume } from './restoring.ts';

export interface Loaded {
  readonly from: Extract<From, { readonly kept: unknown }>;
  readonly kept: KeptInstance;
  readonly data: string;
  /** Of the machine that has left it so. */
  readonly version: string;
}

/** @throws {StoreError | HandleError} where it is not there, or cannot be read by any machine here */
export async function loadInstance(entry: Entry, host: InstanceHost): Promise<Loaded> {
  const kind = host.kindOf(entry.name);
  const stored = await host.store.load(entry.id);
  if (!stored?.snapshot) throw unknownHandle(entry.name);
  const { data, version } = stored.snapshot;
  const kept = readKept(data, addressOf(entry));
  const resumption = resume(kind, version, kept);
  entry.used = Math.max(entry.used, kept.used);
  return { from: { kind, resumption, kept, timers: stored.timers }, kept, data, version };
}

/** The same for a handle that never was and for another's: nobody can tell which (S-04). */
export function unknownHandle(name: string): HandleError {
  return new HandleError('unknown', `there is no such handle of "${name}": list yours, or make a new one`);
}

/** What a caller hears where an instance cannot be read, or not be kept. */
export function storageError(error: unknown, incident: string): HandleError {
  const fault = error instanceof StoreError ? error.fault : 'failed';
  if (fault === 'corrupt')
    return new HandleError(
      'failed',
      `what was kept of this instance is not what was written, so it is not served (incident ${incident})`,
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
export class Leaving extends HandleError {
  constructor() {
    super('busy', 'this instance leaves memory now, because its machine is replaced or the server stops: call again');
  }
}
