/** Delivers messages to instances with handles, at the node that owns the cell of the handle. */
import type { NodeCalls } from '../../../core/messages/node-calls.ts';
import { cellIn } from '../../../core/protocol/cell.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../../core/protocol/json.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import { HandleError } from '../handle-error.ts';
import { errorFromText, errorInText } from '../keyed-call-texts.ts';
import { unknownHandle } from '../load-instance.ts';
import { isSender, isTarget, type OutMessage } from './out-message.ts';

/** The name of the service between nodes. */
const SERVICE = 'messages';

export class HandleMail {
  readonly #calls: NodeCalls;
  readonly #take: (message: OutMessage) => Promise<unknown>;

  /** @param take takes a message at this node, which owns the cell. It throws a {@link HandleError} */
  constructor(calls: NodeCalls, take: (message: OutMessage) => Promise<unknown>) {
    this.#calls = calls;
    this.#take = take;
    calls.serve(SERVICE, (body) => this.#serve(body));
  }

  /**
   * Delivers a message. Resolves when the instance has taken it, or had done so before.
   *
   * @throws {HandleError | Error}
   */
  async deliver(message: OutMessage, machine: string, handle: string): Promise<void> {
    const cell = cellIn(handle);
    if (cell === undefined) throw unknownHandle(machine);
    const leave = this.#calls.enter(cell);
    try {
      if (leave) return void (await this.#take(message));
      // The instance recognizes what it has taken, so that the next owner may get it, too.
      const answer = await this.#calls.call(cell, SERVICE, { message: toText(message) }, true);
      const error = errorFromText(answer);
      if (error) throw error;
    } finally {
      leave?.();
    }
  }

  async #serve({ message }: JsonObject): Promise<JsonValue> {
    try {
      await this.#take(messageIn(message));
      return {};
    } catch (error) {
      if (error instanceof HandleError) return errorInText(error);
      throw error;
    }
  }
}

/** @throws {TypeError | StoreError} for what {@link HandleMail} has not sent */
function messageIn(text: JsonValue | undefined): OutMessage {
  const value = fromText(String(text), 'a message of another node');
  if (isObject(value)) {
    const { id, sender, seq, to, body, hops, at, length } = value;
    const counts = [seq, hops, at, length].every((count) => typeof count === 'number');
    if (counts && typeof id === 'string' && isSender(sender) && isTarget(to) && isJsonObject(body))
      return { id, sender, seq: Number(seq), to, body, hops: Number(hops), at: Number(at), length: Number(length) };
  }
  throw new TypeError('expected a message of an instance');
}
