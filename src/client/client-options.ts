/** The options of a client and of its calls. Types, defaults, and their check. */
import type { Clock } from '../core/kernel/clock.ts';
import type { InspectionListener } from '../core/kernel/inspection/records.ts';
import type { OperatorLog } from '../core/kernel/operator-log.ts';
import { describe, isObject, type JsonObject, type JsonValue } from '../core/protocol/json.ts';
import * as option from '../core/protocol/option-rows.ts';
import type { LegacyRevision } from '../core/protocol/revisions.ts';
import { LOG_LEVELS, type LogLevel } from '../core/protocol/types.ts';
import type { Authorization } from './authorization.ts';
import type { Channel } from './channels/channel.ts';
import type { StdioCommand } from './channels/stdio-channel.ts';

/** A form that the server asks the user to fill in. */
export interface ElicitationForm {
  readonly message: string;
  /** A flat JSON Schema of the fields (MCP elicitation, "Requested Schema"). */
  readonly requestedSchema: JsonObject;
}

/** A page that the server asks the user to open. */
export interface ElicitationPage {
  readonly message: string;
  readonly url: string;
  readonly elicitationId?: string | undefined;
}

/** The user's answer to a form: the fields, `decline`, or `cancel` (closed without an answer). */
export type FormAnswer = JsonObject | 'decline' | 'cancel';
export type PageAnswer = 'accept' | 'decline' | 'cancel';

/** A sampling request, as the server sent it (MCP sampling, `sampling/createMessage`). */
export type SamplingRequest = JsonObject;
/** The model's answer: `role`, `content`, `model`, and `stopReason`. */
export type SamplingResult = JsonObject;

/** The abilities of a model besides messages (2025-11-25 sampling, "Capabilities"). */
export interface SamplingSupport {
  /** Tools that the server gives the model: the answer may be their use. */
  readonly tools?: boolean;
  /** `includeContext`: the context of this server, or of all servers. */
  readonly context?: boolean;
}

export interface ClientRoot {
  /** A `file:` URI. */
  readonly uri: string;
  readonly name?: string;
}

/** The context of a request that the server makes. */
export interface ServerRequestContext {
  /** Aborted when the server cancels its request, or the client closes. */
  readonly signal: AbortSignal;
  /** The tool, prompt or resource of the call for which the server asks, if that is known. */
  readonly about: string | undefined;
}

export interface ConnectOptions {
  /** The client's name and version, as servers see them. Default: `troupe-client` with this package's version. */
  readonly name?: string;
  readonly version?: string;
  readonly title?: string;
  /**
   * Answers forms. Its presence declares the capability. Fields that the answer leaves out get the schema's defaults
   * (SEP-1034).
   */
  elicit?(form: ElicitationForm, context: ServerRequestContext): FormAnswer | Promise<FormAnswer>;
  /** Opens pages for the user. Never open a page without showing its full address first. */
  elicitUrl?(page: ElicitationPage, context: ServerRequestContext): PageAnswer | Promise<PageAnswer>;
  /** Runs a model for the server. Show the request to the user first (MCP sampling, "User Interaction Model"). */
  sample?(request: SamplingRequest, context: ServerRequestContext): SamplingResult | Promise<SamplingResult>;
  /** The abilities of `sample` besides messages. Default: none, so that servers pass no tools. */
  readonly sampling?: SamplingSupport;
  /**
   * The extensions that the program offers, by their names: `{ 'io.modelcontextprotocol/ui': { mimeTypes: [...] } }` for a
   * host that shows views.
   */
  readonly extensions?: JsonObject;
  /** Lists the directories that the server may work in. */
  roots?(): readonly ClientRoot[] | Promise<readonly ClientRoot[]>;
  /** The eras to speak. `auto` (the default) asks the server, and remembers its answer for the process. */
  readonly eras?: 'auto' | 'legacy' | 'modern';
  /** Milliseconds until a call times out. Progress restarts the time. Default 60,000. */
  readonly timeoutMs?: number;
  /** Milliseconds after which a call times out in spite of progress. Default 600,000. */
  readonly maxTimeoutMs?: number;
  /** Milliseconds for the connection to open. Default 10,000. */
  readonly connectMs?: number;
  /** Milliseconds after which a local server that does not answer the probe for its era is taken for a legacy one. Default 3,000. */
  readonly probeMs?: number;
  /** Milliseconds that a call waits for a lost connection. Default 10,000. */
  readonly waitMs?: number;
  /** Milliseconds that `close` waits for calls in flight. Default 2,000. */
  readonly drainMs?: number;
  /** Longest message, in bytes, in both directions. Default 4,194,304. */
  readonly maxMessageBytes?: number;
  /** Maximum number of calls in flight. Default 1,024. */
  readonly maxInFlight?: number;
  /** Maximum number of rounds of input that one call may ask for. Default 10. */
  readonly maxRounds?: number;
  /** Maximum number of pages, and of elements, of one list. Default 64 and 5,000. */
  readonly maxListPages?: number;
  readonly maxListed?: number;
  /** Maximum number of files of one skill, and of bytes of them together. Default 512 and 16,777,216, which SEP-2640 recommends. */
  readonly maxSkillFiles?: number;
  readonly maxSkillBytes?: number;
  /** Checks `structuredContent` against the tool's `outputSchema`. Default true. */
  readonly validate?: boolean;
  /** The least severe log messages that the server should send. Default: none. */
  readonly logLevel?: LogLevel;
  /** Receives the server's log messages that belong to no call with its own `onLog`. */
  onLog?(message: ServerLogMessage): void;
  /** Signs in where the server demands it. */
  readonly auth?: Authorization | undefined;
  /** The operator's log of the client. Default: warnings and errors on stderr. */
  readonly log?: OperatorLog;
  readonly clock?: Clock;
  /** Receives the records of what the client's actors do, from the first on. */
  readonly inspect?: InspectionListener;
}

