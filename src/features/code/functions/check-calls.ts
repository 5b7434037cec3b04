/** Finds the calls of a script that cannot succeed, before it runs. */
import { checkArguments } from './check-arguments.ts';
import { checkNames } from './check-names.ts';
import type { CallableFunctions } from './code-functions.ts';
import { type CallProblem, callsIn } from './script-calls.ts';

/**
 * The calls of unknown functions; if there are none, those whose literal arguments cannot be valid. None in doubt.
 *
 * @example checkCalls('shop.refnd({})', functions) // [{ name: 'shop.refnd', line: 1, column: 1, message: '…' }]
 */
export function checkCalls(code: string, functions: CallableFunctions): readonly CallProblem[] {
  const found = callsIn(code, functions.groups);
  if (!found) return [];
  const unknown = checkNames(code, found, functions);
  return unknown.length > 0 ? unknown : checkArguments(code, found, functions);
}
