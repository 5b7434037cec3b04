/** Discovery of an authorization server, for the client and for `troupe/oauth`. */
import type { AuthorizationServer } from 'oauth4webapi';
import { isObject, messageOf } from '../../../core/protocol/json.ts';
import { AddressRejected, type GuardedFetch } from './guarded-fetch.ts';

/**
 * Finds the metadata of an authorization server, in the order of the specification.
 *
 * @param slash whether the slash of an empty path may differ
 * @throws {Error} if there is none, or its issuer is another: text equality, without normalization (RFC 8414 section 3.3)
 * @see 2026-07-28 authorization-server-discovery "Authorization Server Metadata Discovery"
 */
export async function findIssuer(
  http: GuardedFetch,
  issuer: string,
  { signal, slash }: { readonly signal?: AbortSignal; readonly slash: 'exact' | 'optional' },
): Promise<AuthorizationServer> {
  if (!URL.canParse(issuer) || !/^https?:/i.test(issuer))
    throw new Error(
      `expected the https address of an authorization server, the resource names "${issuer.slice(0, 200)}"`,
    );
  const url = new URL(issuer);
  const path = url.pathname.replace(/\/$/, '');
  const places =
    path === ''
      ? [`${url.origin}/.well-known/oauth-authorization-server`, `${url.origin}/.well-known/openid-configuration`]
      : [
          `${url.origin}/.well-known/oauth-authorization-server${path}`,
          `${url.origin}/.well-known/openid-configuration${path}`,
          `${url.origin}${path}/.well-known/openid-configuration`,
        ];
  const search = await firstDocument(http, places, signal, (document) => {
    const server = readAuthorizationServer(document);
    if (!server) return 'it has no issuer';
    // The issuer is an identifier. Only the slash of an empty path may differ, because URLs of both forms are one text to most software.
    const same = path === '' && slash === 'optional' && isSameIssuer(server.issuer, issuer);
    if (server.issuer === issuer || same) return server;
    return `expected the issuer ${issuer}, got ${server.issuer.slice(0, 200)}. No token is requested there`;
  });
  if (search.found) return search.found;
  throw new Error(`${issuer}: no metadata of an authorization server. ${explainMisses(search.misses)}`);
}

/** A place without a usable document. */
interface Miss {
  readonly place: string;
  readonly why: string;
  /** The place cannot be reached, or fails: it may have a document at another time. */
  readonly outage: boolean;
}

/**
 * Reads one place after the other, until one has a document that can be used: servers and proxies respond to paths that they do
 * not know with pages, errors and documents of others.
 *
 * @param accept reads a document. @returns the reason why it cannot be used
 * @throws the reason of the signal, or {@link AddressRejected}
 */
export async function firstDocument<T extends object>(
  http: GuardedFetch,
  places: readonly string[],
  signal: AbortSignal | undefined,
  accept: (document: Readonly<Record<string, unknown>>, place: string) => T | string,
): Promise<{ readonly found: T | undefined; readonly misses: readonly Miss[] }> {
  const misses: Miss[] = [];
  for (const place of places) {
    const miss = (why: string, outage = false): void => void misses.push({ place, why, outage });
    let response: Response;
    try {
      response = await http(place, { headers: { accept: 'application/json' }, signal });
    } catch (error) {
      signal?.throwIfAborted();
      // A server that leads to a private network is not asked for another place.
      if (error instanceof AddressRejected) throw error;
      miss(messageOf(error), true);
      continue;
    }
    if (response.status !== 200) {
      miss(`HTTP ${response.status}`, response.status >= 500);
      continue;
    }
    const document: unknown = await response.json().catch(() => undefined);
    const read = isObject(document) ? accept(document, place) : 'no JSON object';
    if (typeof read !== 'string') return { found: read, misses };
    miss(read);
  }
  return { found: undefined, misses };
}

/** Explains what each place said. */
export function explainMisses(misses: readonly Miss[]): string {
  return misses.map(({ place, why }) => (why.startsWith(place) ? why : `${place}: ${why}`)).join('; ');
}

/** @throws {Error} for a response that is not 200 with a JSON object */
export async function getJson(http: GuardedFetch, address: string): Promise<Readonly<Record<string, unknown>>> {
  const { found, misses } = await firstDocument(http, [address], undefined, (document) => document);
  if (!found) throw new Error(explainMisses(misses));
  return found;
}

/**
 * Reads the metadata of an authorization server. An address that is no URL and a list that has no texts count as absent; a text in
 * place of a list is its words.
 *
 * @returns undefined if it names no issuer
 */
export function readAuthorizationServer(document: Readonly<Record<string, unknown>>): AuthorizationServer | undefined {
  const { issuer } = document;
  if (typeof issuer !== 'string') return undefined;
  const members = Object.entries(document).flatMap(([member, value]) => {
    const read = readMember(member, value);
    return read === undefined ? [] : [[member, read] as const];
  });
  return { ...Object.fromEntries(members), issuer };
}

/** RFC 8414 section 2: the names of members tell what they are. */
function readMember(member: string, value: unknown): unknown {
  if (/_(?:endpoint|uri)$/.test(member)) return typeof value === 'string' && URL.canParse(value) ? value : undefined;
  if (!member.endsWith('_supported')) return value;
  // A plural is a list: `scopes_supported`, and `client_id_metadata_document_supported`.
  if (!member.endsWith('s_supported')) return typeof value === 'boolean' ? value : undefined;
  if (typeof value === 'string') return value.split(' ');
  const texts = Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
  return texts.length > 0 ? texts : undefined;
}

/** True for issuers that differ in a final slash at most. */
export function isSameIssuer(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '');
}