export interface ServerLogMessage {
  readonly level: LogLevel;
  readonly logger: string | undefined;
  readonly data: JsonValue;
}

export interface ServerProgress {
  readonly progress: number;
  readonly total: number | undefined;
  readonly message: string | undefined;
}

export interface CallOptions {
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly maxTimeoutMs?: number;
  onProgress?(progress: ServerProgress): void;
  /** Receives the id of the task, if the server runs the call as one. `client.task(id)` cancels it. */
  onTask?(id: string): void;
  /** The least severe log messages of this call (from 2026-07-28; earlier revisions log for the whole session). */
  readonly logLevel?: LogLevel;
  onLog?(message: ServerLogMessage): void;
  /** More members of `_meta`, such as `traceparent`. */
  readonly meta?: JsonObject;
  /**
   * A lasting name of this call. A Troupe server with a store runs a call of the same name and arguments only once; other
   * servers ignore it.
   */
  readonly idempotencyKey?: string;
}

/** Listing options. */
export interface ListOptions {
  /** Asks the server, even if the list is cached. */
  readonly fresh?: boolean;
  /** Milliseconds until a page of the list times out. Default: as for calls. */
  readonly timeoutMs?: number;
}

/** A server with an address. */
export type HttpTarget = {
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly auth?: Authorization;
  /** The name of the server in errors and logs. Default: the address without its query. */
  readonly name?: string;
};

/** A server to connect to. A {@link Server} in memory is accepted, too. */
export type ConnectTarget = string | URL | HttpTarget | StdioCommand | { readonly socket: string } | ChannelTarget;

/** A server behind a channel of the program. */
export type ChannelTarget = {
  readonly channel: () => Channel;
  readonly name: string;
  /** The id of the first request, for a channel that carries requests of another sender, too. Default 1. */
  readonly firstId?: number;
  /** The legacy revision to propose to the server. Default: the newest. */
  readonly revision?: LegacyRevision;
};

const DEFAULTS = {
  eras: 'auto',
  validate: true,
  timeoutMs: 60_000,
  maxTimeoutMs: 600_000,
  connectMs: 10_000,
  probeMs: 3_000,
  waitMs: 10_000,
  drainMs: 2_000,
  maxMessageBytes: 4_194_304,
  maxInFlight: 1_024,
  maxRounds: 10,
  maxListPages: 64,
  maxListed: 5_000,
  maxSkillFiles: 512,
  maxSkillBytes: 16_777_216,
} as const satisfies ConnectOptions;
const authorization = option.expected(
  'an authorization, such as oauth() of troupe/client',
  (value) => isObject(value) && option.isFunction(value.headers) && option.isFunction(value.authorize),
);

const ROWS: option.Rows<ConnectOptions> = {
  ...option.ofDefaults(DEFAULTS),
  eras: option.oneOf('auto', 'legacy', 'modern'),
  ...option.each(['name', 'version'], option.filled),
  title: option.anyText,
  ...option.each(['elicit', 'elicitUrl', 'sample', 'roots', 'onLog', 'inspect'], option.functional),
  sampling: option.group('{ tools, context }', { tools: option.flag, context: option.flag }),
  extensions: option.object,
  logLevel: option.oneOf(...LOG_LEVELS),
  auth: authorization,
  log: option.functional,
  clock: option.clock,
};

/** The options of a call or a list that has none. */
export const NO_OPTIONS = {};

