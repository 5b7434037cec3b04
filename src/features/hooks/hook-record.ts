/** A delivery to a webhook in the store: its row, its record, and its body. */
import { isUtf8 } from 'node:buffer';
import type { HookDeliveryState } from '../../../machines/hook-delivery.ts';
import { isObject } from '../../core/protocol/json.ts';
import { isWhole } from '../../core/protocol/option-rows.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { type ActorRow, StoreError, type Write } from '../../core/store/store.ts';
import type { HookContent } from './hook-content.ts';

/** A delivery without its body. */
export interface StoredDelivery {
  /** Its id in the store: a cell and 22 characters. */
  readonly ref: string;
  readonly path: string;
  readonly state: HookDeliveryState;
  readonly id: string;
  readonly key: string;
  readonly type: string | undefined;
  readonly content: HookContent;
  readonly bytes: number;
  /** The time of its arrival, in milliseconds since 1970. */
  readonly at: number;
  /** The number of the attempt that runs, or runs next; in the end, of the last one. */
  readonly attempt: number;
  /** The time of the next attempt, in milliseconds since 1970. */
  readonly due: number;
  /** The message of the error of the last failed attempt. */
  readonly error: string | undefined;
  /** Milliseconds of the last attempt. */
  readonly ms: number | undefined;
  /** The delivery that a person has sent again with this one. */
  readonly resent: string | undefined;
}

/** The part of a row that a list has. */
export interface DeliveryRow {
  readonly ref: string;
  readonly path: string;
  readonly state: HookDeliveryState;
  readonly bytes: number;
  readonly at: number;
}

const PREFIX = 'hook/';
const VERSION = '1';
const BODY = 'body';
/** Milliseconds for which a delivery that is done stays in the store, and a dead one. */
const DONE_MS = 72 * 3_600_000;
const DEAD_MS = 14 * 86_400_000;
/** The same for one that waits: a program may have given up its webhook. */
const WAITING_MS = 30 * 86_400_000;
const ROW_STATUS = /^(waiting|done|dead) (\d{1,9})$/;

export function hookActor(ref: string): string {
  return PREFIX + ref;
}

/** A running delivery is stored as one that waits: who takes it up attempts it again. The status has the size of the body, for lists. */
export function hookRow({ ref, path, state, bytes, at }: DeliveryRow, now: number): ActorRow {
  const shown = state === 'running' ? 'waiting' : state;
  const lastsMs = { waiting: WAITING_MS, done: DONE_MS, dead: DEAD_MS }[shown];
  return {
    ...{ id: hookActor(ref), kind: 'hook', name: path, principal: 'program', status: `${shown} ${bytes}`, created: at },
    expires: now + lastsMs,
  };
}

/** @returns undefined for a row that this version has not written */
export function hookRowIn({ id, name, status, created }: ActorRow): DeliveryRow | undefined {
  const [, state, bytes] = ROW_STATUS.exec(status) ?? [];
  if (state !== 'waiting' && state !== 'done' && state !== 'dead') return undefined;
  return { ref: id.slice(PREFIX.length), path: name, state, bytes: Number(bytes), at: created };
}

/** The change of a delivery. */
export function stateWrites(delivery: StoredDelivery, now: number): readonly Write[] {
  const { ref, path: _path, state: _state, bytes: _bytes, at: _at, ...rest } = delivery;
  return [
    { type: 'actor', actor: hookRow(delivery, now) },
    { type: 'snapshot', actor: hookActor(ref), version: VERSION, data: toText(rest) },
  ];
}

/** A new delivery with its body, which is text in the store if it can be. */
export function newWrites(delivery: StoredDelivery, body: Uint8Array, now: number): readonly Write[] {
  const buffer = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // A database stores no NUL in a text.
  const kind = isUtf8(body) && !body.includes(0) ? 'utf8' : 'base64';
  const event = { stream: BODY, seq: 1, kind, data: buffer.toString(kind) };
  return [...stateWrites(delivery, now), { type: 'event', actor: hookActor(delivery.ref), ...event }];
}

/** Returns the place of the body of a delivery. */
export function bodyPlace(ref: string): readonly [actor: string, stream: string, after: number, limit: number] {
  return [hookActor(ref), BODY, 0, 1];
}

export function bodyIn({ kind, data }: { readonly kind: string; readonly data: string }): Buffer {
  return Buffer.from(data, kind === 'base64' ? 'base64' : 'utf8');
}

/** @throws {StoreError} `corrupt` */
export function readDelivery(row: DeliveryRow, snapshot: { readonly data: string } | undefined): StoredDelivery {
  const what = hookActor(row.ref);
  const value = snapshot ? fromText(snapshot.data, what) : undefined;
  if (!isObject(value)) throw new StoreError('corrupt', `${what}: expected a delivery, got something else`);
  const { id, key, type, content, attempt, due, error, ms, resent } = value;
  const text = (given: unknown): string | undefined => (typeof given === 'string' ? given : undefined);
  const known = content === 'json' || content === 'form' || content === 'text' || content === 'bytes';
  if (typeof id !== 'string' || typeof key !== 'string' || !known || !isWhole(attempt, 1) || !isWhole(due, 0))
    throw new StoreError('corrupt', `${what}: expected a delivery, got something else`);
  return {
    ...row,
    ...{ id, key, content, attempt, due },
    ...{ type: text(type), error: text(error), resent: text(resent), ms: isWhole(ms, 0) ? ms : undefined },
  };
}
