/** The services of instances, provided by the handles of their server. Types only. */
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import type { XStateTimers } from '../../core/kernel/clock.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import type { Excess, Quota } from '../../core/kernel/quota.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { NodeCalls } from '../../core/messages/node-calls.ts';
import type { Store } from '../../core/store/store.ts';
import type { AuditMail } from '../guard/audit/audit-messages.ts';
import type { ChangeListeners } from './change-listeners.ts';
import type { NewReplies } from './footprint.ts';
import type { HandleRecord } from './handle-record.ts';
import type { Outboxes } from './messages/outboxes.ts';
import type { OfferedMachines } from './offered-machines.ts';
import type { PoisonEvents, PoisonEventsDeps } from './poison-events.ts';

export interface HandlesOptions extends Pick<PoisonEventsDeps, 'previous'> {
  readonly system: ActorSystem;
  readonly store: Store;
  readonly limits: Limits;
  /** The option of the server. */
  readonly errors?: 'message' | 'masked' | undefined;
  readonly quotas: { readonly handles: Quota; readonly retained: Quota };
  /** The calls between nodes; undefined if this server owns all cells. */
  readonly calls?: NodeCalls | undefined;
  /** Records dead letters. */
  readonly audit?: Mailbox<AuditMail> | undefined;
}

/** The directory of the handles, as their instances use it. */
export interface InstanceDirectory {
  /**
   * Updates the memory of an instance and of its replies for idempotency keys. Idle instances hibernate if that makes room.
   *
   * @returns the keys of the oldest replies beyond the maximum
   * @throws {HandleError} `busy` if there is no room
   */
  reserveMemory(entry: HandleRecord, bytes: number, replies?: NewReplies): readonly string[];
  /**
   * Counts the results of the steps of one invocation. Idle instances hibernate if that makes room.
   *
   * @returns the exceeded limit
   */
  takesSteps(entry: HandleRecord, stream: string, bytes: number): Excess | undefined;
  /** The instance of a handle has left memory. An instance reports this once. */
  leftMemory(entry: HandleRecord): void;
  /** Activates an instance again after a while, because it could not be persisted or read and has left memory. */
  reactivateLater(entry: HandleRecord): void;
}

/** The services that all instances of a server share. */
export interface InstanceServices extends Omit<HandlesOptions, 'system'>, ActorSystem {
  readonly timers: XStateTimers;
  readonly poisonEvents: PoisonEvents;
  readonly machines: OfferedMachines;
  readonly listeners: ChangeListeners;
  readonly directory: InstanceDirectory;
  readonly outboxes: Outboxes;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  date(): number;
}
