/** The instance behind a handle, as the inspector shows it. */
import type { AnyEventObject } from 'xstate';
import type { Charted, Facts, LiveRecord, Waits, Watching } from '../../core/kernel/inspection/records.ts';
import { watchSystem } from '../../core/kernel/inspection/xstate-system.ts';
import type { Activation } from './activation.ts';
import type { BoundedMailbox, QueuedKind } from './bounded-mailbox.ts';
import type { ActedBy } from './handle-messages.ts';
import { deadlineOf, type HandleRecord, handleAddress, lifetimeOf } from './handle-record.ts';
import type { InstanceServices } from './instance-services.ts';
import type { Caller } from './machine-definition.ts';

/** The parts of an instance that the inspector reads and the call that an operator may make. */
interface InspectedInstance {
  readonly entry: HandleRecord;
  state(): string;
  call(kind: QueuedKind, caller: Caller): Promise<unknown>;
}

export class InspectableInstance implements LiveRecord {
  readonly kind = 'handle';
  readonly #entry: HandleRecord;
  readonly #host: InstanceServices;
  readonly #mail: Pick<BoundedMailbox, 'size'>;
  readonly #instance: InspectedInstance;
  #activation: Activation | undefined;

  constructor(host: InstanceServices, mail: Pick<BoundedMailbox, 'size'>, instance: InspectedInstance) {
    this.#entry = instance.entry;
    this.#host = host;
    this.#mail = mail;
    this.#instance = instance;
  }

  get label(): string {
    return `${this.#entry.name} ${this.#entry.key ?? this.#entry.handle.slice(0, 8)}`;
  }

  /** Reports an activation, also one that replaces another. */
  opened(activation: Activation): void {
    this.#activation = activation;
    this.#host.inspection.renewed(handleAddress(this.#entry));
  }

  /** Reports that the instance left memory. */
  closed(): void {
    this.#activation = undefined;
  }

  /** Reports the current state, which may have changed. */
  changed(): void {
    const { inspection } = this.#host;
    if (inspection.on) inspection.stated(handleAddress(this.#entry), this.state());
  }

  /**
   * Reports a call.
   *
   * @returns the number of the inspection record
   */
  mailed(kind: QueuedKind, away: boolean, by?: ActedBy): number {
    const { inspection } = this.#host;
    if (!inspection.full) return inspection.on ? inspection.cause : 0;
    const mail = { type: kind.type === 'event' ? `send ${kind.event.type}` : kind.type, ...(by ? { by } : {}) };
    const fate = away ? 'queued' : undefined;
    return inspection.record({ type: 'mail', actor: handleAddress(this.#entry), mail, fate });
  }

  state(): string {
    return this.#instance.state();
  }

  queued(): number {
    return this.#mail.size;
  }

  chart(): Charted | undefined {
    const hosted = this.#activation?.hosted;
    return hosted && { machine: hosted.machine, snapshot: hosted.snapshot };
  }

  facts(): Facts {
    const { name, principal, key, status, created, used, atWork } = this.#entry;
    const expires = deadlineOf(this.#entry, lifetimeOf(this.#activation?.kind, principal, this.#host.limits));
    return {
      machine: name,
      ...(key === undefined ? {} : { key, ...this.#roles() }),
      version: this.#activation?.version,
      principal,
      status,
      created,
      used,
      expires,
      'at work': atWork,
    };
  }

  /** The roles of its callers, with the events that they may send. */
  #roles(): Facts {
    const { keyed } = this.#activation?.kind ?? {};
    if (!keyed?.roles) return {};
    const roles = [...keyed.roles.byName].map(([name, { events }]) => [name, events === '*' ? '*' : events.join(', ')]);
    return { roles: Object.fromEntries(roles) };
  }

  waits(): readonly Waits[] {
    const activation = this.#activation;
    if (!activation || this.#entry.status !== 'active') return [];
    const { clock, date } = this.#host;
    const asks = activation.inputs.list().map(({ message, kind, id }) => ({
      what: message ?? `${kind} (${id})`,
      whom: 'the client of the next call on this handle',
    }));
    const later = clock.now() - date();
    return [...asks, ...activation.timerRows().map(({ timer, due }) => ({ what: timer, until: due + later }))];
  }

  watch(): Watching | undefined {
    const { inspection, clock } = this.#host;
    if (!this.#activation) return undefined;
    return watchSystem(this.#activation.hosted.actor, handleAddress(this.#entry), inspection, () => clock.now());
  }

  give({ type, ...data }: AnyEventObject): void {
    const { events, schedules = new Map() } = this.#host.machines.kindOf(this.#entry.name);
    const known = new Set([...events, ...[...schedules.values()].map(({ event }) => event)]);
    if (!known.has(type))
      throw new TypeError(`expected one of the listed events (${[...known].join(', ')}), got ${type}`);
    // The operator needs no role.
    const caller: Caller = { principal: this.#entry.principal, ctx: undefined, isProgram: true };
    // The inspector shows the result, even if it is a crash.
    this.#instance.call({ type: 'event', event: { type, data }, key: undefined }, caller).catch(() => {});
  }
}
