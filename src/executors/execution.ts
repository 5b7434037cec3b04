/** The execution contract: what runs a resolved element. An author may supply their own; it receives every argument as it came. */

import type { Context } from '../input/context.ts';
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

/** Runs one kind of call. What it throws becomes an error: a {@link ProtocolError} as it is, anything else without its details. */
export interface Execution<Call, Result> {
  execute(call: Call, ctx: Context): Result | Promise<Result>;
}

/** The executor of an author: a replacement, or a wrapper around the one that would have served. */
export type ExecutionOption<E> = E | ((inner: E) => E);

/** Whether a call may outlive its request: never, when it takes long and its client takes tasks, or always. */
export type TaskSupport = 'never' | 'allowed' | 'required';

export interface ToolImplementation extends Labelled {
  readonly input: CompiledSchema;
  readonly output: CompiledSchema | undefined;
  /** Milliseconds, where the tool needs another time than the server's default. */
  readonly timeoutMs: number | undefined;
  /** Whether a call may be run anew where it cannot go on; undefined for the default, which is told in `ToolOptions`. */
  readonly rerun: boolean | undefined;
  readonly task: TaskSupport;
  handler(args: unknown, ctx: Context): unknown;
}

export interface ToolCall {
  readonly tool: Tool;
  /** Unfiltered and unchecked, as the client sent them. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The compiled schemas and the handler, for an executor that wants them. */
  readonly implementation: ToolImplementation;
}

export type ToolExecution = Execution<ToolCall, CallToolResult>;

/** Values that a completer suggests: at most 100 are sent; `total` says how many there are. */
export type Suggestions =
  | readonly string[]
  | { readonly values: readonly string[]; readonly total?: number; readonly hasMore?: boolean };

/** Suggests values for one argument, given what is typed so far and the arguments that were already chosen. */
export type Completer = (
  value: string,
  chosen: Readonly<Record<string, string>>,
  ctx: Context,
) => Suggestions | Promise<Suggestions>;

export interface Completable {
  readonly completers: Readonly<Record<string, Completer>>;
}

export interface ResourceImplementation extends Labelled, Completable {
  /** Caching hints where the result has none of its own. */
  readonly hints: CacheHints;
  read(asked: { readonly uri: string; readonly variables: Variables }, ctx: Context): unknown;
}

/** What a template's variables matched. */
export type Variables = Readonly<Record<string, string | readonly string[]>>;

export interface ResourceRead {
  readonly uri: string;
  readonly resource: Resource | ResourceTemplate;
  /** What the template's variables matched; empty for a resource that is no template. */
  readonly variables: Variables;
  readonly implementation: ResourceImplementation;
}

export type ResourceExecution = Execution<ResourceRead, ReadResourceResult>;

export interface PromptImplementation extends Labelled, Completable {
  readonly input: CompiledSchema | undefined;
  handler(args: unknown, ctx: Context): unknown;
}

export interface PromptCall {
  readonly prompt: Prompt;
  readonly arguments: Readonly<Record<string, string>>;
  readonly implementation: PromptImplementation;
}

export type PromptExecution = Execution<PromptCall, GetPromptResult>;

export interface CompletionCall {
  /** The argument or variable being completed, and what is typed so far. */
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

/** The executor that serves: the author's, the author's around ours, or ours. */
export function chooseExecution<E extends object>(option: ExecutionOption<E> | undefined, ours: E): E {
  if (option === undefined) return ours;
  return typeof option === 'function' ? option(ours) : option;
}
