/** An author's statechart that runs for one call, as the inspection shows it. */
import type { AnyActorRef } from 'xstate';
import { isMachineSnapshot } from 'xstate';
import { pathOf } from '../charts/paths.ts';
import type { Inspection } from './inspection.ts';
import type { Facts, LiveRecord } from './records.ts';
import { runningDelays, watchSystem } from './xstate-system.ts';

interface RunOfMachine {
  readonly actor: AnyActorRef;
  readonly address: string;
  /** The tool's name. */
  readonly label: string;
  readonly inspection: Inspection;
  /** Milliseconds of the inspection's clock. */
  now(): number;
  facts(): Facts;
}

export function liveMachine({ actor, address, label, inspection, now, facts }: RunOfMachine): LiveRecord {
  return {
    kind: 'machine',
    label,
    facts,
    state: () => pathOf(actor.getSnapshot()),
    chart() {
      const snapshot: unknown = actor.getSnapshot();
      return isMachineSnapshot(snapshot) ? { machine: snapshot.machine, snapshot } : undefined;
    },
    waits: () => runningDelays(actor).map(({ event, delay }) => ({ what: event, lasts: delay })),
    watch: () => watchSystem(actor, address, inspection, now),
    give: (event) => actor.send(event),
  };
}
