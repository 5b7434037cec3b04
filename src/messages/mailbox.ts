/** A place where mail may be sent: handed over as typed input, never looked up by name. */

/** One message between actors. The set of types that a mailbox takes is closed. */
export interface Mail {
  readonly type: string;
}

export interface Mailbox<M extends Mail> {
  /** Who it belongs to, for the inspector and for logs. */
  readonly address: string;
  /** Delivers at once, on the caller's stack, or after what the actor is doing now. Never throws. Needs no `this`. */
  send(mail: M): void;
}

/** A mailbox that takes what is announced to thousands at a time. */
export interface Announceable<M extends Mail> extends Mailbox<M> {
  /** As `send`, but the actor acts without its XState actor, and one at rest does not wake: that costs more than what it is told. */
  announce(mail: M): void;
}
