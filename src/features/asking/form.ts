/** Forms for `ctx.elicit`: compiles an author's schema, renders it in each revision, and checks the answer. */
import type { Dialect } from '../../core/protocol/dialects/dialect.ts';
import { isObject, type JsonObject } from '../../core/protocol/json.ts';
import { compileInput } from '../../core/schema/compile-schema.ts';
import { quote } from '../../core/schema/excerpts.ts';
import type { Checked } from '../../core/schema/schema.ts';
import { escapePointer } from '../../core/schema/schema-copy.ts';
import { SchemaError } from '../../core/schema/schema-error.ts';
import { type GuardedSchema, guardSchema, schemaTree } from '../../core/schema/schema-guard.ts';
import type { AuthorSchema } from '../../core/schema/schema-types.ts';
import type { SchemaNode } from '../../core/schema/walk.ts';
import { type Field, type Follow, readField } from './form-fields.ts';
import { fullField, plainField } from './render-field.ts';

/** A form that is compiled once and asked any number of times. */
export interface Form {
  /** The `requestedSchema` of an elicitation in this dialect, always the same object; `undefined` if the dialect does not support the form. */
  shown(dialect: Dialect): JsonObject | undefined;
  /** The reason why the dialect does not support the form, as one clause with the property and the revision; `undefined` if it does. */
  obstacle(dialect: Dialect): string | undefined;
  /**
   * Checks the `content` of an answer against the author's schema, including all rules that a form cannot show. Libraries
   * with asynchronous rules return a promise. Missing content counts as an empty form, because some clients omit it.
   */
  check(content: unknown): Checked<unknown> | Promise<Checked<unknown>>;
}

const compiled = new WeakMap<object, Form>();

/**
 * Compiles the schema of a form: a flat object of strings, numbers, booleans and choices of strings. The result is cached as
 * long as the schema object lives, so create the schema outside of the handler.
 *
 * @param schema of zod, arktype, valibot…, or plain JSON Schema
 * @param where the start of every error message, such as `tool "book": form`
 * @throws SchemaError if the schema is invalid or no form supports it; the error names the property and an alternative
 * @example
 * const form = compileForm({ type: 'object', properties: { n: { type: 'integer', minimum: 1 } }, required: ['n'] }, 'tool "t": form');
 * await form.check({ n: 0 }); // { ok: false, problems: [{ path: 'n', expected: 'integer >= 1', got: 'number 0' }] }
 */
export function compileForm(schema: AuthorSchema, where: string): Form {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const form = compile(schema, where);
  compiled.set(schema, form);
  return form;
}

function compile(schema: AuthorSchema, where: string): Form {
  // Authors without a type checker may omit it, and `compileInput` would treat that as a tool without parameters.
  if (schema === undefined) guardSchema(schema, where, 'input');
  const input = compileInput(schema, where);
  const { fields, required } = readForm(input.json, where);
  const shownBy = (show: (field: Field) => JsonObject | undefined): JsonObject => ({
    type: 'object',
    properties: Object.fromEntries(fields.map(([name, field]) => [name, show(field)])),
    ...(required.length > 0 ? { required } : {}),
  });
  const full = shownBy(fullField);
  const plain = shownBy(plainField);
  const unknown = fields.find(([, field]) => plainField(field) === undefined)?.[0];
  const obstacle = ({ forms, revision }: Dialect): string | undefined => {
    if (forms === 'none') return `revision ${revision} has no forms`;
    if (forms === 'full' || unknown === undefined) return undefined;
    return `property ${quote(unknown)} is a choice of several values, which forms of revision ${revision} do not support`;
  };
  return {
    check: (content) => input.check(content === undefined ? {} : content),
    shown(dialect) {
      if (obstacle(dialect) !== undefined) return undefined;
      return dialect.forms === 'full' ? full : plain;
    },
    obstacle,
  };
}

type Fields = readonly (readonly [name: string, field: Field])[];

/**
 * Resolves the references of a schema that the guard has accepted.
 *
 * @throws {SchemaError}
 */
export function followerOf(json: JsonObject, where: string): Follow {
  return followerIn(guardSchema(json, where, 'input'));
}

function followerIn(guarded: GuardedSchema): Follow {
  const bySchema = new Map<unknown, SchemaNode>();
  for (const node of schemaTree(guarded).nodes.values()) bySchema.set(node.schema, node);
  // The guard has already rejected circular references.
  const follow: Follow = (schema) => {
    if (!isObject(schema)) return undefined;
    const target = bySchema.get(schema)?.target;
    return target === undefined ? schema : { ...follow(target.schema), ...schema };
  };
  return follow;
}

function readForm(json: JsonObject, where: string): { readonly fields: Fields; readonly required: readonly string[] } {
  const guarded = guardSchema(json, where, 'input');
  const follow = followerIn(guarded);
  const root = follow(guarded.json) ?? {};
  if (root.properties === undefined) {
    const composed = ['anyOf', 'oneOf', 'allOf'].find((keyword) => root[keyword] !== undefined);
    const other = isObject(root.additionalProperties) || isObject(root.patternProperties);
    if (composed !== undefined || other)
      throw new SchemaError(
        where,
        '#',
        composed === undefined ? 'the root has no properties' : `the root has ${quote(composed)} and no "properties"`,
        'a form is a flat list of fields: list each in "properties", and the mandatory ones in "required"',
      );
  }
  const properties = isObject(root.properties) ? root.properties : {};
  const required = Array.isArray(root.required) ? root.required.map(String) : [];
  const missing = required.find((name) => !Object.hasOwn(properties, name));
  if (missing !== undefined)
    throw new SchemaError(
      where,
      '#',
      `"required" has ${quote(missing)}, which is not a property`,
      'a form must contain each field that it requires: add it to "properties"',
    );
  const fields = Object.entries(properties).map(
    ([name, schema]) => [name, readField(name, schema, follow, `#/properties/${escapePointer(name)}`, where)] as const,
  );
  return { fields, required };
}
