/** Runs the calls of tools within their limits: rate, daily use and calls at a time, for each principal and tool. */

import type { CallGate, CallOutcome } from '../../../core/execution/stages.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { RuntimeLog } from '../../../core/kernel/operator-log.ts';
import type { Quota, Reservation } from '../../../core/kernel/quota.ts';
import type { Metrics } from '../../../core/kernel/telemetry/metrics.ts';
import { TokenBucket } from '../../../core/kernel/token-bucket.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import { ErrorCode, ProtocolError } from '../../../core/protocol/errors.ts';
import { describe, isThenable } from '../../../core/protocol/json.ts';
import { META } from '../../../core/protocol/meta.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import { turnAway } from '../../../core/requests/active-request.ts';
import type { CompiledSchema } from '../../../core/schema/schema.ts';
import type { Store } from '../../../core/store/store.ts';
import type { AuditMail } from '../audit/audit-messages.ts';
import type { CompiledLimits } from './call-limits.ts';
import { type DailyUse, DailyUses } from './daily-use.ts';

interface LimitedCallsOptions {
  readonly clock: Clock;
  readonly store: Store;
  /** Quota in bytes; the entries of principals count. */
  readonly retained: Quota;
  readonly metrics: Pick<Metrics, 'refused'>;
  readonly audit: Mailbox<AuditMail> | undefined;
  /** Ends the record of a call that was to run. Undefined without an audit. */
  readonly notRun: ((request: RequestView) => void) | undefined;
  readonly log: RuntimeLog;
}

/** A call of a tool with limits. */
interface LimitedCall {
  readonly request: RequestView;
  readonly tool: string;
  readonly limits: CompiledLimits;
  /** Checks the arguments before `cost` sees them. */
  readonly input: CompiledSchema;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** True for a call that continues after a restart: it was counted when it was made. */
  readonly counted: boolean;
  /** Runs the call. */
  work(): CallToolResult | Promise<CallToolResult>;
}

/** A call that waits for another one to end. */
interface QueuedCall {
  begin(): void;
}

/** The use of one tool by one principal. */
interface LimitEntry {
  readonly limits: CompiledLimits;
  readonly bucket: TokenBucket | undefined;
  readonly use: DailyUse | undefined;
  readonly reservation: Reservation;
  running: number;
  readonly queue: QueuedCall[];
}

/** Maximum number of principals and tools at a time. Above it, the one that was idle longest is forgotten. */
const MAX_ENTRIES = 10_000;
/** Memory of an entry in bytes. */
const ENTRY_BYTES = 600;
/** Maximum number of calls of one principal that wait for their turn at one tool. */
const MAX_WAITING = 8;
/** The end of another call is unknown: a retry after this time is a guess. */
const CONCURRENT_RETRY_MS = 1_000;

export class LimitedCalls {
  readonly #options: LimitedCallsOptions;
  readonly #uses: DailyUses;
  /** By tool and principal, the one that was used last at the end. */
  readonly #entries = new Map<string, LimitEntry>();

  constructor(options: LimitedCallsOptions) {
    this.#options = options;
    this.#uses = new DailyUses(options);
  }

