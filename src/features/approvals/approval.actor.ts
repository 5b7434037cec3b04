/**
 * The approval actor: runs decisions about one call in order, and stores each. Another node may decide at the same time: the store
 * then rejects the change, and the decision runs again on the newer state. Governed by `machines/approval.ts`.
 */
import { randomInt } from 'node:crypto';
import { approvalMachine } from '../../../machines/approval.ts';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../../core/kernel/actor.ts';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { afterAny, type Timer } from '../../core/kernel/clock.ts';
import type { Charted, Facts, Waits } from '../../core/kernel/inspection/records.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import { step } from '../../core/kernel/step.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import { type Store, type Stored, StoreError } from '../../core/store/store.ts';
import { ApprovalError } from './approval-error.ts';
import type { ApprovalChange, ApprovalMail, ApprovalOperation, ApprovalWaiter } from './approval-messages.ts';
import { whoOf } from './approval-policy.ts';
import {
  approvalRow,
  isDuring,
  isLive,
  isOpen,
  readApprovalText,
  type StoredApproval,
  storedActor,
  textOfApproval,
  unmetOf,
} from './approval-record.ts';

export interface ApprovalActorOptions {
  readonly system: ActorSystem;
  readonly store: Store;
  readonly id: string;
  readonly tool: string;
  /** Milliseconds for which a decided approval stays in the store. */
  readonly keptMs: number;
  /** Milliseconds between two looks for decisions of other nodes; undefined if this process has the store to itself. */
  readonly pollMs: number | undefined;
  /** Milliseconds since 1970, which do not go back when the clock of the machine does. */
  date(): number;
  /** A change is stored. */
  changed(approval: StoredApproval, change: ApprovalChange | undefined): void;
  /** Nothing waits for it any more: it leaves memory. */
  rests(): void;
}

/** Attempts to store a change while other nodes change the approval. */
const ATTEMPTS = 16;
const BACK_OFF = { fromMs: 1, toMs: 64 };

export function spawnApproval(options: ApprovalActorOptions): Actor<ApprovalMail> {
  const { system, id, tool } = options;
  // A prefix: who knows the whole id may name the approval to the server.
  const short = id.slice(0, 10);
  // One that was at rest knows its tool only once it is loaded.
  const label = tool === '' ? `approval ${short}` : tool;
  const identity = { kind: 'approval', address: `approval/${short}`, label } as const;
  return spawn(identity, system, (self) => new ApprovalActor(options, self));
}

class ApprovalActor implements Behaviour<ApprovalMail> {
  readonly #options: ApprovalActorOptions;
  readonly #self: Mailbox<ApprovalMail>;
  #waiting: (ApprovalOperation | Extract<ApprovalMail, { type: 'create' }>)[] = [];
  readonly #waiters = new Set<ApprovalWaiter>();
  #current: ApprovalOperation | Extract<ApprovalMail, { type: 'create' }> | undefined;
  #doing: 'rest' | 'load' | 'store' | 'pause' = 'rest';
  #version: string | undefined;
  #approval: StoredApproval | undefined;
  #next: StoredApproval | undefined;
  #change: ApprovalChange | undefined;
  #attempts = 0;
  #timer: Timer | undefined;

  constructor(options: ApprovalActorOptions, self: Mailbox<ApprovalMail>) {
    this.#options = options;
    this.#self = self;
  }

  state(): string {
    return this.#approval?.state ?? 'asked';
  }

