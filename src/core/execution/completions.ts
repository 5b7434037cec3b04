/** The default completion executor: calls the completer and trims the values to what the protocol allows. */
import type { CompleteResult } from '../protocol/types.ts';
import type { Context } from './context.ts';
import type { CompletionCall, Suggestions } from './execution.ts';

/** Maximum number of values in one response (MCP "Completion"). */
const MAX_VALUES = 100;

export async function executeCompletion(call: CompletionCall, ctx: Context): Promise<CompleteResult> {
  const { argument, chosen, completer } = call;
  return toCompleteResult(await completer(argument.value, chosen, ctx));
}

function toCompleteResult(suggestions: Suggestions): CompleteResult {
  const given = isList(suggestions) ? { values: suggestions } : suggestions;
  const values = given.values.slice(0, MAX_VALUES);
  const total = given.total ?? given.values.length;
  return { completion: { values, total, hasMore: given.hasMore ?? total > values.length } };
}

function isList(suggestions: Suggestions): suggestions is readonly string[] {
  return Array.isArray(suggestions);
}
