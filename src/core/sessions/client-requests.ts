/**
 * The requests from the server to one legacy client that have no response yet. Each response belongs to one of them or
 * is ignored.
 */

import type { Reply } from '../messages/client-input.ts';
import type { EmitterMail } from '../messages/emitter-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { AskMail } from '../messages/session-messages.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';

export class ClientRequests {
  readonly #emitter: Mailbox<EmitterMail>;
  readonly #open = new Map<RequestId, AskMail>();
  readonly #prefix: string;
  #asked = 0;

  /**
   * @param since for a restored session, the time of its restoration: ids start from it, so that a response to an
   *   earlier request is not taken for one to a new request
   */
  constructor(emitter: Mailbox<EmitterMail>, since: number | undefined) {
    this.#emitter = emitter;
    this.#prefix = since === undefined ? 'ask' : `ask-${since.toString(36)}`;
  }

  /** Sends a request, with an id that is unique in this session. */
  ask(ask: AskMail): void {
    this.#asked += 1;
    const id = `${this.#prefix}-${this.#asked}`;
    this.#open.set(id, ask);
    const { about, span } = ask;
    const input = span ? span.inject(id, ask.input) : ask.input;
    this.#emitter.send({ type: 'ask', id, about, input });
  }

  /** Handles a response. Ignores it if no request with its id is open. */
  response(id: RequestId, reply: Reply): void {
    const ask = this.#open.get(id);
    this.#open.delete(id);
    ask?.from.send({ type: 'replied', key: ask.key, reply, ask });
  }

  /** Cancels a request: the client's answer is no longer needed (MCP "Cancellation"). */
  withdraw(ask: AskMail, reason: string): void {
    for (const [id, open] of this.#open) {
      if (open !== ask) continue;
      this.#open.delete(id);
      this.#emitter.send({ type: 'withdrawn', id, about: ask.about, reason });
    }
  }
}
