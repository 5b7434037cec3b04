/** Requests to the inspected server. Each has the token; a rejected request throws an error with the server's text. */
import type { Control } from '../../../src/inspector/calls/call-messages.ts';
import type { ActorView, CoverageFrame, Plain, WhatIf } from '../../../src/inspector/frames.ts';

export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Longest that the server may take to answer a read, in milliseconds: it may stand at a breakpoint. A call may take any time. */
const READ_MS = 60_000;

let token: string | undefined;

export function useToken(given: string | undefined): void {
  token = given;
}

/**
 * @param signal ends the request; without one, a deadline ends a read
 * @throws {Refused} if the server rejects the request
 */
export async function ask(
  path: string,
  {
    body,
    signal = body === undefined ? AbortSignal.timeout(READ_MS) : null,
  }: { body?: unknown; signal?: AbortSignal | null } = {},
): Promise<Response> {
  const response = await fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    cache: 'no-store',
    credentials: 'omit',
    headers: {
      authorization: `Bearer ${token ?? ''}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal,
  });
  if (!response.ok) throw new Refused(response.status, await reasonOf(response));
  return response;
}

export async function askWhatIf(actor: string, event: Plain): Promise<WhatIf> {
  const response = await ask('api/what-if', { body: { actor, event } });
  return response.json();
}

export async function readView(actor: string): Promise<ActorView> {
  const response = await ask(`api/look?actor=${encodeURIComponent(actor)}`);
  return response.json();
}

/** The views of several live actors, without their contexts. */
export async function readViews(actors: readonly string[]): Promise<readonly ActorView[]> {
  const response = await ask('api/looks', { body: { actors } });
  return response.json();
}

/** The server's own count of visits; undefined if the program is no server. */
export async function readCoverage(): Promise<CoverageFrame | undefined> {
  const response = await ask('api/coverage');
  return response.status === 204 ? undefined : response.json();
}

/** @returns the server's description of the outcome */
export async function control(body: Control | { readonly [key: string]: Plain }): Promise<string> {
  const response = await ask('api/control', { body });
  return response.text();
}

async function reasonOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => '');
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && 'error' in parsed && typeof parsed.error === 'string')
      return parsed.error;
  } catch {}
  return text === '' ? `the server responded with ${response.status}` : text.slice(0, 500);
}
