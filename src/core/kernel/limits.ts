/** The limits of a server: sizes, counts and times. */
import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import * as option from '../protocol/option-rows.ts';
import { LONGEST_TIMER_MS } from './clock.ts';

/**
 * Limits. Each is a whole number of at least 1. The message of a rejection names the limit that caused it. A feature adds its own by
 * declaration merging.
 */
export interface Limits {
  /** Maximum number of requests in flight on one connection. Further requests get an error; the connection stays open. */
  readonly maxInFlight: number;
  /** Maximum number of requests in flight of all clients without a session together (HTTP, from 2026-07-28). */
  readonly maxStatelessInFlight: number;
  /**
   * Maximum number of sessions open at once: in total, and for each principal except `anonymous`, which is shared by all
   * unauthenticated clients.
   */
  readonly maxSessions: number;
  readonly maxSessionsPerPrincipal: number;
  /**
   * Maximum number of bytes of memory for everything that clients make the server hold: sessions, tasks, handles, input requests,
   * streams, and requests in flight above a few kilobytes each. An estimate of heap use, which is larger than the JSON
   * text. What does not fit is rejected. Default: three eighths of Node's heap limit.
   */
  readonly maxRetainedBytes: number;
  /**
   * The same for each principal, and for each session without authentication. Default: a quarter of the default above.
   */
  readonly maxRetainedBytesPerPrincipal: number;
  /**
   * Percentage (1 to 100) of `maxSessions`, `maxTasks`, `maxHandles`, `maxParked` and `maxRetainedBytes` that all
   * anonymous clients together may use if one of the server's transports authenticates clients. If none does, anonymous
   * clients may use everything.
   */
  readonly anonymousPercent: number;
  /** Maximum number of bytes of memory for one client's `clientInfo` and `capabilities` together, by the same estimate. */
  readonly maxClientInfoBytes: number;
  /** Milliseconds until a request times out. Progress restarts the time, if the revision allows it. */
  readonly timeoutMs: number;
  /** Milliseconds after which a request times out in spite of progress. */
  readonly maxTimeoutMs: number;
  /**
   * Maximum number of running handlers of one connection, including those that ignore `ctx.signal` after their request was cancelled
   * or timed out. Further requests get an error.
   */
  readonly maxRunning: number;
  /** Longest incoming message, in bytes. */
  readonly maxMessageBytes: number;
  /** Deepest nesting of an incoming message, in levels. */
  readonly maxDepth: number;
  /** Maximum number of messages in one batch (2025-03-26). */
  readonly maxBatch: number;
  /** Maximum number of open subscriptions (`subscriptions/listen`) of one connection. They do not count as requests in flight. */
  readonly maxListens: number;
  /**
   * The same for all clients without a session together (HTTP). Each subscription occupies one of `http.maxExchanges`
   * while it is open.
   */
  readonly maxStatelessListens: number;
  /** Maximum number of resources that one session or one subscription may watch. */
  readonly maxSubscriptions: number;
  /**
   * Maximum number of calls with which the views of one principal wait for changes (docs/apps.md); of one session, if its client is
   * anonymous or local.
   */
  readonly maxWatches: number;
  /** Maximum number of mounts. */
  readonly maxUpstreams: number;
  /** Maximum number of connections to the servers of all mounts together. */
  readonly maxUpstreamConnections: number;
  /** Maximum number of notifications queued for a slow client. Log messages above this limit are dropped and counted. */
  readonly maxHeld: number;
  /** Milliseconds in which a client must answer an input request. */
  readonly askMs: number;
  /**
   * Maximum number of suspended requests, which wait for their client's answer with nothing in flight (from 2026-07-28): in total,
   * and for each principal except `anonymous`. The oldest are evicted.
   */
  readonly maxParked: number;
  readonly maxParkedPerPrincipal: number;
  /** Maximum number of characters of JSON that all suspended requests together may store (arguments and recorded answers). */
  readonly maxParkedBytes: number;
  /**
   * Longest `requestState`, in characters. In a longer one, the data that would allow another process to run the
   * request again is left out.
   */
  readonly maxStateLength: number;
  /** With a durable store: most steps (`ctx.step`) of one request. */
  readonly maxSteps: number;
  /** Maximum number of characters of JSON for the results of all steps of one request. */
  readonly maxStepsLength: number;
  /** Milliseconds after which a call becomes a task, if its tool allows tasks. */
  readonly taskAfterMs: number;
  /** Milliseconds from a task's creation to its removal. A handler that still runs is aborted. */
  readonly taskTtlMs: number;
  /** Milliseconds that clients should wait between two polls of a task. */
  readonly taskPollMs: number;
  /** Maximum number of tasks, including ended ones that have not expired: in total, and for each principal except `anonymous`. */
  readonly maxTasks: number;
  readonly maxTasksPerPrincipal: number;
  /**
   * Maximum number of machine instances, including ended ones that have not expired: in total, and for each principal except
   * `anonymous`.
   */
  readonly maxHandles: number;
  readonly maxHandlesPerPrincipal: number;
  /** Maximum number of instances of one machine that several principals share. */
  readonly maxInstancesPerMachine: number;
  /** Milliseconds: the maximum lifetime of a handle. */
  readonly handleTtlMs: number;
  /** Milliseconds until an unused handle expires that waits for nothing. */
  readonly handleIdleMs: number;
  /** Milliseconds: the cap on both for handles of anonymous clients, whose id is their only protection. */
  readonly handleAnonymousTtlMs: number;
  /** Milliseconds for which an expired handle is reported as expired, and not as unknown; at most its lifetime. */
  readonly handleRememberMs: number;
  /** Maximum number of expired handles that are remembered. The oldest are forgotten and then reported as unknown. */
  readonly maxRememberedHandles: number;
  /** Milliseconds until an idle handle hibernates. Its next message restores it from the store. */
  readonly handleRestMs: number;
  /** Maximum number of idle handles in memory. The longest idle hibernate first. */
  readonly maxAwakeHandles: number;
  /** Maximum number of events and calls that wait for one handle. Further ones are rejected. */
  readonly handleMailbox: number;
  /** Maximum number of characters of JSON that are stored for one handle. */
  readonly maxHandleLength: number;
  /** Maximum number of turns of one handle whose history is stored. */
  readonly handleJournal: number;
  /** Maximum number of steps of one invocation (`fromSteps`). */
  readonly maxHandleSteps: number;
  /** Maximum number of messages of one instance to others (`tell`) that wait to be delivered, and of characters of JSON in them. */
  readonly maxOutMessages: number;
  readonly maxOutLength: number;
  /** Milliseconds in which a message must be accepted. Then it becomes a dead letter. */
  readonly tellMs: number;
  /** Maximum number of threads for tools with `cpu`. Default: the number of processors. */
  readonly cpuThreads: number;
  /** Maximum number of calls that wait for a thread. Further calls get an error. */
  readonly maxCpuQueue: number;
  /** Elements on one page of a list. */
  readonly pageSize: number;
  /** Longest `data` of a {@link toolResult} that is sent untruncated, in characters of JSON. */
  readonly maxResultLength: number;
  /** Milliseconds in which requests in flight may finish when the server closes. */
  readonly graceMs: number;
  /** Milliseconds for which changes of lists and resources are coalesced into one notification each. */
  readonly gatherMs: number;
  /** With a durable store: milliseconds for which the result of a call is stored, so that a repeated call gets it. */
  readonly replyTtlMs: number;
  /**
   * Maximum number of stored results for one session, or for the idempotency keys of one principal (with a durable store), or for the
   * idempotency keys of one handle (with any store; in a cluster, those of the last three `graceMs` are kept beyond it).
   */
  readonly maxRepliesPerSession: number;
  /** Maximum number of scopes of state (`ctx.state`): principals and sessions that have some. */
  readonly maxStates: number;
  /** Maximum number of keys in one scope of state. */
  readonly maxStateKeys: number;
  /** Longest key of state, in bytes of UTF-8. */
  readonly maxStateKeyBytes: number;
  /** Longest value of state, in bytes of JSON. */
  readonly maxStateValueBytes: number;
  /** Maximum number of bytes of all keys and values in one scope of state. */
  readonly maxStateBytes: number;
  /** Milliseconds until the state of a principal is deleted that is not used. */
  readonly stateIdleMs: number;
  /** The same for the state of a session, which otherwise ends with its session. */
  readonly stateSessionIdleMs: number;
  /** Maximum number of open approvals: of one principal, and in all. */
  readonly maxApprovalsPerPrincipal: number;
  readonly maxApprovals: number;
  /** Milliseconds in which somebody other than the caller must decide about a call, unless the policy has its own time. */
  readonly approvalMs: number;
  /** Milliseconds after a denial in which an identical call is rejected without a question. */
  readonly approvalDeniedMs: number;
  /** Milliseconds for which a decided approval stays in the store. */
  readonly approvalKeptMs: number;
  /** Maximum number of runs of scripts that compute or call, for each principal. */
  readonly codeLiveRuns: number;
  /** Maximum number of runs that have not ended, for each principal. */
  readonly codeOpenRuns: number;
  /** Maximum number of calls of one run that are in flight. Further ones wait. */
  readonly codeCallsInFlight: number;
  /** Maximum number of calls of one run. */
  readonly codeCalls: number;
  /** Denials after which a run ends. */
  readonly codeDenials: number;
  /** Longest script, in characters. */
  readonly codeLength: number;
  /** Longest result of a script that is sent whole, in characters. */
  readonly codeResultLength: number;
  /** Maximum number of characters of all events in the journal of one run. */
  readonly codeJournalLength: number;
  /** Milliseconds after which the server ends a run. */
  readonly codeOpenMs: number;
  /** Milliseconds for which a script can sleep at most, in one call. */
  readonly codeSleepMs: number;
  /** Maximum number of bytes of the data of one event, as JSON. */
  readonly maxEventBytes: number;
  /** Maximum number of topics of one event type: the values of its `by`. */
  readonly maxTopicsPerEvent: number;
  /** Maximum number of open streams of events (`events/stream`) of this process: in total, and for each principal except `anonymous`. */
  readonly maxEventStreams: number;
  readonly maxEventStreamsPerPrincipal: number;
  /** Maximum number of subscriptions of webhooks: in total, and for each principal. */
  readonly maxWebhooks: number;
  readonly maxWebhooksPerPrincipal: number;
  /** Milliseconds for which a webhook is subscribed if its client names none, and at most (half an hour without a durable store). */
  readonly webhookTtlMs: number;
  readonly maxWebhookTtlMs: number;
  /** With a durable store: milliseconds until an idle HTTP session hibernates. Its next request restores it. */
  readonly sessionSleepMs: number;
}