  chart(): Charted {
    return approvalMachine.at(this.#approval?.state ?? 'asked').charted();
  }

  /** No argument of the call: what people see is behind `server.approvals`. */
  facts(): Facts {
    const { tool, principal, policies, created, until, given, title } = this.#approval ?? {};
    return {
      ...{ tool: tool ?? this.#options.tool, title, principal, policies: [...(policies ?? [])], created, until },
      approved: (given ?? []).map(({ principal: giver }) => giver),
      waiting: this.#waiters.size,
    };
  }

  waits(): readonly Waits[] {
    const approval = this.#approval;
    if (!approval || !isOpen(approval.state)) return [];
    return unmetOf(approval).flatMap((place) => {
      const requirement = approval.requirements[place];
      if (!requirement) return [];
      const lasts = approval.until - approval.created;
      const left = approval.until - this.#options.date();
      return [{ what: 'an approval', whom: whoOf(requirement), until: this.#options.system.clock.now() + left, lasts }];
    });
  }

  receive(mail: ApprovalMail): void {
    switch (mail.type) {
      case 'operate':
        this.#waiting.push(mail.operation);
        return this.#begin();
      case 'create':
        this.#waiting.push(mail);
        return this.#begin();
      case 'wait':
        this.#waiters.add(mail.waiter);
        return this.#look();
      case 'leave':
        this.#waiters.delete(mail.waiter);
        return this.#rest();
      case 'loaded':
        return this.#loaded(mail.stored);
      case 'swapped':
        return mail.stored ? this.#stored() : this.#conflict();
      case 'failed':
        return this.#fail(this.#failureOf(mail.error));
      case 'again':
        return this.#load();
      case 'look':
        return this.#look();
    }
  }

  crashed(mail: ApprovalMail, error: unknown): void {
    this.#options.system.incident(storedActor(this.#options.id.slice(0, 10)), error);
    if (mail.type === 'operate') return mail.operation.reject(error);
    if (mail.type === 'create') return mail.reject(error);
    if (mail.type === 'wait') return mail.waiter.failed(error);
    this.#fail(error);
  }

  #begin(): void {
    if (this.#doing !== 'rest') return;
    this.#current = this.#waiting.shift();
    if (!this.#current) return this.#rest();
    this.#attempts = 0;
    if ('type' in this.#current) return this.#store(this.#current.approval, undefined, undefined);
    this.#load();
  }

  /** Reads the stored state, and passes it to those who wait. */
  #look(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#doing !== 'rest') return;
    this.#waiting.unshift({ run: () => undefined, resolve: () => {}, reject: (error) => this.#failWaiters(error) });
    this.#begin();
  }

  #load(): void {
    this.#doing = 'load';
    this.#tell(this.#options.store.load(storedActor(this.#options.id)), (stored) => ({ type: 'loaded', stored }));
  }

  #loaded(stored: Stored | undefined): void {
    const operation = this.#current;
    if (!operation || 'type' in operation) return;
    const now = this.#options.date();
    try {
      if (!stored?.snapshot) throw new ApprovalError('unknown', 'there is no approval with this id');
      this.#version = stored.snapshot.version;
      this.#approval = readApprovalText(stored.snapshot.data);
      // Its time is over for every operation.
      const { state, created, until } = this.#approval;
      const late = isLive(state) && !isDuring({ created, until }, now);
      const change: ApprovalChange | undefined = late
        ? { event: 'expire', members: { ended: { at: now } } }
        : operation.run(this.#approval, now);
      if (!change) return this.#done(this.#approval);
      const next = this.#step(this.#approval, change);
      if (!next) throw new ApprovalError('closed', `this approval is ${this.#approval.state} already`);
      this.#store(next, this.#version, change);
    } catch (error) {
      this.#fail(error);
    }
  }

  #step(approval: StoredApproval, { event, members }: ApprovalChange): StoredApproval | undefined {
    if (event === undefined) return { ...approval, ...members };
    const recorder = { inspection: this.#options.system.inspection, actor: this.#self.address };
    const next = step(approvalMachine.at(approval.state), { type: event }, recorder);
    return next && { ...approval, ...members, state: next.path };
  }

  #store(next: StoredApproval, expected: string | undefined, change: ApprovalChange | undefined): void {
    this.#doing = 'store';
    this.#next = next;
    this.#change = change;
    const { store, keptMs, date } = this.#options;
    const snapshot = { version: randomId(), data: textOfApproval(next) };
    const swap = { actor: approvalRow(next, keptMs, date()), snapshot, expected };
    this.#tell(store.swap(swap), (stored) => ({ type: 'swapped', stored }));
  }

  #conflict(): void {
    this.#attempts += 1;
    if (this.#attempts >= ATTEMPTS || (this.#current && 'type' in this.#current))
      return this.#fail(
        new ApprovalError(
          'conflict',
          `other nodes have changed this approval before each of ${ATTEMPTS} attempts. Retry`,
        ),
      );
    this.#doing = 'pause';
    const most = delayAfter(BACK_OFF, this.#attempts);
    this.#options.system.clock.after(randomInt(most + 1), () => this.#self.send({ type: 'again' }));
  }

  #stored(): void {
    const next = this.#next;
    if (!next) return;
    this.#approval = next;
    const expired = this.#change?.event === 'expire';
    this.#options.changed(next, this.#change);
    this.#options.system.inspection.stated(this.#self.address, next.state);
    const operation = this.#current;
    // An operation that came too late learns it from the stored state.
    if (expired && operation && !('type' in operation)) {
      try {
        operation.run(next, this.#options.date());
      } catch (error) {
        return this.#fail(error);
      }
    }
    this.#done(next);
  }

  #done(approval: StoredApproval): void {
    const operation = this.#current;
    this.#end();
    operation?.resolve(approval);
    for (const waiter of this.#waiters) {
      if (isOpen(approval.state) && !waiter.isOver(approval)) continue;
      this.#waiters.delete(waiter);
      waiter.decided(approval);
    }
    this.#begin();
  }

  #fail(error: unknown): void {
    const operation = this.#current;
    this.#end();
    operation?.reject(error);
    if (error instanceof ApprovalError && error.fault === 'unknown') this.#failWaiters(error);
    this.#begin();
  }

  /** Those who wait for a store that fails wait no longer: nothing runs. */
  #failWaiters(error: unknown): void {
    for (const waiter of this.#waiters) waiter.failed(error);
    this.#waiters.clear();
  }

  #end(): void {
    this.#current = undefined;
    this.#next = undefined;
    this.#change = undefined;
    this.#doing = 'rest';
  }