const CALL_ROWS: option.Rows<CallOptions> = {
  signal: option.expected(
    'an AbortSignal',
    (value) => isObject(value) && typeof value.aborted === 'boolean' && option.isFunction(value.addEventListener),
  ),
  ...option.each(['timeoutMs', 'maxTimeoutMs'], option.duration),
  ...option.each(['onProgress', 'onTask', 'onLog'], option.functional),
  logLevel: option.oneOf(...LOG_LEVELS),
  meta: option.object,
  idempotencyKey: option.filled,
};

/** The first argument of each method of the client. */
const SUBJECTS = {
  call: 'the name of a tool',
  start: 'the name of a tool',
  read: 'the URI of a resource',
  prompt: 'the name of a prompt',
  request: 'a method',
} as const;

/**
 * Checks a call before it is sent: the `timeout` of another library would be ignored, and a server need not answer a message whose
 * `params` are no object.
 *
 * @throws {TypeError | RangeError} for an argument of another type, an unknown option, or another value than its row accepts
 */
export function checkCall(method: keyof typeof SUBJECTS, subject: unknown, args: unknown, options: CallOptions): void {
  if (typeof subject !== 'string')
    throw new TypeError(`${method}: expected ${SUBJECTS[method]} first, got ${describe(subject)}`);
  if (args !== undefined && !isObject(args))
    throw new TypeError(`${method}: expected an object after ${SUBJECTS[method]}, got ${describe(args)}`);
  checkCallOptions(method, options);
}

/** @throws {TypeError | RangeError} for an unknown option, or another value than its row accepts */
export function checkCallOptions(method: string, options: CallOptions): void {
  if (options !== NO_OPTIONS) option.check(`${method}: `, options, CALL_ROWS);
}

const LIST_ROWS: option.Rows<ListOptions> = { fresh: option.flag, timeoutMs: option.duration };

/** The same for a list. @throws {TypeError | RangeError} */
export function checkList(list: string, options: ListOptions): void {
  if (options !== NO_OPTIONS) option.check(`${list}: `, options, LIST_ROWS);
}

const HTTP_ROWS: option.Rows<HttpTarget> = {
  url: option.needed(option.expected('a URL', isUrl)),
  headers: option.object,
  auth: authorization,
  name: option.filled,
};
const COMMAND_ROWS: option.Rows<StdioCommand> = {
  command: option.needed(option.filled),
  args: option.expected(
    'a list of strings',
    (args) => Array.isArray(args) && args.every((each) => typeof each === 'string' || typeof each === 'number'),
  ),
  env: option.expected(
    'an object of strings',
    (env) => isObject(env) && Object.values(env).every((each) => !isObject(each) && !option.isFunction(each)),
  ),
  cwd: option.expected('a path', (cwd) => option.isFilled(cwd) || cwd instanceof URL),
  name: option.filled,
  stderr: option.functional,
};
const ROWS_OF_TARGETS = [
  ['url', HTTP_ROWS],
  ['socket', { socket: option.needed(option.filled) }],
  ['command', COMMAND_ROWS],
] as const;

export function isChannelTarget(target: unknown): target is ChannelTarget {
  return isObject(target) && 'channel' in target;
}

/**
 * Checks the target of {@link connect}, unless it is a server in memory or a channel: its `timeout`, or a misspelled member, would be
 * ignored.
 *
 * @param where the prefix of messages
 * @throws {TypeError} for another target, an unknown member, or another value than its row accepts
 */
export function checkTarget(
  where: string,
  target: unknown,
  Fault: option.ErrorClass = TypeError,
): asserts target is Exclude<ConnectTarget, ChannelTarget> {
  if (isUrl(target)) return checkProtocol(where, target, Fault);
  const rows = isObject(target) && ROWS_OF_TARGETS.find(([member]) => member in target)?.[1];
  if (!rows)
    throw new Fault(
      `${where}expected a URL, { url }, { command, args }, { socket }, or a Server, got ${describe(target)}`,
    );
  option.check(where, target, rows, Fault);
  if ('url' in target && isUrl(target.url)) checkProtocol(where, target.url, Fault);
}

function isUrl(value: unknown): value is string | URL {
  return (typeof value === 'string' || value instanceof URL) && URL.canParse(String(value));
}

function checkProtocol(where: string, address: string | URL, Fault: option.ErrorClass): void {
  const { protocol } = new URL(address);
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new Fault(`${where}expected an http or https URL, got ${protocol}//. For a program, pass { command, args }`);
}

/** The options with their defaults. */
export type ClientSettings = Readonly<Required<Pick<ConnectOptions, keyof typeof DEFAULTS>>>;

/** @throws {TypeError | RangeError} for an unknown option, or another value than its row accepts */
export function readSettings(options: ConnectOptions): ClientSettings {
  option.check('connect: ', options, ROWS);
  return { ...DEFAULTS, ...option.withoutUndefined(options) };
}
