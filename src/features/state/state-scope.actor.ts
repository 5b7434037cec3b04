/**
 * The scope actor: runs the operations on the values of one principal or session in order, and stores them together. Another node
 * may change the scope at the same time: the store then rejects the snapshot, and the operations run again on the newer one.
 */
import { randomInt } from 'node:crypto';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../../core/kernel/actor.ts';
import { delayAfter } from '../../core/kernel/back-off.ts';
import type { Timer } from '../../core/kernel/clock.ts';
import type { Facts } from '../../core/kernel/inspection/records.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import { type ActorRow, type Store, type Stored, StoreError } from '../../core/store/store.ts';
import { readDocument, ScopeDocument, type ScopeLimits } from './scope-document.ts';
import { StateError } from './state-error.ts';
import type { ScopeMail, ScopeOwner, StateOperation } from './state-messages.ts';

interface ScopeOptions {
  readonly system: ActorSystem;
  readonly store: Store;
  readonly owner: ScopeOwner;
  readonly limits: ScopeLimits & { readonly stateIdleMs: number; readonly stateSessionIdleMs: number };
  readonly scopes: ScopeTable;
}

/** The table of the scopes of a process, as one of them sees it. */
export interface ScopeTable {
  /** Counts a scope that the store has not yet. @returns the exceeded limit, or undefined */
  counts(owner: ScopeOwner): Promise<string | undefined>;
  /** The scope was stored with so many bytes. @param created it is new */
  stored(owner: ScopeOwner, bytes: number, expires: number, created: boolean): void;
  /** Checks the memory for a scope of so many bytes. @returns the exceeded limit, or undefined */
  fits(owner: ScopeOwner, bytes: number): string | undefined;
  /** The actor rests: it leaves memory. */
  rests(owner: ScopeOwner): void;
}

/** Maximum number of operations that wait for one scope. */
const MAX_WAITING = 1_000;
/** Maximum number of bytes of values that wait, in times of what the scope may have. */
const MAX_WAITING_TIMES = 4;
/** Attempts to store a change while other nodes change the scope. */
const ATTEMPTS = 16;
/** Milliseconds before an attempt, at most: doubled with each. */
const BACK_OFF = { fromMs: 1, toMs: 64 };
/** Milliseconds for which a scope without operations stays in memory while an inspector shows it. */
const REST_MS = 600_000;
/** Milliseconds for which an empty scope stays in the store, so that a change of another node finds its version. */
const EMPTY_MS = 60_000;
/** A read renews the time of a scope when this part of it has passed. */
const RENEWED_PART = 16;
/** Maximum number of keys that the inspector shows. */
const MAX_LISTED = 100;

interface Outcome {
  readonly operation: StateOperation;
  /** Undefined if it has succeeded. */
  readonly failure: { readonly error: unknown } | undefined;
  readonly changed: boolean;
}

export function spawnScope(options: ScopeOptions): Actor<ScopeMail> {
  const { id, kind, principal } = options.owner;
  const identity = {
    kind: 'state',
    address: id,
    label: kind === 'principal' ? principal : `session of ${principal}`,
  } as const;
  return spawn(identity, options.system, (self) => new StateScope(options, self));
}

class StateScope implements Behaviour<ScopeMail> {
  readonly #options: ScopeOptions;
  readonly #self: Mailbox<ScopeMail>;
  #waiting: StateOperation[] = [];
  #waitingBytes = 0;
  /** The operations that run now. */
  #batch: readonly StateOperation[] = [];
  #doing: 'rest' | 'load' | 'count' | 'store' | 'pause' = 'rest';
  #stored: Stored | undefined;
  #document = new ScopeDocument();
  #outcomes: readonly Outcome[] = [];
  #renews = false;
  #expires = 0;
  #attempts = 0;
  #rest: Timer | undefined;
  #conflicts = 0;
  /** The sizes of its values, for the inspector. */
  #seen: Facts = {};

  constructor(options: ScopeOptions, self: Mailbox<ScopeMail>) {
    this.#options = options;
    this.#self = self;
  }

  state(): string {
    const { length } = this.#waiting;
    return length === 0 ? this.#doing : `${this.#doing} (${length} waiting)`;
  }

