/** Lists the subscriptions to callbacks for viewers: those with trouble first, with the host of their callback only. */
import type { WebhookDelivery } from '../../features/events/delivery/webhook-delivery.actor.ts';
import type { EventService } from '../../features/events/event-service.ts';
import { topicId } from '../../features/events/topic.ts';
import type { Counts } from './event-type-lines.ts';
import type { SubscriptionLine, SubscriptionsView } from './traffic-messages.ts';

/** Most subscriptions of one view. */
const MOST = 100;

/** The subscriptions, and the number of those of each type. */
export interface ListedSubscriptions {
  readonly view: SubscriptionsView;
  readonly counts: Counts;
}

export function listSubscriptions(events: EventService | undefined): ListedSubscriptions {
  const counts = new Map<string, number>();
  const troubled: WebhookDelivery[] = [];
  const others: WebhookDelivery[] = [];
  let suspended = 0;
  let failing = 0;
  let all = 0;
  for (const delivery of events?.webhooks.created?.subscriptions.all() ?? []) {
    all += 1;
    counts.set(delivery.name, (counts.get(delivery.name) ?? 0) + 1);
    const isDown = delivery.state() === 'suspended';
    if (isDown) suspended += 1;
    else if (delivery.failedSince !== undefined) failing += 1;
    if (isDown || delivery.failedSince !== undefined || delivery.record.dead) troubled.push(delivery);
    else if (others.length < MOST) others.push(delivery);
  }
  troubled.sort((a, b) => (a.failedSince ?? Number.MAX_VALUE) - (b.failedSince ?? Number.MAX_VALUE));
  const heads = headsOf(events);
  const some = [...troubled, ...others].slice(0, MOST).map((delivery) => lineOf(delivery, heads));
  return { view: { all, suspended, failing, some }, counts };
}

/** The number of the newest event of each topic, by its id. */
function headsOf(events: EventService | undefined): ReadonlyMap<string, number> {
  const heads = new Map<string, number>();
  for (const { id, lastKnown } of events?.topics.all() ?? []) if (lastKnown) heads.set(id, lastKnown.last);
  return heads;
}

function lineOf(delivery: WebhookDelivery, heads: ReadonlyMap<string, number>): SubscriptionLine {
  const {
    id,
    name,
    principal,
    url,
    by,
    state,
    seq,
    failures,
    failedSince,
    lastError,
    lastDeliveryAt,
    until,
    dead = [],
  } = delivery.record;
  const { nextAt } = delivery;
  return {
    ...{ id, actor: delivery.mailbox.address, event: name, principal, host: new URL(url).host, state },
    ...{ behind: Math.max(0, (heads.get(topicId(name, by)) ?? 0) - seq), failures: failures ?? 0 },
    ...(failedSince === undefined ? {} : { failedSince }),
    ...(lastError === undefined ? {} : { category: lastError }),
    ...(nextAt === undefined ? {} : { nextAttempt: nextAt }),
    ...(lastDeliveryAt === undefined ? {} : { lastDelivery: lastDeliveryAt }),
    dead: dead.length,
    ...(until === null ? {} : { until }),
  };
}
