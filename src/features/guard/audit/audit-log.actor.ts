/** The audit log actor: writes a record of each event that is audited, counts repeated rejections, and reports lost records. */
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../../../core/kernel/actor.ts';
import { isoOf, type Timer } from '../../../core/kernel/clock.ts';
import type { Facts } from '../../../core/kernel/inspection/records.ts';
import { nodeName } from '../../../core/kernel/node-name.ts';
import { errorFields } from '../../../core/kernel/operator-log.ts';
import { sha256 } from '../../../core/kernel/sha256.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import { messageOf, shortened } from '../../../core/protocol/json.ts';
import { viaOf } from '../../../core/requests/inner-requests.ts';
import type { AuditDestination } from './audit-file.ts';
import type { AuditCaller, AuditedCall, AuditMail, AuditStored } from './audit-messages.ts';
import type { AuditEvent, AuditRecord } from './audit-record.ts';

interface AuditLogOptions {
  readonly system: ActorSystem;
  readonly events: ReadonlySet<AuditEvent>;
  readonly destination: AuditDestination;
}

/** Maximum number of records that wait for the destination. Further ones are lost, and the calls that need them are rejected. */
const MAX_WAITING = 10_000;
/** Milliseconds in which equal rejections of one principal make one record. */
const WINDOW_MS = 10_000;
/** Maximum number of rejections that are counted at a time. Beyond, the oldest is written early. */
const MAX_WINDOWS = 10_000;
/** Milliseconds between two log messages about lost records. */
const REPORT_MS = 60_000;
/** Longest name of a client, in characters. */
const MAX_NAME = 100;
/** Longest name of an element and reason of a rule: both may contain what a client has sent. */
const MAX_ELEMENT = 500;

/** Equal rejections of one principal since the last record of them. */
interface Window {
  /** Without its time. */
  readonly record: RecordMembers;
  readonly until: number;
  count: number;
}

type RecordMembers = Omit<AuditRecord, 'at' | 'node'>;

/** Records that the destination stores together. */
interface Batch {
  readonly promise: Promise<void>;
  records: number;
  readonly stored: Mailbox<AuditStored>[];
}

export function spawnAuditLog(options: AuditLogOptions): Actor<AuditMail> {
  return spawn({ kind: 'audit', address: 'audit' }, options.system, (self) => new AuditLog(options, self));
}

class AuditLog implements Behaviour<AuditMail> {
  /** Never quarantined: nothing else could write the records. */
  readonly policy = { restarts: Number.POSITIVE_INFINITY, windowMs: 1 };
  readonly #options: AuditLogOptions;
  readonly #self: Mailbox<AuditMail>;
  readonly #node = nodeName();
  /** Rejections by principal, element and rule; the earliest window first. */
  readonly #windows = new Map<string, Window>();
  #timer: Timer | undefined;
  #waiting = 0;
  #date = Number.NaN;
  #at = '';
  #batch: Batch | undefined;
  /** Records that were lost since the last `lost` record. */
  #lost = 0;
  #reported = Number.NEGATIVE_INFINITY;
  /** Receivers that wait until nothing is being written. */
  #flushing: Mailbox<AuditStored>[] = [];

  constructor(options: AuditLogOptions, self: Mailbox<AuditMail>) {
    this.#options = options;
    this.#self = self;
  }

  state(): string {
    return this.#waiting === 0 ? 'idle' : `writing (${this.#waiting})`;
  }

