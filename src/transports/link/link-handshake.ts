/** The handshake of two nodes that share a secret: proofs, and the signatures of what they exchange afterwards. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** The node that opened the connection, or the node that accepted it. */
export type LinkRole = 'dialer' | 'listener';

/** The ids of both nodes, and a nonce of each. */
export interface LinkTerms {
  readonly dialer: string;
  readonly listener: string;
  readonly dialerNonce: string;
  readonly listenerNonce: string;
}

/** Unread bytes of all exchanges of a link: each has its own limit, and none may stop the others. */
export const LINK_WINDOW = 16 * 1024 * 1024;

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
  const text = ['troupe link 1', purpose, dialer, listener, dialerNonce, listenerNonce].join('\n');
  return createHmac('sha256', secret).update(text).digest();
}

/** The proof that a side has the secret, bound to this connection and both nodes. */
export function linkProof(secret: string, role: LinkRole, terms: LinkTerms): string {
  return mac(secret, `proof of the ${role}`, terms).toString('base64url');
}

export function isLinkProof(value: unknown, secret: string, role: LinkRole, terms: LinkTerms): boolean {
  return typeof value === 'string' && equal(value, linkProof(secret, role, terms));
}

/** Signs what one side sends. Each connection has two keys of its own, so a copied text is valid on no other. */
export class LinkSignature {
  readonly #key: Buffer;
  /** The highest number that this side has used, or has accepted from its peer. */
  #last = 0;

  constructor(secret: string, role: LinkRole, terms: LinkTerms) {
    this.#key = mac(secret, `key of the ${role}`, terms);
  }

  /** The number of the next exchange. */
  next(): number {
    this.#last += 1;
    return this.#last;
  }

  /** Accepts a number once: numbers of one connection increase. */
  accept(number: number): boolean {
    if (!Number.isSafeInteger(number) || number <= this.#last) return false;
    this.#last = number;
    return true;
  }

  sign(number: number, ...parts: readonly (string | Uint8Array)[]): string {
    const hmac = createHmac('sha256', this.#key).update(`${number}\n`);
    for (const part of parts) hmac.update(part);
    return hmac.digest('base64url');
  }

  matches(signature: unknown, number: number, ...parts: readonly (string | Uint8Array)[]): boolean {
    return typeof signature === 'string' && equal(signature, this.sign(number, ...parts));
  }
}

function equal(value: string, expected: string): boolean {
  const [left, right] = [Buffer.from(value), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}