  /** Sizes, and no values. */
  facts(): Facts {
    const { kind, principal } = this.#options.owner;
    return { scope: kind, principal, conflicts: this.#conflicts, ...this.#seen };
  }

  receive(mail: ScopeMail): void {
    switch (mail.type) {
      case 'operate':
        return this.#operate(mail.operation);
      case 'loaded':
        return this.#loaded(mail.stored);
      case 'counted':
        return mail.excess === undefined ? this.#store() : this.#full(mail.excess);
      case 'swapped':
        return mail.stored ? this.#done() : this.#conflict();
      case 'failed':
        return this.#failed(mail.error);
      case 'again':
        return this.#load();
      case 'rest':
        if (this.#doing === 'rest') this.#options.scopes.rests(this.#options.owner);
    }
  }

  crashed(mail: ScopeMail, error: unknown): void {
    this.#options.system.incident(this.#options.owner.id, error);
    if (mail.type === 'operate') mail.operation.reject(error);
    else this.#reject(error);
  }

  get #idleMs(): number {
    const { limits, owner } = this.#options;
    return owner.kind === 'session' ? limits.stateSessionIdleMs : limits.stateIdleMs;
  }

  #operate(operation: StateOperation): void {
    const { maxStateBytes } = this.#options.limits;
    const most = maxStateBytes * MAX_WAITING_TIMES;
    if (this.#waiting.length >= MAX_WAITING || this.#waitingBytes + operation.bytes > most) {
      const what = this.#waiting.length >= MAX_WAITING ? `${MAX_WAITING} operations` : `${most} bytes`;
      const message = `${what} wait for this scope. Await each call of ctx.state, and retry this one later`;
      return operation.reject(new StateError('busy', message));
    }
    this.#waiting.push(operation);
    this.#waitingBytes += operation.bytes;
    if (this.#doing === 'rest') this.#begin();
  }

  #begin(): void {
    this.#rest?.cancel();
    this.#rest = undefined;
    this.#batch = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#attempts = 0;
    this.#load();
  }

