/** The error for an issuer that cannot be asked now. */

/** Nothing shows whether a token is good. With a `cause`, because the issuer has not answered. */
export class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable';
  /** Milliseconds after which asking again makes sense. */
  readonly retryMs: number;

  constructor(message: string, retryMs: number, options?: ErrorOptions) {
    super(message, options);
    this.retryMs = retryMs;
  }
}
