/** The definition types of tools, resources and prompts, and `defineTool` and its siblings for discovered modules. */
import type { AnyStateMachine, InputFrom } from 'xstate';
import type { Context } from '../execution/context.ts';
import type { Envelope } from '../execution/envelope.ts';
import type { Completer, TaskSupport } from '../execution/execution.ts';
import type { Guarded } from '../messages/authorization-rule.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';
import type { Typed } from '../protocol/server-types.ts';
import type {
  Annotations,
  CacheHints,
  CallToolResult,
  ContentBlock,
  GetPromptResult,
  Icon,
  PromptArgument,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
  ToolAnnotations,
} from '../protocol/types.ts';
import type { AuthorSchema, Infer, InferInput, MaybeInput, ObjectSchema } from '../schema/schema-types.ts';
import type {
  MachineOutput,
  OnePrompt,
  OneResource,
  OneTool,
  PromptArguments,
  ReturnedOutput,
  SchemaOutput,
} from './offered-types.ts';
import type { TemplateCompleters, TemplateVariables } from './template-variables.ts';

interface Described extends Guarded {
  /** A name for people. `name` is for programs. */
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly icons?: readonly Icon[] | undefined;
  /** The definition's `_meta` (since 2025-06-18). */
  readonly meta?: JsonObject | undefined;
}

/** The options of tools that features add. */
// biome-ignore lint/suspicious/noEmptyInterface: each feature declares its own options here (`declare module`).
// biome-ignore lint/correctness/noUnusedVariables: the options of features use the type of the arguments.
export interface ToolFeatureOptions<Args> {}

export interface ToolOptions<
  I extends MaybeInput = AuthorSchema | undefined,
  O extends AuthorSchema | undefined = AuthorSchema | undefined,
> extends Described,
    ToolFeatureOptions<Infer<I>> {
  /**
   * The schema of the arguments: zod, arktype, valibot…, or plain JSON Schema. If absent, the tool is listed without
   * parameters.
   */
  readonly input?: (I & ObjectSchema<I>) | undefined;
  /** The schema of the structured result, which is checked before it is sent. */
  readonly output?: O | undefined;
  readonly annotations?: ToolAnnotations | undefined;
  /** Milliseconds until a call times out, 1 to 2^31-1. Default: the server's `timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /**
   * Permission to run a call again, with the recorded answers and `ctx.step` results, if its process ended. Default: true
   * if the call was waiting for an answer. A task that was working runs again only if its tool is `readOnlyHint` or
   * `idempotentHint`, or if it had recorded a step; otherwise it fails, because its effects are unknown. True: always
   * run again. False: never.
   */
  readonly rerun?: boolean | undefined;
  /**
   * Permission for a call to become a task, which outlives its request. `never`: no (default). `allowed`: when it runs longer
   * than `limits.taskAfterMs` and its client accepts tasks. `required`: from the start; other clients are rejected.
   */
  readonly task?: TaskSupport | undefined;
  /**
   * The view that hosts show beside its results: the name of an app (`server.app`), or true for a form of its arguments and
   * its result, made from the two schemas. See docs/apps.md.
   */
  readonly app?: string | boolean | undefined;
  /**
   * Its callers: the model, the views of this server, or both (default). Hosts hide a tool without `model` from their
   * model; it is listed for clients that show views. The server serves its calls to anyone: it is no protection.
   */
  readonly visibleTo?: readonly ('model' | 'app')[] | undefined;
}

/**
 * Runs a tool. Returns a string, plain data, content blocks, `toolResult(…)`, or a complete result. A thrown error
 * becomes a result with `isError` that shows the error's message to the model.
 */
export type ToolHandler<I, O = undefined> = (args: Infer<I>, ctx: Context) => ToolReturn<O> | Promise<ToolReturn<O>>;

/** The return value of a tool. With an output schema: data that fits it, or content. Without one: any JSON value. */
type ToolReturn<O> = [O] extends [AuthorSchema]
  ? OutputData<O> | ContentBlock | readonly ContentBlock[] | Partial<CallToolResult> | Envelope
  : unknown;

/** A plain JSON Schema whose literal type is unknown only guarantees data. */
type OutputData<O extends AuthorSchema> = O extends { readonly '~standard': unknown }
  ? InferInput<O>
  : string extends keyof O
    ? unknown
    : InferInput<O>;

export interface ToolDefinition<
  I extends MaybeInput = AuthorSchema | undefined,
  O extends AuthorSchema | undefined = AuthorSchema | undefined,
> extends ToolOptions<I, O> {
  readonly name: string;
  /**
   * True if the handler computes for long: it runs in a thread that loads this module again, and is stopped at the
   * call's deadline. For discovered modules; see {@link ThreadToolOptions} for others, and docs/supervision.md.
   */
  readonly cpu?: boolean | undefined;
  /** See {@link ToolHandler}. */
  handler(args: Infer<I>, ctx: Context): ToolReturn<O> | Promise<ToolReturn<O>>;
}

