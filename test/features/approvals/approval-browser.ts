/** The browsers of people who decide on the pages of approvals. */
import type { HttpOptions } from '../../../src/index.ts';
import type { Shop } from './support.ts';

export const HOST = 'https://desk.example.com';
const PEOPLE: Readonly<Record<string, { readonly principal: string; readonly scopes: readonly string[] }>> = {
  ada: { principal: 'ada', scopes: [] },
  olga: { principal: 'olga', scopes: ['ops'] },
  eve: { principal: 'eve', scopes: ['sales'] },
};
export const HTTP: HttpOptions = {
  authenticate: ({ header }) => header('x-user'),
  allowedHosts: ['desk.example.com'],
  signIn: { url: `${HOST}/x/oauth/callback`, identify: ({ header }) => PEOPLE[header('x-browser') ?? ''] },
};

export interface ApprovalPage {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** Loads a page of approvals in the browser of a person, or sends a form. */
export async function load(
  { server }: Shop,
  person: string,
  path: string,
  form?: Readonly<Record<string, string>>,
  origin = HOST,
): Promise<ApprovalPage> {
  const sent = form && {
    method: 'POST',
    body: new URLSearchParams(form).toString(),
    headers: { 'x-browser': person, 'content-type': 'application/x-www-form-urlencoded', origin },
  };
  const request = new Request(`${HOST}/x/approvals${path}`, { ...(sent ?? { headers: { 'x-browser': person } }) });
  const response = await server.fetch(request);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** What a form of a page needs to decide. */
export function markIn({ text }: ApprovalPage): string {
  const found = /name="mark" value="([^"]+)"/.exec(text)?.[1];
  if (found === undefined) throw new Error(`expected a form, got ${text}`);
  return found;
}
