/** The subscriptions actor: it knows which client wants to hear of which change, in either era, and tells them. */
import type { Timer } from '../clock.ts';
import { EMPTY } from '../messages/answers.ts';
import type { Client } from '../messages/client.ts';
import type { InFlight } from '../messages/in-flight.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { SessionMail } from '../messages/session.ts';
import type { Change, SubscriptionsMail, Told } from '../messages/subscriptions.ts';
import type { TaskState } from '../messages/tasks.ts';
import { ErrorCode, ProtocolError, toWireError } from '../protocol/errors.ts';
import type { SubscriptionFilter } from '../protocol/subscriptions.ts';
import { declaresTasks, tasksNotDeclared } from '../protocol/tasks.ts';
import type { ServerCapabilities } from '../protocol/types.ts';
import { settle } from '../requests/settle.ts';
import { type Actor, type ActorHost, type Behaviour, spawn } from './actor.ts';
import { misrouted } from './registry.ts';
import { isAnothers, Topics } from './topics.ts';

export interface SubscriptionsOptions extends ActorHost {
  /** Most resources that one session, or one subscription, watches. */
  readonly maxSubscriptions: number;
  /** Milliseconds for which changes are gathered into one notification each. */
  readonly gatherMs: number;
  offers(capability: keyof ServerCapabilities): boolean;
  /** Whether a resource has this uri, or a template matches it. */
  knows(uri: string): boolean;
  /** A task as this client sees it; undefined where there is none, or it is another's. */
  taskOf(client: Client, id: string): TaskState | undefined;
  /** Every session: each hears of changed lists without asking for it. */
  sessions(): Iterable<Mailbox<SessionMail>>;
  incident(where: string, error: unknown): string;
}

export function spawnSubscriptions(options: SubscriptionsOptions): Actor<SubscriptionsMail> {
  return spawn(
    { kind: 'subscriptions', address: 'subscriptions' },
    options,
    (self) => new Subscriptions(options, self),
  );
}

class Subscriptions implements Behaviour<SubscriptionsMail> {
  /** Never set aside: nobody else could tell clients anything. */
  readonly policy = { restarts: Number.POSITIVE_INFINITY, windowMs: 1 };
  readonly #options: SubscriptionsOptions;
  readonly #self: Mailbox<SubscriptionsMail>;
  /** The open subscriptions, each with the number of the last change before it: of older ones it must not hear. */
  readonly #open = new Map<InFlight, number>();
  readonly #listening = new Topics<InFlight>();
  /** The resources that sessions watch: their emitters gather what they are told. */
  readonly #watching = new Topics<Mailbox<SessionMail>>();
  /** Changes being gathered for the subscriptions: the latest of each thing, with its number. */
  readonly #gathering = new Map<string, { readonly change: Change; readonly number: number }>();
  #changes = 0;
  #timer: Timer | undefined;

  constructor(options: SubscriptionsOptions, self: Mailbox<SubscriptionsMail>) {
    this.#options = options;
    this.#self = self;
  }

  state(): string {
    const { size } = this.#watching;
    return `open (${this.#open.size})${size === 0 ? '' : `, watched by ${size} sessions`}`;
  }