export interface ThreadToolOptions<
  I extends MaybeInput = AuthorSchema | undefined,
  O extends AuthorSchema | undefined = AuthorSchema | undefined,
> extends ToolOptions<I, O> {
  /**
   * URL of a module whose default export is the handler. A thread loads it and runs each call, so long computations do
   * not block the server and are stopped at the call's deadline. Arguments and results are copied. `ctx` has everything
   * except input requests.
   */
  readonly cpu: URL;
  readonly handler?: never;
}

export interface MachineToolOptions<
  I extends MaybeInput = AuthorSchema | undefined,
  M extends AnyStateMachine = AnyStateMachine,
> extends ToolOptions<I> {
  /**
   * An XState statechart in place of a handler. A call runs it from its initial state to a final one. Its `input` is
   * the checked arguments; its `output` is what a handler would return. Where the machine invokes `elicit`,
   * `elicitWith(schema)`, `elicitUrl`, `sample` or `roots` of this package, the client is asked and the machine waits;
   * give each such invocation an `id`, which names the question. The machine stops when the client cancels, or at the
   * call's deadline.
   * If the process ends while the machine waits for an answer, another process resumes it in the same state, provided
   * that the store is durable and the context is JSON. Otherwise the call runs again with the recorded answers, like a
   * handler: the machine starts at its initial state and repeats its effects.
   */
  readonly machine: M & TakesInput<M, Infer<I>>;
  readonly handler?: never;
}

/** Makes a type error name the machine's input if the schema does not provide it. */
type TakesInput<M extends AnyStateMachine, Args> =
  Args extends InputFrom<M> ? unknown : { readonly 'its input, which the schema does not give': InputFrom<M> };

/**
 * The second of two arguments of `server.tool`: a machine, a thread's module, or a text that names the missing handler.
 */
export type WithoutHandler<T> = T extends { readonly machine: infer M extends AnyStateMachine }
  ? MachineToolOptions<T extends { readonly input: infer I extends AuthorSchema } ? I : undefined, M> &
      NoOther<T, keyof MachineToolOptions>
  : T extends { readonly cpu: unknown }
    ? ThreadToolOptions & NoOther<T, keyof ThreadToolOptions>
    : 'The handler is missing. Pass it as the last argument: server.tool(name, options, handler)';

type NoOther<T, Known> = { readonly [K in Exclude<keyof T, Known>]?: never };

export interface MachineToolDefinition<
  I extends MaybeInput = AuthorSchema | undefined,
  M extends AnyStateMachine = AnyStateMachine,
> extends MachineToolOptions<I, M> {
  readonly name: string;
}

/** A tool with any schemas, as the runtime handles it. It has a handler or a machine. */
export interface AnyTool extends ToolOptions {
  readonly name: string;
  handler?(args: never, ctx: Context): unknown;
  readonly machine?: AnyStateMachine;
  readonly cpu?: boolean | URL | ThreadSource | undefined;
}

export interface ResourceOptions<U extends string = string> extends Described, CacheHints {
  /** Default: the URI or template. */
  readonly name?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly annotations?: Annotations | undefined;
  /** Size in bytes, of a resource without a template. */
  readonly size?: number | undefined;
  /** Completes the variables of a template, by name. */
  readonly complete?: TemplateCompleters<U, Completer> | undefined;
}

type ResourceReturn =
  | string
  | Uint8Array
  | ResourceContents
  | readonly ResourceContents[]
  | ReadResourceResult
  | undefined
  | null;

/**
 * Reads a resource. `variables` holds the decoded values of a template's variables, typed by its text: validate them
 * before you build a path from them.
 */
export type ResourceHandler<U extends string = string> = (
  asked: { readonly uri: string; readonly variables: TemplateVariables<U> },
  ctx: Context,
) => ResourceReturn | Promise<ResourceReturn>;

export interface ResourceDefinition<U extends string = string> extends ResourceOptions<U> {
  /** A URI, or a URI template (RFC 6570) such as `file:///{+path}`. */
  readonly uri: U;
  /** See {@link ResourceHandler}. */
  handler(...given: Parameters<ResourceHandler<U>>): ReturnType<ResourceHandler<U>>;
}

export interface PromptOptions<
  I extends MaybeInput = AuthorSchema | undefined,
  A extends readonly PromptArgument[] | undefined = readonly PromptArgument[] | undefined,
> extends Described {
  /**
   * The schema of the arguments; its properties become the prompt's arguments. On the wire every argument is a string;
   * numbers and booleans are parsed from it.
   */
  readonly input?: (I & ObjectSchema<I>) | undefined;
  /** The arguments, if they need no schema. Not together with `input`. */
  readonly arguments?: A | undefined;
  /** Completes arguments by name. */
  readonly complete?: Readonly<Record<string, Completer>> | undefined;
}

type PromptReturn = string | ContentBlock | readonly PromptMessage[] | GetPromptResult;

