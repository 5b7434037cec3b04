/** What a client has replied to the questions of one call, in this run of its handler and in those before it. */

export class RecordedReplies {
  /** Not to what is open, because that did not fit. */
  readonly #replies: Record<string, unknown>;
  /** Replies of earlier runs that nobody has asked for yet. */
  readonly #given: Map<string, unknown>;

  constructor(replies: Readonly<Record<string, unknown>>) {
    this.#replies = { ...replies };
    this.#given = new Map(Object.entries(replies));
  }

  /** By key. */
  get all(): Readonly<Record<string, unknown>> {
    return this.#replies;
  }

  /** A reply of an earlier run is taken once: a question that is asked again, because that did not fit, has none. */
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
