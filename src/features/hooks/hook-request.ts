/** A request to a webhook as its verifier sees it, and what a verifier finds. Types only. */
import type { JsonValue } from '../../core/protocol/json.ts';

/** A request whose sender is not known yet. */
export interface HookRequest {
  /** `GET` is the question of a sender before it delivers, which has no body: only a `reply` answers it. */
  readonly method: 'POST' | 'GET';
  /** The path of the webhook, without the query. */
  readonly path: string;
  /** Without its "?". */
  readonly query: string;
  /** The body as it came, before anything has parsed it. */
  readonly body: Uint8Array;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** A header by its name in any case; the values of a repeated header joined. */
  header(name: string): string | undefined;
  /** The value of a header that came once; undefined if it is missing or repeated, because two readers could choose different values. */
  only(name: string): string | undefined;
  /** The body as JSON; undefined if it is something else. Call it only after the body is verified. */
  json(): JsonValue | undefined;
}

/** The facts about a genuine request. */
export interface HookProof {
  /**
   * The name of the delivery, as far as the sender has signed it: a request with the same name is a repeat. Default: the SHA-256 of
   * the body.
   */
  readonly once?: string | undefined;
  /** The id by which the sender knows the delivery. Default: `once`. At most 256 characters are kept. */
  readonly id?: string | undefined;
  /** The kind of the delivery, such as `push`. At most 256 characters are kept. */
  readonly type?: string | undefined;
  /** The request is no delivery: this text is the answer to it, and no handler runs. */
  readonly reply?: string | undefined;
}

/**
 * Decides whether a request is genuine. Undefined rejects it with 401 and without a reason; so does an error, which is logged.
 *
 * @example
 * const byToken: HookVerifier = ({ header }) => (isToken(header('x-token')) ? { type: 'order' } : undefined);
 */
export type HookVerifier = (request: HookRequest) => HookProof | undefined | Promise<HookProof | undefined>;
