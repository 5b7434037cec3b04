/** Checks proofs of possession, and accepts each once (RFC 9449 section 4.3). */
import { calculateJwkThumbprint, compactVerify, decodeJwt, decodeProtectedHeader, EmbeddedJWK, errors } from 'jose';
import type { Clock } from '../../core/kernel/clock.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { TokenAlgorithm } from './resource-server-options.ts';

/** Milliseconds by which the time of a proof may differ from the server's. */
const WINDOW_MS = 300_000;
/** Maximum number of proofs that are remembered. Beyond it the oldest are forgotten. */
const MAX_PROOFS = 100_000;
const MAX_PROOF = 8_192;
const MAX_ID = 256;

export const PROOF_ALGORITHMS: readonly TokenAlgorithm[] = ['ES256', 'EdDSA', 'PS256', 'RS256'];

interface ProvenRequest {
  readonly method: string;
  /** Each `DPoP` header of the request. */
  readonly proofs: readonly string[];
  readonly token: string;
  /** The thumbprint of the key that the token is bound to. */
  readonly boundTo: string;
}

export class DpopProofs {
  readonly #resource: string;
  readonly #clock: Clock;
  /** Accepted proofs, by key and id, with the time at which each is forgotten; oldest first. */
  readonly #seen = new Map<string, number>();

  /** @param resource the address that proofs must be for */
  constructor(resource: string, clock: Clock) {
    this.#resource = new URL(resource).href;
    this.#clock = clock;
  }

  /** @returns the reason why the proof is not accepted; undefined if it is */
  async check({ method, proofs, token, boundTo }: ProvenRequest): Promise<string | undefined> {
    const [proof, second] = proofs;
    if (proof === undefined) return 'expected a DPoP header with a proof';
    if (second !== undefined || proof.includes(',')) return 'expected one DPoP header, got several';
    if (proof.length > MAX_PROOF) return 'the proof is too long';
    try {
      return await this.#fault(proof, { method, token, boundTo });
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof TypeError) return 'the proof is not valid';
      throw error;
    }
  }

  async #fault(proof: string, request: Omit<ProvenRequest, 'proofs'>): Promise<string | undefined> {
    const header = decodeProtectedHeader(proof);
    const { htm, htu, iat, jti, ath } = decodeJwt(proof);
    if (header.typ !== 'dpop+jwt') return 'the proof has another type';
    if (!PROOF_ALGORITHMS.some((algorithm) => algorithm === header.alg))
      return 'the algorithm of the proof is not accepted';
    if (header.crit !== undefined) return 'the proof has critical extensions that are not supported';
    const { jwk } = header;
    // A private key in a header is a leaked key.
    if (!isObject(jwk) || 'd' in jwk || 'k' in jwk) return 'the proof has no public key';
    if (htm !== request.method) return 'the proof is for another method';
    if (typeof htu !== 'string' || !this.#isResource(htu)) return 'the proof is for another address';
    if (typeof jti !== 'string' || jti === '' || jti.length > MAX_ID) return 'the proof has no id';
    const now = this.#clock.date();
    if (typeof iat !== 'number' || !(Math.abs(iat * 1_000 - now) <= WINDOW_MS))
      return 'the proof was not made now: check the clock';
    if (ath !== sha256(request.token)) return 'the proof is for another token';
    const thumbprint = await calculateJwkThumbprint(jwk, 'sha256');
    if (thumbprint !== request.boundTo) return 'the token is bound to another key';
    await compactVerify(proof, EmbeddedJWK, { algorithms: [...PROOF_ALGORITHMS] });
    return this.#isNew(`${thumbprint} ${jti}`, now) ? undefined : 'the proof was used already';
  }

  /** Compares without query and fragment, after normalization (RFC 9449 section 4.3, check 9). */
  #isResource(htu: string): boolean {
    if (!URL.canParse(htu)) return false;
    const url = new URL(htu);
    return `${url.origin}${url.pathname}` === this.#resource;
  }

  #isNew(id: string, now: number): boolean {
    for (const [old, until] of this.#seen) {
      if (until > now && this.#seen.size < MAX_PROOFS) break;
      this.#seen.delete(old);
    }
    if (this.#seen.has(id)) return false;
    // A proof from the future is valid for twice the window.
    this.#seen.set(id, now + 2 * WINDOW_MS);
    return true;
  }
}
