/** What the scenario asks of an official client, whichever version of the package it is: the few differences are hidden behind this. */
import type { Wire } from './wire.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: object) => void;
  readonly meta?: Record<string, unknown>;
}

/** Results are compared whole: their members are told nothing of. */
export interface Loose {
  readonly [member: string]: unknown;
}

export interface OfficialClient<W extends Wire = Wire> {
  readonly wire: W;
  /** The revision that the client believes to speak. */
  readonly revision: string;
  readonly introduction: { readonly info: unknown; readonly capabilities: Loose; readonly instructions: unknown };
  /** The whole list, however many pages it has. */
  listTools(): Promise<readonly Loose[]>;
  listResources(): Promise<readonly Loose[]>;
  listTemplates(): Promise<readonly Loose[]>;
  listPrompts(): Promise<readonly Loose[]>;
  callTool(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Loose>;
  readResource(uri: string): Promise<Loose>;
  subscribe(uri: string): Promise<unknown>;
  unsubscribe(uri: string): Promise<unknown>;
  /** Opens a `subscriptions/listen`, where client and revision have it. */
  listen(filter: Record<string, boolean | string[]>): Promise<Subscription>;
  getPrompt(name: string, args?: Record<string, string>): Promise<Loose>;
  complete(ref: Ref, argument: Argument, chosen?: Record<string, string>): Promise<Loose>;
  setLevel(level: 'debug' | 'warning' | 'emergency'): Promise<unknown>;
  ping(): Promise<unknown>;
  /** What reached the client's own notification handler, in order. */
  readonly heard: readonly Loose[];
  /** Ends the session, where the transport lets a client do so, and the connection. */
  close(): Promise<void>;
}

/** An open subscription, as the client of version 2 has it. */
export interface Subscription {
  readonly honoredFilter: unknown;
  /** How it ended. */
  readonly closed: Promise<string>;
  close(): Promise<void>;
}

export type Ref =
  | { readonly type: 'ref/prompt'; readonly name: string }
  | { readonly type: 'ref/resource'; readonly uri: string };
export type Argument = { readonly name: string; readonly value: string };

export interface Failure {
  readonly code: unknown;
  readonly message: string;
  readonly data: unknown;
}

/** The error that a call is answered with. */
export async function failure(call: Promise<unknown>): Promise<Failure> {
  let result: unknown;
  try {
    result = await call;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { code: Reflect.get(error, 'code'), message: error.message, data: Reflect.get(error, 'data') };
  }
  throw new Error(`expected an error, got ${JSON.stringify(result)}`);
}

/** Follows the cursors of a list to its end. */
export async function everyPage(
  page: (
    cursor: string | undefined,
  ) => Promise<{ readonly items: readonly Loose[]; readonly next: string | undefined }>,
): Promise<readonly Loose[]> {
  const all: Loose[] = [];
  let cursor: string | undefined;
  do {
    const { items, next } = await page(cursor);
    all.push(...items);
    cursor = next;
  } while (cursor !== undefined);
  return all;
}
