/** The webhooks of the events of one server: opens their parts together, checks the rights of their callers, and serves their requests. */
import type { CellHolder } from '../../../core/messages/cell-holder.ts';
import { DIALECTS } from '../../../core/protocol/dialects/index.ts';
import type { JsonObject } from '../../../core/protocol/json.ts';
import { ANONYMOUS, LOCAL } from '../../../core/protocol/principals.ts';
import { LATEST_MODERN } from '../../../core/protocol/revisions.ts';
import { requestOnBehalf } from '../../../core/requests/request-on-behalf.ts';
import type { Core } from '../../../core/server/feature.ts';
import { CallbackOrigins } from '../callback-origins.ts';
import type { EventJudge } from '../event-streams.ts';
import type { EventTopics } from '../event-topics.ts';
import type { Termination } from '../event-wire.ts';
import type { EventServerOptions } from '../events-options.ts';
import type { AllowedOrigins } from './callback-address.ts';
import { CallbackPosts } from './callback-posts.ts';
import type { EventsSubscribe, EventsUnsubscribe } from './subscribe-params.ts';
import { SubscribeRequests, type Subscriber } from './subscribe-requests.ts';
import type { StoredSubscription } from './subscription-record.ts';
import { WebhookSubscriptions } from './webhook-subscriptions.ts';

/** Names the requests that ask for the rights of a caller. */
const CHECK = 'webhook/rights';

export class EventWebhooks implements CellHolder {
  readonly subscriptions: WebhookSubscriptions;
  readonly #core: Core;
  readonly #topics: EventTopics;
  readonly #judge: EventJudge;
  readonly #requests: SubscribeRequests;

  /** @param judge decides about the use of an event type. Undefined: no rule has an objection */
  constructor(core: Core, topics: EventTopics, judge: EventJudge) {
    this.#core = core;
    this.#topics = topics;
    this.#judge = judge;
    const { allow = [] } = core.options.events?.callbacks || {};
    const allowed: AllowedOrigins = new CallbackOrigins(allow);
    const posts = new CallbackPosts(core, allowed);
    this.subscriptions = new WebhookSubscriptions({ core, topics, posts, refusal: (record) => this.#refusal(record) });
    core.bus.on(
      'principal.forgotten',
      ({ principal, settling }) => void settling.push(this.subscriptions.forget(principal)),
    );
    this.#requests = new SubscribeRequests({ core, topics, posts, allowed, subscriptions: this.subscriptions });
  }

  /** Serves a request at this node, which owns the subscriptions of its caller. @throws {ProtocolError} */
  serve(subscriber: Subscriber, operation: EventsSubscribe | EventsUnsubscribe): Promise<JsonObject> {
    return operation.method === 'events/subscribe'
      ? this.#requests.subscribe(subscriber, operation)
      : this.#requests.unsubscribe(subscriber, operation);
  }

  take(cells: readonly number[] | undefined): Promise<void> {
    return this.subscriptions.take(cells);
  }

  drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    return this.subscriptions.drop(cells, flush);
  }

  /** Decides again whether the caller of a subscription may use its type, as it was when it subscribed last. */
  async #refusal({
    id,
    name,
    arguments: args,
    principal,
    auth,
    by,
  }: StoredSubscription): Promise<Termination | 'later' | undefined> {
    const known = this.#topics.known(name);
    // It may be registered soon: two looks decide that it is gone.
    if (!known) return 'later';
    try {
      const checked = await known.implementation.input.check(args);
      if (!checked.ok) {
        const data = { feature: 'inputSchema', reason: 'schema_changed' };
        return { failure: 'unsupported', message: `the arguments of the event type "${name}" have changed`, data };
      }
      const client = {
        dialect: DIALECTS[LATEST_MODERN],
        info: undefined,
        capabilities: {},
        logLevel: undefined,
        principal,
        session: undefined,
      };
      const operation = {
        method: 'events/subscribe',
        name,
        arguments: args,
        url: '',
        secret: '',
        cursor: undefined,
      } as const;
      const { request } = requestOnBehalf(
        { id, client, auth },
        { ...operation, maxAgeMs: undefined, ttlMs: undefined },
        'events',
        CHECK,
      );
      const verdict = await this.#judge(request, name, args);
      if (verdict?.hidden)
        return { failure: 'not found', message: `there is no event type "${name}"`, data: { kind: 'event' } };
      if (verdict && !verdict.allows)
        return {
          failure: 'forbidden',
          message: 'the caller may no longer receive these events',
          data: { reason: 'Access revoked' },
        };
      return known.implementation.source?.failureOf(by);
    } catch (error) {
      this.#core.system.incident(`the rights of webhook ${id}`, error);
      return 'later';
    }
  }
}

/** True if a caller may subscribe webhooks at this server at all. */
export function takesWebhooks({ callbacks }: EventServerOptions = {}, principal: string): boolean {
  return callbacks !== false && principal !== ANONYMOUS && (principal !== LOCAL || callbacks?.local === true);
}
