/** The questions that a conversation has open, and the time that its client is given for them. */
import type { Timer } from '../clock.ts';
import { addresseeOf, nameOfQuestion } from '../inspection/display-names.ts';
import type { Waits } from '../inspection/records.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { Client } from '../messages/client-facts.ts';
import type { Question } from '../messages/input-messages.ts';
import { answerTimeout } from './answer-timeout.ts';
import { PendingInput } from './input-request.ts';
import type { InteractiveRequestOptions } from './interactive-request-options.ts';

export class PendingInputs {
  readonly #options: InteractiveRequestOptions;
  readonly #address: string;
  readonly #client: () => Client;
  readonly #open = new Map<string, PendingInput>();
  #timer: Timer | undefined;
  /** When it asked last, in milliseconds of the server's clock. */
  #asked = 0;

  /**
   * @param address the conversation's
   * @param client who is asked now
   */
  constructor(options: InteractiveRequestOptions, address: string, client: () => Client) {
    this.#options = options;
    this.#address = address;
    this.#client = client;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Whether one of them is asked over the stream of a session. */
  get streaming(): boolean {
    return [...this.#open.values()].some(({ streaming }) => streaming);
  }

  get questions(): readonly Question[] {
    return [...this.#open.values()].map(({ question }) => question);
  }

  add(question: Question): PendingInput {
    const { inspection, clock, askMs } = this.#options;
    const { key, request } = question;
    this.#asked = clock.now();
    const waits = () => ({ whom: addresseeOf(request, this.#client()), until: this.#asked + askMs, lasts: askMs });
    const parent = this.#address;
    const open = new PendingInput(question, { inspection, parent, label: nameOfQuestion(request), waits });
    this.#open.set(key, open);
    return open;
  }

  /** It waits no longer, and is the caller's to end. */
  take(key: string): PendingInput | undefined {
    const open = this.#open.get(key);
    this.#open.delete(key);
    return open;
  }

  /** Nobody will answer these, or nobody waits for the answers. */
  fail(keys: Iterable<string>, reason: Error): void {
    for (const key of [...keys]) this.take(key)?.fail(this.#client(), reason);
  }

  failAll(reason: Error): void {
    this.fail(this.#open.keys(), reason);
  }

  withdrawAll(reason: string): void {
    for (const open of this.#open.values()) open.withdraw(this.#client(), reason);
    this.#open.clear();
  }

  /** Its client is given time to answer, anew. @param expired it is over */
  allow(request: ActiveRequest, expired: () => void): void {
    // What ran is ended first: that gives the request its own time again.
    this.#timer?.cancel();
    this.#timer = answerTimeout(this.#options, request, expired);
  }

  /** Its client needs no more time. */
  allowed(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  *[Symbol.iterator](): Iterator<readonly [string, PendingInput]> {
    yield* this.#open;
  }

  /** What may not be put to this client, by key: it declares less than the one that was there when it was asked. */
  unaskable(client: Client): readonly (readonly [key: string, why: Error])[] {
    return [...this.#open].flatMap(([key, open]) => {
      const why = open.refusedBy(client);
      return why ? [[key, why] as const] : [];
    });
  }

  waits(): readonly Waits[] {
    return [...this.#open.values()].flatMap((open) => open.waits());
  }
}
