/** Serves one call of an instance: applies it to the machine and prepares the answer. */

import { pathOf } from '../../core/kernel/charts/paths.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import type { ServedCall } from './commit.ts';
import { continued } from './course.ts';
import { acceptedInWords, refusalOf } from './event-acceptance.ts';
import { ENDED } from './event-history.ts';
import { recordFailure } from './failures.ts';
import { HandleError } from './handle-error.ts';
import type { HandleView } from './handle-messages.ts';
import type { HandleRecord } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import { nextEvents } from './instance-view.ts';
import type { MachineKind } from './machine-definition.ts';

/**
 * @param turn the last turn
 * @throws anything that the machine throws on this event
 */
export function serveCall(
  call: QueuedCall,
  entry: HandleRecord,
  kind: MachineKind,
  activation: Activation,
  turn: number,
  host: InstanceServices,
  viewAt: (turn: number) => HandleView,
): ServedCall {
  const { hosted, messages } = activation;
  const unchanged = (): ServedCall => ({ call, answer: { view: viewAt(turn) }, turn, events: [] });
  if (call.type === 'get') return unchanged();
  if (call.type === 'end') {
    if (entry.status !== 'active') return unchanged();
    entry.status = 'ended';
    return { call, answer: { view: viewAt(turn + 1) }, turn: turn + 1, events: [{ type: ENDED }] };
  }
  const { message } = call;
  if (message?.from && messages.hasTaken(message.from.sender, message.from.seq)) return unchanged();
  if (entry.status !== 'active')
    return { call, answer: { refusal: isOver(entry, hosted.snapshot.value) }, turn, events: [] };
  const event = { ...call.event.data, type: call.event.type };
  const refused = refusalOf(hosted.snapshot, event);
  if (refused !== undefined && message) {
    if (message.from) messages.taken(message.from.sender, message.from.seq);
    return { call, answer: { view: viewAt(turn + 1) }, turn: turn + 1, events: [event], ignored: true };
  }
  if (refused !== undefined) {
    const next = nextEvents(hosted.snapshot, kind.events);
    return { call, answer: { refusal: new HandleError('refused', refused, { next }) }, turn, events: [] };
  }
  const before = pathOf(hosted.snapshot);
  messages.hops = message?.hops ?? 0;
  hosted.send(event);
  messages.hops = 0;
  const crash = hosted.takeCrash();
  if (crash) throw crash.error;
  if (message?.from) messages.taken(message.from.sender, message.from.seq);
  follow(entry, activation, host);
  const course = continued({ states: [before], reasons: [] }, pathOf(hosted.snapshot), []);
  return { call, answer: { view: { ...viewAt(turn + 1), course } }, turn: turn + 1, events: hosted.takeEvents() };
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