export type PromptHandler<I, A = undefined> = (
  args: PromptArguments<I, A>,
  ctx: Context,
) => PromptReturn | Promise<PromptReturn>;

export interface PromptDefinition<
  I extends MaybeInput = AuthorSchema | undefined,
  A extends readonly PromptArgument[] | undefined = readonly PromptArgument[] | undefined,
> extends PromptOptions<I, A> {
  readonly name: string;
  /** See {@link PromptHandler}. */
  handler(args: PromptArguments<I, A>, ctx: Context): PromptReturn | Promise<PromptReturn>;
}

/** A prompt with any schema, as the runtime handles it. */
export interface AnyPrompt extends PromptOptions {
  readonly name: string;
  handler(args: never, ctx: Context): PromptReturn | Promise<PromptReturn>;
}

export const DEFINED: unique symbol = Symbol.for('troupe.defined');

type DefinedKind = 'tool' | 'resource' | 'prompt' | 'machine' | 'mount';

const KINDS: readonly DefinedKind[] = ['tool', 'resource', 'prompt', 'machine', 'mount'];

export type Defined<K extends DefinedKind, D, T = unknown> = D & { readonly [DEFINED]: K } & Typed<T>;

/**
 * Defines a tool, whose calls run a statechart, for `createServer({ tools })` or `server.discover`. See {@link MachineToolOptions}.
 * @example export default defineTool({ name: 'order', input: z.object({ item: z.string() }), machine: orderMachine });
 */
export function defineTool<
  const N extends string,
  const I extends MaybeInput = undefined,
  M extends AnyStateMachine = AnyStateMachine,
>(
  definition: MachineToolOptions<I, M> & { readonly name: N },
): Defined<'tool', MachineToolDefinition<I, M>, OneTool<N, I, MachineOutput<M>>>;
/**
 * Defines a tool, whose calls run a handler, for `createServer({ tools })` or `server.discover`.
 * @example export default defineTool({ name: 'add', input: z.object({ a: z.number(), b: z.number() }), handler: ({ a, b }) => a + b });
 */
export function defineTool<const N extends string, const I extends MaybeInput = undefined, R = unknown>(
  definition: HandledTool<N, I, R>,
): Defined<'tool', ToolDefinition<I, undefined>, OneTool<N, I, ReturnedOutput<Awaited<R>>>>;
/**
 * Defines a tool, whose results have a schema, for `createServer({ tools })` or `server.discover`.
 * @example export default defineTool({ name: 'weigh', output: z.object({ grams: z.number() }), handler: () => ({ grams: 12 }) });
 */
export function defineTool<
  const N extends string,
  const I extends MaybeInput = undefined,
  const O extends AuthorSchema = AuthorSchema,
>(
  definition: ToolDefinition<I, O> & { readonly name: N },
): Defined<'tool', ToolDefinition<I, O>, OneTool<N, I, SchemaOutput<O>>>;
export function defineTool(definition: AnyTool): Defined<'tool', AnyTool> {
  return { ...definition, [DEFINED]: 'tool' };
}

/** The definition of a tool without an output schema: the return type of its handler is that of its structured content. */
interface HandledTool<N extends string, I extends MaybeInput, R> extends ToolOptions<I, undefined> {
  readonly name: N;
  readonly cpu?: boolean | undefined;
  handler(args: Infer<I>, ctx: Context): R;
}

/**
 * Defines a resource or template, for `createServer({ resources })` or `server.discover`.
 * @example export default defineResource({ uri: 'app://time', handler: () => new Date().toISOString() });
 */
export function defineResource<const U extends string>(
  definition: ResourceDefinition<U>,
): Defined<'resource', ResourceDefinition<U>, OneResource<U>> {
  return { ...definition, [DEFINED]: 'resource' };
}

/**
 * Defines a prompt, for `createServer({ prompts })` or `server.discover`.
 * @example export default definePrompt({ name: 'greet', arguments: [{ name: 'who' }], handler: ({ who }) => `Greet ${who}.` });
 */
export function definePrompt<
  const N extends string,
  const I extends MaybeInput = undefined,
  const A extends readonly PromptArgument[] | undefined = undefined,
>(
  definition: PromptDefinition<I, A> & { readonly name: N },
): Defined<'prompt', PromptDefinition<I, A>, OnePrompt<N, I, A>> {
  return { ...definition, [DEFINED]: 'prompt' };
}

/** The kind of a definition from {@link defineTool} or a sibling; undefined for other values. */
export function definedKind(value: unknown): DefinedKind | undefined {
  if (!isObject(value)) return undefined;
  const kind = (value as { readonly [DEFINED]?: unknown })[DEFINED];
  return KINDS.find((each) => each === kind);
}

/** The location of a handler, for a thread. */
export interface ThreadSource {
  /** The module's path. */
  readonly module: string;
  /** The name of the tool that the module exports; undefined if its default export is the handler. */
  readonly tool: string | undefined;
}
