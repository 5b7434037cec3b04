/** Turns a JSON Schema into the fields of a form. What no field can enter is entered as JSON. */

import { type Field, readField } from '../../../src/input/form-fields.ts';
import { type Plain, REDACTED } from '../../../src/inspector/frames.ts';
import { isList, isRecord, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { follow, type SchemaObject } from './schema.ts';

/** A field, a group of fields, or a value as JSON. */
export type FormField = {
  readonly name: string;
  readonly required: boolean;
  readonly title: string | undefined;
  readonly description: string | undefined;
} & (
  | { readonly kind: 'field'; readonly field: Field }
  | { readonly kind: 'group'; readonly fields: readonly FormField[] }
  | { readonly kind: 'json'; readonly initial: Plain | undefined }
);

/** Levels of groups. Deeper objects are entered as JSON. */
const MAX_LEVELS = 3;
/** Fields of one form. The rest is entered as JSON. */
const MAX_FIELDS = 200;

export function fieldsOf(root: Plain, schema: Plain, level = 0): readonly FormField[] {
  const { schema: whole } = follow(root, schema);
  if (!whole || !isRecord(whole.properties)) return [];
  const needed = new Set(isList(whole.required) ? whole.required : []);
  return Object.entries(whole.properties)
    .filter(([name]) => name !== '«more»')
    .slice(0, MAX_FIELDS)
    .map(([name, part]) => fieldOf(root, name, part, needed.has(name), level));
}

function fieldOf(root: Plain, name: string, part: Plain, required: boolean, level: number): FormField {
  const { schema } = follow(root, part);
  const about = {
    name,
    required,
    title: textOfValue(schema?.title),
    description: textOfValue(schema?.description),
  };
  if (schema && isRecord(schema.properties) && level < MAX_LEVELS)
    return { ...about, kind: 'group', fields: fieldsOf(root, schema, level + 1) };
  try {
    const followed = (given: unknown): SchemaObject | undefined =>
      isPlain(given) ? follow(root, given).schema : undefined;
    return { ...about, kind: 'field', field: readField(name, part, followed, name, 'form') };
  } catch {
    // No form can enter it: a list of any values, alternatives, a missing type.
    return { ...about, kind: 'json', initial: schema?.default };
  }
}

function isPlain(value: unknown): value is Plain {
  return value !== undefined;
}

/** The values of a form, by the names of its fields. Absent: not entered. */
export type Values = { readonly [name: string]: Plain };

/** The values that a form starts with: those of the schema. */
export function initialValues(fields: readonly FormField[]): Values {
  const values: Record<string, Plain> = {};
  for (const field of fields) {
    const value =
      field.kind === 'group'
        ? initialValues(field.fields)
        : field.kind === 'json'
          ? field.initial
          : (field.field.initial ?? undefined);
    // The page does not know a hidden default: the server applies it.
    if (
      value !== undefined &&
      value !== REDACTED &&
      !(field.kind === 'group' && isRecord(value) && Object.keys(value).length === 0 && !field.required)
    )
      values[field.name] = value;
  }
  return values;
}

/** The text of a number as a number; the text itself if it is none, so that the server names the error. */
export function numberOf(text: string): Plain {
  const number = Number(text);
  return text.trim() === '' || Number.isNaN(number) ? text : number;
}

/** Sets a value; undefined removes it. */
export function withValue(values: Values, name: string, value: Plain | undefined): Values {
  const { [name]: _, ...rest } = values;
  return value === undefined ? rest : { ...rest, [name]: value };
}
