/** The types of the elements of a server, from their definitions. Types only. */
import type { AnyStateMachine, OutputFrom } from 'xstate';
import type { Envelope } from '../execution/envelope.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import type { AllOf, Sent, TextsOf, Typed, UntypedServer } from '../protocol/server-types.ts';
import type { ContentBlock, PromptArgument } from '../protocol/types.ts';
import type { AuthorSchema, Infer, InferInput } from '../schema/schema-types.ts';

/** A tool with its input and output. A name that is only known when the program runs adds nothing. */
export type OneTool<N extends string, I, Output> = string extends N
  ? unknown
  : { readonly tools: { readonly [K in N]: { readonly input: ToolInput<I>; readonly output: Output } } };

export type OnePrompt<N extends string, I, A> = string extends N
  ? unknown
  : { readonly prompts: { readonly [K in N]: { readonly arguments: PromptTexts<I, A> } } };

export type OneResource<U extends string> = string extends U
  ? unknown
  : { readonly resources: { readonly [K in U]: object } };

/** Arguments as a caller writes them. A tool without a schema is listed without parameters. */
type ToolInput<I> = [I] extends [AuthorSchema] ? InferInput<I> : { readonly [name: string]: never };

type PromptTexts<I, A> = [I] extends [AuthorSchema]
  ? TextsOf<InferInput<I>>
  : [A] extends [readonly PromptArgument[]]
    ? PromptArguments<undefined, A>
    : Readonly<Record<string, string>>;

/** The structured content of a tool whose results have a schema. */
export type SchemaOutput<O> = Sent<Infer<O>>;

/** The structured content of a tool whose calls run a statechart. */
export type MachineOutput<M extends AnyStateMachine> = ReturnedOutput<OutputFrom<M>>;

/** The structured content of what a handler returns: none for text and content blocks, the data of an envelope, else the value. */
export type ReturnedOutput<R> = unknown extends R
  ? JsonValue | undefined
  : // A function without a result returns void, of which undefined is a value.
    undefined extends R
    ? undefined
    : R extends string | null | ContentBlock | readonly ContentBlock[]
      ? undefined
      : R extends Envelope<infer Data>
        ? {
            readonly data?: Sent<Data>;
            readonly meta: JsonObject;
            readonly error?: { readonly message: string; readonly code?: string };
          }
        : R extends { readonly structuredContent: infer Structured }
          ? Sent<Structured>
          : R extends { readonly content: readonly ContentBlock[] }
            ? JsonValue | undefined
            : Sent<R>;

/** The types of the elements in lists of `createServer`. */
export type TypesIn<Elements extends readonly unknown[]> = UntypedServer &
  (Elements[number] extends never ? unknown : AllOf<TypesOfElement<Elements[number]>>);

type TypesOfElement<Element> = Element extends Typed<infer T> ? T : unknown;

/** The arguments of a prompt: the type of its schema, or one string for each listed argument. */
export type PromptArguments<I, A> = [I] extends [AuthorSchema]
  ? Infer<I>
  : [A] extends [readonly PromptArgument[]]
    ? { readonly [N in Extract<A[number], { readonly required: true }>['name']]: string } & {
        readonly [N in A[number]['name']]?: string;
      }
    : Readonly<Record<string, string | undefined>>;
