/** The one way to step a chart of `machines/` that has context: by XState, without effects, recorded if an inspection listens. */
import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventFrom,
  type InputFrom,
  initialTransition,
  type SnapshotFrom,
  transition,
} from 'xstate';
import { recordStep, type StepRecorder } from './inspection/step-recorder.ts';

/** The initial state of a chart. @param input what its context begins with */
export function initial<M extends AnyStateMachine>(machine: M, input?: InputFrom<M>): SnapshotFrom<M> {
  // The snapshots of a machine are of its own type.
  return initialTransition<AnyStateMachine>(machine, input)[0] as SnapshotFrom<M>;
}

/**
 * The state after an event. Runs no effects: the caller does what follows.
 *
 * @returns undefined if the state does not accept the event
 */
export function stepMachine<M extends AnyStateMachine>(
  machine: M,
  state: SnapshotFrom<M>,
  event: EventFrom<M> & AnyEventObject,
  recorder?: StepRecorder,
): SnapshotFrom<M> | undefined {
  const before: AnyMachineSnapshot = state;
  const accepts = before.status === 'active' && before.can(event);
  const next = accepts ? transition<AnyStateMachine>(machine, before, event)[0] : undefined;
  if (recorder?.inspection.on) recordStep(machine, before, event, next ?? before, recorder);
  // The snapshots of a machine are of its own type.
  return next as SnapshotFrom<M> | undefined;
}
