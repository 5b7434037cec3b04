/** Reads the answers of token endpoints, which many authorization servers write in their own way, into what RFC 6749 demands. */

import { isObject } from '../../core/protocol/json.ts';
import { isHeaderValue } from '../../features/oauth/issuers/header-text.ts';

/** Members that a server may write as null, which is as if they were missing. */
const OPTIONAL = ['refresh_token', 'expires_in'];
/** Members that a client of a resource does not use: an ID token of any form, and scopes as a list, make no difference. */
const UNUSED = ['id_token', 'scope'];

/**
 * A response of a token endpoint as the library expects it: JSON, an error with an error's status, a type of token, and seconds as
 * a number. A response that is none of this stays as it is.
 *
 * @throws {Error} for a token that no header can carry
 * @see RFC 6749 sections 5.1 and 5.2
 */
export async function readableTokenAnswer(response: Response): Promise<Response> {
  if (response.status !== 200) return response;
  const text = await response.text();
  const answer = membersOf(text);
  const unchanged = (): Response => new Response(text, { status: response.status, headers: response.headers });
  if (!answer) return unchanged();
  const token = answer.access_token;
  // Some servers send errors with status 200.
  if (token === undefined || token === null) {
    if (typeof answer.error !== 'string') return unchanged();
    return json({ ...answer }, 400, response);
  }
  if (typeof token === 'string' && !isHeaderValue(token))
    throw new Error('the authorization server issued an access token with characters that no HTTP header can carry');
  const members: Record<string, unknown> = { ...answer, token_type: answer.token_type ?? 'Bearer' };
  for (const name of UNUSED) delete members[name];
  for (const name of OPTIONAL) if (members[name] === null) delete members[name];
  const seconds = members.expires_in;
  if (typeof seconds === 'string' && /^\d{1,12}$/.test(seconds)) members.expires_in = Number(seconds);
  return json(members, 200, response);
}

/** The members of JSON or of a form, which some servers send in spite of `Accept`. */
function membersOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    const form = new URLSearchParams(text);
    return form.has('access_token') || form.has('error') ? Object.fromEntries(form) : undefined;
  }
}

function json(members: Readonly<Record<string, unknown>>, status: number, { headers }: Response): Response {
  const all = new Headers(headers);
  all.set('content-type', 'application/json');
  return new Response(JSON.stringify(members), { status, headers: all });
}
