/**
 * Message rows in the order of the stream: one row for each message to an actor, wire message, event, emitted event and
 * crash.
 */
import type { ActorKind, Plain, TraceRecord } from '../frames.ts';
import { member, textOfValue } from './plain-values.ts';
import { wireMessages } from './wire-exchange.ts';

export interface MessageRow {
  readonly seq: number;
  readonly at: number;
  /** The actor of the causing record, or its lane; `client` for the wire. Absent: unknown. */
  readonly from?: string;
  /** The receiver, or its lane; `client` for messages to the client. */
  readonly to: string;
  /** The type of the message, or the method. */
  readonly name: string;
  /** `event`: sent to a statechart. */
  readonly kind: 'mail' | 'wire' | 'event' | 'emit' | 'crash' | 'control';
  readonly mark?: 'unhandled' | 'dropped' | 'queued' | 'crashed';
}

/** The other end of the wire. */
export const CLIENT = 'client';

/** The beginning of the lane of a server behind a mount. */
export const UPSTREAM = 'upstream ';

/** Facts from outside of a record: its sender, the actor of a connection, and the lifetimes of actors. */
interface Around {
  /** The sender of the causing record. */
  readonly sender: string | undefined;
  door(connection: string): string;
  /** The lane of the other end of a connection. */
  far(connection: string): string;
  alive(actor: string): boolean;
  /** True if its statechart is an author's. Troupe's own charts ignore other events on purpose. */
  authored(actor: string): boolean;
}

export function messageRow(
  record: TraceRecord,
  { sender, door, far, alive, authored }: Around,
): MessageRow | undefined {
  const { seq, at } = record;
  const from = sender === undefined ? {} : { from: sender };
  switch (record.type) {
    case 'mail': {
      const fate = record.fate ?? (alive(record.actor) ? undefined : 'dropped');
      const mark = fate === undefined ? {} : { mark: fate };
      return { seq, at, ...from, to: record.actor, name: record.name, kind: 'mail', ...mark };
    }
    case 'wire': {
      const name = wireName(record.message, record.text);
      const inside = door(record.connection);
      return record.direction === 'in'
        ? { seq, at, from: far(record.connection), to: inside, name, kind: 'wire' }
        : { seq, at, from: sender ?? inside, to: far(record.connection), name, kind: 'wire' };
    }
    case 'step': {
      const mark = record.handled || !authored(record.actor) ? {} : { mark: 'unhandled' as const };
      return { seq, at, ...from, to: record.actor, name: record.event, kind: 'event', ...mark };
    }
    case 'emit':
      return { seq, at, from: record.actor, to: sender ?? record.actor, name: record.event, kind: 'emit' };
    case 'crashed':
      return { seq, at, ...from, to: record.actor, name: record.mail, kind: 'crash', mark: 'crashed' };
    case 'control':
      return { seq, at, from: CLIENT, to: controlled(record.data), name: record.action, kind: 'control' };
    default:
      return undefined;
  }
}

/** The actor that was active when it caused a record: the record's sender. */
export function actorOf(record: TraceRecord): string | undefined {
  return 'actor' in record ? record.actor : CLIENT;
}

function wireName(message: Plain | undefined, unread: string | undefined): string {
  if (message === undefined) return `not JSON: ${(unread ?? '').slice(0, 40)}`;
  const all = wireMessages(message);
  const [first] = all;
  if (!first) return 'an empty batch';
  const more = all.length > 1 ? ` and ${all.length - 1} more` : '';
  if (first.kind === 'request' || first.kind === 'notification') return `${first.method}${more}`;
  if (first.kind === 'unreadable') return `not a message${more}`;
  const failed = member(first.message, 'error', 'code');
  return `${failed === undefined ? 'result' : `error ${String(failed)}`}${more}`;
}

function controlled(data: Plain): string {
  return textOfValue(member(data, 'actor')) ?? textOfValue(member(data, 'connection')) ?? 'server';
}

/** True if actors of that kind have a statechart of an author. */
export function isAuthored(kind: ActorKind): boolean {
  return kind === 'handle' || kind === 'machine' || kind === 'invoked';
}

/** True if actors of that kind are part of every server and seldom of interest. */
export function isMachinery(kind: ActorKind): boolean {
  return ['requests', 'emitter', 'registry', 'executor', 'subscriptions'].includes(kind);
}
