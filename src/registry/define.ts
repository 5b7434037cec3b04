/** How authors write tools, resources and prompts; `defineTool` and its siblings, for modules that are discovered. */
import type { AnyStateMachine, InputFrom } from 'xstate';
import type { Completer, TaskSupport, Variables } from '../executors/execution.ts';
import type { Context } from '../input/context.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';
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
import type { Envelope } from '../results/envelope.ts';
import type { AuthorSchema, Infer, InferInput } from '../schema/schema-types.ts';
import type { ThreadSource } from './thread-module.ts';

interface Described {
  /** For people; the name is for programs. */
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  /** The definition's `_meta` (from 2025-06-18). */
  readonly meta?: JsonObject;
}

export interface ToolOptions<
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  O extends AuthorSchema | undefined = AuthorSchema | undefined,
> extends Described {
  /** What the arguments must be: a schema of zod, arktype, valibot…, or plain JSON Schema. Absent: the tool is listed without parameters. */
  readonly input?: I;
  /** What the structured result is; checked before it is sent. */
  readonly output?: O;
  readonly annotations?: ToolAnnotations;
  /** Milliseconds until a call times out, where the server's default does not fit. */
  readonly timeoutMs?: number;
  /**
   * Whether a call may be run anew, with what was answered and with the results of `ctx.step`, when the process that ran it is
   * gone. Default: where it waited for an answer, yes. A task that worked meanwhile, only if its tool is `readOnlyHint` or
   * `idempotentHint`, or it had recorded a step; otherwise it fails, because what it had done is not known. With true always,
   * with false never.
   */
  readonly rerun?: boolean;
  /**
   * Whether a call may become a task, which outlives its request: `never` (the default); `allowed`, when it has run longer than
   * `limits.taskAfterMs` and its client takes tasks; or `required`, from the start, and refused for any other client.
   */
  readonly task?: TaskSupport;
}

/**
 * Runs a tool. Returns a string, plain data, content blocks, `toolResult(…)`, or a whole result; what it throws becomes a
 * result with `isError` that shows the error's message to the model.
 */
export type ToolHandler<I, O = undefined> = (args: Infer<I>, ctx: Context) => ToolReturn<O> | Promise<ToolReturn<O>>;

/** What a tool may return: with an output schema data that fits it, or content; without one, anything that JSON can say. */
export type ToolReturn<O> = [O] extends [AuthorSchema]
  ? OutputData<O> | ContentBlock | readonly ContentBlock[] | Partial<CallToolResult> | Envelope
  : unknown;

/** Plain JSON Schema whose literal type is not known promises no more than data. */
type OutputData<O extends AuthorSchema> = O extends { readonly '~standard': unknown }
  ? InferInput<O>
  : string extends keyof O
    ? unknown
    : InferInput<O>;

export interface ToolDefinition<
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  O extends AuthorSchema | undefined = AuthorSchema | undefined,
> extends ToolOptions<I, O> {
  readonly name: string;
  /**
   * The handler computes for long: it runs in a thread of its own, which loads this module again, and is ended at the deadline of
   * the call. For modules that are discovered; see {@link ThreadToolOptions} for others. See docs/supervision.md.
   */
  readonly cpu?: boolean;
  /** See {@link ToolHandler}. */
  handler(args: Infer<I>, ctx: Context): ToolReturn<O> | Promise<ToolReturn<O>>;
}

export interface ThreadToolOptions<
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  O extends AuthorSchema | undefined = AuthorSchema | undefined,
> extends ToolOptions<I, O> {
  /**
   * A module whose default export is the handler. It is loaded in a thread, and each call runs there: long computations stall
   * nobody, and are ended at the deadline of their call. Arguments and results are copied; `ctx` can do everything but ask.
   */
  readonly cpu: URL;
  readonly handler?: never;
}

export interface MachineToolOptions<
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  M extends AnyStateMachine = AnyStateMachine,
> extends ToolOptions<I> {
  /**
   * A statechart of XState in place of a handler. A call runs it from its initial state to a final one: its `input` is the
   * checked arguments, its `output` is what a handler would return. Where it invokes `elicit`, `elicitWith(schema)`,
   * `elicitUrl`, `sample` or `roots` of this package, the client is asked, and the machine waits; give each such invocation an
   * `id`, which names the question. It is stopped when the client cancels, or at the deadline of the call.
   *
   * When the process that waited for an answer is gone, another one goes on where the machine was, if the store is durable and
   * the context is what JSON can say. Otherwise the call is run anew with the recorded answers, as that of a handler is: the
   * machine begins again at its initial state, and what it does on the way it does twice.
   */
  readonly machine: M & TakesInput<M, Infer<I>>;
  readonly handler?: never;
}

/** Says in a type error what a machine takes whose input the schema does not give. */
type TakesInput<M extends AnyStateMachine, Args> =
  Args extends InputFrom<M> ? unknown : { readonly 'its input, which the schema does not give': InputFrom<M> };

export interface MachineToolDefinition<
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  M extends AnyStateMachine = AnyStateMachine,
> extends MachineToolOptions<I, M> {
  readonly name: string;
}

/** A tool of whatever schemas: what the runtime handles. It has a handler or a machine. */
export interface AnyTool extends ToolOptions {
  readonly name: string;
  handler?(args: never, ctx: Context): unknown;
  readonly machine?: AnyStateMachine;
  readonly cpu?: boolean | URL | ThreadSource;
}

