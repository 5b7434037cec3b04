/** The subscriptions actor: records which client listens to which changes, in either era, and notifies the clients. */

import { callOwnerOf } from '../execution/request-context.ts';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../kernel/actor.ts';
import { type Pace, type Timer, TimeSlice } from '../kernel/clock.ts';
import type { Quota, Reservation } from '../kernel/quota.ts';
import type { Change, ChangeNotice } from '../messages/change-notices.ts';
import type { ClientFacts } from '../messages/client-facts.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Capabilities } from '../messages/offered-capabilities.ts';
import type { ListenedResources } from '../messages/remote-change.ts';
import type { RequestView } from '../messages/request-view.ts';
import { EMPTY, type TaskState } from '../messages/results.ts';
import type { SessionMail } from '../messages/session-messages.ts';
import type { Flushed, ResourceWatch, SubscriptionsMail } from '../messages/subscription-messages.ts';
import { ErrorCode, ProtocolError, toWireError } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { SubscriptionFilter } from '../protocol/subscription-filter.ts';
import { declaresTasks, tasksNotDeclared } from '../protocol/task-params.ts';
import { misrouted, respond } from '../requests/active-request.ts';
import { FanOut, type Listeners } from './fan-out.ts';
import { belongsToOther, Topics } from './topics.ts';

export interface SubscriptionsOptions {
  readonly system: ActorSystem;
  /** The pace of broadcasts. */
  readonly pace: Pace;
  /** Maximum number of resources that one session or one subscription may watch. */
  readonly maxSubscriptions: number;
  /** Quota in bytes; the URIs that sessions watch count. */
  readonly retained: Quota;
  /** Milliseconds for which changes are coalesced into one notification each. */
  readonly gatherMs: number;
  readonly capabilities: Pick<Capabilities, 'offered'>;
  /** The spelling of a URI that a resource has, or a template matches; undefined for any other. */
  spell(uri: string): string | undefined;
  /** The tasks as a client sees them; undefined if one does not exist or belongs to another principal. */
  readonly tasks: { look(client: ClientFacts, id: string): TaskState | undefined };
  /** Learns for which resources there are listeners. */
  readonly listened?: ListenedResources | undefined;
}

/** Bytes for a watched resource, besides its URI. */
const WATCH_BYTES = 300;

export function spawnSubscriptions(options: SubscriptionsOptions): Actor<SubscriptionsMail> {
  return spawn(
    { kind: 'subscriptions', address: 'subscriptions' },
    options.system,
    (self) => new Subscriptions(options, self),
  );
}

type Session = Mailbox<SessionMail>;

/** A coalesced change: the latest of its subject. */
interface CollectedChange {
  readonly change: Change;
  /** Listeners that join later do not receive it. */
  readonly number: number;
  /** The one session that the change concerns, or the key of the one owner of calls; undefined if it concerns all listeners. */
  readonly only: Session | string | undefined;
}

class Subscriptions implements Behaviour<SubscriptionsMail> {
  /** Never quarantined: no other actor could notify clients. */
  readonly policy = { restarts: Number.POSITIVE_INFINITY, windowMs: 1 };
  readonly #options: SubscriptionsOptions;
  readonly #self: Mailbox<SubscriptionsMail>;
  /** The open subscriptions. */
  readonly #open = new Set<RequestView>();
  readonly #listening: Topics<RequestView>;
  /** All sessions: each is notified of list changes without a subscription. */
  readonly #sessions = new Map<Session, number>();
  /** The resources that sessions watch. */
  readonly #watching: Topics<Session>;
  /** The calls that wait for a change of a resource. */
  readonly #waiting = new Map<string, Map<ResourceWatch, number>>();
  /** The bytes of the watched URIs, by session. */
  readonly #reservations = new Map<Session, Reservation>();
  /** Changes that are being coalesced, by subject. */
  readonly #collecting = new Map<string, CollectedChange>();
  /** Changes that are being sent. */
  readonly #fanOut = new FanOut<Session | RequestView | ResourceWatch, Change>(announce);
  /** Numbers changes and listeners in order of arrival. */
  #number = 0;
  #timer: Timer | undefined;
  /** True if the next slice is scheduled. */
  #notifying = false;
  /** Set when the server stops: from then on no change is collected, or the last broadcast could last forever. */
  #closing: Mailbox<Flushed> | undefined;

