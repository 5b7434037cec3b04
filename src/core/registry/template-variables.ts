/** The variables of a URI template, inferred from its literal text, as the matcher of `src/core/protocol/uri-template/` reads them. Types only. */
import type { Variables } from '../execution/execution.ts';

/**
 * The values of a template's variables. `{id}` and `{+path}` are strings; a variable of another operator (`{?page}`,
 * `{/dir}`, `{.type}`, `{;a}`, `{#part}`, `{&b}`), and each after the first of its expression, may be absent. An exploded
 * variable (`{dirs*}`) is a list. A text that is no literal, or that the parser rejects, gives {@link Variables}.
 *
 * @example TemplateVariables<'order://{id}/items{?page,tag*}'> // { id: string; page?: string; tag?: readonly string[] }
 */
export type TemplateVariables<U extends string> = U extends unknown
  ? IsLiteral<U> extends true
    ? Expressions<U, []>
    : Variables
  : never;

/** The completers of a template, by variable. */
export type TemplateCompleters<U extends string, C> = string extends keyof TemplateVariables<U>
  ? Readonly<Record<string, C>>
  : { readonly [N in keyof TemplateVariables<U>]?: C };

/** `string`, and patterns such as `notes://${string}`, are no literals. */
type IsLiteral<U extends string> = Record<never, never> extends Record<U, 1> ? false : true;

/** Maximum number of names that are read: the compiler stops at a depth of about 1,000. A longer template has {@link Variables}. */
type MaxNames = 64;

interface Found {
  readonly name: string;
  readonly given: boolean;
  readonly list: boolean;
}

/** Reads one expression after the other. `All` collects their variables. */
type Expressions<Text extends string, All extends readonly Found[]> = All['length'] extends MaxNames
  ? Variables
  : Text extends `${string}{${infer Expression}}${infer Rest}`
    ? Expression extends `+${infer List}`
      ? Listed<List, true, Rest, All>
      : Expression extends `${'#' | '.' | '/' | ';' | '?' | '&'}${infer List}`
        ? Listed<List, false, Rest, All>
        : Listed<Expression, true, Rest, All>
    : Collected<All>;

/** Reads the variables of one expression. Only the first of an expression without opener is always given. */
type Listed<
  List extends string,
  Given extends boolean,
  Rest extends string,
  All extends readonly Found[],
> = All['length'] extends MaxNames
  ? Variables
  : List extends `${infer First},${infer Others}`
    ? Listed<Others, false, Rest, [...All, Variable<First, Given>]>
    : Expressions<Rest, [...All, Variable<List, Given>]>;

type Variable<Text extends string, Given extends boolean> = Text extends `${infer Name}*`
  ? { readonly name: Name; readonly given: Given; readonly list: true }
  : Text extends `${infer Name}:${string}`
    ? { readonly name: Name; readonly given: Given; readonly list: false }
    : { readonly name: Text; readonly given: Given; readonly list: false };

type Collected<All extends readonly Found[]> = Flat<
  { readonly [V in All[number] as V['given'] extends true ? V['name'] : never]: Value<V> } & {
    readonly [V in All[number] as V['given'] extends true ? never : V['name']]?: Value<V>;
  }
>;

type Value<V extends Found> = V['list'] extends true ? readonly string[] : string;

type Flat<T> = { readonly [K in keyof T]: T[K] };
