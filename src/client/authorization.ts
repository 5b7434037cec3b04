/** The port of a client to sign-in: headers for each request, and a way to obtain a token. Types only. */

/** The demand of a server for a token (RFC 9110 section 11.6.1, RFC 6750 section 3). */
export interface Challenge {
  readonly status: 401 | 403;
  /** The value of `WWW-Authenticate`. */
  readonly header: string | undefined;
  /** The address of the server. */
  readonly resource: URL;
}

export interface Authorization {
  /**
   * The headers that authorize one HTTP request: a bearer token, or a token with a proof for this method and address.
   * Undefined while there is no token. A promise that rejects fails the request.
   *
   * @param resource the address of the server, if the request goes to another address of it (a redirect, an endpoint)
   */
  headers(
    method: string,
    url: URL,
    resource?: URL,
  ): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>> | undefined;
  /**
   * Obtains a token that satisfies the challenge. A connection calls it once at a time, and its calls wait.
   *
   * @throws with a message for the caller if there will be no token
   */
  authorize(challenge: Challenge, signal: AbortSignal): Promise<void>;
  /** Reads what the response of the server says, such as a nonce for the next proof. */
  observe?(
    url: URL,
    headers: Readonly<Record<string, string | readonly string[] | undefined>>,
    status?: number,
    resource?: URL,
  ): void;
}
