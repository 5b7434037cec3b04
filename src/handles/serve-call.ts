/** One job of an instance: what it makes of the machine, and what its caller is to be told. */
import type { HandleView } from '../messages/handle-messages.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import type { ServedCall } from './commit.ts';
import { acceptedBy, acceptedInWords, refusalOf } from './event-acceptance.ts';
import { ENDED } from './event-history.ts';
import { HandleError } from './handle-error.ts';
import type { HandleRecord } from './handle-record.ts';
import type { MachineKind } from './machine-definition.ts';

/** @param turn the last one. @throws what the event made the machine throw */
export function serveCall(
  job: QueuedCall,
  entry: HandleRecord,
  kind: MachineKind,
  awake: Activation,
  turn: number,
  viewAt: (turn: number) => HandleView,
): ServedCall {
  const { living } = awake;
  const looked = (): ServedCall => ({ job, answer: { view: viewAt(turn) }, turn, events: [] });
  if (job.type === 'look') return looked();
  if (job.type === 'end') {
    if (entry.status !== 'active') return looked();
    entry.status = 'ended';
    return { job, answer: { view: viewAt(turn + 1) }, turn: turn + 1, events: [{ type: ENDED }] };
  }
  if (entry.status !== 'active')
    return { job, answer: { refusal: isOver(entry, living.snapshot.value) }, turn, events: [] };
  const event = { ...job.event.data, type: job.event.type };
  const why = refusalOf(living.snapshot, event, kind.events);
  if (why !== undefined) {
    const accepts = acceptedBy(living.snapshot, kind.events);
    return { job, answer: { refusal: new HandleError('refused', why, { accepts }) }, turn, events: [] };
  }
  living.send(event);
  const crash = living.takeCrash();
  if (crash) throw crash.error;
  follow(entry, awake);
  return { job, answer: { view: viewAt(turn + 1) }, turn: turn + 1, events: living.takeEvents() };
}

/** What has become of the machine is what has become of the handle. */
export function follow(entry: HandleRecord, { living }: Activation): void {
  if (entry.status !== 'active') return;
  const { status } = living.snapshot;
  if (status === 'done') entry.status = 'done';
  if (status === 'error') entry.status = 'failed';
}

function isOver({ status }: HandleRecord, value: unknown): HandleError {
  switch (status) {
    case 'done':
      return new HandleError(
        'ended',
        `this instance is done, in state ${acceptedInWords(value)}, and takes no more events: get it for its output`,
      );
    case 'failed':
      return new HandleError(
        'ended',
        'this instance has failed, and takes no more events: get it for the reason, and make a new one',
      );
    case 'ended':
    case 'active':
      return new HandleError('ended', 'this instance was ended, and takes no more events: make a new one');
  }
}
