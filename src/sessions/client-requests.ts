/** The questions that are open to the client of one session: each is a request of ours, and each response is for one of them, or for nobody. */

import type { EmitterMail } from '../messages/emitter-messages.ts';
import type { Reply } from '../messages/input-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { AskMail } from '../messages/session-messages.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';

export class ClientRequests {
  readonly #emitter: Mailbox<EmitterMail>;
  readonly #open = new Map<RequestId, AskMail>();
  readonly #prefix: string;
  #asked = 0;

  /**
   * @param since of a session that has woken, when it did: it counts anew, and an answer to what was asked before must not be
   *   taken for one to something else
   */
  constructor(emitter: Mailbox<EmitterMail>, since: number | undefined) {
    this.#emitter = emitter;
    this.#prefix = since === undefined ? 'ask' : `ask-${since.toString(36)}`;
  }

  /** Sends it, with an id that no other request of ours in this session has. */
  ask(ask: AskMail): void {
    this.#asked += 1;
    const id = `${this.#prefix}-${this.#asked}`;
    this.#open.set(id, ask);
    this.#emitter.send({ type: 'ask', id, about: ask.about, input: ask.input });
  }

  /** A response that nobody waits for (any more) is ignored. */
  response(id: RequestId, reply: Reply): void {
    const ask = this.#open.get(id);
    this.#open.delete(id);
    ask?.reply(reply);
  }

  /** Tells the client that its answer is not wanted any more (MCP "Cancellation"). */
  withdraw(ask: AskMail, reason: string): void {
    for (const [id, open] of this.#open) {
      if (open !== ask) continue;
      this.#open.delete(id);
      this.#emitter.send({ type: 'withdrawn', id, about: ask.about, reason });
    }
  }
}
