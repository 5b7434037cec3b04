/** The parsed form of each request, and the readers, which reject invalid params with -32602. An optional member that is null is absent. */
import { misfit } from './errors.ts';
import { isObject, type JsonObject } from './json.ts';
import { readImplementation } from './meta.ts';
import type { Listen } from './subscription-filter.ts';
import { type ClientCapabilities, type Implementation, isLogLevel, LOG_LEVELS, type LogLevel } from './types.ts';

export type Params = Readonly<Record<string, unknown>> | undefined;

export type CompletionRef =
  | { readonly type: 'ref/prompt'; readonly name: string }
  | { readonly type: 'ref/resource'; readonly uri: string };

export interface Complete {
  readonly method: 'completion/complete';
  readonly ref: CompletionRef;
  readonly argument: { readonly name: string; readonly value: string };
  /** Arguments that the client has already resolved (`context.arguments`, from 2025-06-18). */
  readonly resolved: Readonly<Record<string, string>>;
}

export interface Initialize {
  readonly method: 'initialize';
  readonly protocolVersion: string;
  readonly capabilities: ClientCapabilities;
  readonly clientInfo: Implementation;
}

export type ListMethod = 'tools/list' | 'resources/list' | 'resources/templates/list' | 'prompts/list' | 'skills/list';

type List = { readonly method: ListMethod; readonly cursor: string | undefined };
/** The input of a retried request: the responses to the input requests, and the request state (2026-07-28 MRTR). */
interface Input {
  readonly responses: Readonly<Record<string, unknown>>;
  readonly state: string | undefined;
}

export type CallTool = {
  readonly method: 'tools/call';
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly input: Input | undefined;
  /** The request for a task (2025-11-25), unparsed; other revisions ignore it. */
  readonly task: unknown;
};
type ReadResource = {
  readonly method: 'resources/read';
  readonly uri: string;
  readonly input: Input | undefined;
};
type Subscribe = { readonly method: 'resources/subscribe' | 'resources/unsubscribe'; readonly uri: string };
type GetPrompt = {
  readonly method: 'prompts/get';
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
  readonly input: Input | undefined;
};
type SetLevel = { readonly method: 'logging/setLevel'; readonly level: LogLevel };
type Bare = { readonly method: 'ping' | 'server/discover' };

/** The operations by their origin. Features of this package add theirs by `declare module`. */
export interface Operations {
  readonly core:
    | Initialize
    | Bare
    | List
    | CallTool
    | ReadResource
    | Subscribe
    | GetPrompt
    | Complete
    | SetLevel
    | Listen;
  readonly program: AddedRequest;
  readonly events: EventsRequest;
}

/**
 * The name of a method that a program adds. It has a dot, as the identifiers of extensions: no method of the protocol has one, and
 * none that a later revision adds.
 */
export type AddedMethod = `${string}.${string}`;

/** The longest name of such a method, in characters: errors repeat it. */
const LONGEST_METHOD = 100;

export function isAddedMethod(name: string): name is AddedMethod {
  return name.includes('.') && name.length <= LONGEST_METHOD;
}

/** A request of a method that a program has added, with what its reader has made of the params. */
interface AddedRequest {
  readonly method: AddedMethod;
  readonly params: unknown;
}

/** A request of events. `cursor` is undefined for a subscription that begins now. */
export type EventsRequest = { readonly method: 'events/list'; readonly cursor: string | undefined } | EventsRead;

export interface EventsRead {
  readonly method: 'events/poll' | 'events/stream';
  readonly name: string;
  readonly arguments: JsonObject;
  readonly cursor: string | undefined;
  /** Milliseconds: older events are not sent. */
  readonly maxAgeMs: number | undefined;
  /** Maximum number of events of one poll. */
  readonly maxEvents: number | undefined;
}

/** One parsed request. */
export type Operation = Operations[keyof Operations];

/**
 * The arguments by which rules decide; undefined for an operation without arguments. Those of a completion are the resolved
 * arguments, and the text of the argument that is being completed: its completer receives both.
 */
export function ruledArguments(operation: Operation): Readonly<Record<string, unknown>> | undefined {
  if (operation.method === 'completion/complete') {
    const { resolved, argument } = operation;
    return { ...resolved, [argument.name]: argument.value };
  }
  return 'arguments' in operation ? operation.arguments : undefined;
}

/** The requests without an end of their own: they have no deadline, and their notifications are their response. */
export const STAY_OPEN: ReadonlySet<string> = new Set(['subscriptions/listen', 'events/stream']);

