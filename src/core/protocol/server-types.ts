/** The types of what a server offers, as a typed client reads them. Types only: `typeof server` has them, and `troupe types` writes them. */
import type { JsonObject, JsonValue } from './json.ts';
import type { CallToolResult } from './types.ts';

/**
 * The tools, prompts and resources of a server by their names: `tools: { search: { input: { q: string }; output: { hits: number } } }`,
 * `prompts: { review: { arguments: { code: string } } }`, `resources: { 'notes://{id}': object }`. A tool without `output` returns
 * any JSON value, or none.
 */
export interface ServerTypes {
  readonly tools: object;
  readonly prompts: object;
  readonly resources: object;
}

/** A server of which nothing is known: each name is accepted, with any arguments. */
export interface UntypedServer extends ServerTypes {
  readonly tools: Record<never, never>;
  readonly prompts: Record<never, never>;
  readonly resources: Record<never, never>;
}

/** A value that carries the types of what it offers: a server, or an element of `defineTool` and its siblings. */
export interface Typed<T> {
  readonly '~types'?: T;
}

/** The types that a server has, or that a file of `troupe types` declares. */
export type TypesOf<S> = S extends { readonly '~types': infer T extends ServerTypes }
  ? T
  : S extends ServerTypes
    ? S
    : UntypedServer;

/** True if no name of a kind is known. */
export type NoneKnown<Elements> = [keyof Elements] extends [never] ? true : false;

/** The arguments of a call. */
export type InputOf<Tool> = Tool extends { readonly input: infer Input } ? Input : JsonObject;

/** The arguments of a prompt. */
export type ArgumentsOf<Prompt> = Prompt extends { readonly arguments: infer Arguments }
  ? Arguments
  : Readonly<Record<string, string>>;

/** The structured content of a result. */
export type OutputOf<Tool> = Tool extends { readonly output: infer Output } ? Output : JsonValue | undefined;

/** The result of a call. The compiler asks for a look at `isError` before it trusts the structured content. */
export type ResultOf<Tool> = Tool extends { readonly output: infer Output }
  ?
      | (Omit<CallToolResult, 'structuredContent' | 'isError'> & { readonly isError?: false } & Structured<Output>)
      | (Omit<CallToolResult, 'structuredContent' | 'isError'> & {
          readonly isError: true;
          readonly structuredContent?: never;
        })
  : CallToolResult;

type Structured<Output> = undefined extends Output
  ? { readonly structuredContent?: Exclude<Output, undefined> }
  : { readonly structuredContent: Output };

/** Arguments that may be left out if none of them is required. */
export type CallArguments<Input, Options> =
  Record<never, never> extends Input ? [args?: Input, options?: Options] : [args: Input, options?: Options];

/** The arguments of a prompt. On the wire each is a text. */
export type TextsOf<Arguments> = {
  readonly [Name in keyof Arguments]: Arguments[Name] extends string | undefined
    ? Exclude<Arguments[Name], undefined>
    : string;
};

/** The addresses that a URI template matches, as far as a type can say. */
type Matches<Uri> = Uri extends `${infer Before}{${string}}${infer After}`
  ? `${Before}${string}${Matches<After>}`
  : Uri;

/** A literal that no known resource matches is an error that lists them. A text whose value the compiler does not know is accepted. */
export type KnownUri<Resources, Uri extends string> = string extends Uri
  ? Uri
  : Uri extends Matches<keyof Resources> | `${'skill' | 'ui'}://${string}`
    ? Uri
    : keyof Resources & string;

/** A value as JSON sends it: a `Date` is a string, and functions are left out. */
export type Sent<T> = unknown extends T
  ? JsonValue
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends { toJSON(...given: never): infer Shown }
      ? Shown
      : T extends (...given: never) => unknown
        ? never
        : T extends readonly unknown[]
          ? SentList<T>
          : { readonly [K in keyof T as T[K] extends (...given: never) => unknown ? never : K]: Sent<T[K]> };

/** A list or tuple keeps its form only in a mapped type without `as`. */
type SentList<T extends readonly unknown[]> = { readonly [K in keyof T]: Sent<T[K]> };

/** A union of types as one type that has the members of all of them. */
export type AllOf<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;
