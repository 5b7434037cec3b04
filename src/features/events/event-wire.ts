/**
 * Everything of events that is on the wire, in both profiles: the extension of SEP-3415 (`sep`), and the design sketch that clients
 * deployed before it follow (`sketch`). The codes are those of the draft at commit 5eb6862 of the PR; the SEP is final since November
 * 2026 (modelcontextprotocol.io/extensions/events/overview), and its last text names each message, not the event, in `webhook-id`
 * (changelog of @ai-sdk/mcp 2.0.105; TanStack/ai discussion 2038). The event's id is still sent there, because clients of the earlier
 * drafts compare the two; the receiver of this package takes both.
 */
import { ErrorCode, type ErrorCodeValue, ProtocolError } from '../../core/protocol/errors.ts';
import { declaredExtension, EVENTS_EXTENSION } from '../../core/protocol/extensions.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { ClientCapabilities } from '../../core/protocol/types.ts';

/** A client that declares the extension speaks `sep`, any other client `sketch`. */
export type EventsProfile = 'sep' | 'sketch';

/** The option `events.codes`: the profile whose error codes every client gets; `auto`: each client those of its own profile. */
export type EventsCodes = 'auto' | EventsProfile;

const FAILURES = ['not found', 'forbidden', 'exhausted', 'unsupported', 'callback'] as const;

/** The reason of an error of an `events/*` method. */
export type EventsFailure = (typeof FAILURES)[number];

const CODES: Readonly<Record<EventsFailure, Readonly<Record<EventsProfile, ErrorCodeValue>>>> = {
  'not found': { sep: ErrorCode.EventNotFound, sketch: ErrorCode.SketchNotFound },
  forbidden: { sep: ErrorCode.EventForbidden, sketch: ErrorCode.SketchForbidden },
  exhausted: { sep: ErrorCode.EventExhausted, sketch: ErrorCode.SketchExhausted },
  unsupported: { sep: ErrorCode.EventUnsupported, sketch: ErrorCode.SketchUnsupported },
  callback: { sep: ErrorCode.CallbackFailed, sketch: ErrorCode.SketchCallbackFailed },
};

/** The profile of a request, by the capabilities that its client declares. */
export function profileOf(capabilities: ClientCapabilities): EventsProfile {
  return declaredExtension(capabilities, EVENTS_EXTENSION) ? 'sep' : 'sketch';
}

/** The profile whose codes a request gets. @param codes the option of the server; default `auto` */
export function codesOf(capabilities: ClientCapabilities, codes: EventsCodes = 'auto'): EventsProfile {
  return codes === 'auto' ? profileOf(capabilities) : codes;
}

/** The reason of an error of an `events/*` method, by its code in either profile; undefined for another error. */
export function eventsFailure(code: number): EventsFailure | undefined {
  return FAILURES.find((failure) => Object.values(CODES[failure]).some((each) => each === code));
}

/** Translates the code of an error of an `events/*` method. Another error is returned as it is. */
export function recoded(error: ProtocolError, profile: EventsProfile): ProtocolError {
  const failure = eventsFailure(error.code);
  return failure ? new ProtocolError(CODES[failure][profile], error.message, error.data) : error;
}

/** @example eventsCode('not found', 'sep') // -32023 */
export function eventsCode(failure: EventsFailure, profile: EventsProfile): ErrorCodeValue {
  return CODES[failure][profile];
}

/** Creates the error of an `events/*` method, with the code of the client's profile. */
export function eventsError(
  failure: EventsFailure,
  profile: EventsProfile,
  message: string,
  data?: JsonObject,
): ProtocolError {
  return new ProtocolError(eventsCode(failure, profile), message, data);
}

/** The reason for which the server ends a subscription, as its client learns it. */
export interface Termination {
  readonly failure: EventsFailure;
  readonly message: string;
  readonly data?: JsonObject | undefined;
}

/** The end of the subscriptions to a type that is no more. */
export function typeGone(name: string): Termination {
  return { failure: 'not found', message: `the event type "${name}" is gone`, data: { kind: 'event' } };
}

/** The notifications of a stream. */
export const EVENT_NOTICES = {
  /** The subscription is active from this cursor; sent again after a gap. */
  active: 'notifications/events/active',
  event: 'notifications/events/event',
  heartbeat: 'notifications/events/heartbeat',
  /** A transient failure: the stream stays open. */
  error: 'notifications/events/error',
  /** The subscription has ended. */
  terminated: 'notifications/events/terminated',
} as const;

/** One event as clients see it. `cursor` is the position after it; a poll has one cursor for all of its events. */
export interface Occurrence {
  readonly eventId: string;
  readonly name: string;
  /** ISO 8601, with its zone. */
  readonly timestamp: string;
  readonly data: JsonObject;
  readonly cursor?: string;
  readonly _meta?: JsonObject;
}

/** The result of `events/poll`. */
export interface PollResult {
  readonly events: readonly Occurrence[];
  readonly cursor: string;
  /** Events may be missing before those of this result: the cursor is unknown, or retention has passed it. */
  readonly truncated: boolean;
  /** Poll again at once. */
  readonly hasMore: boolean;
  /** Milliseconds until the next poll. */
  readonly nextPollMs: number;
}

/** Longest name of an event type, and the characters of it: those of tools. */
export const EVENT_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** An event id becomes a header of HTTP: visible ASCII. */
export const EVENT_ID = /^[\x21-\x7e]{1,256}$/;
