/** Words the rejections of a protected resource, with their `WWW-Authenticate` (RFC 6750 section 3, RFC 9728 section 5.1). */
import type { Authentication } from '../../core/http/http-authenticator.ts';
import { PROOF_ALGORITHMS } from './dpop-proofs.ts';
import type { ResolvedResourceServer } from './resource-server-options.ts';

export type Rejection = Extract<Authentication, { readonly status: unknown }>;

type ChallengeError = 'invalid_request' | 'invalid_token' | 'insufficient_scope' | 'invalid_dpop_proof';

export class Rejections {
  readonly #dpop: ResolvedResourceServer['dpop'];
  readonly #metadata: string;
  readonly #scopes: readonly string[];
  /** A request without credentials. It gets no error code (RFC 6750 section 3.1). */
  readonly missing: Rejection;

  /** @param metadata the address of the resource's metadata */
  constructor({ dpop, scopes }: Pick<ResolvedResourceServer, 'dpop' | 'scopes'>, metadata: string) {
    this.#dpop = dpop;
    this.#metadata = metadata;
    this.#scopes = scopes;
    this.missing = {
      status: 401,
      headers: { 'www-authenticate': this.#challenges({}, this.#scopes) },
      message: 'authentication failed: expected an access token (Authorization), got none',
    };
  }

  /** The token is not valid. */
  invalid(reason: string, error: 'invalid_token' | 'invalid_dpop_proof' = 'invalid_token'): Rejection {
    return this.#rejection(401, error, reason, this.#scopes);
  }

  /** The credentials are malformed. */
  malformed(reason: string): Rejection {
    return this.#rejection(400, 'invalid_request', reason, this.#scopes);
  }

  /** The token lacks scopes. @param scopes all that the operation needs */
  insufficient(scopes: readonly string[]): Rejection {
    return {
      status: 403,
      headers: { 'www-authenticate': this.challenge(scopes) },
      message: `the token lacks scopes: expected ${scopes.join(' ')}`,
    };
  }

  /** The values of `WWW-Authenticate` for a token that lacks scopes: those of the operation, and of every request. */
  challenge(scopes: readonly string[]): readonly string[] {
    const all = [...new Set([...this.#scopes, ...scopes])];
    return this.#challenges({ error: 'insufficient_scope', description: 'the operation needs these scopes' }, all);
  }

  /** Nothing shows whether the token is valid. A 401 would make its client discard it. */
  unavailable(retryMs: number): Rejection {
    return {
      status: 503,
      headers: { 'retry-after': String(Math.max(1, Math.ceil(retryMs / 1_000))) },
      message: 'the token cannot be verified now, because its issuer cannot be asked. Retry later with the same token',
    };
  }

  #rejection(status: 400 | 401, error: ChallengeError, description: string, scopes: readonly string[]): Rejection {
    return {
      status,
      headers: { 'www-authenticate': this.#challenges({ error, description }, scopes) },
      message: `authentication failed: ${description}`,
    };
  }

  /** `Bearer` is first, because clients look for it in the beginning of the header. */
  #challenges(
    { error, description }: { readonly error?: ChallengeError; readonly description?: string },
    scopes: readonly string[],
  ): readonly string[] {
    const known = [
      ...(scopes.length === 0 ? [] : [parameter('scope', scopes.join(' '))]),
      parameter('resource_metadata', this.#metadata),
      ...(description === undefined ? [] : [parameter('error_description', description)]),
    ];
    const failed = error === undefined ? [] : [parameter('error', error)];
    const proof = error === 'invalid_dpop_proof';
    const algorithms = parameter('algs', PROOF_ALGORITHMS.join(' '));
    const bearer = `Bearer ${[...(proof ? [] : failed), ...known].join(', ')}`;
    switch (this.#dpop) {
      case 'off':
        return [bearer];
      case 'required':
        return [`DPoP ${[...failed, algorithms, ...known].join(', ')}`];
      case 'accepted':
        return [bearer, `DPoP ${[...(proof ? failed : []), algorithms].join(', ')}`];
    }
  }
}

function parameter(name: string, value: string): string {
  return `${name}="${value.replace(/[\\"]/g, '\\$&')}"`;
}
