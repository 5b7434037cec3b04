/** The options of a webhook, with their checks, and what its author receives. */
import type { EmittedType } from '../../core/execution/context.ts';
import { describe, isObject, type JsonValue } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import type { HookVerifier } from './hook-request.ts';

/** A delivery as its handler receives it. */
export interface HookDelivery {
  /** The path of the webhook. */
  readonly path: string;
  /** The id by which the sender knows it; the `key` if it has none. */
  readonly id: string;
  /**
   * The name of the delivery, of 43 characters: the same for each attempt, and for each repeat of the sender. A handler that must do
   * something once passes it on as an idempotency key. A delivery that a person sends again has another one.
   */
  readonly key: string;
  /** The kind of the delivery, such as `push`, as far as the verifier knows it. */
  readonly type: string | undefined;
  /** JSON, the fields of a form as an object of texts, or a text; undefined for a body of another type. */
  readonly body: JsonValue | undefined;
  /** The body as it came. */
  readonly raw: Uint8Array;
  /** The time of its arrival, in milliseconds since 1970. */
  readonly at: number;
}

/** The circumstances of one attempt. */
export interface HookAttempt {
  /** From 1. Above 1, an earlier attempt has failed, or its process has ended while it ran. */
  readonly attempt: number;
  /** Aborted when the attempt has taken `timeoutMs`, and when the server stops. */
  readonly signal: AbortSignal;
}

/** The instance of a keyed machine that a delivery concerns, and its event: as for `server.send`. */
export interface HookTarget {
  readonly machine: string;
  readonly key: string;
  readonly event: { readonly type: string; readonly [member: string]: unknown };
}

/** The event of the server that a delivery becomes: as for `server.event(…).emit`. */
export interface HookEmission {
  /** The event type, or its name. */
  readonly emit: EmittedType<never> | string;
  /** The data of the event, which the schema of its type checks. */
  readonly data: unknown;
  /** The id of the event. Default: the `key` of the delivery, so that its attempts and its repeats are one event. */
  readonly id?: string | undefined;
  /** When it happened: a date, or milliseconds since 1970. Default: the time of the arrival. */
  readonly at?: Date | number | undefined;
}

/** The options of a webhook. One of `to` and `emit` is required. */
export interface HookOptions {
  /** Decides whether a request is genuine, such as `github({ secret })` of `troupe/webhooks`. */
  readonly verify: HookVerifier;
  /**
   * Handles a delivery, after the sender has its answer. It runs at least once: again if it throws, and if its process ends while it
   * runs. Each time the delivery has the same `key`. If it returns a {@link HookTarget}, the event is sent to that instance, once; if
   * it returns a {@link HookEmission}, that event is emitted, once.
   */
  to?(delivery: HookDelivery, attempt: HookAttempt): unknown;
  /** The event type, or its name, of which each delivery becomes an event: its data is the body, and its id is the `key`. */
  readonly emit?: EmittedType<never> | string;
  /** Maximum number of attempts, from 1 to 50. Default 10: over 36 minutes. Then the delivery is a dead letter. */
  readonly attempts?: number;
  /** Milliseconds until the second attempt; each further wait is twice as long, at most 15 minutes. Default 5,000. */
  readonly retryMs?: number;
  /** Milliseconds in which an attempt must return. Default 60,000. */
  readonly timeoutMs?: number;
  /** Maximum number of deliveries of this webhook that a node handles at a time, from 1 to 256. Default 8; 1 keeps the order of arrival. */
  readonly concurrency?: number;
  /** Longest body, in bytes, at most 4 MiB. Default 1 MiB. A longer one gets 413. */
  readonly maxBytes?: number;
  /** Requests of one address a second, and at once; of IPv6, of one /64 network. Default `{ perSecond: 100, burst: 1_000 }`. Beyond, 429. */
  readonly rate?: { readonly perSecond: number; readonly burst: number };
}

