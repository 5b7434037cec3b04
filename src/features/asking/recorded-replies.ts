/** The client's replies to the questions of one call, in this run of its handler and in earlier ones. */

import type { HeldMemory } from '../../core/messages/request-view.ts';
import { heapBytes } from '../../core/protocol/heap.ts';

export class RecordedReplies {
  readonly #memory: HeldMemory;
  /** Without the replies to open questions, because those were invalid. */
  readonly #replies: Record<string, unknown>;
  /** Replies of earlier runs that the handler has not asked for yet. */
  readonly #given: Map<string, unknown>;

  /** Bytes that are counted, by key. */
  readonly #counted = new Map<string, number>();

  /** @param memory counts the replies */
  constructor(replies: Readonly<Record<string, unknown>>, memory: HeldMemory) {
    this.#memory = memory;
    for (const [key, reply] of Object.entries(replies)) this.#count(key, reply, 'forced');
    this.#replies = { ...replies };
    this.#given = new Map(Object.entries(replies));
  }

  /** The replies by key. */
  get all(): Readonly<Record<string, unknown>> {
    return this.#replies;
  }

  /** Takes the reply of an earlier run, once. A question that is repeated because that reply was invalid gets none. */
  ask(key: string): unknown {
    const given = this.#given.get(key);
    if (given === undefined) {
      delete this.#replies[key];
      this.#free(key);
    } else this.#given.delete(key);
    return given;
  }

  /** @param counted somebody else counts it. @returns why it does not fit; then it is not recorded */
  add(key: string, reply: unknown, counted: unknown): string | undefined {
    const full = counted ? undefined : this.#count(key, reply);
    if (full === undefined) this.#replies[key] = reply;
    return full;
  }

  #count(key: string, reply: unknown, forced?: 'forced'): string | undefined {
    this.#free(key);
    const bytes = heapBytes(reply);
    const full = this.#memory.hold(bytes, forced);
    if (full === undefined) this.#counted.set(key, bytes);
    return full;
  }

  #free(key: string): void {
    this.#memory.free(this.#counted.get(key) ?? 0);
    this.#counted.delete(key);
  }
}
