/** The dependencies of instances, provided by the handles of their server. Types only. */
import type { ActorSystem } from '../actor/actor-system.ts';
import type { XStateTimers } from '../clock.ts';
import type { Limits } from '../limits.ts';
import type { AuditMail } from '../messages/audit-messages.ts';
import type { HandleView } from '../messages/handle-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Excess, Quota } from '../quota.ts';
import type { Store } from '../store/store.ts';
import type { NewReplies } from './footprint.ts';
import type { HandleRecord } from './handle-record.ts';
import type { HandleChange, MachineKind } from './machine-definition.ts';
import type { PoisonEvents, PoisonEventsDeps } from './poison-events.ts';

export interface HandlesOptions extends Pick<PoisonEventsDeps, 'previous'> {
  readonly system: ActorSystem;
  readonly store: Store;
  readonly limits: Limits;
  /** The option of the server. */
  readonly errors?: 'message' | 'masked' | undefined;
  readonly quotas: { readonly handles: Quota; readonly retained: Quota };
  /** Records dead letters. */
  readonly audit?: Mailbox<AuditMail> | undefined;
}

export interface InstanceDeps extends Omit<HandlesOptions, 'system'>, ActorSystem {
  readonly timers: XStateTimers;
  readonly poisonEvents: PoisonEvents;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  date(): number;
  /**
   * Returns the machine that is currently offered under this name.
   *
   * @throws {HandleError} if there is none
   */
  kindOf(name: string): MachineKind;
  /** Reports a change. `view` is called only if there is a listener. */
  changed(entry: HandleRecord, type: HandleChange['type'], view: () => HandleView): void;
  /**
   * Updates the memory of an instance and of its replies for idempotency keys.
   *
   * @returns the keys of the oldest replies beyond the maximum
   * @throws {HandleError} `busy` if there is no room
   */
  reserveMemory(entry: HandleRecord, bytes: number, replies?: NewReplies): readonly string[];
  /** Counts the results of the steps of one invocation. @returns the exceeded limit */
  takesSteps(entry: HandleRecord, stream: string, bytes: number): Excess | undefined;
  /** Called once, when the instance of a handle has left memory. */
  leftMemory(entry: HandleRecord): void;
  /** Called when an instance has left memory because it could not be persisted or read. */
  reactivateLater(entry: HandleRecord): void;
}
