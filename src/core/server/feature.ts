/**
 * The interface of a feature: what it adds to a server, and when it opens, lets go and stops. The core imports no feature; the
 * list is `src/features/server/features.ts`.
 */
import type { SubscriptionsOptions } from '../emitters/subscriptions.actor.ts';
import type { Stages } from '../execution/stages.ts';
import type { ActorSystem } from '../kernel/actor-system.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Facts } from '../kernel/inspection/records.ts';
import type { LimitRows, Limits } from '../kernel/limits.ts';
import type { OperatorLog } from '../kernel/operator-log.ts';
import type { Quotas } from '../kernel/server-quotas.ts';
import type { CellHolder } from '../messages/cell-holder.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { ListenedResources } from '../messages/remote-change.ts';
import type { RequestPlacement } from '../messages/request-placement.ts';
import type { SubscriptionsMail } from '../messages/subscription-messages.ts';
import { isObject } from '../protocol/json.ts';
import type { Methods, RequestMethod } from '../protocol/methods.ts';
import * as option from '../protocol/option-rows.ts';
import type { Implementation } from '../protocol/types.ts';
import type { RequestTargets } from '../requests/request-router.ts';
import type { ConnectionTableOptions } from '../sessions/connections.ts';
import type { SessionRepository } from '../sessions/session-repository.ts';
import type { CommitRiders } from '../store/commit-rider.ts';
import type { StateKeys } from '../store/state-keys.ts';
import type { Store } from '../store/store.ts';
import type { Bus } from '../transports/bus.ts';
import type { PersonPages, Transport, UnreadyReason } from '../transports/transport.ts';
import type { RegisteredCapabilities } from './capabilities.ts';
import type { Elements } from './elements.ts';
import type { FeatureMethod } from './feature-method.ts';
import { CORE_OPTIONS, type ServerOptions } from './options.ts';
import type { StoreLifecycle } from './store-lifecycle.ts';

declare module './options.ts' {
  interface ServerOptions {
    /** Features of your own, which open after those of the package, in this order. See docs/features.md. */
    readonly features?: readonly Feature[] | undefined;
  }
}

/** A feature of servers. Its name is the key under which other features find its service. */
export interface Feature<Service = unknown> {
  readonly name: string;
  /** The options of `createServer` that it adds, with the values that each accepts. Their types are merged into `ServerOptions`. */
  readonly options?: Readonly<Record<string, option.Check>>;
  /** The limits that it adds to `limits`, which `core.limits` has. Their types are merged into `Limits`. */
  readonly limits?: LimitRows;
  /** Replaces the clock, before anything else of the server exists. */
  clock?(options: ServerOptions, clock: Clock): Clock | undefined;
  /** It opens before the elements, sessions and subscriptions of the server exist, because it decides what of the store is this process's. */
  readonly opensFirst?: true;
  /** Opens the feature for one server, in the order of the list. */
  open(core: Core): FeatureParts<Service>;
}

/** The row of the option `features`. */
const FEATURES_ROW = option.expected(
  'a list of features, each with a name and open(core)',
  (value) => Array.isArray(value) && value.every(isFeature),
);

function isFeature(value: unknown): value is Feature {
  return isObject(value) && option.isFilled(value.name) && option.isFunction(value.open);
}

/** The rows of all options of a server with these features. */
export function optionRows(features: readonly Feature[]): Readonly<Record<string, option.Check>> {
  return Object.assign({ ...CORE_OPTIONS, features: FEATURES_ROW }, ...features.map(({ options }) => options));
}

/** The features that options name. Another check rejects what is none. */
export function featuresIn({ features = [] }: ServerOptions): readonly Feature[] {
  return Array.isArray(features) ? features.filter(isFeature) : [];
}

/** The parts of one server that a feature adds. */
export interface FeatureParts<Service = unknown> {
  /**
   * The interface for the features that name this one, and for the methods of the server. A getter may create it when it is
   * first asked for (docs/features.md, "What a server does not use").
   */
  readonly service: Service;
  /** The methods of the protocol that it adds, by name: those that `defineMethod` has made, and those that one of `serves` serves. */
  readonly methods?: Readonly<Record<string, FeatureMethod | RequestMethod>>;
  /** The actors and services that serve its methods, by the names in the rows of those. */
  readonly serves?: RequestTargets;
  /** Reads its data, once the store is open and before anything is served. */
  restore?(): Promise<void>;
  /** Holds data of cells: takes and drops it. */
  readonly holds?: CellHolder;
  /** The same for requests that wait: they are let go before their connections. */
  readonly holdsRequests?: CellHolder;
  /** Looks up tasks for subscriptions to them. */
  readonly watched?: SubscriptionsOptions['tasks'];
  /** Learns which resources have listeners. */
  readonly listens?: ListenedResources;
  /** Checks what the program has registered, each time before a transport opens. @throws {DefinitionError} */
  check?(): void;
  /** Called when the first transport opens. */
  begin?(): void;
  /** Resolves when a transport may open. */
  ready?(): Promise<void>;
  /** The first transport is open. */
  started?(): void;
  /** The reason for which the server is not ready; undefined if there is none. */
  unready?(): UnreadyReason | undefined;
  /** Its pages for the browsers of people. */
  readonly pages?: PersonPages;
  /** The parts that it adds to the host of transports. */
  hosts?(): object;
  /** Facts about the server for the inspector. */
  facts?(): Facts;
  /** The server is to stop, and still serves every request: resolves when others serve them. */
  leave?(): Promise<void>;
  /** The server accepts no new requests. */
  drain?(): void;
  /** The requests in flight end now. Called in reverse order, as are the next two. */
  handOver?(): void;
  /** The requests have ended; the transports are still open. */
  finish?(reason: string): Promise<void>;
  /** The transports are closed. */
  stop?(reason: string): Promise<void> | void;
  /** The store is closed. */
  end?(): void;
  /** Passes the changes of this server on to other nodes, too. */
  changes?(subscriptions: Mailbox<SubscriptionsMail>): Mailbox<SubscriptionsMail>;
  /** Decides which node serves a request. Called once all features are open. */
  placement?(): RequestPlacement;
  /** Stores replies before they are sent. */
  readonly replies?: ConnectionTableOptions['replies'];
}

/** The parts of one server that its features use. */
export interface Core {
  readonly options: ServerOptions;
  readonly info: Implementation;
  readonly system: ActorSystem;
  /** Receives messages for the operator. */
  readonly log: OperatorLog;
  readonly limits: Limits;
  readonly quotas: Quotas;
  readonly bus: Bus;
  readonly stages: Stages;
  /** The methods of the protocol that this server has. */
  readonly methods: Methods;
  readonly elements: Elements;
  readonly capabilities: RegisteredCapabilities;
  readonly store: Store;
  readonly storage: StoreLifecycle;
  /** Writes that join each commit. */
  readonly riders: CommitRiders;
  /** The keys that seal what clients keep for the server. */
  readonly keys: StateKeys;
  /** The durable sessions; undefined if none are durable. */
  readonly sessions: SessionRepository | undefined;
  /** The ids of sessions that are not durable and outlive this process. */
  readonly lasting: Set<string>;
  /** In the order in which they were opened. */
  readonly transports: Transport[];
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  /** Receives the changes of this server, which other nodes learn, too. */
  readonly changes: Mailbox<SubscriptionsMail>;
  /** The service of a feature that stands above this one in the list. @throws {Error} if it is not there */
  service<Service>(feature: Feature<Service>): Service;
}