  #load(): void {
    this.#doing = 'load';
    this.#outcomes = [];
    const { store, owner } = this.#options;
    this.#tell(store.load(owner.id), (stored) => ({ type: 'loaded', stored }));
  }

  #loaded(stored: Stored | undefined): void {
    const { system, scopes, owner } = this.#options;
    const now = system.clock.date();
    this.#stored = stored;
    const expired = stored?.actor.expires !== undefined && stored.actor.expires <= now;
    try {
      this.#document = stored?.snapshot && !expired ? readDocument(stored.snapshot.data, now) : new ScopeDocument();
    } catch (error) {
      const [first] = this.#batch;
      if (!first?.clears) return this.#failed(error);
      this.#document = new ScopeDocument(undefined, true);
    }
    this.#run(now);
    const { changes, size, bytes } = this.#document;
    const left = (stored?.actor.expires ?? now) - now;
    this.#renews = changes === 0 && size > 0 && left < this.#idleMs - this.#idleMs / RENEWED_PART;
    if (changes === 0 && !this.#renews) return this.#done();
    const excess = scopes.fits(owner, bytes);
    if (excess !== undefined) return this.#full(excess);
    if (stored) return this.#store();
    this.#doing = 'count';
    this.#tell(scopes.counts(owner), (excess) => ({ type: 'counted', excess }));
  }

  #run(now: number): void {
    this.#outcomes = this.#batch.map((operation) => {
      const was = this.#document.changes;
      try {
        operation.run(this.#document, now);
        return { operation, failure: undefined, changed: this.#document.changes > was };
      } catch (error) {
        return { operation, failure: { error }, changed: false };
      }
    });
  }

  #store(): void {
    this.#doing = 'store';
    const { store, owner, system } = this.#options;
    const now = system.clock.date();
    this.#expires = now + (this.#document.size === 0 ? EMPTY_MS : this.#idleMs);
    const actor: ActorRow = {
      ...{ id: owner.id, kind: 'state', name: owner.kind, principal: owner.principal, status: '' },
      ...{ created: this.#stored?.actor.created ?? now, expires: this.#expires },
    };
    const snapshot = { version: randomId(), data: this.#document.toText() };
    const swap = { actor, snapshot, expected: this.#stored?.snapshot?.version };
    this.#tell(store.swap(swap), (stored) => ({ type: 'swapped', stored }));
  }

  #conflict(): void {
    this.#conflicts += 1;
    this.#attempts += 1;
    // No operation waits for the renewal.
    if (this.#renews) return this.#done();
    if (this.#attempts >= ATTEMPTS) {
      const message = `other nodes have changed this scope before each of ${ATTEMPTS} attempts. Nothing was stored. Retry, or change it less often`;
      return this.#reject(new StateError('conflict', message));
    }
    this.#doing = 'pause';
    const most = delayAfter(BACK_OFF, this.#attempts);
    this.#options.system.clock.after(randomInt(most + 1), () => this.#self.send({ type: 'again' }));
  }

  /** A limit of all scopes is reached. */
  #full(excess: string): void {
    if (this.#renews) return this.#done();
    this.#reject(new StateError('limit', `${excess}. Nothing was stored`));
  }

  #failed(error: unknown): void {
    if (this.#renews && this.#doing === 'store') return this.#done();
    this.#reject(this.#failureOf(error));
  }

  /** Clients may see it, so it does not name the store. */
  #failureOf(error: unknown): unknown {
    if (!(error instanceof StoreError)) return error;
    const { fault } = error;
    const reading = this.#doing !== 'store';
    const incident =
      fault === 'busy' || fault === 'closed' ? undefined : this.#options.system.incident(this.#options.owner.id, error);
    const where = incident === undefined ? '' : ` (incident ${incident}; the server's log has the details)`;
    const what = reading
      ? 'the store could not be read, and nothing was changed'
      : fault === 'failed'
        ? 'the store failed, and it is unknown whether the change was stored. Read the value again'
        : 'the store rejected the change, and nothing was stored';
    return new StateError('store', `${what}${where}${fault === 'busy' ? '. Retry' : ''}`, { cause: error });
  }

  /** The changes are stored, or there are none. */
  #done(): void {
    const { scopes, owner, system } = this.#options;
    if (this.#doing === 'store' && this.#outcomes.length > 0)
      scopes.stored(owner, this.#document.bytes, this.#expires, this.#stored === undefined);
    if (system.inspection.on) this.#seen = seenOf(this.#document);
    const outcomes = this.#outcomes;
    this.#end();
    for (const outcome of outcomes) settle(outcome);
    this.#next();
  }

  /** The changes are not stored: what ran after one of them, and has changed nothing, has seen it, and runs again. */
  #reject(error: unknown): void {
    const outcomes = this.#outcomes;
    const batch = this.#batch;
    this.#end();
    if (outcomes.length === 0) for (const operation of batch) operation.reject(error);
    const again: StateOperation[] = [];
    let isChanged = false;
    for (const outcome of outcomes) {
      if (outcome.changed) outcome.operation.reject(error);
      else if (isChanged) again.push(outcome.operation);
      else settle(outcome);
      isChanged ||= outcome.changed;
    }
    this.#waiting = [...again, ...this.#waiting];
    this.#next();
  }

  #end(): void {
    this.#batch = [];
    this.#outcomes = [];
    this.#stored = undefined;
    // It may be as large as the scope.
    this.#document = new ScopeDocument();
    this.#renews = false;
    this.#doing = 'rest';
  }

  #next(): void {
    if (this.#waiting.length > 0) return this.#begin();
    const { system, scopes, owner } = this.#options;
    if (!system.inspection.on) return scopes.rests(owner);
    this.#rest = system.clock.after(REST_MS, () => this.#self.send({ type: 'rest' }));
  }

  #tell<T>(work: Promise<T>, mail: (value: T) => ScopeMail): void {
    work.then(
      (value) => this.#self.send(mail(value)),
      (error: unknown) => this.#self.send({ type: 'failed', error }),
    );
  }
}

function seenOf(document: ScopeDocument): Facts {
  const keys = document.list();
  return {
    keys: keys.length,
    bytes: document.bytes,
    values: keys.slice(0, MAX_LISTED).map(({ key, bytes, expires }) => ({ key, bytes, ...(expires && { expires }) })),
  };
}

function settle({ operation, failure }: Outcome): void {
  if (failure) operation.reject(failure.error);
  else operation.resolve();
}