/**
 * Three eighths: the rest is for the server itself, for messages that are being parsed, and for the garbage collector.
 */
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
  // Half of http.maxExchanges: subscriptions must leave room for requests.
  maxStatelessListens: 2_048,
  maxSubscriptions: 256,
  maxWatches: 64,
  maxUpstreams: 64,
  maxUpstreamConnections: 1_024,
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
  maxInstancesPerMachine: 10_000,
  handleTtlMs: 7 * 86_400_000,
  handleIdleMs: 86_400_000,
  handleAnonymousTtlMs: 3_600_000,
  handleRememberMs: 7 * 86_400_000,
  maxRememberedHandles: 10_000,
  handleRestMs: 30_000,
  maxAwakeHandles: 10_000,
  handleMailbox: 1_000,
  maxHandleLength: 1024 * 1024,
  handleJournal: 1_000,
  maxHandleSteps: 1_000,
  maxOutMessages: 1_000,
  maxOutLength: 1024 * 1024,
  tellMs: 3_600_000,
  cpuThreads: availableParallelism(),
  maxCpuQueue: 1_000,
  pageSize: 1_000,
  maxResultLength: 256 * 1024,
  // Clients close stdin, wait two seconds, send SIGTERM, and kill the process two seconds later.
  graceMs: 3_000,
  gatherMs: 10,
  replyTtlMs: 600_000,
  maxRepliesPerSession: 256,
  maxStates: 10_000,
  maxStateKeys: 1_000,
  maxStateKeyBytes: 256,
  maxStateValueBytes: 65_536,
  maxStateBytes: 256 * 1024,
  stateIdleMs: 90 * 86_400_000,
  stateSessionIdleMs: 86_400_000,
  maxApprovalsPerPrincipal: 100,
  maxApprovals: 10_000,
  approvalMs: 86_400_000,
  approvalDeniedMs: 600_000,
  approvalKeptMs: 86_400_000,
  codeLiveRuns: 4,
  codeOpenRuns: 100,
  codeCallsInFlight: 32,
  codeCalls: 1_000,
  codeDenials: 20,
  codeLength: 65_536,
  codeResultLength: 20_000,
  codeJournalLength: 8 * 1024 * 1024,
  codeOpenMs: 86_400_000,
  codeSleepMs: 7 * 86_400_000,
  maxEventBytes: 256 * 1024,
  maxTopicsPerEvent: 10_000,
  maxEventStreams: 10_000,
  maxEventStreamsPerPrincipal: 100,
  maxWebhooks: 100_000,
  maxWebhooksPerPrincipal: 100,
  webhookTtlMs: 86_400_000,
  maxWebhookTtlMs: 7 * 86_400_000,
  sessionSleepMs: 60_000,
};

