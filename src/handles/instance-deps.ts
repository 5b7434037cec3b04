/** What instances are lent by the server that they live in. Types only. */
import type { Clock, XStateTimers } from '../clock.ts';
import type { Inspection } from '../inspection/inspection.ts';
import type { Limits } from '../limits.ts';
import type { HandleView } from '../messages/handle-messages.ts';
import type { OperatorLog } from '../operator-log.ts';
import type { Quota } from '../quota.ts';
import type { Store } from '../store/store.ts';
import type { HandleRecord } from './handle-record.ts';
import type { HandleChange, MachineKind } from './machine-definition.ts';
import type { PoisonEvents, PoisonEventsDeps } from './poison-events.ts';

export interface HandlesOptions extends Pick<PoisonEventsDeps, 'previous'> {
  readonly clock: Clock;
  readonly inspection: Inspection;
  readonly store: Store;
  readonly limits: Limits;
  readonly quotas: { readonly handles: Quota; readonly retained: Quota };
  readonly log: OperatorLog;
  incident(where: string, error: unknown): string;
}

export interface InstanceDeps extends HandlesOptions {
  readonly timers: XStateTimers;
  readonly suspects: PoisonEvents;
  /** Milliseconds since 1970, which no change of the wall clock moves. */
  date(): number;
  /** The machine of that name, as it is offered now. @throws {HandleError} where it is not */
  kindOf(name: string): MachineKind;
  /** `view` is made only where somebody listens. */
  changed(entry: HandleRecord, type: HandleChange['type'], view: () => HandleView): void;
  /** An instance takes so many bytes in memory now. @throws {HandleError} `busy` where there is no room for them */
  takes(entry: HandleRecord, bytes: number): void;
  /** Called once, when the instance of a handle has left memory. */
  left(entry: HandleRecord): void;
  /** It could not be kept, or not be read, and is no longer in memory. */
  lost(entry: HandleRecord): void;
}
