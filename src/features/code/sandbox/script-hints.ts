/** Hints behind the message of an error of a script: the text to write instead. */

const NETWORK = 'a script has no network: call a function of a group';
const TIMER = 'write await sleep(ms)';
const TOOL = 'it is a tool of its own: call it outside of the script';
const NODE = 'a script has the language itself and its groups, nothing of Node';
const REPLAYED = 'a script cannot observe the garbage collector, because it may be replayed';

/** Globals that models expect and a script lacks. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['setTimeout', TIMER],
  ['setInterval', TIMER],
  ['setImmediate', TIMER],
  ['fetch', NETWORK],
  ['XMLHttpRequest', NETWORK],
  ['WebSocket', NETWORK],
  ['search_functions', TOOL],
  ['describe_functions', TOOL],
  ['run_code', TOOL],
  ['require', NODE],
  ['process', NODE],
  ['Buffer', NODE],
  ['module', NODE],
  ['WeakRef', REPLAYED],
  ['FinalizationRegistry', REPLAYED],
  ['structuredClone', 'write JSON.parse(JSON.stringify(value))'],
  ['Intl', 'a script has no locales'],
]);

/** Groups that an error names at most. */
const NAMED = 20;

/** @returns words that continue the message, or an empty text */
export function hintFor(name: string, message: string, groups: readonly string[]): string {
  const missing = name === 'ReferenceError' ? /^'?([\w$]{1,100})'? is not defined/.exec(message)?.[1] : undefined;
  if (missing === undefined) return '';
  const instead = INSTEAD.get(missing);
  if (instead !== undefined) return `: ${instead}`;
  const more = groups.length > NAMED ? ` and ${groups.length - NAMED} more` : '';
  return `: the globals of a script are ${[...groups.slice(0, NAMED), 'sleep', 'ask', 'resource', 'progress', 'console'].join(', ')}${more}`;
}
