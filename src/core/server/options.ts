/** The options of the core, and their defaults. Features add theirs to {@link ServerOptions}, each with its row. */

import type { ExecutionOptions } from '../execution/execution.ts';
import type { SharedHttpOptions } from '../http/http-options.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Limits } from '../kernel/limits.ts';
import type { OperatorLog } from '../kernel/operator-log.ts';
import type { Telemetry } from '../kernel/telemetry/telemetry.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';
import * as option from '../protocol/option-rows.ts';
import type { Implementation } from '../protocol/types.ts';
import type { AnyPrompt, AnyTool, ResourceDefinition } from '../registry/define.ts';
import { icons } from '../registry/definition-checks.ts';
import type { Store } from '../store/store.ts';

export interface CoreOptions extends Implementation {
  /** Advice for the model on how to use this server; sent when a client connects. */
  readonly instructions?: string | undefined;
  /** Your own executors: a replacement, or a function that wraps the default executor. */
  readonly executors?: ExecutionOptions | undefined;
  /** Tools of `defineTool`. `typeof server` has their types. */
  readonly tools?: readonly AnyTool[] | undefined;
  /** Resources and templates of `defineResource`. */
  readonly resources?: readonly ResourceDefinition[] | undefined;
  /** Prompts of `definePrompt`. */
  readonly prompts?: readonly AnyPrompt[] | undefined;
  /** Capabilities to announce although nothing of their kind is registered yet. */
  readonly offers?: readonly ('tools' | 'resources' | 'prompts' | 'completions')[] | undefined;
  /** Non-standard capabilities to announce. */
  readonly experimental?: JsonObject | undefined;
  /** Extensions to announce in every revision, by identifier, with their settings (SEP-2133). */
  readonly extensions?: JsonObject | undefined;
  /** Milliseconds for which modern clients may cache lists (2026-07-28 "Caching"). Default 0: no caching. */
  readonly listTtlMs?: number | undefined;
  readonly limits?: Partial<Limits> | undefined;
  /**
   * HTTP options for every way to serve over HTTP: `server.fetch`, `server.node`, `troupe serve --http`, and
   * `server.listen(http({ … }))`, whose own options take precedence.
   */
  readonly http?: SharedHttpOptions | undefined;
  /**
   * Secrets of at least 32 characters each. The server derives from them the keys that seal `requestState`: the first
   * secret seals, all of them open. Give every process the same secrets, so that input requests survive a restart.
   * Default: a random secret, which a durable store persists; without a durable store it is lost with the process.
   */
  readonly keys?: readonly string[] | undefined;
  /**
   * If a tool asks for input that the client cannot provide (the client does not declare the capability), asks the
   * model instead: the call ends with a result that contains the question; the model asks its user and calls the tool
   * `troupe_answer`, which the server then offers; the handler continues, and its result is the result of that call.
   * The model may invent the answer: do not ask for consent this way. The wait ends with this process. Default false:
   * the call fails with a message that names the missing capability.
   */
  readonly askThroughModel?: boolean | undefined;
  /**
   * The store for durable state: handles, tasks, input requests, sessions and their streams, and results of calls.
   * With a durable store, a client never sees anything that is not yet durable. Default: memory, and nothing survives
   * the process.
   */
  readonly store?: Store | undefined;
  /**
   * Controls what follows when a handler throws after it has answered (for example from a timer) and this server owns the
   * process. `serve` (default): log the error and continue. `restart`: drain, then exit with code 70, so that a
   * supervisor restarts the process; the error may have left state inconsistent.
   */
  readonly afterLateError?: 'serve' | 'restart' | undefined;
  /**
   * Decides how much a client receives of an error that a handler throws. `message`: its message. `masked`: only the id
   * of an incident, under which the operator's log has the message and the stack. Default: `message` for tools, because
   * the model needs it to correct its call; `masked` for resources, prompts and completions, whose errors no model
   * reads. The messages of {@link ToolError} and {@link ProtocolError} are always sent. See docs/errors.md.
   */
  readonly errors?: 'message' | 'masked' | undefined;
  /**
   * A tracing system: spans around requests and around questions to clients. `otel()` of `troupe/otel` is one. Default:
   * none. See docs/observe.md.
   */
  readonly telemetry?: Telemetry | undefined;
  /**
   * Receives messages for the operator, each with fields for programs. `jsonLog()` writes lines of JSON, `fromPino(logger)`
   * uses a logger. Default: lines of text on stderr. See docs/observe.md, "Logs".
   */
  readonly log?: OperatorLog | undefined;
  /** A clock for tests. */
  readonly clock?: Clock | undefined;
}

/** The options of `createServer`. A feature adds its own by declaration merging. */
export interface ServerOptions extends CoreOptions {}

const OFFERS = ['tools', 'resources', 'prompts', 'completions'];

/** A list of elements, each of which is checked when it is registered. */
function elements(define: string): option.Check {
  return option.expected(
    `a list of elements of ${define}(…)`,
    (value) => Array.isArray(value) && value.every(isObject),
  );
}

/** Each option of the core, with the values that it accepts. */
export const CORE_OPTIONS: option.Rows<CoreOptions> = {
  name: option.needed(option.filled),
  version: option.needed(option.expected('a string such as "1.0.0"', option.isFilled)),
  listTtlMs: option.expected('whole milliseconds, at least 0', (value) => option.isWhole(value, 0)),
  askThroughModel: option.flag,
  afterLateError: option.oneOf('serve', 'restart'),
  errors: option.oneOf('message', 'masked'),
  tools: elements('defineTool'),
  resources: elements('defineResource'),
  prompts: elements('definePrompt'),
  telemetry: option.expected(
    'a tracing system such as otel()',
    (value) => isObject(value) && option.isFunction(value.begin) && option.isFunction(value.ask),
  ),
  ...option.each(['title', 'description', 'websiteUrl', 'instructions'], option.anyText),
  icons,
  // Their members are checked where they are read.
  ...option.each(['executors', 'experimental', 'extensions', 'limits', 'http'], option.object),
  offers: option.expected(
    `a list of ${OFFERS.join(', ')}`,
    (value) => option.areStrings(value) && value.every((each) => OFFERS.includes(each)),
  ),
  // No message may contain a secret.
  keys: (value) =>
    Array.isArray(value) && value.length > 0
      ? undefined
      : `expected a list of secrets, got ${Array.isArray(value) ? 'none' : typeof value}`,
  store: option.expected(
    'a store, such as sqlite(path)',
    (value) => isObject(value) && ['open', 'ask', 'close'].every((name) => option.isFunction(value[name])),
  ),
  log: option.functional,
  clock: option.clock,
};
