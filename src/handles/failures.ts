/** What is said, logged and set aside when an instance crashes. */
import type { AnyEventObject } from 'xstate';
import { messageOf, stackOf } from '../protocol/json.ts';
import type { DeadLetter } from '../store/store.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import { historyOf } from './event-history.ts';
import { HandleError } from './handle-error.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceDeps } from './instance-deps.ts';
import { NotSerializable } from './serializable.ts';

/** Most that is kept of mail that was set aside, in characters. */
const MOST_MAIL = 65_536;

/** What clients learn of a crash: what they can do something about, and for the rest what the operator finds in the log. */
function shortly(error: unknown, incident: string): string {
  return error instanceof NotSerializable ? `${error.message} (incident ${incident})` : `incident ${incident}`;
}

export function creationFailed(entry: HandleRecord, host: InstanceDeps, error: unknown): HandleError {
  const incident = host.incident(`${handleAddress(entry)}, which was to begin`, error);
  return new HandleError(
    'failed',
    `a new "${entry.name}" could not begin with this input: ${shortly(error, incident)}`,
    {
      incident,
      cause: error,
    },
  );
}

/** Mail that crashed its instance as often as it may: the letter that is set aside, and what its sender hears. */
export function poisonLetter(
  entry: HandleRecord,
  host: InstanceDeps,
  job: QueuedCall,
  error: unknown,
): { readonly letter: DeadLetter; readonly refusal: HandleError } {
  const incident = host.incident(
    `${handleAddress(entry)}, which crashed at ${nameOf(job)} ${job.attempts} times`,
    error,
  );
  const mail: AnyEventObject = job.type === 'event' ? { ...job.event.data, type: job.event.type } : { type: job.type };
  const refusal = new HandleError('failed', setAside(job, job.attempts, shortly(error, incident)), {
    incident,
    cause: error,
  });
  return { letter: letterOf(entry, host, [mail], job.attempts, error, incident), refusal };
}

/** What the sender of an event hears that was set aside before, and is not tried again. */
export function setAsideBefore(job: QueuedCall, deaths: number, incident: string): HandleError {
  return new HandleError('failed', setAside(job, deaths, `incident ${incident}`), { incident });
}

function setAside(job: QueuedCall, times: number, why: string): string {
  return `${nameOf(job)} crashed this instance ${times} times and was set aside: nothing of it has happened, and the instance is as it was before (${why})`;
}

/** An instance that crashed too often: the letter, and why it failed. */
export function crashLimitReached(
  entry: HandleRecord,
  host: InstanceDeps,
  what: readonly AnyEventObject[],
  crashes: number,
  error: unknown,
): { readonly letter: DeadLetter; readonly refusal: HandleError } {
  const incident = host.incident(`${handleAddress(entry)}, which crashed too often and was set aside`, error);
  const refusal = new HandleError(
    'failed',
    `this instance crashed ${crashes} times in a row and was set aside: it takes no more events (incident ${incident})`,
    { incident, cause: error },
  );
  return { letter: letterOf(entry, host, what, crashes, error, incident), refusal };
}

/** Why mail, or an instance, is set aside that threw nothing: nobody was left to hear it. */
export function endedBy(deaths: number): Error {
  return new Error(`it has ended the whole process ${deaths} times`);
}

function letterOf(
  { id: actor }: HandleRecord,
  { date }: InstanceDeps,
  mail: readonly AnyEventObject[],
  attempts: number,
  error: unknown,
  incident: string,
): DeadLetter {
  return { actor, mail: historyOf(mail, MOST_MAIL), error: textOf(error), attempts, at: Math.round(date()), incident };
}

function textOf(error: unknown): string {
  // Copied: a part of a string keeps all of it in memory.
  return Buffer.from((stackOf(error) || messageOf(error)).slice(0, MOST_MAIL)).toString();
}

function nameOf(job: QueuedCall): string {
  return job.type === 'event' ? `"${job.event.type}"` : `"${job.type}"`;
}
