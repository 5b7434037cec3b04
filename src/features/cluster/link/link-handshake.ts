/** The handshake of two nodes that share a secret: proofs, and the signatures of what they exchange afterwards. */
import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';

/** The node that opened the connection, or the node that accepted it. */
type LinkRole = 'dialer' | 'listener';

/** The ids of both nodes, and a nonce of each. */
export interface LinkTerms {
  readonly dialer: string;
  readonly listener: string;
  readonly dialerNonce: string;
  readonly listenerNonce: string;
}

const NODE_ID = /^[\w-]{1,64}$/;
const NONCE = /^[\w-]{43}$/;

/** The id of a node in a header; undefined if it is none. */
export function nodeIdIn(value: unknown): string | undefined {
  return typeof value === 'string' && NODE_ID.test(value) ? value : undefined;
}

export function nonceIn(value: unknown): string | undefined {
  return typeof value === 'string' && NONCE.test(value) ? value : undefined;
}

export function newNonce(): string {
  return randomBytes(32).toString('base64url');
}

/** No two purposes share a text, so neither side can make the other compute a proof that it needs itself. */
function mac(secret: string, purpose: string, terms: LinkTerms): Buffer {
  const { dialer, listener, dialerNonce, listenerNonce } = terms;
  const text = ['troupe link 2', purpose, dialer, listener, dialerNonce, listenerNonce].join('\n');
  return createHmac('sha256', secret).update(text).digest();
}

/** The proof that a side has the secret, bound to this connection and both nodes. */
export function linkProof(secret: string, role: LinkRole, terms: LinkTerms): string {
  return mac(secret, `proof of the ${role}`, terms).toString('base64url');
}

export function isLinkProof(value: unknown, secret: string, role: LinkRole, terms: LinkTerms): boolean {
  return typeof value === 'string' && equal(value, linkProof(secret, role, terms));
}

/** Length of a signature in bytes. */
export const SIGNATURE_BYTES = 32;

/**
 * Signs the texts that one side sends, and checks them at the other side. Each connection has two keys of its own, and both
 * sides count the texts: one that was changed, left out or repeated, or that belongs to another link, does not match.
 */
export class LinkSignature {
  readonly #key: KeyObject;
  #number = 0;

  constructor(secret: string, role: LinkRole, terms: LinkTerms) {
    this.#key = createSecretKey(mac(secret, `key of the ${role}`, terms));
  }

  /** Signs the next text. */
  sign(text: Uint8Array): Buffer {
    this.#number += 1;
    return createHmac('sha256', this.#key).update(`${this.#number}\n`).update(text).digest();
  }

  /** True if this is the signature of the next text. */
  matches(text: Uint8Array, signature: Uint8Array): boolean {
    return timingSafeEqual(signature, this.sign(text));
  }
}

function equal(value: string, expected: string): boolean {
  const [left, right] = [Buffer.from(value), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}
