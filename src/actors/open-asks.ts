/** The questions that are open to the client of one session: each is a request of ours, and each response is for one of them, or for nobody. */
import type { Reply } from '../messages/asking.ts';
import type { EmitterMail } from '../messages/emitter.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { AskMail } from '../messages/session.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';

export class OpenAsks {
  readonly #emitter: Mailbox<EmitterMail>;
  readonly #open = new Map<RequestId, AskMail>();
  #asked = 0;

  constructor(emitter: Mailbox<EmitterMail>) {
    this.#emitter = emitter;
  }

  /** Sends it, with an id that no other request of ours in this session has. */
  ask(ask: AskMail): void {
    this.#asked += 1;
    const id = `ask-${this.#asked}`;
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
