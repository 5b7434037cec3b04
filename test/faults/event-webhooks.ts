/** Broken builds: the promises of webhooks of events and of dead letters. */
import type { BrokenBuild } from './broken-build.ts';

export const EVENT_WEBHOOKS: readonly BrokenBuild[] = [
  {
    id: 'R-96',
    test: 'test/features/server/dead-letters.test.ts',
    in: 'out-message.ts: messageOfLetter',
    find: 'seq: 1, to, body, hops, at',
    replace: 'seq: Date.now(), to, body, hops, at',
    why: 'a message that is delivered again takes effect each time',
  },
  {
    id: 'R-84',
    test: 'test/features/events/delivery/webhooks.test.ts',
    in: 'WebhookDelivery.watermark',
    find: 'if (first)',
    replace: 'if (first && first.seq < 0)',
    why: 'the stored position is ahead of events that are on their way',
  },
  {
    id: 'R-85',
    test: 'test/features/events/delivery/webhooks.test.ts',
    in: 'WebhookDelivery.#giveUp',
    find: 'this.#announceGap();',
    replace: '',
    why: 'an event that was given up is no gap for its client',
  },
  {
    id: 'R-95',
    test: 'test/features/events/subscribe.test.ts',
    in: 'CallbackSubscription.#failed',
    find: 'this.#later(',
    replace: '((_: number) => {})(',
    why: 'a refresh that fails once is the last one',
  },
];
