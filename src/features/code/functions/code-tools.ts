/** The three tools of code mode: a model searches functions, reads their declarations, and runs a script that calls them. */
import type { Context } from '../../../core/execution/context.ts';
import { requestContextOf } from '../../../core/execution/request-context.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { Element } from '../../../core/messages/registry-messages.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import { ANONYMOUS } from '../../../core/protocol/principals.ts';
import type { CallToolResult, Tool } from '../../../core/protocol/types.ts';
import type { AnyTool, ResourceDefinition } from '../../../core/registry/define.ts';
import type { Registration } from '../../../core/registry/registration.ts';
import type { FoundMount, ToolFinder } from '../../../gateway/mounts/tool-finder.ts';
import { RESULT_URI } from '../runs/run-rows.ts';
import type { CallableFunctions } from './code-functions.ts';
import { FunctionIndex, MOST_DESCRIBED, MOST_FOUND, USUAL_FOUND } from './function-index.ts';

/** The source of the tools in the registry. */
const SOURCE = 'code mode';
const SEARCH = 'search_functions';
const DESCRIBE = 'describe_functions';
const RUN = 'run_code';
/** The longest query and name, and the longest script, in characters. */
const MAX_TEXT = 1_000;
const MAX_CODE = 65_536;

/** A call of `run_code`. */
export interface ScriptArguments {
  readonly code?: string;
  readonly resume?: string;
}

interface CodeHost {
  readonly clock: Pick<Clock, 'soon'>;
  readonly catalogue: { readonly version: number; all(): readonly Element<Tool>[] };
  readonly tools: Pick<Registration<AnyTool>, 'replaceSource'>;
  readonly resources: Pick<Registration<ResourceDefinition>, 'replaceSource'>;
  /** Sets the part of the list of tools that the caller of a request sees. */
  seeTools(request: RequestView): Promise<undefined> | undefined;
  /** True if a rule decides about every tool: it may hide one from a caller. */
  ruled(): boolean;
  /** True if scripts can call only what reads. */
  readonly isReadOnly: boolean;
  run(args: ScriptArguments, ctx: Context, functions: CallableFunctions): Promise<CallToolResult>;
  /** The whole result of a run of the caller, as JSON. */
  wholeResult(run: string, ctx: Context): Promise<string | undefined>;
}

export class CodeTools implements ToolFinder {
  readonly #host: CodeHost;
  readonly #functions: FunctionIndex;
  #offered = false;

  constructor(host: CodeHost) {
    this.#host = host;
    this.#functions = new FunctionIndex(host, host.isReadOnly);
  }

  add(mount: FoundMount): void {
    if (!this.#offered) this.#offer(this.#definitions(), [this.#result()]);
    this.#offered = true;
    this.#functions.add(mount);
  }

  remove(mount: string): void {
    this.#functions.remove(mount);
    if (!this.#offered || this.#functions.mounts.length > 0) return;
    this.#offered = false;
    this.#offer([], []);
  }

  #offer(tools: readonly AnyTool[], resources: readonly ResourceDefinition[]): void {
    this.#host.tools.replaceSource(SOURCE, tools);
    this.#host.resources.replaceSource(SOURCE, resources);
  }

  #result(): ResourceDefinition {
    return {
      ...{ uri: RESULT_URI, name: 'result of a script', mimeType: 'application/json' },
      description: `The whole result of ${RUN}, if it was too long for one answer.`,
      handler: ({ variables: { run } }, ctx) => this.#host.wholeResult(String(run), ctx),
    };
  }

  /** The definition of a tool as lists have it: few functions stand in the description of the tool that runs scripts. */
  shown(tool: Tool, { source }: Pick<Element<Tool>, 'source'>): Tool {
    if (source !== SOURCE || tool.name !== RUN || this.#host.ruled()) return tool;
    const { declarations } = this.#functions;
    return declarations === '' ? tool : { ...tool, description: `${tool.description}\n\n${declarations}` };
  }

  /** The functions that the caller of a request may call. */
  async functionsFor(ctx: Context) {
    const { current } = requestContextOf(ctx);
    if (!current.view) await this.#host.seeTools(current);
    return this.functionsOf(current);
  }

  /** The same for a request whose tools were listed. */
  functionsOf({ view, client }: RequestView) {
    return this.#functions.of({ hides: view?.hides, principal: principalOf(client.principal, client.session?.id) });
  }

  #definitions(): readonly AnyTool[] {
    const readOnly = { readOnlyHint: true, openWorldHint: false } as const;
    return [
      {
        name: SEARCH,
        description: `Finds functions for ${RUN}. A line: group.name({ parameters }), "!" if it may change something, what it does.`,
        input: {
          type: 'object',
          properties: {
            query: { type: 'string', maxLength: MAX_TEXT, description: 'Words. Default: lists the groups.' },
            limit: { type: 'integer', minimum: 1, maximum: MOST_FOUND, default: USUAL_FOUND },
          },
          additionalProperties: false,
        },
        annotations: readOnly,
        handler: async ({ query = '', limit = USUAL_FOUND }: { query?: string; limit?: number }, ctx: Context) =>
          text(await (await this.functionsFor(ctx)).search(query, limit)),
      },
      {
        name: DESCRIBE,
        description: 'Returns the TypeScript declarations of functions. Read them before you call.',
        input: {
          type: 'object',
          properties: {
            names: {
              ...{ type: 'array', minItems: 1, maxItems: MOST_DESCRIBED },
              items: { type: 'string', maxLength: MAX_TEXT },
              description: 'Such as ["group.name"].',
            },
          },
          required: ['names'],
          additionalProperties: false,
        },
        annotations: readOnly,
        handler: async ({ names }: { names: readonly string[] }, ctx: Context) =>
          text(await (await this.functionsFor(ctx)).describe(names, this.#host.clock)),
      },
      {
        name: RUN,
        description: `Runs JavaScript, the body of an async function, in which the groups of ${SEARCH} are globals: \`return await group.name({ id: 1 })\`. Return only what you need: filter and join in the script, and call in parallel with Promise.all. A call with "!" may wait for a person. A failed call throws ToolError { message, tool, code, data, carriedOut, retryAfterMs }. If the type of a result is unknown, return one to see it. group.name.raw(args) returns the whole MCP result. Also: console.log, await sleep(ms), ask(message, schema), resource(uri), progress(n, of, text). There are no imports, network, files or timers.`,
        input: {
          type: 'object',
          properties: {
            code: { type: 'string', maxLength: MAX_CODE },
            resume: {
              type: 'string',
              maxLength: MAX_TEXT,
              description: 'The run to continue, in place of code; "" lists runs.',
            },
          },
          additionalProperties: false,
        },
        task: 'allowed',
        // Its journal lets it continue.
        rerun: true,
        annotations: this.#host.isReadOnly ? { readOnlyHint: true } : { destructiveHint: true },
        handler: async (args: ScriptArguments, ctx: Context) => this.#host.run(args, ctx, await this.functionsFor(ctx)),
      },
    ];
  }
}

/** The session alone distinguishes callers who have not signed in. */
function principalOf(principal: string, session: string | undefined): string {
  return principal === ANONYMOUS && session !== undefined ? `${ANONYMOUS} ${session}` : principal;
}

function text(of: string): CallToolResult {
  return { content: [{ type: 'text', text: of }] };
}
