/**
 * The emitter actor, the only way out to the clients of one connection: order, coalescing, back-pressure. Results are
 * never dropped; notifications are bounded.
 */
import { initialTransition } from 'xstate';
import { type EmitterEvent, emitterMachine } from '../../machines/emitter.ts';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../actor/actor.ts';
import type { Outbound } from '../codec/outbound/outbound.ts';
import { counted } from '../inspection/display-names.ts';
import type { Charted, Facts, Waits } from '../inspection/records.ts';
import { step } from '../inspection/stepping.ts';
import type { About, Bytes, Exchange, Reader } from '../messages/connection-events.ts';
import type { Ask, EmitterMail, Notification, ResultMail } from '../messages/emitter-messages.ts';
import type { Batch, RequestView } from '../messages/request-view.ts';
import { statusOfAnswer } from '../protocol/status.ts';
import { EmitterQueue, type EmitterQueueOptions } from './emitter-queue.ts';

/** The initial snapshot. Snapshots are immutable, so all emitters share it. */
const INITIAL = initialTransition(emitterMachine)[0];

export interface EmitterOptions extends EmitterQueueOptions {
  readonly system: ActorSystem;
  readonly address: string;
  /** Absent in tests without a connection. */
  readonly connection?: string;
  readonly outbound: Outbound;
  /** Passes one message to the transport. `status` is the HTTP status of a response; `bytes` are the same text. */
  transmit(text: string, about: About, status: number | undefined, bytes?: Bytes): void;
  /** Called when the requests of an exchange will get no response. */
  unanswered(exchange: Exchange): void;
  /** Called when a handler releases an exchange for this many milliseconds. */
  release(exchange: Exchange, retryMs: number): void;
  /** Reports how many notifications for a slow client were dropped. */
  droppedNotes(count: number): void;
  /** Called when the emitter itself has failed: the connection is unusable. */
  failed(error: unknown): void;
}

export function spawnEmitter(options: EmitterOptions): Actor<EmitterMail> {
  const { address, connection } = options;
  return spawn({ kind: 'emitter', address, connection }, options.system, () => new Emitter(options));
}

const SESSION: About = { kind: 'session' };
const CONNECTION: About = { kind: 'connection', exchange: undefined };
const NONE: ReadonlyMap<Reader, EmitterQueue> = new Map();

class Emitter implements Behaviour<EmitterMail> {
  readonly #options: EmitterOptions;
  #snapshot = INITIAL;
  #flowing = true;
  /** The queue while the whole connection is slow. */
  #queue: EmitterQueue | undefined;
  /** The queues of readers that are slow while others are not. Created with the first. */
  #slow: Map<Reader, EmitterQueue> | undefined;

  constructor(options: EmitterOptions) {
    this.#options = options;
  }

