/** The instance behind a handle, as an inspection sees it. */
import type { AnyEventObject } from 'xstate';
import type { Charted, Facts, LiveRecord, Waits } from '../inspection/records.ts';
import { watchSystem } from '../inspection/xstate-system.ts';
import type { Activation } from './activation.ts';
import type { BoundedMailbox, QueuedKind } from './bounded-mailbox.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import type { InstanceDeps } from './instance-deps.ts';
import type { Caller } from './machine-definition.ts';

/** What an instance tells of itself, and takes from an operator. */
export interface Telling {
  readonly entry: HandleRecord;
  state(): string;
  call(kind: QueuedKind, caller: Caller): Promise<unknown>;
}

export class InspectableInstance implements LiveRecord {
  readonly kind = 'handle';
  readonly #entry: HandleRecord;
  readonly #host: InstanceDeps;
  readonly #mail: Pick<BoundedMailbox, 'size'>;
  readonly #telling: Telling;
  #awake: Activation | undefined;

  constructor(host: InstanceDeps, mail: Pick<BoundedMailbox, 'size'>, telling: Telling) {
    this.#entry = telling.entry;
    this.#host = host;
    this.#mail = mail;
    this.#telling = telling;
  }

  get label(): string {
    return `${this.#entry.name} ${this.#entry.handle.slice(0, 6)}`;
  }

  /** It is in memory, or another is in its place. */
  opened(awake: Activation): void {
    this.#awake = awake;
    this.#host.inspection.renewed(handleAddress(this.#entry));
  }

  /** It is no longer in memory. */
  closed(): void {
    this.#awake = undefined;
  }

  /** It may be in another state than before. */
  changed(): void {
    const { inspection } = this.#host;
    if (inspection.on) inspection.stated(handleAddress(this.#entry), this.state());
  }

  /** Something is asked of it. @returns the record that tells of it */
  mailed(kind: QueuedKind, away: boolean): number {
    const { inspection } = this.#host;
    if (!inspection.full) return inspection.on ? inspection.cause : 0;
    const mail = { type: kind.type === 'event' ? `send ${kind.event.type}` : kind.type };
    const fate = away ? 'queued' : undefined;
    return inspection.record({ type: 'mail', actor: handleAddress(this.#entry), mail, fate });
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
    return watchSystem(this.#awake.living.actor, handleAddress(this.#entry), inspection, () => clock.now());
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
