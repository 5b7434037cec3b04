/** The stored form of a subscription to a callback, its id, its row and its reader. */
import {
  type WebhookSubscriptionState,
  webhookSubscriptionMachine,
} from '../../../../machines/webhook-subscription.ts';
import { type Auth, isAuth } from '../../../core/messages/auth.ts';
import { RANDOM_LENGTH, withCell } from '../../../core/protocol/cell.ts';
import { isJsonObject, isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { digest, type KeyRing } from '../../../core/store/seal.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import { type ActorRow, StoreError, type Write } from '../../../core/store/store.ts';
import type { EventsProfile } from '../event-wire.ts';
import type { FailureCategory } from './callback-sender.ts';
import { cellOfSubscriber } from './subscriber-cell.ts';

/** The members of a subscription that never change: the same call with others is another subscription. */
export interface SubscriptionKey {
  readonly principal: string;
  readonly url: string;
  readonly name: string;
  /** As its client has sent them. */
  readonly arguments: JsonObject;
}

/** An event that was given up: its topic has its data. */
export interface DeadEvent {
  readonly seq: number;
  readonly id: string;
  /** When it was given up, in milliseconds since 1970. */
  readonly at: number;
  readonly attempts: number;
  readonly category: FailureCategory;
}

export interface StoredSubscription extends SubscriptionKey {
  readonly id: string;
  /** The profile of its client: whether it knows `gap` and `terminated`. */
  readonly profile: EventsProfile;
  /** The arguments as the schema of the type has made them, if that differs. */
  readonly checked?: JsonObject | undefined;
  /** The sealed secrets: {@link SigningSecrets}. */
  readonly secrets: string;
  /** The caller when it subscribed last, without its token. */
  readonly auth: Auth | undefined;
  readonly state: WebhookSubscriptionState;
  /** Milliseconds since 1970; `until` is null without an expiry. */
  readonly created: number;
  readonly until: number | null;
  /** The value of `by` and the epoch of its topic. Every event up to this number was accepted, given up, or does not match. */
  readonly by: string;
  readonly epoch: string;
  readonly seq: number;
  /** True if events were skipped of which its client does not know yet. */
  readonly gap?: boolean | undefined;
  readonly failures?: number | undefined;
  readonly failedSince?: number | undefined;
  readonly lastError?: FailureCategory | undefined;
  readonly lastDeliveryAt?: number | undefined;
  /** The last events that were given up. */
  readonly dead?: readonly DeadEvent[] | undefined;
}

/** The secret of a subscription, and the one before, with which deliveries are signed for a while, too. */
export interface SigningSecrets {
  readonly current: string;
  readonly previous?: string | undefined;
  /** Milliseconds since 1970. */
  readonly previousUntil?: number | undefined;
}

const PREFIX = 'webhook/';
const SCOPE = 'webhook';

/** The id of a subscription, which says nothing of its key, and authorizes nothing. The order of arguments does not matter. */
export function idOfSubscription({ principal, url, name, arguments: given }: SubscriptionKey): string {
  const hash = digest([principal, url, name, given]);
  return withCell(cellOfSubscriber(principal), hash.slice(0, RANDOM_LENGTH));
}

export function subscriptionActor(id: string): string {
  return PREFIX + id;
}

/** The id of a subscription, by its actor in the store. */
export function idOfActor(actor: string): string {
  return actor.slice(PREFIX.length);
}

export function sealSecrets(ring: KeyRing, id: string, secrets: SigningSecrets): string {
  const { current, previous, previousUntil } = secrets;
  const kept = previous === undefined || previousUntil === undefined ? {} : { previous, previousUntil };
  return ring.seal({ current, ...kept }, [SCOPE, id]);
}

/** Undefined if no key of the server opens them. */
export function openSecrets(ring: KeyRing, { id, secrets }: StoredSubscription): SigningSecrets | undefined {
  const opened = ring.open(secrets, [SCOPE, id]);
  if (!opened.ok || !isObject(opened.payload)) return undefined;
  const { current, previous, previousUntil } = opened.payload;
  if (typeof current !== 'string') return undefined;
  return typeof previous === 'string' && typeof previousUntil === 'number'
    ? { current, previous, previousUntil }
    : { current };
}

/** The writes that store a subscription. */
export function writesOfSubscription(record: StoredSubscription, keptMs: number): readonly [Write, Write] {
  const { id, name, principal, state, created, until } = record;
  const expires = until === null ? undefined : until + keptMs;
  const actor: ActorRow = {
    ...{ id: subscriptionActor(id), kind: 'webhook', name, principal, status: state, created, expires },
  };
  return [
    { type: 'actor', actor },
    { type: 'snapshot', actor: actor.id, version: '1', data: toText(record) },
  ];
}

/** @throws {StoreError} `corrupt` */
export function readSubscription(text: string): StoredSubscription {
  const value = fromText(text, 'a subscription');
  if (!isStoredSubscription(value))
    throw new StoreError('corrupt', 'a subscription: expected the members that were written, got others');
  return value;
}

const TEXTS = ['id', 'principal', 'url', 'name', 'secrets', 'by', 'epoch'] as const;
const NUMBERS = ['created', 'seq'] as const;

function isStoredSubscription(value: unknown): value is StoredSubscription {
  if (!isObject(value)) return false;
  const { state, profile, until, arguments: given, auth } = value;
  return (
    TEXTS.every((name) => typeof value[name] === 'string') &&
    NUMBERS.every((name) => typeof value[name] === 'number') &&
    (until === null || typeof until === 'number') &&
    (profile === 'sep' || profile === 'sketch') &&
    isJsonObject(given) &&
    (auth === undefined || isAuth(auth)) &&
    typeof state === 'string' &&
    Object.hasOwn(webhookSubscriptionMachine.config.states, state)
  );
}
