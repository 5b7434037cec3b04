/** The event traffic of a server for viewers: what enters and leaves it, and what an operator does about it. */
import type { JsonObject } from '../../core/protocol/json.ts';
import { EventError, type EventFault } from '../../features/events/event-error.ts';
import type { Internals } from '../../features/server/internals.ts';
import type { Server } from '../../features/server/server.ts';
import { inDefinitions } from '../catalogue/server-catalogue.ts';
import type { Plain } from '../frames.ts';
import { InputError } from '../http/viewer-input.ts';
import { type Bounds, plainOf } from '../redaction/plain-data.ts';
import type { Redactor } from '../redaction/redact.ts';
import { eventTypeLines } from './event-type-lines.ts';
import { contentOfLetter } from './letter-content.ts';
import { runSchedule, scheduleLines } from './schedule-lines.ts';
import { listSubscriptions } from './subscription-lines.ts';
import type { EventForm, ScheduleRun, TrafficView } from './traffic-messages.ts';

/** Most deliveries of webhooks in one view. */
const MAX_DELIVERIES = 50;
const STATUS: Readonly<Record<EventFault, number>> = { unknown: 404, invalid: 400, limit: 409, busy: 503, store: 503 };
/** Bounds of a schema, as for the definitions of a catalogue. */
const SCHEMA: Bounds = { depth: 32, members: 1_000, text: 16_000, all: 64_000 };
/** Most dead letters in one view. */
const MAX_LETTERS = 100;
/** The beginning of the outcome of an attempt that has failed. */
const FAILED = 'failed again';
/** Most letters that are known as delivered. */
const MAX_DELIVERED = 1_000;
/** Longest error of a line, in characters. */
const MAX_ERROR = 500;

interface EventTrafficOptions {
  readonly server: Server;
  readonly inside: Pick<Internals, 'clock' | 'inspection' | 'events' | 'hooks' | 'schedules' | 'deadLetters'>;
  readonly redactor: Redactor;
}

export class EventTraffic {
  readonly #options: EventTrafficOptions;
  /** The refs of letters that were delivered again: most of them stay in the store. */
  readonly #delivered = new Set<string>();

  constructor(options: EventTrafficOptions) {
    this.#options = options;
  }

  /** @throws {StoreError} */
  async view(): Promise<TrafficView> {
    const { inside, redactor } = this.#options;
    const date = inside.clock.date();
    const { events } = inside;
    const { view: subscriptions, counts } = listSubscriptions(events);
    const [types, deliveries, letters] = await Promise.all([
      events ? eventTypeLines(events, counts, date) : [],
      inside.hooks()?.list({ limit: MAX_DELIVERIES }) ?? [],
      inside.deadLetters().list(MAX_LETTERS),
    ]);
    const words = (text: string): string => redactor.words(text, MAX_ERROR);
    return {
      ...{ date, types, subscriptions, schedules: scheduleLines(this.#options, date) },
      deliveries: deliveries.map((record) => ({
        ...record,
        error: record.error === undefined ? undefined : words(record.error),
      })),
      letters: letters.map((letter) => ({
        ...letter,
        ...{ what: words(letter.what), error: words(letter.error) },
        ...(this.#delivered.has(letter.ref) ? { delivered: true } : {}),
      })),
    };
  }

  /** The content of a delivery or a dead letter, without secrets. @throws {InputError | StoreError} */
  async content(ref: string): Promise<{ readonly body: Plain }> {
    const found = await contentOfLetter(this.#options, ref);
    if (found === undefined) throw new InputError(404, 'delivery: its content is not stored any more');
    return { body: plainOf(found, this.#options.redactor) };
  }

  /** The schema of the data of an event type. @throws {InputError} */
  form(name: string): EventForm {
    const known = this.#options.inside.events?.topics.known(name);
    if (!known) throw new InputError(404, `event: there is no type of the name "${name}"`);
    const finder = inDefinitions(this.#options.redactor);
    const payload = plainOf(known.type.payloadSchema, finder, { bounds: SCHEMA, parsed: true });
    return { name, payload };
  }

  /** Delivers again what was given up. @returns the outcome in words @throws {InputError | StoreError} */
  async again(ref: string): Promise<string> {
    const outcome = await this.#options.inside.deadLetters().again(ref);
    if (outcome === undefined)
      throw new InputError(404, 'delivery: it is not stored any more, or cannot be delivered again');
    if (outcome.startsWith(FAILED)) throw new InputError(409, outcome);
    this.#delivered.add(ref);
    if (this.#delivered.size > MAX_DELIVERED)
      for (const oldest of this.#delivered) if (this.#delivered.delete(oldest)) break;
    return outcome;
  }

  /** Emits an event, if its data fits the schema of its type. @returns the outcome in words @throws {InputError} */
  async emit(name: string, data: JsonObject): Promise<string> {
    const { events } = this.#options.inside;
    if (!events) throw new InputError(404, 'event: this server has no event types');
    try {
      const { id, seq } = await events.topics.emit(name, data);
      return `emitted ${name} as ${id}, number ${seq}`;
    } catch (error) {
      if (error instanceof EventError) throw new InputError(STATUS[error.fault], error.message);
      throw error;
    }
  }

  /** Runs a schedule by hand. @returns the outcome in words @throws {InputError} */
  run(given: ScheduleRun): Promise<string> {
    const { inside } = this.#options;
    return runSchedule(this.#options, given, Math.floor(inside.clock.date()));
  }
}