const ROWS: option.Rows<Limits> = {
  ...option.ofDefaults(DEFAULT_LIMITS),
  ...option.each(
    [
      'handleTtlMs',
      'handleIdleMs',
      'handleAnonymousTtlMs',
      'handleRememberMs',
      'replyTtlMs',
      'stateIdleMs',
      'stateSessionIdleMs',
      'approvalKeptMs',
      'webhookTtlMs',
      'maxWebhookTtlMs',
    ],
    option.lifetime,
  ),
  anonymousPercent: option.percent,
};

/** A limit that a feature adds: a whole number, in `limits` with those of the core. */
export interface LimitRow {
  readonly default: number;
  /** The plural of what is counted, for errors: `words`, `milliseconds`. */
  readonly unit: string;
  /** Default 1. */
  readonly min?: number;
  /** Default: 2^53-1; for a name that ends with `Ms`, 2^31-1, because it is a time of a timer. */
  readonly max?: number;
}

export type LimitRows = Readonly<Record<string, LimitRow>>;

/**
 * The limits of a server with their defaults.
 *
 * @param added those that its features add
 * @throws {TypeError | RangeError} if a limit is unknown, or is no whole number within its bounds
 * @throws {Error} if two limits have the same name
 */
export function resolveLimits(given: Partial<Limits> = {}, added: readonly LimitRows[] = []): Limits {
  const rows: Record<string, option.Check> = { ...ROWS };
  const defaults: Record<string, number> = {};
  for (const [name, row] of added.flatMap((limits) => Object.entries(limits))) {
    if (Object.hasOwn(rows, name)) throw new Error(`there are two limits "${name}": give one of them another name`);
    rows[name] = checkOf(name, row);
    defaults[name] = row.default;
  }
  option.check('limits: the default of ', defaults, rows);
  option.check('limits.', given, rows);
  return { ...DEFAULT_LIMITS, ...defaults, ...option.withoutUndefined(given) };
}

function checkOf(name: string, { unit, min = 1, max }: LimitRow): option.Check {
  const most = max ?? (name.endsWith('Ms') ? LONGEST_TIMER_MS : Number.MAX_SAFE_INTEGER);
  const bounds = most === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `from ${min} to ${most}`;
  return option.expected(`a whole number of ${unit}, ${bounds}`, (value) => option.isWhole(value, min, most));
}
