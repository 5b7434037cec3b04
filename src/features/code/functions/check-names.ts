/**
 * Finds calls of functions that do not exist, before a script runs. It reads tokens, not syntax: where a name may mean something else,
 * or the script may handle its absence, nothing is reported.
 */
import type { CallableFunctions } from './code-functions.ts';
import { type CallProblem, CODE_TOOLS, type FoundCalls } from './script-calls.ts';
import { placeOfToken } from './script-tokens.ts';

/** Problems that are reported. */
const MOST = 5;

/** The calls of functions that the caller does not have, in the order of the script. */
export function checkNames(
  code: string,
  { tokens, calls }: FoundCalls,
  functions: CallableFunctions,
): readonly CallProblem[] {
  return calls
    .filter(({ name }) => CODE_TOOLS.has(name) || !isKnown(name, functions))
    .slice(0, MOST)
    .map(({ name, at }) => ({
      ...{ name, message: messageFor(name, functions) },
      ...placeOfToken(code, tokens[at]?.at ?? 0),
    }));
}

function isKnown(name: string, functions: CallableFunctions): boolean {
  return functions.find(name) !== undefined || name.slice(name.indexOf('.') + 1) in Object.prototype;
}

function messageFor(name: string, functions: CallableFunctions): string {
  if (CODE_TOOLS.has(name)) return `${name} is a tool. Call it outside of scripts.`;
  const near = functions.near(name);
  return `${name} is no function.${near.length === 0 ? ' Find it with search_functions.' : ` Did you mean ${near.join(' or ')}?`}`;
}
