/** Finds out from its text whether a handler of a tool cannot do without `ctx.state`. */
/** The second parameter, by its name or as an object pattern. */
const CONTEXT = /^(?:async\s+)?(?:function\b[^(]*|[\w$]+\s*)?\((?:[^(){}]|\{[^{}]*\})*?,\s*([\w$]+|\{[^{}]*\})\s*\)/;

type Handler = (args: never, ctx: never) => unknown;

const known = new WeakMap<Handler, boolean>();

/**
 * True if the text of the handler calls `ctx.state`, and neither reads `ctx.state.scope` nor catches errors: a caller without a
 * scope then gets an error in any case. A function to which the handler passes its context is not read.
 */
export function needsState({ handler }: { readonly handler: Handler }): boolean {
  const found = known.get(handler) ?? readsState(String(handler));
  known.set(handler, found);
  return found;
}

function readsState(text: string): boolean {
  const [, context = ''] = CONTEXT.exec(text) ?? [];
  const state = /^[\w$]+$/.test(context)
    ? `${context.replaceAll('$', '\\$')}\\.state`
    : /\bstate\b/.test(context)
      ? 'state'
      : '';
  if (state === '') return false;
  const calls = new RegExp(`(?<![\\w$.])${state}\\.(?:get|set|delete|update|list|clear)\\(`);
  return calls.test(text) && !/\.scope\b|\bscope\b|\bcatch\b/.test(text);
}
