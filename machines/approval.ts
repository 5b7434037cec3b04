/** The lifecycle of an approval: people decide about one call, which then runs once or never. Pure. */
import { Chart } from './chart/chart.ts';

export type ApprovalEvent =
  /** One of several people who are needed has approved. */
  | { type: 'approve in part' }
  /** Everybody who is needed has approved. */
  | { type: 'approve' }
  /** One of them has denied. */
  | { type: 'deny' }
  /** No decision came in time, or the call was not made in time. */
  | { type: 'expire' }
  /** The call was cancelled, its client has left, or the approval was revoked. */
  | { type: 'withdraw' }
  /** The tool, the arguments or the policy are no longer those that were approved. */
  | { type: 'annul' }
  /** The call starts. */
  | { type: 'use' }
  /** The call has ended, with a result or with an error. */
  | { type: 'succeed' }
  | { type: 'fail' }
  /** The process that ran the call has ended. */
  | { type: 'lose' };

export type ApprovalState =
  | 'asked'
  | 'partly approved'
  | 'approved'
  | 'used'
  | 'done'
  | 'failed'
  | 'unknown'
  | 'denied'
  | 'expired'
  | 'withdrawn'
  | 'void';

const ENDS = { expire: 'expired', withdraw: 'withdrawn', annul: 'void' } as const;

/** `open`: people may still decide. `live`: the call may still run. */
export const approvalMachine = new Chart<ApprovalEvent, 'open' | 'live', ApprovalState>({
  id: 'approval',
  initial: 'asked',
  states: {
    asked: {
      tags: ['open', 'live'],
      on: { 'approve in part': 'partly approved', approve: 'approved', deny: 'denied', ...ENDS },
    },
    'partly approved': {
      tags: ['open', 'live'],
      on: { 'approve in part': 'partly approved', approve: 'approved', deny: 'denied', ...ENDS },
    },
    approved: {
      description: 'the call may start once',
      tags: ['live'],
      on: { use: { target: 'used', description: 'in the transaction that starts the call' }, ...ENDS },
    },
    used: {
      description: 'the call runs',
      on: { succeed: 'done', fail: 'failed', lose: { target: 'unknown', description: 'its process has ended' } },
    },
    done: { type: 'final' },
    failed: { type: 'final' },
    unknown: {
      description: 'it is not known whether the call was carried out',
      on: {
        succeed: { target: 'done', description: 'it had asked its client after it started, and has continued' },
        fail: 'failed',
      },
    },
    denied: { type: 'final' },
    expired: { type: 'final' },
    withdrawn: { type: 'final' },
    void: { type: 'final' },
  },
});
