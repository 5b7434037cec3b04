/** Collects what an instance commits together: history, snapshot, timers, row, and replies for idempotency keys. */
import type { AnyEventObject } from 'xstate';
import { heapBytes } from '../../core/protocol/heap.ts';
import { toText } from '../../core/store/serialize.ts';
import type { DeadLetter, TimerRow, Write } from '../../core/store/store.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import { historyOf, IGNORED } from './event-history.ts';
import type { HandleError } from './handle-error.ts';
import type { HandleView } from './handle-messages.ts';
import { type HandleRecord, isStale, lifetimeOf, rowOf } from './handle-record.ts';
import { planOf } from './instance-schedules.ts';
import type { InstanceServices } from './instance-services.ts';
import type { MachineKind } from './machine-definition.ts';
import type { OutBatch } from './messages/outboxes.ts';
import { readStored, writeStored } from './restore.ts';

/** A call that was served. It is answered once its commit is durable. */
export interface ServedCall {
  readonly call: QueuedCall;
  readonly answer: { readonly view: HandleView } | { readonly refusal: HandleError };
  /** The turn and the events that the machine received; no events if nothing changed. */
  readonly turn: number;
  readonly events: readonly AnyEventObject[];
  /** True for a message of another instance, or a slot of a schedule, that the state does not accept: its event is noted, and changes nothing. */
  readonly ignored?: boolean;
}

/** A change that the instance made without a call. */
export interface OwnChange {
  readonly turn: number;
  readonly kind: 'created' | 'own';
  readonly events: readonly AnyEventObject[];
  /** The reasons of the change, in words. */
  readonly reasons: readonly string[];
}

export interface Commit {
  readonly writes: readonly Write[];
  /** The snapshot among the writes, as text. */
  readonly data: string;
  /** The messages to other instances among the writes. */
  readonly out?: OutBatch | undefined;
}

/**
 * For so many times `graceMs` a node that has lost an answer may repeat its call: for one until it gives up, for another one
 * if the cell moves then, and one for the way.
 */
const REPEATED_GRACES = 3;
/** Number of turns between two trims of the history. */
const TRIM_EVERY = 256;

/**
 * @param turn the last turn of the batch
 * @throws {NotSerializable | Error} for a snapshot that cannot be stored
 */
export function commitOf(
  entry: HandleRecord,
  host: InstanceServices,
  activation: Activation,
  {
    served,
    own,
    turn,
  }: { readonly served: readonly ServedCall[]; readonly own: OwnChange | undefined; readonly turn: number },
): Commit {
  const { id: actor } = entry;
  const { store, limits } = host;
  const data = activation.text(turn);
  const replies = own ? [] : repliesOf(served, host);
  let forgotten: readonly string[] = [];
  // Growth without a call is always accepted, because there is no client to reject.
  if (own?.kind === 'own') entry.footprint.force(activation.bytes);
  else {
    const added = replies.map(({ key, data, expires }) => ({
      key,
      bytes: store.durable ? 0 : heapBytes(data),
      expires,
    }));
    forgotten = host.directory.reserveMemory(entry, activation.bytes, {
      added,
      now: host.date(),
      most: limits.maxRepliesPerSession,
      // Without its reply, a repeated call would run again.
      keptAfter: host.calls ? host.date() + limits.replyTtlMs - REPEATED_GRACES * limits.graceMs : Infinity,
    });
  }
  const writes: Write[] = [{ type: 'snapshot', actor, version: activation.version, data }, ...activation.writes()];
  if (store.durable) {
    const { maxHandleLength, handleJournal } = limits;
    const event = (seq: number, kind: string, events: readonly AnyEventObject[]): Write => {
      return { type: 'event', actor, stream: '', seq, kind, data: historyOf(events, maxHandleLength) };
    };
    if (own) writes.push(event(own.turn, own.kind, own.events));
    for (const { turn: seq, call, events, ignored } of served)
      if (events.length > 0) writes.push(event(seq, ignored ? IGNORED : call.type, events));
    if (turn % TRIM_EVERY === 0 && turn > handleJournal)
      writes.push({ type: 'trim', actor, stream: '', upto: turn - handleJournal });
  }
  for (const { key, data, expires } of replies) writes.push({ type: 'reply', actor, request: key, data, expires });
  // An empty text erases a reply.
  for (const key of forgotten) writes.push({ type: 'reply', actor, request: key, data: '', expires: host.date() });
  const row = rowIfNeeded(entry, host, activation, activation.pending, own?.kind === 'created');
  if (row) writes.unshift(row);
  for (const { call } of served) if (call.type === 'event' && call.message?.writes) writes.push(...call.message.writes);
  // Last, because nothing may fail once the messages are counted.
  const messages = activation.messages.takeWritten();
  const out = messages.length > 0 ? host.outboxes.reserve(entry, messages) : undefined;
  if (out) writes.push(...out.writes);
  return { writes, data, out };
}

