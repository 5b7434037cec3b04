/** Declares keys of state with the schemas of their values. */
import type { StateKey } from '../../core/execution/state.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import { compileOutput } from '../../core/schema/compile-schema.ts';
import type { AuthorSchema, Infer } from '../../core/schema/schema-types.ts';
import { StateError } from './state-error.ts';

/** The keys by their names. */
export type DefinedState<S> = { readonly [K in keyof S]: StateKey<Infer<S[K]>> };

/**
 * Declares keys of state and what their values are. The schema checks a value when it is stored and when it is read, because
 * another version of the program may have stored it.
 *
 * @param schemas by key: schemas of a library (zod >= 4.2, arktype, valibot), or plain JSON Schema. Their rules are synchronous
 * @throws {SchemaError} if a schema is invalid, or describes something that JSON has not, such as a date
 * @throws {StateError} if there is no object of schemas
 * @example
 * const { cart } = defineState({ cart: z.array(z.object({ sku: z.string(), count: z.int() })) });
 * await ctx.state.update(cart, (items = []) => [...items, { sku: 'tea', count: 1 }]);
 */
export function defineState<const S extends Readonly<Record<string, AuthorSchema>>>(schemas: S): DefinedState<S>;
export function defineState(schemas: Readonly<Record<string, AuthorSchema>>): Readonly<Record<string, StateKey>> {
  if (!isObject(schemas))
    throw new StateError('key', `defineState: expected an object of schemas by key, got ${describe(schemas)}`);
  return Object.fromEntries(
    Object.entries(schemas).map(([key, schema]) => [
      key,
      Object.freeze({ key, schema: compileOutput(schema, `defineState: "${key}"`) }),
    ]),
  );
}