const NONE: Readonly<Record<string, never>> = Object.freeze({});

export function readInitialize(params: Params): Initialize {
  const capabilities = params?.capabilities;
  if (!isObject(capabilities)) throw misfit('capabilities', 'an object', capabilities);
  const clientInfo = readImplementation(params?.clientInfo, 'params.clientInfo');
  if (!clientInfo) throw misfit('clientInfo', 'an object with "name" and "version"', undefined);
  return { method: 'initialize', protocolVersion: textMember(params, 'protocolVersion'), capabilities, clientInfo };
}

export const readBare = (method: Bare['method']) => (): Bare => ({ method });

export const readList =
  (method: ListMethod) =>
  (params: Params): List => ({ method, cursor: cursorOf(params) });

export function readCallTool(params: Params): CallTool {
  const given = params?.arguments ?? undefined;
  if (given !== undefined && !isObject(given)) throw misfit('arguments', 'an object', given);
  return {
    method: 'tools/call',
    name: textMember(params, 'name'),
    arguments: given ?? NONE,
    // Nearly all calls continue nothing.
    input: (params?.inputResponses ?? params?.requestState ?? undefined) === undefined ? undefined : readInput(params),
    task: params?.task ?? undefined,
  };
}

export function readReadResource(params: Params): ReadResource {
  return { method: 'resources/read', uri: textMember(params, 'uri'), input: readInput(params) };
}

/** @throws {ProtocolError} for a cursor that is no string */
export function cursorOf(params: Params): string | undefined {
  const cursor = params?.cursor ?? undefined;
  if (cursor !== undefined && typeof cursor !== 'string') throw misfit('cursor', 'a string', cursor);
  return cursor;
}

function readInput(params: Params): Input | undefined {
  const responses = params?.inputResponses ?? undefined;
  const state = params?.requestState ?? undefined;
  if (responses === undefined && state === undefined) return undefined;
  if (responses !== undefined && !isObject(responses)) throw misfit('inputResponses', 'an object', responses);
  if (state !== undefined && typeof state !== 'string') throw misfit('requestState', 'a string', state);
  return { responses: responses ?? NONE, state };
}

export const readSubscribe =
  (method: Subscribe['method']) =>
  (params: Params): Subscribe => ({ method, uri: textMember(params, 'uri') });

export function readGetPrompt(params: Params): GetPrompt {
  return {
    method: 'prompts/get',
    name: textMember(params, 'name'),
    arguments: texts(params?.arguments, 'arguments'),
    input: readInput(params),
  };
}

export function readComplete(params: Params): Complete {
  const { ref, argument } = params ?? NONE;
  const context = params?.context ?? undefined;
  if (!isObject(argument)) throw misfit('argument', 'an object', argument);
  if (context !== undefined && !isObject(context)) throw misfit('context', 'an object', context);
  return {
    method: 'completion/complete',
    ref: readRef(ref),
    argument: { name: textMember(argument, 'name', 'argument.'), value: textMember(argument, 'value', 'argument.') },
    resolved: texts(context?.arguments, 'context.arguments'),
  };
}

function readRef(ref: unknown): CompletionRef {
  if (isObject(ref)) {
    if (ref.type === 'ref/prompt') return { type: 'ref/prompt', name: textMember(ref, 'name', 'ref.') };
    if (ref.type === 'ref/resource') return { type: 'ref/resource', uri: textMember(ref, 'uri', 'ref.') };
  }
  throw misfit('ref', 'an object of type "ref/prompt" or "ref/resource"', isObject(ref) ? ref.type : ref);
}

export function readSetLevel(params: Params): SetLevel {
  const level = params?.level;
  if (!isLogLevel(level)) throw misfit('level', `one of ${LOG_LEVELS.join(', ')}`, level);
  return { method: 'logging/setLevel', level };
}

/** @throws {ProtocolError} for a member that is no string */
export function textMember(params: Params, name: string, prefix = ''): string {
  const value = params?.[name];
  if (typeof value !== 'string') throw misfit(`${prefix}${name}`, 'a string', value);
  return value;
}

/** Prompt and completion arguments are strings on the wire (GetPromptRequest, CompleteRequest). */
function texts(value: unknown, where: string): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return NONE;
  if (!isObject(value)) throw misfit(where, 'an object of strings', value);
  const read: Record<string, string> = Object.create(null);
  for (const [name, entry] of Object.entries(value)) {
    if (entry === null) continue;
    if (typeof entry !== 'string') throw misfit(`${where}.${name}`, 'a string', entry);
    read[name] = entry;
  }
  return read;
}
