/** Serves one call of an instance: applies it to the machine and prepares the answer. */

import type { AnyEventObject } from 'xstate';
import { pathOf } from '../../core/kernel/charts/paths.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import type { ServedCall } from './commit.ts';
import { continued } from './course.ts';
import { acceptedInWords, refusalOf } from './event-acceptance.ts';
import { ENDED } from './event-history.ts';
import { recordFailure } from './failures.ts';
import { HandleError } from './handle-error.ts';
import type { HandleEvent, HandleView } from './handle-messages.ts';
import type { HandleRecord } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import { nextEvents } from './instance-view.ts';
import { unknownKey } from './load-instance.ts';
import type { Caller, MachineKind } from './machine-definition.ts';
import type { Role } from './role-types.ts';
import { includes, NO_RIGHT, roleOf } from './roles.ts';

/** The events that a caller may send next. */
type Next = Pick<HandleView, 'accepts' | 'deadEnd'>;

/**
 * @param turn the last turn
 * @param isQuarantined the event is that of a slot, and may not run again: the slot passes without it
 * @throws anything that the machine throws on this event
 */
export function serveCall(
  call: QueuedCall,
  entry: HandleRecord,
  kind: MachineKind,
  activation: Activation,
  turn: number,
  host: InstanceServices,
  viewAt: (turn: number, role: Role) => HandleView,
  isQuarantined = false,
): ServedCall {
  const { hosted, messages, schedules } = activation;
  const { caller } = call;
  const refused = (refusal: HandleError): ServedCall => ({ call, answer: { refusal }, turn, events: [] });
  const { message, slot } = call.type === 'event' ? call : {};
  // A repetition counts as taken, whatever has become of the role of its sender.
  if (message?.from && messages.hasTaken(message.from.sender, message.from.seq))
    return { call, answer: { view: viewAt(turn, NO_RIGHT) }, turn, events: [] };
  // Decided here and now: nothing can change between this and the event.
  const role = roleOf(kind, entry, caller, hosted.snapshot, host);
  if (!role) return refused(unknownKey(kind.name));
  const unchanged = (): ServedCall => ({ call, answer: { view: viewAt(turn, role) }, turn, events: [] });
  if (call.type === 'get') return unchanged();
  if (call.type === 'end') {
    if (!includes(role, 'end')) return refused(notInRole('end', nextEvents(hosted.snapshot, kind.events, role)));
    if (entry.status !== 'active') return unchanged();
    entry.status = 'ended';
    return { call, answer: { view: viewAt(turn + 1, role) }, turn: turn + 1, events: [{ type: ENDED }] };
  }
  if (slot && !(entry.status === 'active' && schedules.take(slot))) return unchanged();
  if (entry.status !== 'active') return refused(isOver(entry, hosted.snapshot.value));
  const { type } = call.event;
  const next = (): Next => nextEvents(hosted.snapshot, kind.events, role);
  if (!includes(role, type)) return refused(notInRole(type, next()));
  const event = eventFor(kind, call.event, caller);
  const noted = (): ServedCall => {
    return { call, answer: { view: viewAt(turn + 1, role) }, turn: turn + 1, events: [event], ignored: true };
  };
  if (slot && (slot.slot.skipped || isQuarantined)) return noted();
  const why = refusalOf(hosted.snapshot, event);
  if (why !== undefined && message) {
    if (message.from) messages.taken(message.from.sender, message.from.seq);
    return noted();
  }
  if (why !== undefined && slot) return noted();
  if (why !== undefined) return refused(new HandleError('refused', why, { next: next() }));
  // The event may take the role away.
  const roleAfter = (): Role => roleOf(kind, entry, caller, hosted.snapshot, host) ?? NO_RIGHT;
  const before = pathOf(hosted.snapshot);
  messages.hops = message?.hops ?? 0;
  hosted.send(event);
  messages.hops = 0;
  const crash = hosted.takeCrash();
  if (crash) throw crash.error;
  if (message?.from) messages.taken(message.from.sender, message.from.seq);
  follow(entry, activation, host);
  const course = continued({ states: [before], reasons: [] }, pathOf(hosted.snapshot), []);
  return {
    call,
    answer: { view: { ...viewAt(turn + 1, roleAfter()), course } },
    turn: turn + 1,
    events: hosted.takeEvents(),
  };
}

/** The event as the machine receives it: a message, and one of an instance that several callers share, names its sender. */
export function eventFor(
  { keyed }: Pick<MachineKind, 'keyed'>,
  { type, data }: HandleEvent,
  { principal, isInstance }: Pick<Caller, 'principal' | 'isInstance'>,
): AnyEventObject {
  return keyed || isInstance ? { ...data, by: principal, type } : { ...data, type };
}

/** The error for an event that a caller's role does not include. */
export function notInRole(does: string, next: Next): HandleError {
  return new HandleError('refused', `"${does}" is not open to you: your role does not include it.`, { next });
}

/** Copies the final status of the machine to its handle. */
export function follow(entry: HandleRecord, { hosted }: Activation, host: InstanceServices): void {
  if (entry.status !== 'active') return;
  const { status, error } = hosted.snapshot;
  if (status === 'done') entry.status = 'done';
  if (status === 'error') {
    entry.status = 'failed';
    recordFailure(entry, host, error);
  }
}

function isOver({ status }: HandleRecord, value: unknown): HandleError {
  switch (status) {
    case 'done':
      return new HandleError(
        'ended',
        `this instance is done (in state ${acceptedInWords(value)}) and accepts no more events.`,
        { tools: ['get'] },
      );
    case 'failed':
      return new HandleError('ended', 'this instance has failed and accepts no more events.', {
        tools: ['get', 'create'],
      });
    case 'ended':
    case 'active':
      return new HandleError('ended', 'this instance has ended and accepts no more events.', { tools: ['create'] });
  }
}
