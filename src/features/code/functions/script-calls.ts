/** The calls of functions in a script, found in its tokens: those of which it is sure what they call. */
import { blocksOf, type ScriptToken, tokensOf } from './script-tokens.ts';

export interface FoundCall {
  /** Such as `github.issues_list`, without `.raw`; or the name of a tool of code mode. */
  readonly name: string;
  /** The places of its tokens: the first of its name, and the parenthesis of its arguments. */
  readonly at: number;
  readonly opening: number;
}

export interface FoundCalls {
  readonly tokens: readonly ScriptToken[];
  /** The place of the mark that closes the one at a place. */
  readonly closings: ReadonlyMap<number, number>;
  /** In the order of the script, without those whose failure it catches. */
  readonly calls: readonly FoundCall[];
}

/** A call that cannot succeed. */
export interface CallProblem {
  /** Such as `github.issues_lst`. */
  readonly name: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** For the model, without the place. */
  readonly message: string;
}

/** The tools of code mode, which are no functions of scripts. */
export const CODE_TOOLS: ReadonlySet<string> = new Set(['search_functions', 'describe_functions', 'run_code']);

/** Finds the calls of groups, and those of tools; none in doubt, such as of a group that the script may have changed. */
export function callsIn(code: string, groupNames: readonly string[]): FoundCalls | undefined {
  const tokens = tokensOf(code);
  if (!tokens) return undefined;
  const groups = new Set(groupNames);
  const calls: FoundCall[] = [];
  /** Groups and functions that the script uses in other ways. */
  const doubtful = new Set<string>();
  const { closings, tried } = blocksOf(tokens);
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== 'word' || isMember(tokens, at)) continue;
    if (CODE_TOOLS.has(token.text)) {
      if (tokens[at + 1]?.text === '(') calls.push({ name: token.text, at, opening: at + 1 });
      else doubtful.add(token.text);
    }
    if (!groups.has(token.text)) continue;
    const used = memberAt(tokens, at);
    if (used === undefined) doubtful.add(token.text);
    else if (used.isCalled && !tried.has(at) && !isCaught(tokens, closings.get(used.end) ?? tokens.length))
      calls.push({ name: `${token.text}.${used.member}`, at, opening: used.end });
    else doubtful.add(`${token.text}.${used.member}`);
  }
  const sure = calls.filter(({ name }) => !doubtful.has(name) && !doubtful.has(name.slice(0, name.indexOf('.'))));
  return { tokens, closings, calls: sure };
}

/** True for the name of a member, such as `a` in `x.a`. */
function isMember(tokens: readonly ScriptToken[], at: number): boolean {
  return tokens[at - 1]?.text === '.' || tokens[at - 1]?.text === '?.';
}

/** The member of a group that the script uses, and whether it calls it; undefined if it uses the group in another way. */
function memberAt(
  tokens: readonly ScriptToken[],
  at: number,
): { readonly member: string; readonly isCalled: boolean; readonly end: number } | undefined {
  const [mark, name, close] = [tokens[at + 1], tokens[at + 2], tokens[at + 3]];
  const member = mark?.text === '.' && name?.kind === 'word' ? { name: name.text, next: at + 3 } : undefined;
  const computed =
    mark?.text === '[' && name?.kind === 'text' && close?.text === ']' ? { name: name.text, next: at + 4 } : undefined;
  const used = member ?? computed;
  if (!used) return undefined;
  const isRaw = tokens[used.next]?.text === '.' && tokens[used.next + 1]?.text === 'raw';
  const end = isRaw ? used.next + 2 : used.next;
  return { member: used.name, isCalled: tokens[end]?.text === '(', end };
}

/** True for a call whose failure the script catches: `call().catch(…)`, `call().then(…, …)`. @param end the closing parenthesis */
function isCaught(tokens: readonly ScriptToken[], end: number): boolean {
  const name = tokens[end + 2]?.text;
  return tokens[end + 1]?.text === '.' && (name === 'catch' || name === 'then');
}
