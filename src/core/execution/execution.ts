/**
 * The execution contract: the interface of what runs a resolved element. Authors may supply their own; it receives
 * every argument unchanged.
 */

import type { JsonObject } from '../protocol/json.ts';
import type {
  CacheHints,
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Tool,
} from '../protocol/types.ts';
import type { Labelled } from '../requests/running.ts';
import type { CompiledSchema } from '../schema/schema.ts';
import type { Context } from './context.ts';

/**
 * Runs one kind of call. A thrown {@link ProtocolError} is sent as it is; any other error becomes an error without
 * details.
 */
export interface Execution<Call, Result> {
  execute(call: Call, ctx: Context): Result | Promise<Result>;
}

/** An author's executor: a replacement, or a function that wraps the default executor. */
type ExecutionOption<E> = E | ((inner: E) => E);

/** True if a call may become a task: never; when it runs long and its client accepts tasks; or always. */
export type TaskSupport = 'never' | 'allowed' | 'required';

/** A tool, ready to be called. Features declare here what their options add. */
export interface ToolImplementation extends Labelled {
  readonly input: CompiledSchema;
  readonly output: CompiledSchema | undefined;
  /** Timeout in milliseconds, if the tool overrides the server's default. */
  readonly timeoutMs: number | undefined;
  /** True if a call that cannot be resumed may be run again. Undefined: the default that `ToolOptions` describes. */
  readonly rerun: boolean | undefined;
  readonly task: TaskSupport;
  /** The handler returns the result of another server, which is passed on as it is. */
  readonly relayed?: true;
  handler(args: unknown, ctx: Context): unknown;
}

export interface ToolCall {
  readonly tool: Tool;
  /** The arguments as the client sent them, unchecked. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The compiled schemas and the handler, for executors that need them. */
  readonly implementation: ToolImplementation;
}

export type ToolExecution = Execution<ToolCall, CallToolResult>;

/** Values from a completer. At most 100 are sent; `total` is the number of all matches. */
export type Suggestions =
  | readonly string[]
  | { readonly values: readonly string[]; readonly total?: number; readonly hasMore?: boolean };

/** Suggests values for one argument, given its typed prefix and the arguments that are already chosen. */
export type Completer = (
  value: string,
  chosen: Readonly<Record<string, string>>,
  ctx: Context,
) => Suggestions | Promise<Suggestions>;

export interface Completable {
  readonly completers: Readonly<Record<string, Completer>>;
}

export interface ResourceImplementation extends Labelled, Completable {
  /** Caching hints for a result that has none of its own. */
  readonly hints: CacheHints;
  read(asked: { readonly uri: string; readonly variables: Variables }, ctx: Context): unknown;
  /** Reads it for a view: as data, which counts its changes. */
  live?: LiveReader | undefined;
}

/** Reads a resource as data with a `version` that increases with each change. */
export type LiveReader = (
  asked: { readonly uri: string; readonly variables: Variables },
  ctx: Context,
) => Promise<JsonObject & { readonly version: number }>;

/** The values of a template's variables. */
export type Variables = Readonly<Record<string, string | readonly string[]>>;

export interface ResourceRead {
  readonly uri: string;
  readonly resource: Resource | ResourceTemplate;
  /** The values of the template's variables; empty for a resource without a template. */
  readonly variables: Variables;
  readonly implementation: ResourceImplementation;
}

export type ResourceExecution = Execution<ResourceRead, ReadResourceResult>;

export interface PromptImplementation extends Labelled, Completable {
  readonly input: CompiledSchema | undefined;
  /** As of a tool. */
  readonly relayed?: true;
  handler(args: unknown, ctx: Context): unknown;
}

export interface PromptCall {
  readonly prompt: Prompt;
  readonly arguments: Readonly<Record<string, string>>;
  readonly implementation: PromptImplementation;
}

export type PromptExecution = Execution<PromptCall, GetPromptResult>;

export interface CompletionCall {
  /** The argument or variable to complete, and its typed prefix. */
  readonly argument: { readonly name: string; readonly value: string };
  readonly chosen: Readonly<Record<string, string>>;
  readonly completer: Completer;
}

export type CompletionExecution = Execution<CompletionCall, CompleteResult>;

export interface Executions {
  readonly tools: ToolExecution;
  readonly resources: ResourceExecution;
  readonly prompts: PromptExecution;
  readonly completions: CompletionExecution;
}

export type ExecutionOptions = { readonly [K in keyof Executions]?: ExecutionOption<Executions[K]> };

/** Returns the executor to use: the author's, the author's wrapper around the default, or the default. */
export function chooseExecution<E extends object>(option: ExecutionOption<E> | undefined, ours: E): E {
  if (option === undefined) return ours;
  return typeof option === 'function' ? option(ours) : option;
}
