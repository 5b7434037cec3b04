/** The open questions of an interactive request and the time limit for their answers. */

import { tooLate } from '../../core/execution/input-errors.ts';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import type { Timer } from '../../core/kernel/clock.ts';
import { addresseeOf, nameOfQuestion } from '../../core/kernel/inspection/display-names.ts';
import type { Waits } from '../../core/kernel/inspection/records.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { Question } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { HeldMemory, RequestView } from '../../core/messages/request-view.ts';
import { retainedSize } from '../../core/protocol/heap.ts';
import type { InteractiveRequestMail } from './input-messages.ts';
import { PendingInput, refuseInput } from './input-request.ts';

interface PendingInputsOptions {
  readonly system: ActorSystem;
  /** Counts the input requests. */
  readonly memory: HeldMemory;
  /** Milliseconds that a client has to answer. */
  readonly askMs: number;
}

/** Milliseconds by which the deadline of a request exceeds the time for an answer, so that the answer's own error arrives first. */
const MARGIN_MS = 1_000;

export class PendingInputs {
  readonly #options: PendingInputsOptions;
  readonly #address: string;
  readonly #request: () => RequestView;
  readonly #open = new Map<string, PendingInput>();
  /** The time limit for the answers. Its cancellation restores the request's own timeout. */
  #timeout: Timer | undefined;
  /** Time of the last question, in milliseconds of the server's clock. */
  #asked = 0;

  /**
   * @param address the address of the interactive request
   * @param request the request that carries it now
   */
  constructor(options: PendingInputsOptions, address: string, request: () => RequestView) {
    this.#options = options;
    this.#address = address;
    this.#request = request;
  }

  get size(): number {
    return this.#open.size;
  }

  /** True if any of them was asked over the stream of a session. */
  get streaming(): boolean {
    return [...this.#open.values()].some(({ streamed }) => streamed);
  }

  get questions(): readonly Question[] {
    return [...this.#open.values()].map(({ question }) => question);
  }

  /** @returns undefined if the question exceeds the bytes that its client may make the server retain; its handler gets the error */
  add(question: Question): PendingInput | undefined {
    const { system, askMs, memory } = this.#options;
    const { clock } = system;
    const { key, request } = question;
    const { bytes } = retainedSize(request);
    const full = memory.hold(bytes);
    if (full !== undefined) {
      refuseInput([question], new RangeError(`the question "${key}" does not fit: ${full}`), clock);
      return undefined;
    }
    this.#asked = clock.now();
    const waits = () => ({
      whom: addresseeOf(request, this.#request().client),
      until: this.#asked + askMs,
      lasts: askMs,
    });
    const parent = this.#address;
    const open = new PendingInput(
      question,
      { system, request: this.#request(), parent, label: nameOfQuestion(request), waits },
      bytes,
    );
    this.#open.set(key, open);
    return open;
  }

  /** Removes a question; the caller settles it. */
  take(key: string): PendingInput | undefined {
    const open = this.#open.get(key);
    if (open) this.#options.memory.free(open.bytes);
    this.#open.delete(key);
    return open;
  }

  /** Rejects these questions: no answers will arrive, or none are needed. */
  fail(keys: Iterable<string>, reason: Error): void {
    for (const key of [...keys]) this.take(key)?.fail(this.#request().client, reason);
  }

  failAll(reason: Error): void {
    this.fail(this.#open.keys(), reason);
  }

  withdrawAll(reason: string): void {
    for (const open of this.#open.values()) open.withdraw(this.#request().client, reason);
    for (const { bytes } of this.#open.values()) this.#options.memory.free(bytes);
    this.#open.clear();
  }

  /**
   * Restarts the time limit for the client's answers and extends the deadline of the request by it. The request's own
   * timeout is for the handler.
   *
   * @param owner gets `expired` when the time is over
   */
  startTimeout(request: RequestView, owner: Mailbox<InteractiveRequestMail>): void {
    // Restore the request's own timeout before it is read.
    this.stopTimeout();
    const { askMs, system } = this.#options;
    const { timeoutMs } = request;
    request.requests.send({ type: 'extend deadline', request, timeoutMs: askMs + MARGIN_MS });
    const timer = system.clock.after(askMs, () => owner.send({ type: 'expired', reason: tooLate(askMs) }));
    this.#timeout = {
      cancel() {
        timer.cancel();
        if (!request.settled) request.requests.send({ type: 'extend deadline', request, timeoutMs });
      },
    };
  }

  /** Stops the time limit and restores the request's own timeout. */
  stopTimeout(): void {
    this.#timeout?.cancel();
    this.#timeout = undefined;
  }

  *[Symbol.iterator](): Iterator<readonly [string, PendingInput]> {
    yield* this.#open;
  }

  /** Returns the questions that this client cannot be asked, by key. It may declare fewer capabilities than the previous client. */
  unaskable(client: ClientFacts): readonly (readonly [key: string, why: Error])[] {
    return [...this.#open].flatMap(([key, open]) => {
      const why = open.refusedBy(client);
      return why ? [[key, why] as const] : [];
    });
  }

  waits(): readonly Waits[] {
    return [...this.#open.values()].flatMap((open) => open.waits());
  }
}
