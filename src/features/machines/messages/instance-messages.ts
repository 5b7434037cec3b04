/** The messages of one instance in memory: those that its actions write in a turn, and the last ones that it has taken from each sender. */

import type { ExecutableAction } from '../../../core/kernel/xstate-internals.ts';
import { describe, isObject, type JsonObject } from '../../../core/protocol/json.ts';
import type { StoredInstance } from '../restore.ts';
import { serializable } from '../serializable.ts';
import type { MessageTarget, NewMessage } from './out-message.ts';
import { argumentsOfTell, type MessageBody } from './tell.ts';

/** The most senders that an instance remembers. A message of another one that arrives twice may then take effect twice. */
const MOST_SENDERS = 1_000;

export class InstanceMessages {
  readonly #maxDepth: number;
  #written: NewMessage[] = [];
  readonly #first: number;
  #sent: number;
  readonly #inbox: Map<string, number>;
  /** The length of the chain of messages that has led to the current event; 0 for an event that no message has led to. */
  hops = 0;

  /** @param first the number below that of its first message */
  constructor({ sent, inbox = {} }: Pick<StoredInstance, 'sent' | 'inbox'>, first: number, maxDepth: number) {
    this.#maxDepth = maxDepth;
    this.#first = first;
    this.#sent = sent ?? first;
    this.#inbox = new Map(Object.entries(inbox));
  }

  /** The number of the last message; undefined before the first one. */
  get sent(): number | undefined {
    return this.#sent > this.#first ? this.#sent : undefined;
  }

  get inbox(): Readonly<Record<string, number>> | undefined {
    return this.#inbox.size > 0 ? Object.fromEntries(this.#inbox) : undefined;
  }

  /** Returns whether a message of this sender was taken before: its later messages come in order. */
  hasTaken(sender: string, seq: number): boolean {
    return seq <= (this.#inbox.get(sender) ?? 0);
  }

  /** Notes a message that was taken. */
  taken(sender: string, seq: number): void {
    this.#inbox.delete(sender);
    this.#inbox.set(sender, seq);
    if (this.#inbox.size <= MOST_SENDERS) return;
    for (const oldest of this.#inbox.keys()) if (this.#inbox.delete(oldest)) break;
  }

  /** Returns a number for a row that withdraws messages. */
  next(): number {
    this.#sent += 1;
    return this.#sent;
  }

  /** Returns the messages that were written since the last call. */
  takeWritten(): readonly NewMessage[] {
    const written = this.#written;
    if (written.length > 0) this.#written = [];
    return written;
  }

  /**
   * Takes an action of `tell`, and writes its message.
   *
   * @returns false for any other action
   * @throws {TypeError | Error} for a key or an event that cannot be sent, or what a function of the author throws
   */
  take({ exec, info, params }: ExecutableAction): boolean {
    const given = argumentsOfTell(exec);
    if (!given) return false;
    const [machine, ...rest] = given;
    const [key, event]: readonly unknown[] = rest.map((part) => (isFunction(part) ? part(info, params) : part));
    const where = `tell("${machine}", …)`;
    if (typeof key !== 'string' || key === '') throw new TypeError(`${where}: expected a key, got ${describe(key)}`);
    if (!isMessageBody(event))
      throw new TypeError(
        `${where}: expected an event with a type that is not one of XState's own, got ${isObject(event) ? `the type ${describe(event.type)}` : describe(event)}`,
      );
    // The result of `serializable` is JSON data.
    const body = serializable(event, `${where}: the event`, this.#maxDepth) as JsonObject;
    this.write({ kind: 'instance', machine, key }, body);
    return true;
  }

  /** Writes a message in the current turn. */
  write(to: MessageTarget, body: JsonObject): void {
    this.#written.push({ seq: this.next(), to, body, hops: this.hops + 1 });
  }
}

function isMessageBody(value: unknown): value is MessageBody {
  if (!isObject(value) || typeof value.type !== 'string') return false;
  return value.type !== '' && value.type !== '*' && !/^(?:xstate|troupe|tell)\./.test(value.type);
}

function isFunction(value: unknown): value is (...args: readonly unknown[]) => unknown {
  return typeof value === 'function';
}
