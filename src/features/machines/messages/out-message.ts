/** The messages of an instance to others, and their rows in the store: one stream for each target, so that each is in order and is trimmed alone. */
import { sha256 } from '../../../core/kernel/sha256.ts';
import { isJsonObject, isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import { type DeadLetter, type JournalEvent, OUT_STREAMS, StoreError, type Write } from '../../../core/store/store.ts';

/** The target of a message. Each kind has one function that delivers to it. */
export type MessageTarget =
  /** `key`: of its instance; for a machine without keys, the id of a handle. */
  | { readonly kind: 'instance'; readonly machine: string; readonly key: string }
  /** A topic of events. `owner`: the only principal that may get the event; undefined for all. */
  | { readonly kind: 'topic'; readonly name: string; readonly owner?: string };

/** A message that an instance has written in the commit of a turn. */
export interface OutMessage {
  /** Unique: the handle of its sender, and its number. */
  readonly id: string;
  readonly sender: Sender;
  /** Increases with each message of its sender. */
  readonly seq: number;
  readonly to: MessageTarget;
  readonly body: JsonObject;
  /** The length of the chain of messages that has led to it, which is at least 1. */
  readonly hops: number;
  /** When it was written, in milliseconds since 1970. */
  readonly at: number;
  /** Its length in the store, in characters. */
  readonly length: number;
}

/** The instance that has sent a message. */
export interface Sender {
  readonly machine: string;
  readonly handle: string;
  /** Its key, if it has one. */
  readonly key?: string | undefined;
  /** Its owner. */
  readonly principal: string;
}

/** A message before it has a place in an outbox. */
export type NewMessage = Pick<OutMessage, 'seq' | 'to' | 'body' | 'hops'>;

/** The timer of an instance with messages: it restarts the forwarder when its cell is taken up. */
export const OUT_TIMER = 'out';
/** The row that withdraws earlier messages, because their event was undone. */
const UNDONE = 'undone';
const TELL = 'tell';
const LETTER = `{"type":"${TELL}"`;

/** The stream of the messages to one target. */
export function streamOf(to: MessageTarget): string {
  return `${OUT_STREAMS}${sha256(to.kind === 'instance' ? `${to.machine} ${to.key}` : `topic ${to.name}`).slice(0, 22)}`;
}

export function messageId({ handle }: Pick<Sender, 'handle'>, seq: number): string {
  return `${handle}.${seq}`;
}

/** Creates a message, and its row. */
export function written(
  actor: string,
  sender: Sender,
  { seq, to, body, hops }: NewMessage,
  at: number,
): { readonly message: OutMessage; readonly row: Write } {
  const data = toText({ to, body, hops, at, key: sender.key });
  return {
    message: { id: messageId(sender, seq), sender, seq, to, body, hops, at, length: data.length },
    row: { type: 'event', actor, stream: streamOf(to), seq, kind: to.kind, data },
  };
}

/** The row that withdraws messages to one target. @param seq above theirs */
export function undoneRow(actor: string, stream: string, seq: number, withdrawn: readonly number[]): Write {
  return { type: 'event', actor, stream, seq, kind: UNDONE, data: toText(withdrawn) };
}

/**
 * Reads the messages of one stream, without those that were withdrawn.
 *
 * @throws {StoreError} `corrupt` for rows that this module did not write
 */
export function messagesIn(sender: Sender, rows: readonly JournalEvent[]): readonly OutMessage[] {
  const withdrawn = new Set<unknown>();
  for (const { kind, data, stream } of rows) {
    const seqs = kind === UNDONE ? fromText(data, stream) : undefined;
    if (Array.isArray(seqs)) for (const seq of seqs) withdrawn.add(seq);
  }
  return rows.flatMap((row) => (row.kind === UNDONE || withdrawn.has(row.seq) ? [] : [messageOfRow(sender, row)]));
}

function messageOfRow(sender: Sender, { seq, stream, data }: JournalEvent): OutMessage {
  const value = fromText(data, stream);
  if (isObject(value)) {
    const { to, body, hops, at, key } = value;
    const from = { ...sender, key: typeof key === 'string' ? key : undefined };
    if (isTarget(to) && isJsonObject(body) && typeof hops === 'number' && typeof at === 'number')
      return { id: messageId(sender, seq), sender: from, seq, to, body, hops, at, length: data.length };
  }
  throw new StoreError('corrupt', `${stream}: expected a message, got ${data.slice(0, 80)}`);
}

/** The message of a dead letter, as an operator reads it, and as {@link messageOfLetter} does. */
export function letterText({ id, sender, to, body, hops, at }: OutMessage): string {
  return toText({ type: TELL, to, body, sender, hops, id, at });
}

/**
 * The message of a dead letter, as a new one of its sender that a receiver takes once; undefined for another letter.
 *
 * @throws {StoreError} `corrupt`
 */
export function messageOfLetter({ mail, incident }: DeadLetter): OutMessage | undefined {
  const value = mail.startsWith(LETTER) ? fromText(mail, 'a dead letter') : undefined;
  if (!isObject(value)) return undefined;
  const { to, body, sender, hops, id, at } = value;
  const isMessage = isTarget(to) && isJsonObject(body) && typeof id === 'string';
  if (!isMessage || !isSender(sender) || typeof hops !== 'number' || typeof at !== 'number') return undefined;
  // Its receiver may have taken later messages of this sender: the number of this one would be an old one.
  const { machine, handle, key = handle, principal } = sender;
  const from = { machine, handle: `dead letter ${incident}`, key, principal };
  return { id, sender: from, seq: 1, to, body, hops, at, length: mail.length };
}

/** Returns whether a value is the target of a message. */
export function isTarget(value: unknown): value is MessageTarget {
  if (!isObject(value)) return false;
  const { kind, machine, key, name, owner } = value;
  if (kind === 'instance') return typeof machine === 'string' && typeof key === 'string';
  return kind === 'topic' && typeof name === 'string' && (owner === undefined || typeof owner === 'string');
}

/** Returns whether a value is a sender. */
export function isSender(value: unknown): value is Sender {
  if (!isObject(value)) return false;
  const { machine, handle, key, principal } = value;
  return [machine, handle, principal, key ?? ''].every((part) => typeof part === 'string');
}

/** The principal of a message: its sender, as events (`by`) and roles name it. */
export function principalOf({ machine, handle, key }: Sender): string {
  return `${machine}/${key ?? handle}`;
}

/** Names a message in a sentence. */
export function nameOfMessage({ sender, to }: Pick<OutMessage, 'sender' | 'to'>): string {
  return `a message of ${sender.machine} to ${nameOfTarget(to)}`;
}

/** Names a target in a sentence. A handle is shortened, because its id may be its only protection. */
function nameOfTarget(to: MessageTarget): string {
  return to.kind === 'instance' ? `${to.machine}/${to.key.slice(0, 8)}` : `the topic ${to.name}`;
}
