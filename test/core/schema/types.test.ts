/** The types that schemas give to handlers: held by the compiler, which reads this file with the tests. */

import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as assert from 'uvu/assert';
import * as v from 'valibot';
import * as z from 'zod';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import type {
  AuthorSchema,
  Infer,
  InferInput,
  StandardSchema,
  UnknownArguments,
} from '../../../src/core/schema/schema-types.ts';
import { suite } from '../../harness/door.ts';

const test = suite('types of schemas');

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only if the type argument is `true`. */
function holds<T extends true>(..._: T[]): void {}

/** As `server.tool` will take a schema: a literal keeps its literal type without `as const`. */
function author<const S extends AuthorSchema>(schema: S): S {
  return schema;
}

test('gives what a library infers, before and after its transforms', () => {
  const zod = author(z.object({ a: z.string().transform(Number), b: z.boolean().default(true) }));
  holds<Equal<Infer<typeof zod>, { a: number; b: boolean }>>();
  holds<Equal<InferInput<typeof zod>, { a: string; b?: boolean | undefined }>>();
  const valibot = author(toStandardJsonSchema(v.object({ a: v.number(), b: v.optional(v.string(), 'x') })));
  holds<Equal<Infer<typeof valibot>, { a: number; b: string }>>();
  holds<Equal<InferInput<typeof valibot>, { a: number; b?: string | undefined }>>();
  const arktype = author(type({ a: 'number', 'b?': 'string' }));
  holds<Equal<Infer<typeof arktype>, { a: number; b?: string }>>();
  assert.ok(zod && valibot && arktype);
});

test('takes every schema that follows both standards', () => {
  type Published = StandardSchemaV1<string, number> & StandardJSONSchemaV1<string, number>;
  const accepts = (schema: Published): StandardSchema<string, number> => schema;
  holds<Equal<Infer<Published>, number>>();
  holds<Equal<InferInput<Published>, string>>();
  assert.ok(accepts);
});

test('refuses a library schema that gives no JSON Schema', () => {
  // @ts-expect-error valibot gives JSON Schema through toStandardJsonSchema only
  assert.ok(author(v.object({ a: v.number() })));
});

test('infers from literal JSON Schema', () => {
  const schema = author({
    type: 'object',
    properties: {
      text: { type: 'string' },
      count: { type: 'integer' },
      ratio: { type: 'number' },
      flag: { type: 'boolean' },
      mode: { enum: ['fast', 'slow', 3] },
      fixed: { const: 'yes' },
      maybe: { type: ['string', 'null'] },
      list: { type: 'array', items: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } },
      free: { type: 'object' },
      other: { anyOf: [{ type: 'string' }] },
    },
    required: ['text', 'mode', 'list'],
  });
  interface Expected {
    readonly text: string;
    readonly mode: 'fast' | 'slow' | 3;
    readonly list: readonly { readonly n: number }[];
    readonly count?: number;
    readonly ratio?: number;
    readonly flag?: boolean;
    readonly fixed?: 'yes';
    readonly maybe?: string | null;
    readonly free?: UnknownArguments;
    readonly other?: unknown;
  }
  holds<Equal<Infer<typeof schema>, { [K in keyof Expected]: Expected[K] }>>();
  holds<Equal<InferInput<typeof schema>, Infer<typeof schema>>>();
  const plain = { type: 'object', properties: { a: { type: 'number' } } } as const;
  holds<Equal<Infer<typeof plain>, { readonly a?: number }>>();
  assert.ok(schema);
});

test('infers outputs that are no objects', () => {
  const schema = author({ type: 'array', items: { type: 'string' } });
  holds<Equal<Infer<typeof schema>, readonly string[]>>();
  assert.ok(schema);
});

test('promises just an object where the schema is not known as a literal', () => {
  holds<Equal<Infer<JsonObject>, UnknownArguments>>();
  holds<Equal<Infer<undefined>, UnknownArguments>>();
  holds<Equal<Infer<{ readonly type: 'object' }>, UnknownArguments>>();
  const loose = { type: 'object', properties: { a: { type: 'number' } } };
  holds<Equal<Infer<typeof loose>, unknown>>();
  const accepted: AuthorSchema = loose;
  assert.ok(accepted);
});