  chart(): Charted {
    return { machine: emitterMachine, snapshot: this.#snapshot };
  }

  facts(): Facts {
    return { held: this.#waiting, 'most held': this.#options.maxHeld, 'slow readers': this.#slow?.size ?? 0 };
  }

  waits(): readonly Waits[] {
    return this.#waiting === 0 ? [] : [{ what: `for a slow client: ${this.#waiting} messages are queued` }];
  }

  get #waiting(): number {
    return (this.#queue?.size ?? 0) + [...(this.#slow ?? NONE).values()].reduce((sum, { size }) => sum + size, 0);
  }

  state(): string {
    return counted(this.#snapshot.value, this.#waiting);
  }

  receive(mail: EmitterMail): void {
    if (this.#snapshot.status === 'done') return;
    switch (mail.type) {
      case 'answer':
      case 'refusal':
      case 'ask':
      case 'withdrawn':
      case 'progress':
      case 'log':
      case 'notification':
      case 'list changed':
      case 'resource updated':
      case 'task status':
        return this.#deliver(mail);
      case 'unanswered':
        return this.#unanswered(mail.request);
      case 'release':
        if (mail.request.exchange) this.#options.release(mail.request.exchange, mail.retryMs);
        return;
      case 'slow':
        if (mail.reader === 'connection') return this.#step({ type: 'slow' });
        this.#slow ??= new Map();
        if (!this.#slow.has(mail.reader)) this.#slow.set(mail.reader, new EmitterQueue(this.#options));
        return;
      case 'drained':
        if (mail.reader !== 'connection') return this.#release(mail.reader);
        this.#step({ type: 'drained' });
        return this.#releaseAll();
      case 'close':
        this.#step({ type: 'close' });
        this.#releaseAll();
        for (const reader of [...(this.#slow?.keys() ?? [])]) this.#release(reader);
    }
  }

  #step(event: EmitterEvent): void {
    const {
      system: { inspection },
      address,
    } = this.#options;
    this.#snapshot = step(inspection, address, emitterMachine, this.#snapshot, event);
    this.#flowing = this.#snapshot.value === 'flowing';
  }

  #deliver(mail: ResultMail | Ask | Notification): void {
    if (!this.#flowing) {
      this.#queue ??= new EmitterQueue(this.#options);
      return this.#queue.add(mail);
    }
    const waiting = this.#slow?.get(readerOf(mail));
    if (waiting) waiting.add(mail);
    else this.#pass(mail);
  }

  readonly #pass = (mail: ResultMail | Ask | Notification): void => {
    const { outbound, transmit } = this.#options;
    switch (mail.type) {
      case 'answer': {
        const { request, outcome } = mail;
        const text = outbound.answer(mail);
        if (request.batch) return this.#batch(request.batch, text);
        return transmit(text, request, outcome.ok ? 200 : statusOfAnswer(outcome.error), outbound.bytes(mail));
      }
      case 'refusal': {
        const { id, exchange, batch, status } = mail;
        const text = outbound.answer(mail);
        if (batch) return this.#batch(batch, text);
        return transmit(
          text,
          id === undefined ? { kind: 'connection', exchange } : { kind: 'request', id, exchange },
          status,
        );
      }
      case 'ask':
      case 'withdrawn':
        return transmit(outbound.ask(mail), hears(mail.about) ? stream(mail.about) : SESSION, undefined);
      case 'progress':
        return transmit(outbound.notification(mail), mail.about, undefined);
      case 'log':
        return transmit(outbound.notification(mail), mail.about ?? SESSION, undefined);
      case 'notification':
        return transmit(outbound.notification(mail), stream(mail.about), undefined);
      default:
        return transmit(outbound.notification(mail), SESSION, undefined);
    }
  };

  /**
   * Collects the responses of a batch, and sends them as one message when none is missing (2025-03-26 basic/index,
   * "Batching").
   */
  #batch(batch: Batch, text: string | undefined): void {
    const { answers, exchange } = batch;
    if (text !== undefined) answers.push(text);
    batch.owed -= 1;
    if (batch.owed > 0) return;
    if (answers.length === 0) return exchange && this.#options.unanswered(exchange);
    const about: About = exchange ? { kind: 'connection', exchange } : CONNECTION;
    this.#options.transmit(this.#options.outbound.batch(answers), about, 200);
  }

  #unanswered(request: RequestView): void {
    const { batch, exchange } = request;
    this.#queue?.forget(request);
    this.#slow?.get(exchange ?? 'session')?.forget(request);
    if (batch) this.#batch(batch, undefined);
    else if (exchange) this.#options.unanswered(exchange);
  }

  /** Flushes the queue after the connection has caught up. Readers that are slow themselves still wait. */
  #releaseAll(): void {
    this.#reportDropped(
      this.#queue?.release((mail) => {
        const waiting = this.#slow?.get(readerOf(mail));
        if (waiting) waiting.add(mail);
        else this.#pass(mail);
      }),
    );
  }

  #release(reader: Reader): void {
    const held = this.#slow?.get(reader);
    if (!held) return;
    this.#slow?.delete(reader);
    this.#reportDropped(held.release(this.#pass));
  }

  #reportDropped(dropped: number | undefined): void {
    if (dropped) this.#options.droppedNotes(dropped);
  }

  crashed(_mail: EmitterMail, error: unknown): void {
    this.#options.failed(error);
  }
}

/**
 * False if the client accepts no stream as the response to a request. Notifications of the request then go to its
 * session.
 */
function hears({ exchange }: RequestView): boolean {
  return exchange?.streams !== false;
}

/** A message that requires its response to be a stream. */
function stream({ id, exchange, cause }: RequestView): About {
  return { kind: 'request', id, exchange, cause, stays: true };
}

/** The reader of a message: the client of one exchange, or the reader of the session's stream. */
function readerOf(mail: ResultMail | Ask | Notification): Reader {
  switch (mail.type) {
    case 'answer':
      return mail.request.exchange ?? 'session';
    case 'refusal':
      return mail.exchange ?? 'session';
    case 'ask':
    case 'withdrawn':
      return hears(mail.about) ? (mail.about.exchange ?? 'session') : 'session';
    case 'progress':
    case 'notification':
      return mail.about.exchange ?? 'session';
    case 'log':
      return mail.about?.exchange ?? 'session';
    default:
      return 'session';
  }
}