  /** Sets the timer for what may happen without a message, or leaves memory. */
  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#doing !== 'rest' || this.#waiting.length > 0) return;
    const approval = this.#approval;
    const { system, date, pollMs } = this.#options;
    if (!approval || !isLive(approval.state)) {
      if (this.#waiters.size === 0) this.#options.rests();
      return;
    }
    const left = Math.max(0, approval.until - date());
    const ms = pollMs !== undefined && this.#waiters.size > 0 ? Math.min(pollMs, left) : left;
    this.#timer = afterAny(system.clock, ms, () => this.#self.send({ type: 'look' }));
  }

  /** Callers may see it, so it does not name the store. */
  #failureOf(error: unknown): unknown {
    if (!(error instanceof StoreError)) return error;
    const { fault } = error;
    const known = fault === 'busy' || fault === 'closed';
    const incident = known ? undefined : this.#options.system.incident(this.#self.address, error);
    const where = incident === undefined ? '' : ` (incident ${incident}; the server's log has the details)`;
    const what =
      this.#doing === 'store'
        ? fault === 'failed'
          ? 'the store failed, and it is unknown whether the decision was stored. Look at the approval again'
          : 'the store rejected the decision, and nothing was stored'
        : 'the store could not be read, and nothing was changed';
    return new ApprovalError('store', `${what}${where}${fault === 'busy' ? '. Retry' : ''}`, { cause: error });
  }

  #tell<T>(work: Promise<T>, mail: (value: T) => ApprovalMail): void {
    work.then(
      (value) => this.#self.send(mail(value)),
      (error: unknown) => this.#self.send({ type: 'failed', error }),
    );
  }
}
