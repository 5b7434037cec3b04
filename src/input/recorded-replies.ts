/** The client's replies to the questions of one call, in this run of its handler and in earlier ones. */

export class RecordedReplies {
  /** Without the replies to open questions, because those were invalid. */
  readonly #replies: Record<string, unknown>;
  /** Replies of earlier runs that the handler has not asked for yet. */
  readonly #given: Map<string, unknown>;

  constructor(replies: Readonly<Record<string, unknown>>) {
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
    if (given === undefined) delete this.#replies[key];
    else this.#given.delete(key);
    return given;
  }

  add(key: string, reply: unknown): void {
    this.#replies[key] = reply;
  }
}
