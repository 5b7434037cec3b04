/** The limits of a server: what it may hold, and how long it may wait. */
import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { LONGEST_TIMER_MS } from './clock.ts';

/** Bounds. Each is a whole number of at least 1, and each refusal names the bound that it comes from. */
export interface Limits {
  /** Most requests in flight on one connection; the next gets an error, the connection lives. */
  readonly maxInFlight: number;
  /** Most requests in flight of all clients together that have no session (HTTP, from 2026-07-28). */
  readonly maxStatelessInFlight: number;
  /** Most sessions open at once, in all and for each principal (but for `anonymous`, which anybody is). */
  readonly maxSessions: number;
  readonly maxSessionsPerPrincipal: number;
  /**
   * Most memory, in bytes, that everything takes together which clients make the server hold: sessions, tasks, handles, questions,
   * streams, and requests in flight beyond a few kilobytes each. It is an estimate of what values take in the heap, which is
   * more than their text. What does not fit is refused. Default: three eighths of the heap that Node.js may have.
   */
  readonly maxRetainedBytes: number;
  /** The same for each principal, and for each session where nobody authenticates. Default: a quarter of that default. */
  readonly maxRetainedBytesPerPrincipal: number;
  /**
   * Most that anonymous clients together may have of `maxSessions`, `maxTasks`, `maxHandles`, `maxParked` and `maxRetainedBytes`,
   * in percent (100 at most), where one of the server's transports authenticates. Where none does, they may have everything.
   */
  readonly anonymousPercent: number;
  /** Most memory that `clientInfo` and `capabilities` of one client may take together, in bytes, by the same estimate. */
  readonly maxClientInfoBytes: number;
  /** Milliseconds until a request times out; progress starts them anew where the revision allows. */
  readonly timeoutMs: number;
  /** The most that progress can make of it, in milliseconds. */
  readonly maxTimeoutMs: number;
  /**
   * Most handlers running for one connection, with those whose request was cancelled or timed out, but which did not heed
   * `ctx.signal` and run on; the next request gets an error.
   */
  readonly maxRunning: number;
  /** Longest message taken in, in bytes. */
  readonly maxMessageBytes: number;
  /** Deepest nesting of a message. */
  readonly maxDepth: number;
  /** Most messages in one batch (2025-03-26). */
  readonly maxBatch: number;
  /** Most subscriptions (`subscriptions/listen`) open on one connection, beside its requests. */
  readonly maxListens: number;
  /** The same of all clients together that have no session (HTTP): each holds one of `http.maxExchanges` for as long as it is open. */
  readonly maxStatelessListens: number;
  /** Most resources that one session, or one subscription, watches. */
  readonly maxSubscriptions: number;
  /** Most notifications held for a client that reads slowly; log messages beyond it are dropped, and counted. */
  readonly maxHeld: number;
  /** Milliseconds that a client is given to answer what it is asked. */
  readonly askMs: number;
  /** Most requests that wait for their client's answer with nothing in flight (from 2026-07-28), in all and for each principal (but for `anonymous`); the oldest give way. */
  readonly maxParked: number;
  readonly maxParkedPerPrincipal: number;
  /** Most that is kept for all of them together (their arguments, and what was replied), in characters of JSON. */
  readonly maxParkedBytes: number;
  /** Longest `requestState` that is handed out, in characters. A longer one is handed out without what it takes to run its request anew. */
  readonly maxStateLength: number;
  /** With a durable store, most steps (`ctx.step`) of one request, and the most that is kept of their results, in characters of JSON. */
  readonly maxSteps: number;
  readonly maxStepsLength: number;
  /** Milliseconds that a call of a tool that may become a task runs as a request, before it does. */
  readonly taskAfterMs: number;
  /** Milliseconds that a task lives, from when it is created: then it is forgotten, and its handler aborted if it still runs. */
  readonly taskTtlMs: number;
  /** Milliseconds that clients are told to wait between two looks at a task. */
  readonly taskPollMs: number;
  /** Most tasks, the ended ones too until they are forgotten, in all and for each principal (but for `anonymous`). */
  readonly maxTasks: number;
  readonly maxTasksPerPrincipal: number;
  /** Most instances of machines behind handles, the ended ones too until they expire, in all and for each principal (but for `anonymous`). */
  readonly maxHandles: number;
  readonly maxHandlesPerPrincipal: number;
  /** Milliseconds that a handle lives, and that it lives without being used; of one that is nobody's (`anonymous`), whose id alone is the key to it, at most. */
  readonly handleTtlMs: number;
  readonly handleIdleMs: number;
  readonly handleAnonymousTtlMs: number;
  /** Milliseconds for which a handle that has expired is told apart from one that never was. */
  readonly handleRememberMs: number;
  /** Most of those; the oldest give way, and are then as if they had never been. */
  readonly maxRememberedHandles: number;
  /** Milliseconds without anything to do, after which a handle leaves memory; the next message brings it back from the store. */
  readonly handleRestMs: number;
  /** Most handles in memory that have nothing to do; those that waited longest leave it. */
  readonly maxAwakeHandles: number;
  /** Most events and calls that wait for one handle; the next is refused. */
  readonly handleMailbox: number;
  /** Most that is kept of one handle, in characters of JSON. */
  readonly maxHandleLength: number;
  /** Most turns of one handle whose history is kept. */
  readonly handleJournal: number;
  /** Most steps of one invocation (`fromSteps`). */
  readonly maxHandleSteps: number;
  /** Most threads for tools that compute for long (`cpu`), and most calls that wait for one; the next gets an error. */
  readonly cpuThreads: number;
  readonly maxCpuQueue: number;
  /** Elements on one page of a list. */
  readonly pageSize: number;
  /** Longest `data` of a {@link toolResult} that is sent whole, in characters of JSON. */
  readonly maxResultLength: number;
  /** Milliseconds that requests in flight are given when the server closes. */
  readonly graceMs: number;
  /** Milliseconds for which changes of lists and resources are gathered into one notification each. */
  readonly gatherMs: number;
  /**
   * With a durable store, milliseconds for which the result of a call is kept, to be said again when the call is repeated;
   * and the most that are kept for one session, or for the idempotency keys of one principal. Without one, too: those that are
   * kept for the idempotency keys of one handle.
   */
  readonly replyTtlMs: number;
  readonly maxRepliesPerSession: number;
  /** With a durable store, milliseconds after which a session over HTTP that nobody uses leaves memory, to wake with its next request. */
  readonly sessionSleepMs: number;
}

