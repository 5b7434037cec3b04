/** Serves one call of an instance: applies it to the machine and prepares the answer. */
import type { HandleView } from '../messages/handle-messages.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import type { ServedCall } from './commit.ts';
import { acceptedBy, acceptedInWords, refusalOf } from './event-acceptance.ts';
import { ENDED } from './event-history.ts';
import { HandleError } from './handle-error.ts';
import type { HandleRecord } from './handle-record.ts';
import type { MachineKind } from './machine-definition.ts';

/**
 * @param turn the last turn
 * @throws anything that the machine throws on this event
 */
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

/** Copies the final status of the machine to its handle. */
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
        `this instance is done (in state ${acceptedInWords(value)}) and accepts no more events. Get it to read its output.`,
      );
    case 'failed':
      return new HandleError(
        'ended',
        'this instance has failed and accepts no more events. Get it to read the reason, and create a new one.',
      );
    case 'ended':
    case 'active':
      return new HandleError('ended', 'this instance has ended and accepts no more events. Create a new one.');
  }
}
