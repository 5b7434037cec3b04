/** A part of a server that is created when it is first used. */
export class Lazy<T extends object> {
  readonly #create: () => T;
  #created: T | undefined;

  constructor(create: () => T) {
    this.#create = create;
  }

  /** Creates the part if needed. */
  get value(): T {
    this.#created ??= this.#create();
    return this.#created;
  }

  /** Undefined until it is used. */
  get created(): T | undefined {
    return this.#created;
  }
}
