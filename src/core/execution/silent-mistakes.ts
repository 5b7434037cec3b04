/** Finds mistakes of a tool's handler that nothing else reports, because a result is sent all the same. Each is said once for each tool. */
import { isObject } from '../protocol/json.ts';
import type { CallToolResult } from '../protocol/types.ts';
import type { Context } from './context.ts';
import type { ToolCall, ToolImplementation } from './execution.ts';
import { RequestContext } from './request-context.ts';
import { mistypedArgument } from './wrong-arguments.ts';

/** Longest text that is searched, in characters. */
const MAX_SEARCHED = 10_000;

type Mistake = 'mistyped argument' | 'no result' | 'promise in text' | 'unfinished state';

/** The calls of each tool that are searched, from its first: a mistake shows while a server is written, and later calls pay nothing. */
export const MAX_LOOKED = 100;

/** Reports the mistakes of all calls of one server. */
export class SilentMistakes {
  /** The calls of each tool that were searched. */
  readonly looked = new WeakMap<ToolImplementation, number>();
  readonly #warn: (message: string) => void;
  readonly #said = new WeakMap<ToolImplementation, Set<Mistake>>();

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  /** Looks at what a handler returned, and at what is sent for it. */
  look(call: ToolCall, returned: unknown, result: CallToolResult, ctx: Context): void {
    const { tool, implementation } = call;
    const { name } = tool;
    this.looked.set(implementation, (this.looked.get(implementation) ?? 0) + 1);
    // The search for a near name loads with the first name that the tool does not have.
    const mistyped = hasUnknownName(call) ? mistypedArgument(tool, call.arguments) : undefined;
    if (mistyped !== undefined)
      this.#say(
        implementation,
        'mistyped argument',
        `tool "${name}" was called with ${mistyped}, which its schema drops: make the schema strict, so that the model reads this`,
      );
    if (returned === undefined && !endsOnPurpose(implementation))
      this.#say(
        implementation,
        'no result',
        `tool "${name}" returned undefined, so the model gets an empty result. Is a return missing? If nothing is to be said, return a text such as "done"`,
      );
    if (result.content.some((block) => block.type === 'text' && holdsPromise(block.text)))
      this.#say(
        implementation,
        'promise in text',
        `tool "${name}" returned a text that contains [object Promise]: await the promise before you put it in the text`,
      );
    if (!(ctx instanceof RequestContext)) return;
    const [operation] = ctx.unfinishedState;
    if (operation !== undefined)
      this.#say(
        implementation,
        'unfinished state',
        `tool "${name}" returned before its ctx.state.${operation} had ended: await it, or what it returns and throws is lost`,
      );
  }

  #say(implementation: ToolImplementation, mistake: Mistake, message: string): void {
    const said = this.#said.get(implementation) ?? new Set();
    if (said.has(mistake)) return;
    this.#said.set(implementation, said.add(mistake));
    this.#warn(message);
  }
}

function hasUnknownName({ tool, arguments: args }: ToolCall): boolean {
  const { properties } = tool.inputSchema;
  return isObject(args) && isObject(properties) && Object.keys(args).some((name) => !Object.hasOwn(properties, name));
}

function holdsPromise(text: string): boolean {
  return text.length <= MAX_SEARCHED && text.includes('[object Promise]');
}

/** True if the author wrote that the handler returns nothing. */
function endsOnPurpose({ handler }: ToolImplementation): boolean {
  return /\breturn\s*(?:;|\}|undefined\b|void\b)|=>\s*(?:undefined|void)\b|=>\s*\{\s*\}$/.test(String(handler));
}
