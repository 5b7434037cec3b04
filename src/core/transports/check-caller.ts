/** Checks the caller that an option of a transport or of a command names. */

import { describe } from '../protocol/json.ts';
import { ANONYMOUS, LOCAL, PROGRAM } from '../protocol/principals.ts';
import { problemOfScopes } from '../protocol/scopes.ts';
import type { NamedClient } from './transport.ts';

/** @throws {TypeError} for a principal that cannot own anything, or for scopes that are none */
export function checkCaller(where: string, principal: unknown, scopes: unknown): void {
  const problem = scopes === undefined ? undefined : problemOfScopes(scopes);
  if (problem !== undefined) throw new TypeError(`${where}: scopes: ${problem}`);
  if (principal === undefined || (typeof principal === 'string' && !['', ANONYMOUS, PROGRAM].includes(principal)))
    return;
  if (principal === PROGRAM)
    throw new TypeError(`${where}: principal: "${PROGRAM}" is reserved for the program itself`);
  throw new TypeError(
    `${where}: principal: expected the name of a user, such as "ada", got ${principal === ANONYMOUS ? `"${ANONYMOUS}", which owns nothing. Leave the option out for the local user` : describe(principal)}`,
  );
}

/**
 * Returns the client that the options of a transport name.
 *
 * @throws {TypeError} as {@link checkCaller}
 */
export function namedClient(
  where: string,
  { principal, scopes }: { readonly principal?: string | undefined; readonly scopes?: readonly string[] | undefined },
): NamedClient {
  checkCaller(where, principal, scopes);
  return { principal: principal ?? LOCAL, ...(scopes ? { scopes } : {}) };
}