/** A webhook with its path and its defaults. */
export interface DefinedHook extends Required<Omit<HookOptions, 'emit'>> {
  readonly path: string;
}

const MIB = 1024 ** 2;
const DEFAULTS = {
  attempts: 10,
  retryMs: 5_000,
  timeoutMs: 60_000,
  concurrency: 8,
  maxBytes: MIB,
  rate: { perSecond: 100, burst: 1_000 },
} as const;

const ROWS: option.Rows<HookOptions> = {
  verify: option.needed(option.expected('a verifier such as github({ secret }) of troupe/webhooks', option.isFunction)),
  to: option.functional,
  emit: option.expected('an event type of server.event, or its name', (value) => typeOf(value) !== undefined),
  attempts: option.whole(1, 50),
  retryMs: option.duration,
  timeoutMs: option.duration,
  concurrency: option.whole(1, 256),
  maxBytes: option.whole(1, 4 * MIB),
  rate: option.rate(),
};

/** The name of an event type. */
function typeOf(value: unknown): string | undefined {
  const name = isObject(value) ? value.name : value;
  return option.isFilled(name) ? name : undefined;
}

/** The emission that a handler has returned, with the name of its type; undefined for anything else. @throws {TypeError} without a type */
export function emissionIn(result: unknown): (Omit<HookEmission, 'emit'> & { readonly name: string }) | undefined {
  if (!isObject(result) || !('emit' in result)) return undefined;
  const { emit, data, id, at } = result;
  const name = typeOf(emit);
  if (name === undefined) throw new TypeError(`to: emit: expected an event type, or its name, got ${describe(emit)}`);
  if (id !== undefined && typeof id !== 'string') throw new TypeError(`to: id: expected a text, got ${describe(id)}`);
  if (at === undefined || at instanceof Date || typeof at === 'number') return { name, data, id, at };
  throw new TypeError(`to: at: expected a date or milliseconds since 1970, got ${describe(at)}`);
}

/** The target that a handler has returned; undefined for anything else. @throws {TypeError} for a target that is incomplete */
export function targetIn(result: unknown): HookTarget | undefined {
  if (!isObject(result) || !('machine' in result)) return undefined;
  const { machine, key, event } = result;
  if (typeof machine === 'string' && typeof key === 'string' && isObject(event) && typeof event.type === 'string')
    return { machine, key, event: { ...event, type: event.type } };
  throw new TypeError('to: expected { machine, key, event: { type } }, got an object with other members');
}

/** The paths that a server over HTTP serves itself. */
const OWN_PATHS = ['/', '/mcp', '/sse', '/healthz', '/readyz'];

/** @throws {DefinitionError} for a path that is none or is taken, and for an invalid option */
export function defineHook(path: string, given: HookOptions, taken: (path: string) => boolean): DefinedHook {
  if (typeof path !== 'string' || !/^(?:\/[\w\-.~!$&'()*+,;=:@%]+)+$/.test(path) || OWN_PATHS.includes(path))
    throw new DefinitionError(
      `webhook: path: expected a path such as "/hooks/github", without a slash at its end, got ${describe(path)}`,
    );
  const label = `webhook "${path}"`;
  if (taken(path)) throw new DefinitionError(`${label}: there is a webhook with this path. Choose another one`);
  option.check(`${label}: `, given, ROWS, DefinitionError);
  const { emit, ...others } = option.withoutUndefined(given);
  const to = handlerOf(given);
  if (!to) throw new DefinitionError(`${label}: expected one of "to" and "emit", got ${emit ? 'both' : 'neither'}`);
  return { ...DEFAULTS, ...others, path, to, verify: given.verify };
}

/** The handler of a webhook; undefined if there is none, or there are two. */
function handlerOf(given: HookOptions): DefinedHook['to'] | undefined {
  const { emit, to } = given;
  if (emit === undefined) return to?.bind(given);
  return to ? undefined : ({ body }) => ({ emit, data: body });
}
