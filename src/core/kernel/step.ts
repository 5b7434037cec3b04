/** The one way to step a chart of `machines/` that has no context: without effects, recorded if an inspection listens. */
import type { ChartState } from '../../../machines/chart/chart.ts';
import { recordStep, type StepRecorder } from './inspection/step-recorder.ts';

/**
 * The state after an event. Runs no effects: the caller does what follows. The next state depends on the state and the type of
 * the event only, so each step is computed once, and from then on costs a look-up (docs/adr/0026-charts-as-tables.md).
 *
 * @returns undefined if the state does not accept the event
 */
export function step<E extends { readonly type: string }, T extends string, P extends string>(
  state: ChartState<E, T, P>,
  event: E,
  recorder?: StepRecorder,
): ChartState<E, T, P> | undefined {
  const next = state.step(event.type);
  if (recorder?.inspection.on) {
    const { machine, snapshot } = state.charted();
    recordStep(machine, snapshot, event, (next ?? state).charted().snapshot, recorder);
  }
  return next;
}
