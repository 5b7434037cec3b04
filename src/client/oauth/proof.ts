/** Proofs of possession for requests to a resource (RFC 9449). */
import { randomUUID, webcrypto } from 'node:crypto';
import { sha256 } from '../../core/kernel/sha256.ts';

/** A key pair for ES256, which can be written down. */
export interface ProofKey {
  readonly pair: webcrypto.CryptoKeyPair;
  readonly jwk: { readonly kty: string; readonly crv: string; readonly x: string; readonly y: string };
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;

export async function makeProofKey(): Promise<ProofKey> {
  return withJwk(await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']));
}

/** The private key as text for a store. */
export async function writeProofKey({ pair }: ProofKey): Promise<string> {
  return JSON.stringify(await webcrypto.subtle.exportKey('jwk', pair.privateKey));
}

export async function readProofKey(text: string): Promise<ProofKey> {
  const jwk: webcrypto.JsonWebKey = JSON.parse(text);
  const { d, key_ops: _ops, ...open } = jwk;
  const privateKey = await webcrypto.subtle.importKey('jwk', jwk, ALGORITHM, true, ['sign']);
  const publicKey = await webcrypto.subtle.importKey('jwk', { ...open, key_ops: ['verify'] }, ALGORITHM, true, [
    'verify',
  ]);
  return withJwk({ privateKey, publicKey });
}

async function withJwk(pair: webcrypto.CryptoKeyPair): Promise<ProofKey> {
  const { kty = '', crv = '', x = '', y = '' } = await webcrypto.subtle.exportKey('jwk', pair.publicKey);
  return { pair, jwk: { kty, crv, x, y } };
}

/**
 * A proof for one request: method, address without query, time, a new id, the token's hash, and the server's nonce.
 *
 * @param nowSeconds seconds since 1970
 */
export async function proofOf(
  { pair, jwk }: ProofKey,
  request: { readonly method: string; readonly url: URL; readonly token: string; readonly nonce: string | undefined },
  nowSeconds: number,
): Promise<string> {
  const header = { alg: 'ES256', typ: 'dpop+jwt', jwk };
  const payload = {
    jti: randomUUID(),
    htm: request.method,
    htu: `${request.url.origin}${request.url.pathname}`,
    iat: nowSeconds,
    ath: sha256(request.token),
    ...(request.nonce === undefined ? {} : { nonce: request.nonce }),
  };
  const signed = `${encode(header)}.${encode(payload)}`;
  const signature = await webcrypto.subtle.sign(
    { name: 'ECDSA', hash: 'SHA-256' },
    pair.privateKey,
    Buffer.from(signed),
  );
  return `${signed}.${Buffer.from(signature).toString('base64url')}`;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
