/** The instance behind a handle, as an inspection sees it. */
import type { AnyEventObject } from 'xstate';
import type { Charted, Facts, Live, Waits } from '../inspection/records.ts';
import { watchSystem } from '../inspection/system.ts';
import type { Awake } from './awake.ts';
import { addressOf, type Entry } from './entry.ts';
import type { InstanceHost } from './host.ts';
import type { JobKind, Mailroom } from './jobs.ts';
import type { Caller } from './kind.ts';

/** What an instance tells of itself, and takes from an operator. */
export interface Telling {
  readonly entry: Entry;
  state(): string;
  call(kind: JobKind, caller: Caller): Promise<unknown>;
}

export class Seen implements Live {
  readonly kind = 'handle';
  readonly #entry: Entry;
  readonly #host: InstanceHost;
  readonly #mail: Pick<Mailroom, 'size'>;
  readonly #telling: Telling;
  #awake: Awake | undefined;

  constructor(host: InstanceHost, mail: Pick<Mailroom, 'size'>, telling: Telling) {
    this.#entry = telling.entry;
    this.#host = host;
    this.#mail = mail;
    this.#telling = telling;
  }

  get label(): string {
    return `${this.#entry.name} ${this.#entry.handle.slice(0, 6)}`;
  }

  /** It is in memory, or another is in its place. */
  opened(awake: Awake): void {
    this.#awake = awake;
    this.#host.inspection.renewed(addressOf(this.#entry));
  }

  /** It is no longer in memory. */
  closed(): void {
    this.#awake = undefined;
  }

  /** It may be in another state than before. */
  changed(): void {
    const { inspection } = this.#host;
    if (inspection.on) inspection.stated(addressOf(this.#entry), this.state());
  }

  /** Something is asked of it. @returns the record that tells of it */
  mailed(kind: JobKind, away: boolean): number {
    const { inspection } = this.#host;
    if (!inspection.full) return inspection.on ? inspection.cause : 0;
    const mail = { type: kind.type === 'event' ? `send ${kind.event.type}` : kind.type };
    const fate = away ? 'queued' : undefined;
    return inspection.record({ type: 'mail', actor: addressOf(this.#entry), mail, fate });
  }

  state(): string {
    return this.#telling.state();
  }

  queued(): number {
    return this.#mail.size;
  }

  chart(): Charted | undefined {
    const living = this.#awake?.living;
    return living && { machine: living.machine, snapshot: living.snapshot };
  }

  facts(): Facts {
    const { name, principal, status, created, used, atWork } = this.#entry;
    return { machine: name, version: this.#awake?.version, principal, status, created, used, 'at work': atWork };
  }

  waits(): readonly Waits[] {
    const awake = this.#awake;
    if (!awake || this.#entry.status !== 'active') return [];
    const { clock, date } = this.#host;
    const asks = awake.desk.look().map(({ message, kind, id }) => ({
      what: message ?? `${kind} (${id})`,
      whom: 'the client of the next call that uses this handle',
    }));
    const later = clock.now() - date();
    return [...asks, ...awake.timerRows().map(({ timer, due }) => ({ what: timer, until: due + later }))];
  }

  watch(): (() => void) | undefined {
    const { inspection, clock } = this.#host;
    if (!this.#awake) return undefined;
    return watchSystem(this.#awake.living.actor, addressOf(this.#entry), inspection, () => clock.now());
  }

  give({ type, ...data }: AnyEventObject): void {
    const { events } = this.#host.kindOf(this.#entry.name);
    if (!events.includes(type))
      throw new TypeError(`expected one of the events that its author listed (${events.join(', ')}), got ${type}`);
    const caller: Caller = { principal: this.#entry.principal, ctx: undefined };
    // What comes of it is seen in the inspector, a crash too.
    this.#telling.call({ type: 'event', event: { type, data }, key: undefined }, caller).catch(() => {});
  }
}
