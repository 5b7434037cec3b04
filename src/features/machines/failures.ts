/** Errors, log entries and dead letters for instances that crash. */
import type { AnyEventObject } from 'xstate';
import { isToolError } from '../../core/protocol/errors.ts';
import { isObject, messageOf, stackOf } from '../../core/protocol/json.ts';
import type { DeadLetter } from '../../core/store/store.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import { historyOf } from './event-history.ts';
import { HandleError } from './handle-error.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import { NotSerializable, type TooLarge } from './serializable.ts';

/** Maximum length of quarantined mail, in characters. */
const MOST_MAIL = 65_536;

/** Explains a crash to clients: the cause if it was written for them, otherwise only the incident in the log. */
function shortly(error: unknown, { errors }: InstanceServices, incident: string): string {
  const shown = error instanceof NotSerializable || isToolError(error) || errors === 'message';
  return shown ? `${messageOf(error)} (incident ${incident})` : `incident ${incident}`;
}

/** A machine has failed: logs its error, unless the author wrote it for the client, and records it. */
export function recordFailure(entry: HandleRecord, host: InstanceServices, error: unknown): void {
  const actor = handleAddress(entry);
  entry.incident = isToolError(error) ? undefined : host.incident(actor, error);
  const { inspection } = host;
  if (inspection.on)
    inspection.record({ type: 'failed', actor, element: `machine "${entry.name}"`, error, incident: entry.incident });
}

/** Explains to clients why a machine has failed. @param error as thrown, or as the store restores it */
export function failureOf(entry: HandleRecord, { errors }: InstanceServices, error: unknown): string {
  const { name, message } = isObject(error) ? error : {};
  if (errors === 'masked' && name !== 'ToolError') {
    const found = entry.incident === undefined ? '' : `incident ${entry.incident}; `;
    return `the machine failed (${found}the server's log has the details)`;
  }
  return message !== undefined && !(error instanceof Error) ? messageOf(message) : messageOf(error);
}

export function creationFailed(entry: HandleRecord, host: InstanceServices, error: unknown): HandleError {
  const incident = host.incident(`starting ${handleAddress(entry)}`, error);
  return new HandleError(
    'failed',
    `a new "${entry.name}" could not start with this input: ${shortly(error, host, incident)}`,
    {
      incident,
      cause: error,
    },
  );
}

/** Creates the dead letter of mail that crashed its instance too often, and the error for its sender. */
export function poisonLetter(
  entry: HandleRecord,
  host: InstanceServices,
  call: QueuedCall,
  error: unknown,
): { readonly letter: DeadLetter; readonly refusal: HandleError } {
  const incident = host.incident(`${handleAddress(entry)} crashed ${call.attempts} times at ${nameOf(call)}`, error);
  const mail: AnyEventObject =
    call.type === 'event' ? { ...call.event.data, type: call.event.type } : { type: call.type };
  const refusal = new HandleError('failed', quarantineText(call, call.attempts, shortly(error, host, incident)), {
    incident,
    cause: error,
  });
  return { letter: letterOf(entry, host, [mail], call.attempts, error, incident), refusal };
}

/** Creates the error for an event that would make its instance exceed a limit. */
export function tooLarge(call: QueuedCall, error: TooLarge): HandleError {
  return new HandleError(
    'refused',
    `${nameOf(call)} is rejected because its result does not fit: ${error.message}. Nothing of it has happened, and the instance is unchanged. Send less.`,
    { cause: error },
  );
}

/** Creates the error for an event that was quarantined earlier and is not tried again. */
export function quarantinedBefore(call: QueuedCall, deaths: number, incident: string): HandleError {
  return new HandleError('failed', quarantineText(call, deaths, `incident ${incident}`), { incident });
}

function quarantineText(call: QueuedCall, times: number, why: string): string {
  return `${nameOf(call)} crashed this instance ${times} times and was quarantined. It had no effect: the instance is unchanged (${why})`;
}

/** Creates the dead letter of an instance that crashed too often, and its failure. */
export function crashLimitReached(
  entry: HandleRecord,
  host: InstanceServices,
  what: readonly AnyEventObject[],
  crashes: number,
  error: unknown,
): { readonly letter: DeadLetter; readonly refusal: HandleError } {
  const incident = host.incident(`${handleAddress(entry)} crashed too often and was quarantined`, error);
  const refusal = new HandleError(
    'failed',
    `this instance crashed ${crashes} times in a row and was quarantined. It accepts no more events (incident ${incident})`,
    { incident, cause: error },
  );
  return { letter: letterOf(entry, host, what, crashes, error, incident), refusal };
}

/** Creates the error for mail, or an instance, that ended the process and left no error of its own. */
export function endedBy(deaths: number): Error {
  return new Error(`it crashed the whole process ${deaths} times`);
}

function letterOf(
  { id: actor, name }: HandleRecord,
  { audit, date }: InstanceServices,
  mail: readonly AnyEventObject[],
  attempts: number,
  error: unknown,
  incident: string,
): DeadLetter {
  audit?.send({ type: 'dead letter', element: `machine ${name}`, incident });
  return { actor, mail: historyOf(mail, MOST_MAIL), error: textOf(error), attempts, at: Math.round(date()), incident };
}

function textOf(error: unknown): string {
  // Copy the text, because a slice of a string retains the whole string.
  return Buffer.from((stackOf(error) || messageOf(error)).slice(0, MOST_MAIL)).toString();
}

function nameOf(call: QueuedCall): string {
  return call.type === 'event' ? `"${call.event.type}"` : `"${call.type}"`;
}
