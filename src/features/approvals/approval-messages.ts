/** The messages to an approval. Types only. */
import type { ApprovalEvent } from '../../../machines/approval.ts';
import type { Stored } from '../../core/store/store.ts';
import type { StoredApproval } from './approval-record.ts';

/** A change of an approval: the event of its chart, and the members that it sets. */
export interface ApprovalChange {
  /** Undefined: the state stays. */
  readonly event: ApprovalEvent['type'] | undefined;
  readonly members: Partial<Omit<StoredApproval, 'id' | 'state'>>;
}

/** One operation, of which a promise waits for the approval after it. */
export interface ApprovalOperation {
  /**
   * Decides what changes; undefined: nothing. It may run again after the change of another node.
   *
   * @param now milliseconds since 1970
   * @throws {ApprovalError} then nothing changes
   */
  run(approval: StoredApproval, now: number): ApprovalChange | undefined;
  resolve(approval: StoredApproval): void;
  reject(error: unknown): void;
}

/** Somebody who waits until people have decided. */
export interface ApprovalWaiter {
  /** True once it need not wait longer. An approval about which people can no longer decide ends each wait. */
  isOver(approval: StoredApproval): boolean;
  decided(approval: StoredApproval): void;
  failed(error: unknown): void;
}

export type ApprovalMail =
  | { readonly type: 'operate'; readonly operation: ApprovalOperation }
  /** Stores it for the first time. */
  | {
      readonly type: 'create';
      readonly approval: StoredApproval;
      resolve(approval: StoredApproval): void;
      reject(error: unknown): void;
    }
  | { readonly type: 'wait'; readonly waiter: ApprovalWaiter }
  | { readonly type: 'leave'; readonly waiter: ApprovalWaiter }
  | { readonly type: 'loaded'; readonly stored: Stored | undefined }
  | { readonly type: 'swapped'; readonly stored: boolean }
  | { readonly type: 'failed'; readonly error: unknown }
  /** Another node was faster: the operation runs again. */
  | { readonly type: 'again' }
  /** Its time has passed, or another node may have decided. */
  | { readonly type: 'look' };
