/**
 * The emitter actor, the only way out to the clients of one connection: order, coalescing, back-pressure. Results are
 * never dropped; notifications are bounded.
 */
import { type EmitterEvent, emitterMachine } from '../../../machines/emitter.ts';
import type { Outbound } from '../codec/outbound/outbound.ts';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../kernel/actor.ts';
import { counted } from '../kernel/inspection/display-names.ts';
import type { Charted, Facts, Waits } from '../kernel/inspection/records.ts';
import { step } from '../kernel/step.ts';
import type {
  About,
  Bytes,
  ConnectionEventEmitter,
  ConnectionId,
  Exchange,
  Reader,
} from '../messages/connection-events.ts';
import type { Ask, EmitterMail, Notification, ResultMail } from '../messages/emitter-messages.ts';
import type { Batch, RequestView } from '../messages/request-view.ts';
import { statusOfAnswer } from '../protocol/status.ts';
import { EmitterQueue, type EmitterQueueOptions } from './emitter-queue.ts';

/** The initial snapshot. Snapshots are immutable, so all emitters share it. */
const INITIAL = emitterMachine.initial;

interface EmitterOptions extends EmitterQueueOptions {
  readonly system: ActorSystem;
  readonly connection: ConnectionId;
  readonly outbound: Outbound;
  /** Carries its output to the transport of the connection. */
  readonly bus: ConnectionEventEmitter;
}

export function spawnEmitter(options: EmitterOptions): Actor<EmitterMail> {
  const { connection, system } = options;
  return spawn({ kind: 'emitter', address: addressOf(connection), connection }, system, () => new Emitter(options));
}

function addressOf(connection: ConnectionId): string {
  return `emitter/${connection}`;
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
    return this.#snapshot.charted();
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
    return counted(this.#snapshot.path, this.#waiting);
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
      case 'page completed':
        if (this.#flowing) {
          const waiting = this.#slow?.get(readerOf(mail));
          return waiting ? waiting.add(mail) : this.#pass(mail);
        }
        this.#queue ??= new EmitterQueue(this.#options);
        return this.#queue.add(mail);
      case 'unanswered':
        return this.#unanswered(mail.request);
      case 'release':
        return this.#releaseExchange(mail.request, mail.retryMs);
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
    const { connection, system } = this.#options;
    const recorder = { inspection: system.inspection, actor: addressOf(connection) };
    this.#snapshot = step(this.#snapshot, event, recorder) ?? this.#snapshot;
    this.#flowing = this.#snapshot.path === 'flowing';
  }

  readonly #pass = (mail: ResultMail | Ask | Notification): void => {
    const { outbound } = this.#options;
    switch (mail.type) {
      case 'answer': {
        const { request, outcome } = mail;
        const text = outbound.answer(mail);
        if (request.batch) return this.#batch(request.batch, text);
        if (!outcome.ok) return this.#transmit(text, request, statusOfAnswer(outcome.error));
        const { result } = outcome;
        return this.#transmit(
          text,
          request,
          200,
          result.kind === 'list' ? outbound.bytes(request, result.page) : undefined,
        );
      }
      case 'refusal': {
        const { id, exchange, batch, status } = mail;
        const text = outbound.answer(mail);
        if (batch) return this.#batch(batch, text);
        return this.#transmit(
          text,
          id === undefined ? { kind: 'connection', exchange } : { kind: 'request', id, exchange },
          status,
        );
      }
      case 'ask':
      case 'withdrawn':
        return this.#transmit(outbound.ask(mail), hears(mail.about) ? stream(mail.about) : SESSION, undefined);
      case 'progress':
        return this.#transmit(outbound.notification(mail), mail.about, undefined);
      case 'log':
        return this.#transmit(outbound.notification(mail), mail.about ?? SESSION, undefined);
      case 'notification':
        if (mail.notice.type === 'passed') return mail.notice.passed();
        return this.#transmit(outbound.notification(mail), stream(mail.about), undefined);
      default:
        return this.#transmit(outbound.notification(mail), SESSION, undefined);
    }
  };

  /** Passes one message to the transport. `status` is the HTTP status of a response; `bytes` are the same text. */
  #transmit(text: string, about: About, status: number | undefined, bytes?: Bytes): void {
    const {
      bus,
      connection,
      system: { inspection },
    } = this.#options;
    if (inspection.full) {
      const request = about.kind === 'request' ? about.cause : undefined;
      inspection.record({ type: 'wire', connection, direction: 'out', text, about: request });
    }
    bus.emit('connection.send', { connection, text, about, status, bytes });
  }

  /**
   * Collects the responses of a batch, and sends them as one message when none is missing (2025-03-26 basic/index,
   * "Batching").
   */
  #batch(batch: Batch, text: string | undefined): void {
    const { answers, exchange } = batch;
    if (text !== undefined) answers.push(text);
    batch.owed -= 1;
    if (batch.owed > 0) return;
    if (answers.length === 0) return exchange && this.#reportUnanswered(exchange);
    const about: About = exchange ? { kind: 'connection', exchange } : CONNECTION;
    this.#transmit(this.#options.outbound.batch(answers), about, 200);
  }

  #unanswered(request: RequestView): void {
    const { batch, exchange } = request;
    this.#queue?.forget(request);
    this.#slow?.get(exchange ?? 'session')?.forget(request);
    if (batch) this.#batch(batch, undefined);
    else if (exchange) this.#reportUnanswered(exchange);
  }

  /** The requests of an exchange will get no response. */
  #reportUnanswered(exchange: Exchange): void {
    const { bus, connection } = this.#options;
    bus.emit('connection.unanswered', { connection, exchange });
  }

  /** A handler releases the exchange of its request for this many milliseconds. */
  #releaseExchange({ exchange }: RequestView, retryMs: number): void {
    const { bus, connection } = this.#options;
    if (exchange) bus.emit('connection.release', { connection, exchange, retryMs });
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
    if (!dropped) return;
    const { connection, system } = this.#options;
    system.metrics.dropped(dropped);
    system.log(
      'warning',
      `connection ${connection} is slow: dropped ${dropped} notifications (limits.maxHeld, limits.maxRetainedBytes)`,
      { event: 'client' },
    );
  }

  /** Ends the connection, because its output may be incomplete. */
  crashed(_mail: EmitterMail, error: unknown): void {
    const { bus, connection, system } = this.#options;
    const incident = system.incident(addressOf(connection), error);
    bus.emit('connection.end', { connection, reason: `the emitter failed (incident ${incident})` });
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
