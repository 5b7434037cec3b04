/** The schemas that authors may write, and the types that handlers get from them. Types only. */
import type { JsonObject } from '../protocol/json.ts';

/** One reason why a validation library rejects a value (Standard Schema v1). */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The result of a validation library (Standard Schema v1). */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/**
 * A schema of any library that follows Standard Schema v1 and Standard JSON Schema v1 (https://standardschema.dev).
 * Declared structurally here, so that our published types do not depend on their package.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly jsonSchema: {
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>;
      readonly output: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>;
    };
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/**
 * A schema as an author writes it: from a library (zod >= 4.2, arktype, valibot), or plain JSON Schema (2020-12,
 * draft-07).
 */
export type AuthorSchema = StandardSchema | JsonObject;

/** The fields of an object schema without the object, as some libraries for MCP accept them. */
type SchemaFields = { readonly [field: string]: { readonly '~standard': unknown } };

/** The `input` option as its author wrote it. {@link ObjectSchema} rejects fields. */
export type MaybeInput = AuthorSchema | SchemaFields | undefined;

/** Makes a type error name the fix if the schema is a plain object of fields. */
export type ObjectSchema<I> = I extends { readonly '~standard': unknown }
  ? unknown
  : I extends SchemaFields
    ? keyof I extends never
      ? unknown
      : 'These are only the fields. Wrap them in an object schema: input: z.object({ … })'
    : unknown;

/** Arguments whose type is only known to be an object. */
export type UnknownArguments = Readonly<Record<string, unknown>>;

/**
 * The type of a value after its check, as a handler receives it.
 * @example Infer<{ type: 'object'; properties: { a: { type: 'number' } }; required: ['a'] }> // { readonly a: number }
 */
export type Infer<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer Output }
    ? Output
    : unknown
  : FromRoot<S>;

/**
 * The type of a value before its check, as a caller sends it. Differs from `Infer` if a library applies defaults or
 * transforms.
 */
export type InferInput<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly input: infer Input }
    ? Input
    : unknown
  : FromRoot<S>;

/** A schema whose literal type is unknown (`JsonObject`, or no schema) still describes an object. */
type FromRoot<S> = S extends JsonObject ? (string extends keyof S ? UnknownArguments : FromJson<S>) : UnknownArguments;

/**
 * The type that a literal JSON Schema describes; `unknown` for keywords that this type does not follow (`$ref`,
 * `anyOf`, patterns…).
 */
type FromJson<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly type: readonly (infer T)[] }
      ? FromType<T, S>
      : S extends { readonly type: infer T }
        ? FromType<T, S>
        : unknown;

type FromType<T, S> = T extends 'string'
  ? string
  : T extends 'number' | 'integer'
    ? number
    : T extends 'boolean'
      ? boolean
      : T extends 'null'
        ? null
        : T extends 'array'
          ? readonly (S extends { readonly items: infer I } ? FromJson<I> : unknown)[]
          : T extends 'object'
            ? S extends { readonly properties: infer P }
              ? FromProperties<P, S extends { readonly required: readonly (infer R)[] } ? R : never>
              : UnknownArguments
            : unknown;

type FromProperties<P, R> = Flat<
  { readonly [K in keyof P as K extends R ? K : never]: FromJson<P[K]> } & {
    readonly [K in keyof P as K extends R ? never : K]?: FromJson<P[K]>;
  }
>;

type Flat<T> = { readonly [K in keyof T]: T[K] };