  facts(): Facts {
    return { waiting: this.#waiting, counted: this.#windows.size, lost: this.#lost };
  }

  receive(mail: AuditMail): void {
    switch (mail.type) {
      case 'denied': {
        const { rule, scopesHad, scopesNeeded, incident } = mail;
        return this.#rejected({
          event: 'denied',
          ...about(mail),
          decision: 'denied',
          ...(rule === undefined ? {} : { rule: shortened(rule, MAX_ELEMENT) }),
          ...(scopesHad === undefined ? {} : { scopesHad }),
          ...(scopesNeeded === undefined ? {} : { scopesNeeded }),
          ...(incident === undefined ? {} : { incident }),
        });
      }
      case 'limited':
        return this.#rejected({ event: 'limited', ...about(mail), decision: 'limited', rule: mail.rule });
      case 'call started':
        return this.#write(
          { event: 'call', ...ofCall(mail.call), decision: 'allowed', outcome: 'started' },
          mail.stored,
        );
      case 'call ended': {
        const { call, event, outcome, errorType, incident, ms } = mail;
        return this.#event({
          event,
          ...ofCall(call),
          decision: 'allowed',
          outcome,
          ...(errorType === undefined ? {} : { errorType }),
          ...(incident === undefined ? {} : { incident }),
          ...(ms === undefined ? {} : { ms }),
        });
      }
      case 'session opened':
        return this.#event({ event: 'session opened', ...caller(mail.by) });
      case 'session ended':
        return this.#event({ event: 'session ended', ...caller(mail.by), outcome: mail.reason });
      case 'asked':
        return this.#event({ event: 'asked', ...about(mail), question: mail.question, from: mail.from });
      case 'answered': {
        const { question, from, outcome } = mail;
        return this.#event({ event: 'answered', ...about(mail), question, from, outcome });
      }
      case 'approval': {
        const { outcome, approval, binding, rule, approver, via } = mail;
        return this.#event({
          ...{ event: 'approval', ...about(mail), outcome, approval, binding, rule: shortened(rule, MAX_ELEMENT) },
          ...(approver === undefined ? {} : { approver }),
          ...(via === undefined ? {} : { via }),
        });
      }
      case 'dead letter':
        return this.#event({ event: 'dead letter', element: mail.element, incident: mail.incident });
      case 'control': {
        const { action, element, principal } = mail;
        return this.#event({
          event: 'control',
          ...(principal === undefined ? {} : { principal }),
          ...(element === undefined ? {} : { element }),
          outcome: action,
        });
      }
      case 'started':
        return this.#event({ event: 'started' });
      case 'stopped':
        return this.#event({ event: 'stopped', outcome: mail.reason });
      case 'window over':
        return this.#closeWindows(this.#options.system.clock.now());
      case 'written':
        return this.#written(mail);
      case 'flush':
        this.#closeWindows(Number.POSITIVE_INFINITY);
        this.#options.destination.flush?.();
        if (this.#waiting === 0) mail.stored.send({ type: 'stored', error: undefined });
        else this.#flushing.push(mail.stored);
    }
  }

  crashed(mail: AuditMail, error: unknown): void {
    this.#options.system.incident('the audit log', error);
    if ('stored' in mail) mail.stored.send({ type: 'stored', error });
    this.#lost += 1;
  }

  #event(record: RecordMembers): void {
    if (this.#options.events.has(record.event)) this.#write(record);
  }

  /** Writes the first of equal rejections at once, and counts the others until their window is over. */
  #rejected(record: RecordMembers): void {
    if (!this.#options.events.has(record.event)) return;
    const { clock } = this.#options.system;
    const { event, principal, element, rule, scopesNeeded, remoteAddress } = record;
    const key = [event, principal, element, rule, scopesNeeded?.join(' '), remoteAddress].join('\n');
    const open = this.#windows.get(key);
    if (open) {
      open.count += 1;
      return;
    }
    this.#write(record);
    if (this.#windows.size >= MAX_WINDOWS)
      for (const [first] of this.#windows) return this.#replace(first, key, record);
    this.#windows.set(key, { record, until: clock.now() + WINDOW_MS, count: 0 });
    this.#watch();
  }

  /** Starts the timer for the end of the earliest window. */
  #watch(): void {
    const [earliest] = this.#windows.values();
    if (this.#timer || !earliest) return;
    const { clock } = this.#options.system;
    this.#timer = clock.after(earliest.until - clock.now(), () => this.#self.send({ type: 'window over' }));
  }

  #replace(first: string, key: string, record: RecordMembers): void {
    const window = this.#windows.get(first);
    this.#windows.delete(first);
    if (window) this.#writeCount(window);
    this.#windows.set(key, { record, until: this.#options.system.clock.now() + WINDOW_MS, count: 0 });
  }

  /** Writes the counts of the windows that are over. A rejection that continues has a new window. */
  #closeWindows(now: number): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const [key, window] of [...this.#windows]) {
      if (window.until > now) break;
      this.#windows.delete(key);
      if (window.count === 0) continue;
      this.#writeCount(window);
      if (now !== Number.POSITIVE_INFINITY)
        this.#windows.set(key, { record: window.record, until: now + WINDOW_MS, count: 0 });
    }
    this.#watch();
  }

  #writeCount({ record, count }: Window): void {
    if (count > 0) this.#write(count === 1 ? record : { ...record, count });
  }

  #write(members: RecordMembers, stored?: Mailbox<AuditStored>): void {
    const { system, destination } = this.#options;
    if (this.#waiting >= MAX_WAITING) {
      const error = new Error(`${MAX_WAITING} records wait for the destination of the audit log`);
      if (!stored) return this.#lose(1, error);
      return stored.send({ type: 'stored', error });
    }
    const promise = destination.write(
      { at: this.#time(system.clock.date()), node: this.#node, ...members },
      stored !== undefined,
    );
    this.#waiting += 1;
    if (this.#batch?.promise === promise) {
      this.#batch.records += 1;
      if (stored) this.#batch.stored.push(stored);
      return;
    }
    const batch: Batch = { promise, records: 1, stored: stored ? [stored] : [] };
    this.#batch = batch;
    const written = (error: unknown): void => {
      if (this.#batch === batch) this.#batch = undefined;
      // The start of a call that is rejected for it is not lost.
      this.#self.send({ type: 'written', count: batch.records, lost: batch.records - batch.stored.length, error });
      for (const waiting of batch.stored) waiting.send({ type: 'stored', error });
    };
    promise.then(
      () => written(undefined),
      (error: unknown) => written(error ?? new Error('the destination of the audit log failed')),
    );
  }

  /** ISO 8601. Many records have the same millisecond. */
  #time(date: number): string {
    if (date === this.#date) return this.#at;
    this.#date = date;
    this.#at = isoOf(date);
    return this.#at;
  }

  #written({ count, lost, error }: Extract<AuditMail, { type: 'written' }>): void {
    this.#waiting -= count;
    if (error !== undefined && lost > 0) this.#lose(lost, error);
    else if (error === undefined && this.#lost > 0) {
      const all = this.#lost;
      this.#lost = 0;
      this.#write({ event: 'lost', count: all });
    }
    if (this.#waiting > 0) return;
    for (const waiting of this.#flushing.splice(0)) waiting.send({ type: 'stored', error: undefined });
  }

  #lose(count: number, error: unknown): void {
    const { clock, log } = this.#options.system;
    this.#lost += count;
    const now = clock.now();
    if (now - this.#reported < REPORT_MS) return;
    this.#reported = now;
    log('error', `the audit log lost ${this.#lost} records: ${messageOf(error)}`, errorFields('audit', error));
  }
}

type Person = Pick<AuditRecord, 'principal' | 'client' | 'session'>;

function caller({ principal, info, session }: AuditCaller): Person {
  return {
    principal,
    ...(info === undefined ? {} : { client: nameOf(info) }),
    ...(session === undefined ? {} : { session: digestOf(session) }),
  };
}

const DIGESTS = new WeakMap<object, string>();

/** The digest of a session's id. */
function digestOf(session: { readonly id: string }): string {
  const known = DIGESTS.get(session);
  if (known !== undefined) return known;
  const digest = sha256(session.id);
  DIGESTS.set(session, digest);
  return digest;
}

function nameOf({ name, version }: NonNullable<AuditCaller['info']>): string {
  return shortened(version === undefined ? name : `${name} ${version}`, MAX_NAME);
}

interface About extends Omit<AuditedCall, 'element' | 'argumentsDigest'> {
  readonly element?: string | undefined;
}

function about({ by, element, request, ...more }: About): Omit<RecordMembers, 'event'> {
  const traceId = request && traceOf(request);
  const via = request && viaOf(request);
  const { remoteAddress = request?.exchange?.incoming.remoteAddress } = more;
  return {
    ...caller(by),
    ...(element === undefined ? {} : { element: shortened(element, MAX_ELEMENT) }),
    ...(traceId === undefined ? {} : { traceId }),
    ...(via === undefined ? {} : { run: `${via.run}/${via.call}` }),
    ...(remoteAddress === undefined ? {} : { remoteAddress }),
  };
}

function ofCall(audited: AuditedCall): Omit<RecordMembers, 'event'> {
  const { call, argumentsDigest, arguments: args } = audited;
  return {
    ...about(audited),
    argumentsDigest,
    ...(args === undefined ? {} : { arguments: args }),
    ...(call === undefined ? {} : { call }),
  };
}

/** The trace of a request: that of its span; without one, that of the client. */
function traceOf({ exchange, meta, span }: NonNullable<About['request']>): string | undefined {
  const own = traceIdOf(span?.traceparent);
  return own ?? traceIdOf(meta?.traceparent) ?? traceIdOf(exchange?.incoming.header('traceparent'));
}

/** The trace id of a `traceparent` (W3C Trace Context). Other text may be a secret that a client put there. */
function traceIdOf(traceparent: unknown): string | undefined {
  if (typeof traceparent !== 'string') return undefined;
  return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent)?.[1];
}