  receive(mail: SubscriptionsMail): void {
    switch (mail.type) {
      case 'request':
        return this.#serve(mail.request);
      case 'list changed':
        for (const session of this.#options.sessions()) session.send(mail);
        return this.#gather(mail);
      case 'resource updated':
        for (const session of this.#watching.hearers(topicOf(mail))) session.send(mail);
        return this.#gather(mail);
      case 'task changed':
        return this.#gather(mail);
      case 'gathered':
        this.#timer = undefined;
        for (const topic of this.#gathering.keys())
          for (const request of this.#listening.hearers(topic)) this.#tellGathered(request, topic);
        this.#gathering.clear();
        return;
      case 'end':
        return this.#end(mail.request);
      case 'ended':
        return this.#forget(mail.request);
      case 'session woke':
        // What has changed while it was away nobody has told: that it may have is true of all of them.
        for (const uri of mail.watches) {
          this.#watching.add(mail.session, topicOf({ type: 'resource updated', uri }));
          mail.session.send({ type: 'resource updated', uri });
        }
        return;
      case 'session closed':
        return this.#watching.forget(mail.session);
      case 'connection closed':
        for (const request of this.#open.keys()) if (request.requests === mail.requests) this.#forget(request);
    }
  }

  #serve(request: InFlight): void {
    // Its client may have left while this actor was busy.
    if (request.settled) return;
    const { operation } = request;
    try {
      switch (operation.method) {
        case 'subscriptions/listen':
          return this.#listen(request, operation.filter);
        case 'resources/subscribe':
          this.#watch(request, operation.uri);
          return settle(request, EMPTY);
        case 'resources/unsubscribe':
          this.#watching.remove(sessionOf(request), topicOf({ type: 'resource updated', uri: operation.uri }));
          sessionOf(request).send({ type: 'watches', uri: operation.uri, watches: false });
          return settle(request, EMPTY);
        default:
          throw misrouted(request, 'the subscriptions actor');
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      settle(request, { ok: false, error: toWireError(error, '') });
    }
  }

  /** Opens a subscription. Its acknowledgement is the first that it is told (2026-07-28 subscriptions, "Acknowledgment"). */
  #listen(request: InFlight, filter: SubscriptionFilter): void {
    const { maxSubscriptions } = this.#options;
    const asked = new Set(filter.resources);
    if (asked.size > maxSubscriptions)
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `params.notifications.resourceSubscriptions: expected at most ${maxSubscriptions} uris, got ${asked.size}: ask for the rest in another subscription (the server's option is maxSubscriptions)`,
      );
    if (request.exchange?.streams === false)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        'Accept: expected text/event-stream for subscriptions/listen, which is answered with a stream; got a header that excludes it',
      );
    if (filter.tasks && !declaresTasks(request.client.capabilities))
      throw tasksNotDeclared('params.notifications.taskIds');
    if (filter.tasks && filter.tasks.length > maxSubscriptions)
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `params.notifications.taskIds: expected at most ${maxSubscriptions} ids, got ${filter.tasks.length}: ask for the rest in another subscription (the server's option is maxSubscriptions)`,
      );
    const tasks = new Map<string, TaskState>();
    for (const id of filter.tasks ?? []) {
      const task = this.#options.taskOf(request.client, id);
      if (task) tasks.set(id, task);
    }
    const honoured = {
      ...this.#honoured(filter.lists, filter.resources && [...asked]),
      tasks: filter.tasks && [...tasks.keys()],
    };
    this.#open.set(request, this.#changes);
    for (const what of honoured.lists) this.#listening.add(request, topicOf({ type: 'list changed', what }));
    for (const uri of honoured.resources ?? [])
      this.#listening.add(request, topicOf({ type: 'resource updated', uri }));
    for (const task of tasks.values()) this.#listening.add(request, topicOf({ type: 'task changed', task }));
    tell(request, { type: 'acknowledged', filter: honoured });
    // What has changed between the task's creation and now nobody has told.
    for (const task of tasks.values()) tell(request, { type: 'task changed', task });
  }

  /** What of a filter this server can tell: lists that it has, resources that are there. What it leaves out, the acknowledgement shows. */
  #honoured(
    lists: SubscriptionFilter['lists'],
    resources: SubscriptionFilter['resources'],
  ): Omit<SubscriptionFilter, 'tasks'> {
    const { offers, knows } = this.#options;
    return { lists: lists.filter(offers), resources: offers('resources') ? resources?.filter(knows) : undefined };
  }

  #watch(request: InFlight, uri: string): void {
    const { knows, maxSubscriptions } = this.#options;
    const session = sessionOf(request);
    const topic = topicOf({ type: 'resource updated', uri });
    if (!knows(uri))
      throw new ProtocolError(request.client.dialect.resourceNotFound, 'Resource not found', {
        uri: uri.slice(0, 2_048),
      });
    const watched = this.#watching.of(session);
    if (watched.size >= maxSubscriptions && !watched.has(topic))
      throw new ProtocolError(
        ErrorCode.Overloaded,
        `this session watches ${maxSubscriptions} resources, which is its limit: unsubscribe from one (the server's option is maxSubscriptions)`,
      );
    this.#watching.add(session, topic);
    session.send({ type: 'watches', uri, watches: true });
  }

  #gather(change: Change): void {
    const topic = topicOf(change);
    if (this.#listening.hearers(topic).size === 0) return;
    this.#changes += 1;
    this.#gathering.set(topic, { change, number: this.#changes });
    this.#timer ??= this.#options.clock.after(this.#options.gatherMs, () => this.#self.send({ type: 'gathered' }));
  }

  #tellGathered(request: InFlight, topic: string): void {
    const gathered = this.#gathering.get(topic);
    const since = this.#open.get(request);
    if (!gathered || since === undefined || gathered.number <= since) return;
    if (!isAnothers(gathered.change, request.client.principal)) tell(request, gathered.change);
  }

  /**
   * Ends a subscription gracefully. The result is what says so; the `notifications/cancelled` that servers may send is for an
   * end without one (2026-07-28 subscriptions, "Graceful Closure").
   */
  #end(request: InFlight): void {
    for (const topic of this.#listening.of(request)) this.#tellGathered(request, topic);
    this.#forget(request);
    settle(request, { ok: true, result: { kind: 'subscription ended', id: request.id } });
  }

  #forget(request: InFlight): void {
    this.#open.delete(request);
    this.#listening.forget(request);
    if (this.#open.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#gathering.clear();
  }

  crashed(mail: SubscriptionsMail, error: unknown): void {
    const incident = this.#options.incident('subscriptions', error);
    if (!('request' in mail)) return;
    this.#forget(mail.request);
    settle(mail.request, { ok: false, error: toWireError(error, incident) });
  }
}

/** Names what changed. */
function topicOf(change: Change): string {
  switch (change.type) {
    case 'list changed':
      return `list ${change.what}`;
    case 'resource updated':
      return `resource ${change.uri}`;
    case 'task changed':
      return `task ${change.task.id}`;
  }
}

function sessionOf(request: InFlight): Mailbox<SessionMail> {
  const { session } = request.client;
  if (!session) throw misrouted(request, 'the subscriptions actor');
  return session.mailbox;
}

function tell(request: InFlight, told: Told): void {
  request.requests.send({ type: 'tell', request, told });
}
