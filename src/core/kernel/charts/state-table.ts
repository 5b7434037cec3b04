/**
 * A statechart without context as a table. Each state and each transition is computed once, by XState; from then on a step
 * costs one look-up, so that the data plane can obey the chart (docs/adr/0001-requests-step-no-chart.md).
 */
import { type AnyMachineSnapshot, type AnyStateMachine, initialTransition, transition } from 'xstate';
import { pathOf } from './paths.ts';

/** One state of the chart. Each state exists once, so states can be compared. */
export interface TableState<Event extends string, Tag extends string> {
  /** Such as `active.idle`. */
  readonly path: string;
  /** True for a final state, which accepts no event. */
  readonly final: boolean;
  has(tag: Tag): boolean;
  /** The state after an event; undefined if this state does not accept the event. */
  after(event: Event): TableState<Event, Tag> | undefined;
}

/** Returns the initial state of a chart. @param machine without context, guards, actions and parallel states */
export function statesOf<Event extends string, Tag extends string>(machine: AnyStateMachine): TableState<Event, Tag> {
  const states = new Map<string, TableState<Event, Tag>>();
  const stateOf = (snapshot: AnyMachineSnapshot): TableState<Event, Tag> => {
    const path = pathOf(snapshot);
    const known = states.get(path);
    if (known) return known;
    const next = new Map<Event, TableState<Event, Tag> | undefined>();
    const state: TableState<Event, Tag> = {
      path,
      final: snapshot.status !== 'active',
      has: (tag) => snapshot.tags.has(tag),
      after(event) {
        if (next.has(event)) return next.get(event);
        const accepted = !state.final && snapshot.can({ type: event });
        const after = accepted ? stateOf(transition(machine, snapshot, { type: event })[0]) : undefined;
        next.set(event, after);
        return after;
      },
    };
    states.set(path, state);
    return state;
  };
  return stateOf(initialTransition(machine)[0]);
}