export interface ResourceOptions extends Described, CacheHints {
  /** Default: the uri or template itself. */
  readonly name?: string;
  readonly mimeType?: string;
  readonly annotations?: Annotations;
  /** Bytes, of a resource that is no template. */
  readonly size?: number;
  /** Completes the variables of a template. */
  readonly complete?: Readonly<Record<string, Completer>>;
}

export type ResourceReturn = string | Uint8Array | ResourceContents | readonly ResourceContents[] | ReadResourceResult;

/** Reads a resource. `variables` holds what a template's variables matched, decoded: check them before you build a path from them. */
export type ResourceHandler = (
  asked: { readonly uri: string; readonly variables: Variables },
  ctx: Context,
) => ResourceReturn | Promise<ResourceReturn>;

export interface ResourceDefinition extends ResourceOptions {
  /** A uri, or a URI template (RFC 6570) such as `file:///{+path}`. */
  readonly uri: string;
  readonly handler: ResourceHandler;
}

export interface PromptOptions<
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  A extends readonly PromptArgument[] | undefined = readonly PromptArgument[] | undefined,
> extends Described {
  /** What the arguments must be; its properties become the prompt's arguments. On the wire every argument is a string: numbers and booleans are read from it. */
  readonly input?: I;
  /** The arguments, where no schema is needed. Not together with `input`. */
  readonly arguments?: A;
  /** Completes arguments by name. */
  readonly complete?: Readonly<Record<string, Completer>>;
}

export type PromptReturn = string | ContentBlock | readonly PromptMessage[] | GetPromptResult;

/** The arguments of a prompt: what its schema gives, or the strings that it lists. */
export type PromptArguments<I, A> = [I] extends [AuthorSchema]
  ? Infer<I>
  : [A] extends [readonly PromptArgument[]]
    ? { readonly [N in Extract<A[number], { readonly required: true }>['name']]: string } & {
        readonly [N in A[number]['name']]?: string;
      }
    : Readonly<Record<string, string | undefined>>;

export type PromptHandler<I, A = undefined> = (
  args: PromptArguments<I, A>,
  ctx: Context,
) => PromptReturn | Promise<PromptReturn>;

export interface PromptDefinition<
  I extends AuthorSchema | undefined = AuthorSchema | undefined,
  A extends readonly PromptArgument[] | undefined = readonly PromptArgument[] | undefined,
> extends PromptOptions<I, A> {
  readonly name: string;
  /** See {@link PromptHandler}. */
  handler(args: PromptArguments<I, A>, ctx: Context): PromptReturn | Promise<PromptReturn>;
}

/** A prompt of whatever schema: what the runtime handles. */
export interface AnyPrompt extends PromptOptions {
  readonly name: string;
  handler(args: never, ctx: Context): PromptReturn | Promise<PromptReturn>;
}

export const DEFINED: unique symbol = Symbol.for('troupe.defined');

type DefinedKind = 'tool' | 'resource' | 'prompt' | 'machine';

export type Defined<K extends DefinedKind, D> = D & { readonly [DEFINED]: K };

/**
 * A tool that a module exports, to be found by `server.discover`.
 *
 * @example export default defineTool({ name: 'add', input: z.object({ a: z.number(), b: z.number() }), handler: ({ a, b }) => a + b });
 */
export function defineTool<
  const I extends AuthorSchema | undefined = undefined,
  M extends AnyStateMachine = AnyStateMachine,
>(definition: MachineToolDefinition<I, M>): Defined<'tool', MachineToolDefinition<I, M>>;
export function defineTool<const I extends AuthorSchema | undefined = undefined>(
  definition: ToolDefinition<I, undefined>,
): Defined<'tool', ToolDefinition<I, undefined>>;
export function defineTool<
  const I extends AuthorSchema | undefined = undefined,
  const O extends AuthorSchema = AuthorSchema,
>(definition: ToolDefinition<I, O>): Defined<'tool', ToolDefinition<I, O>>;
export function defineTool(definition: AnyTool): Defined<'tool', AnyTool> {
  return { ...definition, [DEFINED]: 'tool' };
}

/** A resource or template that a module exports. @example export default defineResource({ uri: 'app://time', handler: () => new Date().toISOString() }); */
export function defineResource(definition: ResourceDefinition): Defined<'resource', ResourceDefinition> {
  return { ...definition, [DEFINED]: 'resource' };
}

/** A prompt that a module exports. @example export default definePrompt({ name: 'greet', arguments: [{ name: 'who' }], handler: ({ who }) => `Greet ${who}.` }); */
export function definePrompt<
  const I extends AuthorSchema | undefined = undefined,
  const A extends readonly PromptArgument[] | undefined = undefined,
>(definition: PromptDefinition<I, A>): Defined<'prompt', PromptDefinition<I, A>> {
  return { ...definition, [DEFINED]: 'prompt' };
}

/** What kind of definition a value is, if it came from {@link defineTool} or a sibling. */
export function definedKind(value: unknown): DefinedKind | undefined {
  if (!isObject(value)) return undefined;
  const kind = (value as { readonly [DEFINED]?: unknown })[DEFINED];
  return kind === 'tool' || kind === 'resource' || kind === 'prompt' || kind === 'machine' ? kind : undefined;
}