  constructor(options: SubscriptionsOptions, self: Mailbox<SubscriptionsMail>) {
    this.#options = options;
    this.#self = self;
    const { listened } = options;
    const tell = listened && ((topic: string, begins: boolean): void => this.#tell(listened, topic, begins));
    this.#listening = new Topics(tell);
    this.#watching = new Topics(tell);
  }

  /** Sessions and subscriptions listen apart: the first of both joins, the last of both leaves. */
  #tell(learns: ListenedResources, topic: string, begins: boolean): void {
    if (!topic.startsWith(RESOURCE)) return;
    const listeners = this.#listening.listeners(topic).size + this.#watching.listeners(topic).size;
    if (listeners !== (begins ? 1 : 0)) return;
    const uri = topic.slice(RESOURCE.length);
    if (begins) learns.listened(uri);
    else learns.unlistened(uri);
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
      case 'resource updated':
      case 'task changed':
        if (this.#isHeard(mail)) this.#collect(mail);
        return;
      case 'watch':
        return this.#wait(mail.watch);
      case 'watch ended':
        return this.#waitNoMore(mail.watch);
      case 'session changed':
        return this.#collect(mail.change, mail.session);
      case 'owner changed':
        return this.#collect(mail.change, mail.owner);
      case 'flush':
        this.#timer = undefined;
        this.#release();
        return this.#notifying ? undefined : this.#notifySlice();
      case 'next slice':
        this.#notifying = false;
        return this.#notifySlice();
      case 'flush all':
        this.#release();
        this.#closing = mail.flushed;
        return this.#notifying ? undefined : this.#notifySlice();
      case 'session opened':
        this.#sessions.set(mail.session, this.#next());
        return;
      case 'end':
        return this.#end(mail.request);
      case 'ended':
        return this.#forget(mail.request);
      case 'session restored':
        // Changes during the session's absence were not sent. Each resource may have changed.
        for (const uri of mail.watches) {
          const change = { type: 'resource updated', uri } as const;
          this.#watching.add(mail.session, topicOf(change), this.#next());
          this.#collect(change, mail.session);
        }
        return;
      case 'session closed':
        this.#sessions.delete(mail.session);
        this.#reservations.get(mail.session)?.release();
        this.#reservations.delete(mail.session);
        return this.#watching.forget(mail.session);
      case 'connection closed':
        for (const request of this.#open) if (request.requests === mail.requests) this.#forget(request);
    }
  }

  #serve(request: RequestView): void {
    // Its client may have left while this actor was busy.
    if (request.settled) return;
    const { operation } = request;
    try {
      switch (operation.method) {
        case 'subscriptions/listen':
          return this.#listen(request, operation.filter);
        case 'resources/subscribe':
          this.#watch(request, operation.uri);
          return respond(request, EMPTY);
        case 'resources/unsubscribe':
          this.#unwatch(sessionOf(request), operation.uri);
          return respond(request, EMPTY);
        default:
          throw misrouted(request, 'the subscriptions actor');
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      respond(request, { ok: false, error: toWireError(error, '') });
    }
  }

  /** Opens a subscription. The acknowledgement is its first message (2026-07-28 subscriptions, "Acknowledgment"). */
  #listen(request: RequestView, filter: SubscriptionFilter): void {
    const { maxSubscriptions } = this.#options;
    const asked = new Set(filter.resources);
    if (asked.size > maxSubscriptions)
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `params.notifications.resourceSubscriptions: expected at most ${maxSubscriptions} uris, got ${asked.size}: use another subscription for the rest (the server's option is maxSubscriptions)`,
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
        `params.notifications.taskIds: expected at most ${maxSubscriptions} ids, got ${filter.tasks.length}: use another subscription for the rest (the server's option is maxSubscriptions)`,
      );
    const tasks = new Map<string, TaskState>();
    for (const id of filter.tasks ?? []) {
      const task = this.#options.tasks.look(request.client, id);
      if (task) tasks.set(id, task);
    }
    const honoured = {
      ...this.#honoured(filter.lists, filter.resources && [...asked]),
      tasks: filter.tasks && [...tasks.keys()],
    };
    this.#open.add(request);
    const number = this.#next();
    for (const what of honoured.lists) this.#listening.add(request, topicOf({ type: 'list changed', what }), number);
    for (const asks of honoured.resources ?? []) {
      const uri = this.#options.spell(asks) ?? asks;
      this.#listening.add(request, topicOf({ type: 'resource updated', uri }), number);
    }
    for (const task of tasks.values()) this.#listening.add(request, topicOf({ type: 'task changed', task }), number);
    notify(request, { type: 'acknowledged', filter: honoured });
    // Changes between the creation of a task and its subscription were not sent.
    for (const task of tasks.values()) notify(request, { type: 'task changed', task });
  }

  /**
   * The part of a filter that this server supports: its lists, and existing resources. The acknowledgement shows what
   * is left out.
   */
  #honoured(
    lists: SubscriptionFilter['lists'],
    resources: SubscriptionFilter['resources'],
  ): Omit<SubscriptionFilter, 'tasks'> {
    const { capabilities, spell } = this.#options;
    const { offered } = capabilities;
    return {
      lists: lists.filter((list) => offered[list] !== undefined),
      resources: offered.resources ? resources?.filter((uri) => spell(uri) !== undefined) : undefined,
    };
  }

  #watch(request: RequestView, asked: string): void {
    const { spell, maxSubscriptions } = this.#options;
    const session = sessionOf(request);
    const uri = request.hidden ? undefined : spell(asked);
    if (uri === undefined)
      throw new ProtocolError(request.client.dialect.resourceNotFound, 'Resource not found', {
        uri: asked.slice(0, 2_048),
      });
    const topic = topicOf({ type: 'resource updated', uri });
    const watched = this.#watching.of(session);
    if (watched.size >= maxSubscriptions && !watched.has(topic)) {
      this.#options.system.metrics.refused('limits.maxSubscriptions');
      throw new ProtocolError(
        ErrorCode.Overloaded,
        `this session watches ${maxSubscriptions} resources, which is the limit: unsubscribe from one (the server's option is maxSubscriptions)`,
      );
    }
    if (!watched.has(topic)) this.#hold(request, session, uri);
    this.#watching.add(session, topic, this.#next());
    session.send({ type: 'watches', uri, watches: true });
  }

  /** Reserves the bytes of a URI that a session begins to watch. @throws {ProtocolError} if there is no room */
  #hold({ client }: RequestView, session: Session, uri: string): void {
    const reservation =
      this.#reservations.get(session) ?? this.#options.retained.take(client.principal, 0, client.session?.id);
    const excess = reservation.resize(reservation.amount + bytesOf(uri));
    if (excess) {
      this.#options.system.metrics.refused(excess.option);
      throw new ProtocolError(ErrorCode.Overloaded, `${excess.message}: unsubscribe from a resource`);
    }
    this.#reservations.set(session, reservation);
  }

  #unwatch(session: Session, asked: string): void {
    // The resource may be gone.
    const uri = this.#options.spell(asked) ?? asked;
    const topic = topicOf({ type: 'resource updated', uri });
    const reservation = this.#watching.of(session).has(topic) ? this.#reservations.get(session) : undefined;
    reservation?.resize(Math.max(0, reservation.amount - bytesOf(uri)));
    this.#watching.remove(session, topic);
    session.send({ type: 'watches', uri, watches: false });
  }

  #next(): number {
    this.#number += 1;
    return this.#number;
  }

  #isHeard(change: Change): boolean {
    const topic = topicOf(change);
    const listening = this.#listening.listeners(topic).size + (this.#waiting.get(topic)?.size ?? 0);
    return listening + this.#sessionsFor(change).size > 0;
  }

  #wait(watch: ResourceWatch): void {
    const topic = topicOf({ type: 'resource updated', uri: watch.uri });
    const waiting = this.#waiting.get(topic);
    if (waiting) waiting.set(watch, this.#next());
    else this.#waiting.set(topic, new Map([[watch, this.#next()]]));
  }

  #waitNoMore(watch: ResourceWatch): void {
    const topic = topicOf({ type: 'resource updated', uri: watch.uri });
    const waiting = this.#waiting.get(topic);
    if (waiting?.delete(watch) && waiting.size === 0) this.#waiting.delete(topic);
  }

  /** The sessions that listen for a change that is not limited to one session. */
  #sessionsFor(change: Change): Listeners<Session> {
    switch (change.type) {
      case 'list changed':
        // Events have their own profile in the legacy era, which has no such notification.
        return change.what === 'events' ? NO_HEARERS : this.#sessions;
      case 'resource updated':
        return this.#watching.listeners(topicOf(change));
      case 'task changed':
        return NO_HEARERS;
    }
  }

  /** @param only the one session that the change concerns, or the key of the one owner of calls */
  #collect(change: Change, only?: Session | string): void {
    if (this.#closing) return;
    const key = only ? `${typeof only === 'string' ? only : only.address} ${topicOf(change)}` : topicOf(change);
    this.#collecting.set(key, { change, number: this.#next(), only });
    this.#timer ??= this.#options.system.clock.after(this.#options.gatherMs, () => this.#self.send({ type: 'flush' }));
  }

  /** Ends the coalescing time and starts sending. */
  #release(): void {
    for (const [key, { change, number, only }] of this.#collecting) {
      if (typeof only === 'string') this.#fanOut.add(key, this.#listenersOf(only, change), change, number);
      else if (only) this.#fanOut.add(key, new Map([[only, number]]), change, number);
      else {
        this.#fanOut.add(`sessions: ${key}`, this.#sessionsFor(change), change, number);
        this.#fanOut.add(`subscriptions: ${key}`, this.#listening.listeners(key), change, number);
        this.#fanOut.add(`waiting: ${key}`, this.#waiting.get(key) ?? NO_HEARERS, change, number);
      }
    }
    this.#collecting.clear();
  }

  /** The subscriptions of one owner of calls that listen for a change. */
  #listenersOf(owner: string, change: Change): Listeners<RequestView> {
    const listeners = this.#listening.listeners(topicOf(change));
    return new Map([...listeners].filter(([request]) => callOwnerOf(request).key === owner));
  }

  /** Notifies as many listeners as one slice has time for. The rest follow in later turns of the event loop. */
  #notifySlice(): void {
    const { pace } = this.#options;
    const slice = new TimeSlice(pace);
    while (this.#fanOut.step()) {
      if (!slice.over()) continue;
      this.#notifying = true;
      return pace.soon(() => this.#self.send({ type: 'next slice' }));
    }
    this.#closing?.send({ type: 'flushed' });
  }

  /** The changes that a subscription has not received: the latest of each subject. */
  #pendingFor(request: RequestView): readonly Change[] {
    const pending = new Map(this.#fanOut.pendingFor(request).map((change) => [topicOf(change), change]));
    for (const topic of this.#listening.of(request)) {
      const collected = this.#collecting.get(topic);
      const joined = this.#listening.listeners(topic).get(request) ?? 0;
      if (collected && collected.number > joined) pending.set(topic, collected.change);
    }
    return [...pending.values()];
  }

  /**
   * Ends a subscription gracefully with a result. The `notifications/cancelled` that servers may send is for an end
   * without a result (2026-07-28 subscriptions, "Graceful Closure").
   */
  #end(request: RequestView): void {
    for (const change of this.#pendingFor(request)) announce(request, change);
    this.#forget(request);
    respond(request, { ok: true, result: { kind: 'subscription ended', id: request.id } });
  }

  #forget(request: RequestView): void {
    this.#open.delete(request);
    this.#listening.forget(request);
  }

  crashed(mail: SubscriptionsMail, error: unknown): void {
    const incident = this.#options.system.incident('subscriptions', error);
    if (mail.type === 'next slice' || mail.type === 'flush' || mail.type === 'flush all') this.#notifySlice();
    if (!('request' in mail)) return;
    this.#forget(mail.request);
    respond(mail.request, { ok: false, error: toWireError(error, incident) });
  }
}

const RESOURCE = 'resource ';

/** The subject of a change. */
function topicOf(change: Change): string {
  switch (change.type) {
    case 'list changed':
      return `list ${change.what}`;
    case 'resource updated':
      return RESOURCE + change.uri;
    case 'task changed':
      return `task ${change.task.id}`;
  }
}

const NO_HEARERS: Listeners<never> = new Map<never, number>();

/** Sends a change to one listener. */
function announce(listener: Session | RequestView | ResourceWatch, change: Change): void {
  if ('principal' in listener) {
    if (!belongsToOther(change, listener.principal)) listener.announce();
    return;
  }
  if ('address' in listener) return listener.send(change);
  if (!belongsToOther(change, listener.client.principal)) notify(listener, change);
}

function sessionOf(request: RequestView): Session {
  const { session } = request.client;
  if (!session) throw misrouted(request, 'the subscriptions actor');
  return session.mailbox;
}

function notify(request: RequestView, notice: ChangeNotice): void {
  request.requests.send({ type: 'notify', request, notice });
}

/** A URI is stored twice: in the table of topics, and with its session. */
function bytesOf(uri: string): number {
  return WATCH_BYTES + 2 * heapBytes(uri);
}
