/** The definition of an event type by its author, and its checks. */
import { isDeepStrictEqual } from 'node:util';
import type { Auth } from '../../core/messages/auth.ts';
import type { ElementAccess, Guarded } from '../../core/messages/authorization-rule.ts';
import { isObject, type JsonObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { EventType } from '../../core/protocol/types.ts';
import { checkMembers, DESCRIBED, DefinitionError } from '../../core/registry/definition-checks.ts';
import { accessOf, type Compiled } from '../../core/registry/offers.ts';
import { compileInput, compileOutput } from '../../core/schema/compile-schema.ts';
import type { CompiledSchema } from '../../core/schema/schema.ts';
import type { AuthorSchema, Infer, InferInput } from '../../core/schema/schema-types.ts';
import type { EventSource } from './event-source.ts';
import { EVENT_NAME, type Termination, typeGone } from './event-wire.ts';
import type { Retention } from './topic-document.ts';

/** An event, as `match` and `shape` receive it. Its data is frozen. */
export interface MatchedEvent<Data = JsonObject> {
  readonly id: string;
  /** When it happened, in milliseconds since 1970. */
  readonly at: number;
  readonly data: Data;
}

/** The subscriber. */
export interface EventSubscriber {
  readonly principal: string;
  /** Undefined for an anonymous subscriber. */
  readonly auth: Auth | undefined;
}

/** The retention of a topic. The oldest events leave first. */
export interface RetainOptions {
  /** Maximum number of events. Default 10,000. */
  readonly events?: number | undefined;
  /** Milliseconds. Default one day. */
  readonly ms?: number | undefined;
  /** Maximum number of bytes. Default 16 MiB. */
  readonly bytes?: number | undefined;
}

/** An event type (docs/events.md). Experimental. */
export interface EventOptions<
  P extends AuthorSchema = AuthorSchema,
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
> extends Guarded {
  readonly title?: string | undefined;
  /** Clients and models read it: what happens, and when the event occurs. */
  readonly description: string;
  /** The arguments of a subscription. Without it, a subscription has none. */
  readonly input?: I | undefined;
  /** The data of an event: an object. Checked when an event is emitted. */
  readonly payload: P;
  /**
   * A member of the payload, a string or a number, that is also a required argument: each value has a topic of its own, and a
   * subscription reads the topic of its argument only.
   */
  readonly by?: string | undefined;
  /**
   * Decides whether a subscriber gets an event: pure and synchronous. Default: each argument equals the member of the payload of the
   * same name.
   */
  readonly match?:
    | ((event: MatchedEvent<Infer<P>>, args: ArgumentsOfEvent<I>, who: EventSubscriber) => boolean)
    | undefined;
  /** Returns the data that a subscriber gets; undefined: it does not get the event. Pure and synchronous. */
  readonly shape?:
    | ((event: MatchedEvent<Infer<P>>, args: ArgumentsOfEvent<I>, who: EventSubscriber) => object | undefined)
    | undefined;
  readonly retain?: RetainOptions | undefined;
  /** Events that are on their way to one webhook at once, 1 to 50. Above 1, they may arrive in another order. Default 1. */
  readonly inFlight?: number | undefined;
  readonly meta?: JsonObject | undefined;
}

type ArgumentsOfEvent<I> = [I] extends [AuthorSchema] ? Infer<I> : JsonObject;

/** The data with which an event is emitted. */
export type EventData<P> = InferInput<P>;

/** An event type of any schemas. */
export interface AnyEventType extends Omit<EventOptions, 'match' | 'shape'> {
  readonly name: string;
  // A method, so that the functions of any schemas fit.
  match?(event: MatchedEvent, args: JsonObject, who: EventSubscriber): boolean;
  shape?(event: MatchedEvent, args: JsonObject, who: EventSubscriber): object | undefined;
}

/** The parts of an event type that emitting and reading use. */
export interface EventImplementation {
  readonly label: string;
  readonly input: CompiledSchema;
  readonly payload: CompiledSchema;
  readonly by: string | undefined;
  readonly match: AnyEventType['match'];
  readonly shape: AnyEventType['shape'];
  readonly retain: Retention;
  readonly inFlight: number;
  /** Feeds its topics, if its events happen at another server. */
  readonly source?: EventSource | undefined;
}

/** The retention of a topic, unless its author names another. */
export const RETAIN: Retention = { events: 10_000, ms: 86_400_000, bytes: 16 * 1024 ** 2 };

const MEMBERS = {
  ...DESCRIBED,
  description: option.needed(option.filled),
  payload: option.anything,
  by: option.filled,
  match: option.functional,
  shape: option.functional,
  retain: option.members({ events: option.count, ms: option.lifetime, bytes: option.count }),
  inFlight: option.whole(1, 50),
};

/** @throws {DefinitionError | SchemaError} */
export function compileEvent(definition: AnyEventType): Compiled<EventType, EventImplementation> {
  const { name, title, description, input, payload, by, match, shape, retain, inFlight = 1, meta } = definition;
  if (typeof name !== 'string' || !EVENT_NAME.test(name))
    throw new DefinitionError(
      `event ${typeof name === 'string' ? `"${name}"` : typeof name}: a name has 1 to 128 letters, digits, "_", "-" and "."`,
    );
  const label = `event "${name}"`;
  checkMembers(MEMBERS, label, definition);
  if (payload === undefined)
    throw new DefinitionError(`${label}: payload: expected the schema of its data, got nothing`);
  const data = compileOutput(payload, `${label}: payload`);
  if (data.json.type !== 'object')
    throw new DefinitionError(
      `${label}: payload: expected the schema of an object, because the data of an event is one`,
    );
  const args = compileInput(input, `${label}: input`);
  if (by !== undefined) {
    if (!requires(args.json, by) || !requires(data.json, by))
      throw new DefinitionError(
        `${label}: by: expected a required member of "payload" and of "input", got "${by}". A subscription reads the topic of one value; without "by", use "match"`,
      );
  }
  if (!match) {
    const others = Object.keys(isObject(args.json.properties) ? args.json.properties : {}).filter(
      (argument) => !isObject(data.json.properties) || !Object.hasOwn(data.json.properties, argument),
    );
    if (others.length > 0)
      throw new DefinitionError(
        `${label}: the payload has no member "${others[0]}", so this argument would select nothing: add "match"`,
      );
  }
  const access: ElementAccess | undefined = accessOf(definition);
  return {
    key: name,
    access,
    definition: {
      name,
      ...(title === undefined ? {} : { title }),
      description,
      delivery: ['poll', 'push', 'webhook'],
      inputSchema: args.json,
      payloadSchema: data.json,
      ...(meta === undefined ? {} : { _meta: meta }),
    },
    implementation: {
      ...{ label, input: args, payload: data, by, match, shape, inFlight },
      retain: {
        events: retain?.events ?? RETAIN.events,
        ms: retain?.ms ?? RETAIN.ms,
        bytes: retain?.bytes ?? RETAIN.bytes,
      },
    },
  };
}

/**
 * The topic of a subscription, by the value of `by`; the empty string for a type with one topic.
 *
 * @param checked the arguments as the schema has read them
 * @param given the arguments as the client sent them
 */
export function topicOf(
  { by, source }: EventImplementation,
  checked: JsonObject,
  given: JsonObject,
  principal: string,
): string {
  if (source) return source.topicOf(given, principal);
  return by === undefined ? '' : String(checked[by]);
}

function requires({ properties, required }: JsonObject, name: string): boolean {
  return isObject(properties) && Object.hasOwn(properties, name) && Array.isArray(required) && required.includes(name);
}

/** The reason for which the subscriptions to a type end, by its definition before and now; undefined if they go on. */
export function endOfType(before: EventType, now: EventType | undefined): Termination | undefined {
  if (!now) return typeGone(before.name);
  if (isAdditive(before, now)) return undefined;
  const message = `the schemas of the event type "${before.name}" have changed: subscribe again`;
  return { failure: 'unsupported', message, data: { feature: 'event', reason: 'schema_changed' } };
}

/** True if what a type accepted and promised before, it accepts and promises still: new members, and fewer required arguments. */
function isAdditive(before: EventType, now: EventType): boolean {
  return (
    hasAll(now.payloadSchema, before.payloadSchema) &&
    hasAll(now.inputSchema, before.inputSchema) &&
    requiredOf(before.payloadSchema).every((name) => requiredOf(now.payloadSchema).includes(name)) &&
    requiredOf(now.inputSchema).every((name) => requiredOf(before.inputSchema).includes(name))
  );
}

function hasAll(now: JsonObject, before: JsonObject): boolean {
  const [properties, earlier] = [now.properties ?? {}, before.properties ?? {}];
  if (!isObject(properties) || !isObject(earlier)) return isDeepStrictEqual(properties, earlier);
  return Object.entries(earlier).every(([name, schema]) => isDeepStrictEqual(properties[name], schema));
}

function requiredOf({ required }: JsonObject): readonly unknown[] {
  return Array.isArray(required) ? required : [];
}
