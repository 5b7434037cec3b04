/** What tests read in the results and errors of calls. */
import { ErrorResponse } from 'troupe/testing';
import * as assert from 'uvu/assert';

/** The texts of a result, each on a line of its own: of another block its JSON, and without content that of the result. */
export function textOf(result: { readonly content?: unknown }): string {
  const { content } = result;
  if (!Array.isArray(content)) return JSON.stringify(result);
  return content.map((block) => (typeof block?.text === 'string' ? block.text : JSON.stringify(block))).join('\n');
}

/** The classes of errors that tests expect. */
type Kind<E extends Error> = abstract new (...args: never[]) => E;

/**
 * The error of a promise that must reject.
 *
 * @param kind the class of the error. Default: any
 * @throws Error if it resolves, or rejects with something else
 * @example assert.is((await rejection(client.call('spend'), ErrorResponse)).code, -32602);
 */
export function rejection(promise: Promise<unknown>): Promise<Error>;
export function rejection<E extends Error>(promise: Promise<unknown>, kind: Kind<E>): Promise<E>;
export async function rejection(promise: Promise<unknown>, kind: Kind<Error> = Error): Promise<Error> {
  const [error, result] = await promise.then(
    (value) => [undefined, value],
    (reason: unknown) => [reason],
  );
  if (error instanceof kind) return error;
  const outcome = error === undefined ? `the result ${JSON.stringify(result)}` : String(error);
  throw new Error(`expected ${kind.name}, got ${outcome}`, { cause: error });
}

/** Asserts that a promise rejects with an error that has these words in its message. */
export async function assertRejects(promise: Promise<unknown>, words: RegExp | string): Promise<void> {
  assert.match((await rejection(promise)).message, words);
}

/** The error response of a request of the test client. @throws Error if the request has a result */
export function errorResponse(request: Promise<unknown>): Promise<ErrorResponse> {
  return rejection(request, ErrorResponse);
}
