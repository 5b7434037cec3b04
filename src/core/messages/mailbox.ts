/** A mailbox: the address of an actor as a typed object. Actors are never looked up by name. */

/** One message between actors. The set of messages that a mailbox accepts is closed. */
export interface Mail {
  readonly type: string;
}

export interface Mailbox<M extends Mail> {
  /** The owner's address, for the inspector and for logs. */
  readonly address: string;
  /**
   * Delivers the message at once on the caller's stack, or after the actor's current turn. Never throws. Needs no
   * `this`.
   */
  send(mail: M): void;
}
