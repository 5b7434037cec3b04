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