interface KeyedReply {
  readonly key: string;
  readonly data: string;
  readonly expires: number;
}

/** The replies of calls with an idempotency key. */
function repliesOf(served: readonly ServedCall[], { limits, date }: InstanceServices): readonly KeyedReply[] {
  return served.flatMap(({ call, answer }) =>
    call.type === 'event' && call.key !== undefined && 'view' in answer
      ? [{ key: call.key, data: toText(answer.view), expires: date() + limits.replyTtlMs }]
      : [],
  );
}

/** Writes the row only if it changes: status, running invocations, what is pending, or lifetime. */
function rowIfNeeded(
  entry: HandleRecord,
  host: InstanceServices,
  activation: Activation,
  continues: boolean,
  created: boolean,
): Write | undefined {
  const { limits } = host;
  const lifetime = lifetimeOf(activation.kind, entry.principal, limits);
  const active = entry.status === 'active';
  const atWork = active && activation.atWork;
  const pending = active && continues;
  // The time without use begins when nothing is pending any more.
  if (entry.pending && !pending) entry.used = Math.max(entry.used, host.date());
  const plan = planOf(activation.kind);
  const same =
    entry.atWork === atWork && entry.pending === pending && entry.plan === plan && entry.written === entry.status;
  entry.atWork = atWork;
  entry.pending = pending;
  entry.plan = plan;
  if (same && !created && !isStale(entry, lifetime, limits)) return undefined;
  return { type: 'actor', actor: rowOf(entry, lifetime, limits) };
}

/** Undoes the last batch: restores the snapshot and the timers from before it. */
export function commitUndone(
  entry: HandleRecord,
  host: InstanceServices,
  activation: Activation,
  before: { readonly stored: string; readonly timers: readonly TimerRow[] },
  turn: number,
  out: OutBatch | undefined,
): Commit & { readonly withdrawal: number } {
  const { id: actor } = entry;
  const withdrawal = out ? activation.messages.next() : 0;
  const data = writeStored({ ...readStored(before.stored, actor), turn, sent: activation.messages.sent });
  const writes: Write[] = [{ type: 'snapshot', actor, version: activation.version, data }];
  const stored = new Set(before.timers.map(({ timer }) => timer));
  for (const { timer } of activation.timerRows())
    if (!stored.has(timer)) writes.push({ type: 'timer off', actor, timer });
  for (const timer of before.timers) writes.push({ type: 'timer', timer });
  if (host.store.durable) writes.push({ type: 'event', actor, stream: '', seq: turn, kind: 'undone', data: 'null' });
  const row = rowIfNeeded(entry, host, activation, before.timers.length > 0 || activation.pending, false);
  if (row) writes.unshift(row);
  if (out) writes.push(...host.outboxes.withdrawal(out, withdrawal));
  return { writes, data, withdrawal };
}

/** Quarantines an instance: stores its last snapshot with the failure, and the dead letter of the mail that caused it. */
export function commitQuarantine(
  entry: HandleRecord,
  host: InstanceServices,
  {
    stored,
    version,
    kind,
  }: { readonly stored: string; readonly version: string; readonly kind: MachineKind | undefined },
  failure: string,
  letter: DeadLetter,
): Commit {
  const { id: actor } = entry;
  const data = writeStored({ ...readStored(stored, actor), failure });
  entry.atWork = false;
  entry.pending = false;
  const lifetime = lifetimeOf(kind, entry.principal, host.limits);
  return {
    data,
    writes: [
      { type: 'actor', actor: rowOf(entry, lifetime, host.limits) },
      { type: 'snapshot', actor, version, data },
      { type: 'dead letter', letter },
    ],
  };
}
