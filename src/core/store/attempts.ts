/** Attempts at work that can fail, such as deliveries: counts them, logs each that fails, and reports work that is given up. */
import type { ActorSystem } from '../kernel/actor-system.ts';
import { durationOf } from '../kernel/duration.ts';
import { errorFields, type LogEvent, type RuntimeLog } from '../kernel/operator-log.ts';
import { Sum } from '../kernel/telemetry/instruments.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import { throttledLog } from '../kernel/throttled-log.ts';
import { messageOf } from '../protocol/json.ts';

/** The work: the handler of a webhook, an event to a callback, a message of an instance, the slot of a schedule. */
export type AttemptKind = 'webhook' | 'event' | 'message' | 'schedule';

/** A retry within this time is no news. */
const QUIET_MS = 1_000;

/** The counter of each server, which all kinds share. It exists from the first use on. */
const COUNTERS = new WeakMap<Metrics, Sum>();

function counterOf(metrics: Metrics): Sum {
  const known = COUNTERS.get(metrics);
  if (known) return known;
  const help = 'Attempts that have ended, by their kind and result.';
  const sum = new Sum('counter', { name: 'troupe.attempts', unit: '{attempt}', help });
  metrics.add(sum);
  COUNTERS.set(metrics, sum);
  return sum;
}

/** The attempts of one kind of work. */
export class Attempts {
  /** Has a rate: one cause fails many attempts. */
  readonly log: RuntimeLog;
  readonly #kind: AttemptKind;
  readonly #system: Pick<ActorSystem, 'incident'>;
  readonly #sum: Sum;
  readonly #series = new Map<string, number>();

  constructor(system: Pick<ActorSystem, 'clock' | 'log' | 'metrics' | 'incident'>, kind: AttemptKind) {
    this.#kind = kind;
    this.#system = system;
    this.#sum = counterOf(system.metrics);
    this.log = throttledLog(system.log, system.clock);
  }

  /** Counts an attempt. @param result one of a few: each is a time series */
  count(result: string): void {
    const series = this.#series.get(result) ?? this.#sum.series({ 'troupe.kind': this.#kind, 'troupe.result': result });
    this.#series.set(result, series);
    this.#sum.add(series, 1);
  }

  /**
   * Logs a failed attempt.
   *
   * @param waitMs milliseconds until the next one; undefined: there is none, and the work is a dead letter
   * @param event the part of the world that has caused it
   */
  failed(what: string, attempt: number, waitMs: number | undefined, error: unknown, event: LogEvent = 'program'): void {
    if (waitMs !== undefined && waitMs < QUIET_MS) return;
    const next = waitMs === undefined ? 'it is a dead letter now' : `the next one follows in ${durationOf(waitMs)}`;
    const message = `${what}: attempt ${attempt} failed, and ${next}: ${messageOf(error)}`;
    this.log('warning', message, errorFields(event, error));
  }

  /** Counts work that is given up because of an error of the program. @returns the incident */
  dead(what: string, error: unknown): string {
    this.count('dead');
    return this.#system.incident(`${what}, which is a dead letter now`, error);
  }
}