/** Three eighths: the rest is for the server itself, messages being read, and the garbage collector. */
const RETAINED_BYTES = Math.floor((getHeapStatistics().heap_size_limit * 3) / 8);

export const DEFAULT_LIMITS: Limits = {
  maxInFlight: 128,
  maxStatelessInFlight: 4_096,
  maxSessions: 100_000,
  maxSessionsPerPrincipal: 100,
  maxRetainedBytes: RETAINED_BYTES,
  maxRetainedBytesPerPrincipal: Math.floor(RETAINED_BYTES / 4),
  anonymousPercent: 50,
  maxClientInfoBytes: 65_536,
  timeoutMs: 60_000,
  maxTimeoutMs: 600_000,
  maxRunning: 1_024,
  maxMessageBytes: 4 * 1024 * 1024,
  maxDepth: 64,
  maxBatch: 50,
  maxListens: 64,
  // Half of http.maxExchanges: what stays open must leave room for what is answered.
  maxStatelessListens: 2_048,
  maxSubscriptions: 256,
  maxHeld: 1_000,
  askMs: 600_000,
  maxParked: 10_000,
  maxParkedPerPrincipal: 100,
  maxParkedBytes: 64 * 1024 * 1024,
  maxStateLength: 65_536,
  maxSteps: 500,
  maxStepsLength: 4 * 1024 * 1024,
  taskAfterMs: 1_000,
  taskTtlMs: 3_600_000,
  taskPollMs: 1_000,
  maxTasks: 10_000,
  maxTasksPerPrincipal: 1_000,
  maxHandles: 100_000,
  maxHandlesPerPrincipal: 1_000,
  handleTtlMs: 7 * 86_400_000,
  handleIdleMs: 86_400_000,
  handleAnonymousTtlMs: 3_600_000,
  handleRememberMs: 3_600_000,
  maxRememberedHandles: 10_000,
  handleRestMs: 30_000,
  maxAwakeHandles: 10_000,
  handleMailbox: 1_000,
  maxHandleLength: 1024 * 1024,
  handleJournal: 1_000,
  maxHandleSteps: 1_000,
  cpuThreads: availableParallelism(),
  maxCpuQueue: 1_000,
  pageSize: 1_000,
  maxResultLength: 256 * 1024,
  // Clients close stdin, wait two seconds, send SIGTERM, and kill two seconds later.
  graceMs: 3_000,
  gatherMs: 10,
  replyTtlMs: 600_000,
  maxRepliesPerSession: 256,
  sessionSleepMs: 60_000,
};

/** The limits that hold. @throws {RangeError} for one that is no whole number of at least 1 */
export function resolveLimits(given: Partial<Limits> = {}): Limits {
  const limits = { ...DEFAULT_LIMITS, ...given };
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RangeError(`limits.${name}: expected a whole number of at least 1, got ${String(value)}`);
    if (name.endsWith('Ms') && value > LONGEST_TIMER_MS)
      throw new RangeError(`limits.${name}: expected at most ${LONGEST_TIMER_MS} milliseconds, got ${value}`);
    if (name.endsWith('Percent') && value > 100)
      throw new RangeError(`limits.${name}: expected at most 100, got ${value}`);
    if (!(name in DEFAULT_LIMITS))
      throw new RangeError(`limits.${name}: no such limit; there are ${Object.keys(DEFAULT_LIMITS).join(', ')}`);
  }
  return limits;
}
