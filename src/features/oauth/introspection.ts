/** Asks an issuer about an opaque token (RFC 7662). */
import { randomUUID } from 'node:crypto';
import { importPKCS8, SignJWT } from 'jose';
import type { Clock } from '../../core/kernel/clock.ts';
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import type { GuardedFetch } from './issuers/guarded-fetch.ts';
import type { IntrospectionOptions, TokenAlgorithm } from './resource-server-options.ts';

/** Milliseconds for the issuer's answer. */
export const INTROSPECTION_MS = 2_000;
/** Seconds for which a signed assertion is valid. */
const ASSERTION_S = 60;

export class Introspection {
  readonly #options: IntrospectionOptions & { readonly algorithm: TokenAlgorithm };
  readonly #issuer: string;
  readonly #http: GuardedFetch;
  readonly #clock: Clock;
  #key: ReturnType<typeof importPKCS8> | undefined;

  constructor(
    options: IntrospectionOptions & { readonly algorithm: TokenAlgorithm },
    { issuer, http, clock }: { readonly issuer: string; readonly http: GuardedFetch; readonly clock: Clock },
  ) {
    this.#options = options;
    this.#issuer = issuer;
    this.#http = http;
    this.#clock = clock;
  }

  /**
   * @returns the claims of an active token; undefined for any other
   * @throws {Error} if the issuer does not answer with 200 and JSON
   */
  async ask(endpoint: string, token: string): Promise<JsonObject | undefined> {
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' });
    const headers: Record<string, string> = {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    };
    const { clientId, clientSecret } = this.#options;
    if (clientSecret === undefined) {
      form.set('client_id', clientId);
      form.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
      form.set('client_assertion', await this.#assertion());
    } else headers.authorization = `Basic ${basic(clientId, clientSecret)}`;
    const response = await this.#http(endpoint, { method: 'POST', headers, body: form.toString() });
    if (response.status !== 200)
      throw new Error(
        `${endpoint}: expected HTTP 200 from the introspection endpoint, got ${response.status}${
          response.status === 401 ? '. Check introspection.clientId and its secret or key' : ''
        }`,
      );
    const answer: unknown = await response.json().catch(() => undefined);
    if (!isJsonObject(answer) || typeof answer.active !== 'boolean')
      throw new Error(`${endpoint}: expected JSON with "active" from the introspection endpoint`);
    return answer.active ? answer : undefined;
  }

  async #assertion(): Promise<string> {
    const { clientId, privateKey = '', algorithm } = this.#options;
    this.#key ??= importPKCS8(privateKey, algorithm);
    const now = Math.floor(this.#clock.date() / 1_000);
    return new SignJWT({ jti: randomUUID() })
      .setProtectedHeader({ alg: algorithm })
      .setIssuer(clientId)
      .setSubject(clientId)
      .setAudience(this.#issuer)
      .setIssuedAt(now)
      .setExpirationTime(now + ASSERTION_S)
      .sign(await this.#key);
  }
}

/** Both parts are form-encoded first (RFC 6749 section 2.3.1). */
function basic(clientId: string, secret: string): string {
  const encoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1);
  return Buffer.from(`${encoded(clientId)}:${encoded(secret)}`).toString('base64');
}
