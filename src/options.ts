/** What a server may be told when it is created, and what holds when it is not. */
import type { Clock } from './clock.ts';
import type { ExecutionOptions } from './executors/execution.ts';
import type { Limits } from './limits.ts';
import type { OperatorLog } from './operator-log.ts';
import { describe, type JsonObject } from './protocol/json.ts';
import type { Implementation } from './protocol/types.ts';
import type { Store } from './store/store.ts';
import type { SharedHttpOptions } from './transports/http/http-options.ts';
import { checkWatchdog, type WatchdogOption } from './watchdog-option.ts';

export interface ServerOptions extends Implementation {
  /** How a model is to use this server; sent when a client connects. */
  readonly instructions?: string;
  /** Executors of your own: a replacement, or a function that wraps the one that would have served. */
  readonly executors?: ExecutionOptions;
  /** Capabilities that are offered although nothing is registered yet, because it will be. */
  readonly offers?: readonly ('tools' | 'resources' | 'prompts' | 'completions')[];
  /** Non-standard capabilities to announce. */
  readonly experimental?: JsonObject;
  /** Extensions to announce (from 2026-07-28), by identifier. */
  readonly extensions?: JsonObject;
  /** Milliseconds for which modern clients may take lists as fresh (2026-07-28 "Caching"). Default 0: they ask again. */
  readonly listTtlMs?: number;
  readonly limits?: Partial<Limits>;
  /**
   * How this server serves over HTTP, however it is started: `server.fetch`, `server.node`, `troupe serve --http`, and
   * `server.listen(http({ … }))`, whose own options come first.
   */
  readonly http?: SharedHttpOptions;
  /**
   * Secrets of at least 32 characters, from which the keys are made that seal what clients carry (`requestState`): the first
   * seals, all open. Give every process the same ones, so that a question survives a restart. Default: a random one, which
   * a durable store keeps; without one it ends with the process.
   */
  readonly keys?: readonly string[];
  /**
   * Where a tool asks what a client cannot be asked, because it declares no such capability, the call ends with a result that
   * tells its model what is asked; the model asks its user, and calls the tool `troupe_answer`, which this server then offers:
   * the call goes on where it was, and that is its result. Whoever answers is then the model: do not ask for consent like
   * this, nor for anything that the model must not make up. The wait ends with this process. Default false: the call fails,
   * and says what is missing.
   */
  readonly askThroughModel?: boolean;
  /**
   * Where what must survive the process is kept: handles, tasks, questions, sessions and their streams, and what requests came
   * to. With a durable one, a client never sees what is not yet durable. Default: memory, and nothing survives.
   */
  readonly store?: Store;
  /**
   * Watches the event loop from a thread: one that is blocked for `softMs` (200) is logged, with the tool that blocks it and where;
   * with `hardMs` the process is then ended (SIGKILL), for whoever supervises it to start it again: set it only where somebody
   * does. A call that did so twice is refused, where `record` names a file that outlives the process. Default false;
   * `troupe run` and `troupe serve` watch.
   */
  readonly watchdog?: boolean | WatchdogOption;
  /**
   * What becomes of a process that this server has to itself, when a handler throws after it has answered (from a timer that
   * it left behind): it is logged, and served on (`serve`, the default), or the server drains and ends the process with code
   * 70, to be started again by whoever supervises it (`restart`): what threw may have left something half done.
   */
  readonly afterLateError?: 'serve' | 'restart';
  /** Hears what an operator needs to know. Default: lines on stderr. */
  readonly log?: OperatorLog;
  /** The time, for tests. */
  readonly clock?: Clock;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof ServerOptions>([
  'name',
  'version',
  'title',
  'description',
  'icons',
  'websiteUrl',
  'instructions',
  'executors',
  'offers',
  'experimental',
  'extensions',
  'listTtlMs',
  'limits',
  'keys',
  'askThroughModel',
  'http',
  'store',
  'watchdog',
  'afterLateError',
  'log',
  'clock',
]);

/** @throws {TypeError | RangeError} for an option that is none, or that does not fit */
export function checkOptions(options: ServerOptions): void {
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name))
      throw new TypeError(`createServer: ${name}: no such option; there are ${[...OPTIONS].join(', ')}`);
  }
  const { listTtlMs, askThroughModel, afterLateError } = options;
  if (askThroughModel !== undefined && typeof askThroughModel !== 'boolean')
    throw new TypeError(`createServer: askThroughModel: expected true or false, got ${describe(askThroughModel)}`);
  checkWatchdog(options.watchdog);
  if (afterLateError !== undefined && afterLateError !== 'serve' && afterLateError !== 'restart')
    throw new TypeError(`createServer: afterLateError: expected "serve" or "restart", got ${describe(afterLateError)}`);
  if (listTtlMs !== undefined && !(Number.isSafeInteger(listTtlMs) && listTtlMs >= 0))
    throw new RangeError(
      `createServer: listTtlMs: expected whole milliseconds, at least 0, got ${describe(listTtlMs)}`,
    );
}
