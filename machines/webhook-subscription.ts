/** The lifecycle of the delivery of one subscription to a callback: its endpoint is verified, events are delivered, and it ends. Pure. */
import { Chart } from './chart/chart.ts';

export type WebhookSubscriptionEvent =
  /** The endpoint has shown that it wants the events, now or earlier. */
  | { type: 'verified' }
  /** The endpoint has not, or could not be reached. */
  | { type: 'unverified' }
  /** The endpoint has accepted an event. */
  | { type: 'accepted' }
  /** An attempt has failed. */
  | { type: 'fail' }
  /** An event was given up, and the next one follows. */
  | { type: 'give up' }
  /** The attempts of the head of the queue are used up. */
  | { type: 'suspend' }
  /** Its client has subscribed again. */
  | { type: 'refresh' }
  /** Its time is over. */
  | { type: 'expire' }
  /** Its client has ended it. */
  | { type: 'unsubscribe' }
  /** The server has ended it: the rights are gone, the type is gone, or the endpoint is down for too long. */
  | { type: 'terminate' };

export type WebhookSubscriptionState =
  | 'verifying'
  | 'live'
  | 'failing'
  | 'suspended'
  | 'unverified'
  | 'expired'
  | 'unsubscribed'
  | 'terminated';

const ENDS = { expire: 'expired', unsubscribe: 'unsubscribed', terminate: 'terminated' } as const;

/** `active`: events are delivered, or retried soon. `open`: it has not ended. */
export const webhookSubscriptionMachine = new Chart<
  WebhookSubscriptionEvent,
  'active' | 'open',
  WebhookSubscriptionState
>({
  id: 'webhook subscription',
  initial: 'verifying',
  states: {
    verifying: {
      description: 'a challenge is on its way to the endpoint',
      on: { verified: 'live', unverified: 'unverified' },
    },
    live: {
      description: 'it waits for events, or delivers one',
      tags: ['active', 'open'],
      on: { fail: 'failing', 'give up': 'live', ...ENDS },
    },
    failing: {
      description: 'the next attempt has a time',
      tags: ['active', 'open'],
      on: { accepted: 'live', 'give up': 'live', suspend: 'suspended', refresh: 'live', ...ENDS },
    },
    suspended: {
      description: 'events wait in their topic; the head is tried now and then',
      tags: ['open'],
      on: { accepted: 'live', 'give up': 'live', refresh: 'live', ...ENDS },
    },
    unverified: { type: 'final' },
    expired: { type: 'final' },
    unsubscribed: { type: 'final' },
    terminated: { type: 'final' },
  },
});