  /**
   * Runs a call within the limits of its tool, or returns a result for its model that names the limit. A rejected call has no
   * record of its start.
   *
   * @throws {ProtocolError} -31001 instead, if its client has asked for a task
   */
  readonly gate: CallGate = ({ request, call }, next) => {
    const { input, limits } = call.implementation;
    if (!limits) return next();
    let ran = false;
    const work = () => {
      ran = true;
      return next();
    };
    const ended = (): void => {
      if (ran) return;
      turnAway(request);
      this.#options.notRun?.(request);
    };
    const counted = request.recorded?.id !== undefined;
    try {
      const result = this.#run({
        request,
        tool: call.tool.name,
        limits,
        input,
        arguments: call.arguments,
        counted,
        work,
      });
      if (isThenable(result)) return Promise.resolve(result).finally(ended);
      ended();
      return result;
    } catch (error) {
      ended();
      throw error;
    }
  };

  #run(call: LimitedCall): CallOutcome {
    const cost = costOf(call);
    return isThenable(cost) ? cost.then((found) => this.#limit(call, found)) : this.#limit(call, cost);
  }

  /** Stores what was used today. */
  close(): Promise<void> {
    return this.#uses.keepAll(this.#openUses());
  }

  *#openUses(): Generator<DailyUse> {
    for (const { use } of this.#entries.values()) if (use) yield use;
  }

  #limit(call: LimitedCall, cost: number): CallToolResult | Promise<CallToolResult> {
    const entry = this.#entryOf(call);
    if (call.counted) return this.#start(entry, call);
    const waits = entry.use && this.#uses.mustWait(entry.use);
    // Other calls may have started in the meantime.
    if (waits) return waits.then(() => this.#limit(call, cost));
    return this.#excess(entry, call, cost) ?? this.#enter(entry, call, cost);
  }

  /** Finds the limit that a call exceeds. Nothing is counted then, but a look at the rate. */
  #excess(
    { limits, bucket, use, running, queue }: LimitEntry,
    call: LimitedCall,
    cost: number,
  ): CallToolResult | undefined {
    const { concurrent, perDay, rate } = limits;
    if (concurrent !== undefined && running >= concurrent && queue.length >= MAX_WAITING)
      return this.#reject(
        call,
        'concurrent',
        `at most ${concurrent} at a time, and ${MAX_WAITING} wait`,
        CONCURRENT_RETRY_MS,
      );
    if (perDay !== undefined && use && use.used + cost > perDay) {
      const left = Math.max(0, perDay - use.used);
      const why = `at most ${perDay} a day${cost === 1 ? '' : `; this call costs ${cost}, and ${left} are left`}${cost > perDay ? '. Ask for less' : ''}`;
      return this.#reject(call, 'perDay', why, cost > perDay ? undefined : this.#uses.untilTomorrow(use));
    }
    if (!rate || !bucket) return undefined;
    if (cost > rate.burst)
      return this.#reject(call, rate.option, `${rate.words}; this call costs ${cost}. Ask for less`, undefined);
    const retryMs = bucket.take(this.#options.clock.now(), cost);
    return retryMs === 0 ? undefined : this.#reject(call, rate.option, rate.words, retryMs);
  }

  #reject({ request, tool }: LimitedCall, limit: string, why: string, retryMs: number | undefined): CallToolResult {
    const { audit, metrics } = this.#options;
    const rule = `limits.${limit}`;
    metrics.refused(rule);
    audit?.send({ type: 'limited', by: request.client, request, element: `tool ${tool}`, rule });
    const again = retryMs === undefined ? '' : `. Try again in ${inWords(retryMs)}`;
    const text = `Tool "${tool}" is limited: ${why}${again}.`;
    const { operation } = request;
    // A client that has asked for a task cannot read a result in its place.
    if ('task' in operation && operation.task !== undefined)
      throw new ProtocolError(
        ErrorCode.Overloaded,
        text,
        retryMs === undefined ? undefined : { retryAfterMs: retryMs },
      );
    return {
      content: [{ type: 'text', text }],
      isError: true,
      ...(retryMs === undefined ? {} : { _meta: { [META.retryAfterMs]: retryMs } }),
    };
  }

  /** Counts an admitted call, and runs it when it is its turn. */
  #enter(entry: LimitEntry, call: LimitedCall, cost: number): CallToolResult | Promise<CallToolResult> {
    if (entry.use) this.#uses.count(entry.use, cost);
    const { concurrent } = entry.limits;
    if (concurrent === undefined || entry.running < concurrent) return this.#start(entry, call);
    const { signal } = call.request;
    return new Promise<void>((resolve, reject) => {
      const waiting: QueuedCall = {
        begin() {
          signal.removeEventListener('abort', aborted);
          resolve();
        },
      };
      const aborted = (): void => {
        entry.queue.splice(entry.queue.indexOf(waiting), 1);
        reject(signal.reason);
      };
      entry.queue.push(waiting);
      if (signal.aborted) aborted();
      else signal.addEventListener('abort', aborted, { once: true });
    }).then(() => this.#work(entry, call));
  }

  #start(entry: LimitEntry, call: LimitedCall): CallToolResult | Promise<CallToolResult> {
    entry.running += 1;
    return this.#work(entry, call);
  }

  /** Runs a call that has a place among the running ones. */
  #work(entry: LimitEntry, call: LimitedCall): CallToolResult | Promise<CallToolResult> {
    let result: CallToolResult | Promise<CallToolResult>;
    try {
      result = call.work();
    } catch (error) {
      leave(entry);
      throw error;
    }
    if (isThenable(result)) return Promise.resolve(result).finally(() => leave(entry));
    leave(entry);
    return result;
  }

  #entryOf({ request, tool, limits }: LimitedCall): LimitEntry {
    const { principal } = request.client;
    const key = `${tool}\n${principal}`;
    const found = this.#entries.get(key);
    // A reload may have changed the limits. What was used today stays used.
    const entry = found?.limits === limits ? found : this.#open(principal, tool, limits, found);
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size > MAX_ENTRIES) this.#evict();
    return entry;
  }

  #open(principal: string, tool: string, limits: CompiledLimits, before: LimitEntry | undefined): LimitEntry {
    const { clock, retained } = this.#options;
    const { rate, perDay } = limits;
    before?.reservation.release();
    return {
      limits,
      bucket: rate && new TokenBucket(rate.perSecond, rate.burst, clock.now()),
      use: perDay === undefined ? undefined : (before?.use ?? this.#uses.open(tool, principal)),
      reservation: retained.take(principal, ENTRY_BYTES),
      running: 0,
      queue: [],
    };
  }

  /**
   * Drops the entry that was idle longest. A running one stays, and one whose use is being read or stored: their calls are
   * bounded by those in flight.
   */
  #evict(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.running > 0 || entry.use?.waits) continue;
      this.#entries.delete(key);
      entry.reservation.release();
      if (entry.use) this.#uses.keep(entry.use);
      return;
    }
  }
}

/** A call has ended: its place goes to the first that waits. */
function leave(entry: LimitEntry): void {
  const next = entry.queue.shift();
  if (next) next.begin();
  else entry.running -= 1;
}

/** @throws {TypeError} if `cost` returns no cost: the call does not run */
function costOf({ tool, limits, input, arguments: args }: LimitedCall): number | Promise<number> {
  const { cost } = limits;
  if (!cost) return 1;
  const found = (checked: { readonly ok: boolean; readonly value?: unknown }): number => {
    if (!checked.ok) return 1;
    const amount = cost(checked.value);
    if (typeof amount === 'number' && amount >= 0 && amount < Number.POSITIVE_INFINITY) return amount;
    throw new TypeError(`tool "${tool}": limits.cost: expected a number of at least 0, got ${describe(amount)}`);
  };
  const checked = input.check(args);
  return isThenable(checked) ? Promise.resolve(checked).then(found) : found(checked);
}

/** A time for a model: rounded up, so that a retry after it is not too early. */
function inWords(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`;
}
