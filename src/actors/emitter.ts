/** The one door out to one client: order, coalescing, back-pressure. Results are never dropped; what can wait is bounded. */
import { initialTransition, transition } from 'xstate';
import { type EmitterEvent, emitterMachine } from '../../machines/emitter.ts';
import type { About } from '../messages/connection.ts';
import type { Answer, EmitterMail, Notification } from '../messages/emitter.ts';
import type { Batch } from '../messages/in-flight.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { type Actor, type ActorHost, type Behaviour, spawn } from './actor.ts';

export interface EmitterOptions extends ActorHost {
  readonly address: string;
  readonly outbound: Outbound;
  /** Hands one message to the transport. */
  transmit(text: string, about: About): void;
  /** Most notifications held while the peer is slow; the oldest log messages go first. */
  readonly maxHeld: number;
  /** Milliseconds for which changes of lists and resources are gathered into one notification each. */
  readonly gatherMs: number;
  /** Says how many notifications a slow client was not sent. */
  droppedNotes(count: number): void;
  /** The emitter itself failed: the connection cannot be trusted any more. */
  failed(error: unknown): void;
}

export function spawnEmitter(options: EmitterOptions): Actor<EmitterMail> {
  return spawn({ kind: 'emitter', address: options.address }, options, (self) => new Emitter(options, self));
}

const SESSION: About = { kind: 'session' };
const CONNECTION: About = { kind: 'connection' };

class Emitter implements Behaviour<EmitterMail> {
  readonly #options: EmitterOptions;
  readonly #self: Mailbox<EmitterMail>;
  #snapshot = initialTransition(emitterMachine)[0];
  #flowing = true;
  /** What waits for a slow peer, in order; the key lets a newer notification take the place of an older one. */
  readonly #held = new Map<string, Answer | Notification>();
  #heldSeq = 0;
  #heldNotes = 0;
  #dropped = 0;
  /** Changes being gathered: at most one of each list, one of each resource. */
  readonly #gathering = new Map<string, Notification>();

  constructor(options: EmitterOptions, self: Mailbox<EmitterMail>) {
    this.#options = options;
    this.#self = self;
  }

  state(): string {
    return this.#held.size === 0
      ? String(this.#snapshot.value)
      : `${String(this.#snapshot.value)} (${this.#held.size})`;
  }

  receive(mail: EmitterMail): void {
    if (this.#snapshot.status === 'done') return;
    switch (mail.type) {
      case 'answer':
      case 'refusal':
      case 'progress':
      case 'log':
        return this.#flowing ? this.#pass(mail) : this.#hold(mail);
      case 'list changed':
      case 'resource updated':
        return this.#gather(mail);
      case 'gathered': {
        const changes = [...this.#gathering.values()];
        this.#gathering.clear();
        for (const change of changes) {
          if (this.#flowing) this.#pass(change);
          else this.#hold(change);
        }
        return;
      }
      case 'batch shrank':
        return this.#batch(mail.batch, undefined);
      case 'slow':
        return this.#step({ type: 'slow' });
      case 'drained':
        this.#step({ type: 'drained' });
        return this.#release();
      case 'close':
        this.#step({ type: 'close' });
        return this.#release();
    }
  }

  #step(event: EmitterEvent): void {
    [this.#snapshot] = transition(emitterMachine, this.#snapshot, event);
    this.#flowing = this.#snapshot.value === 'flowing';
  }

  #pass(mail: Answer | Notification): void {
    const { outbound, transmit } = this.#options;
    switch (mail.type) {
      case 'answer': {
        const text = outbound.answer(mail);
        const { batch } = mail.request;
        return batch ? this.#batch(batch, text) : transmit(text, mail.request);
      }
      case 'refusal': {
        const text = outbound.answer(mail);
        if (mail.batch) return this.#batch(mail.batch, text);
        return transmit(text, mail.id === undefined ? CONNECTION : { kind: 'request', id: mail.id });
      }
      case 'progress':
        return transmit(outbound.notification(mail), { kind: 'request', id: mail.about });
      case 'log':
        return transmit(
          outbound.notification(mail),
          mail.about === undefined ? SESSION : { kind: 'request', id: mail.about },
        );
      default:
        return transmit(outbound.notification(mail), SESSION);
    }
  }

  /** Collects the answers of a batch, and sends them as one when none is owed (2025-03-26 basic/index, "Batching"). */
  #batch(batch: Batch, text: string | undefined): void {
    if (text !== undefined) batch.answers.push(text);
    batch.owed -= 1;
    if (batch.owed === 0 && batch.answers.length > 0)
      this.#options.transmit(this.#options.outbound.batch(batch.answers), CONNECTION);
  }

  #hold(mail: Answer | Notification): void {
    const key = keyOf(mail) ?? `#${this.#heldSeq++}`;
    const answers = mail.type === 'answer' || mail.type === 'refusal';
    if (!answers && !this.#held.has(key)) this.#heldNotes += 1;
    // A newer notification of the same thing goes to the end: nothing overtakes what was sent before it.
    this.#held.delete(key);
    this.#held.set(key, mail);
    if (this.#heldNotes <= this.#options.maxHeld) return;
    // What changed must be heard of, and there is one note for each thing at most: only what was said along the way can go.
    const oldest = this.#oldest('log') ?? this.#oldest('progress');
    if (oldest === undefined) return;
    this.#held.delete(oldest);
    this.#heldNotes -= 1;
    this.#dropped += 1;
  }

  #oldest(wanted: Notification['type']): string | undefined {
    for (const [key, { type }] of this.#held) if (type === wanted) return key;
    return undefined;
  }

  #release(): void {
    const held = [...this.#held.values()];
    this.#held.clear();
    this.#heldNotes = 0;
    const dropped = this.#dropped;
    this.#dropped = 0;
    // Told before what is left of the same request, at the level that it was to be told at: both are within what the client asked for.
    const first = held.find((mail) => mail.type === 'log');
    for (const mail of held) {
      if (dropped > 0 && mail === first && mail.type === 'log') {
        const data = `${dropped} notifications were dropped because the client reads too slowly`;
        this.#pass({ ...mail, data, logger: 'troupe' });
      }
      this.#pass(mail);
    }
    if (dropped > 0) this.#options.droppedNotes(dropped);
  }

  #gather(mail: Notification): void {
    if (this.#gathering.size === 0)
      this.#options.clock.after(this.#options.gatherMs, () => this.#self.send({ type: 'gathered' }));
    this.#gathering.set(keyOf(mail) ?? '', mail);
  }

  crashed(_mail: EmitterMail, error: unknown): void {
    this.#options.failed(error);
  }
}

/** What a newer notification replaces: an older one of the same request, list or resource. Logs and answers replace nothing. */
function keyOf(mail: Answer | Notification): string | undefined {
  switch (mail.type) {
    case 'progress':
      return `progress ${typeof mail.token} ${mail.token}`;
    case 'list changed':
      return `list ${mail.what}`;
    case 'resource updated':
      return `resource ${mail.uri}`;
    default:
      return undefined;
  }
}
