/** Turns a JSON Schema into the fields of a form for a person: groups for objects, and JSON for values that no field can enter. */
import { isObject } from '../../core/protocol/json.ts';
import { type Field, type Follow, readField } from './form-fields.ts';

/** A field, a group of fields, a list of texts, or a value as JSON. */
export type FormField = {
  readonly name: string;
  readonly required: boolean;
  readonly title: string | undefined;
  readonly description: string | undefined;
} & (
  | { readonly kind: 'field'; readonly field: Field }
  | { readonly kind: 'group'; readonly fields: readonly FormField[] }
  | { readonly kind: 'texts'; readonly initial: unknown }
  | { readonly kind: 'json'; readonly initial: unknown }
);

/** Levels of groups. Deeper objects are entered as JSON. */
const MAX_LEVELS = 3;
/** Fields of one form. The rest cannot be entered. */
const MAX_FIELDS = 200;

/** @param follow resolves the references within the schema */
export function formFieldsOf(schema: unknown, follow: Follow, level = 0): readonly FormField[] {
  const { properties, required } = follow(schema) ?? {};
  if (!isObject(properties)) return [];
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  return Object.entries(properties)
    .slice(0, MAX_FIELDS)
    .map(([name, part]) => fieldOf(name, part, follow, needed.has(name), level));
}

function fieldOf(name: string, part: unknown, follow: Follow, required: boolean, level: number): FormField {
  const given = follow(part);
  const schema = required ? given : withoutNull(given, follow);
  const about = { name, required, title: textOf(schema?.title), description: textOf(schema?.description) };
  if (isObject(schema?.properties) && level < MAX_LEVELS)
    return { ...about, kind: 'group', fields: formFieldsOf(schema, follow, level + 1) };
  try {
    return { ...about, kind: 'field', field: readField(name, schema ?? part, follow, name, 'form') };
  } catch {
    // No field can enter it: a list of any values, alternatives, a missing type.
    const isTexts = schema?.type === 'array' && follow(schema.items)?.type === 'string';
    return { ...about, kind: isTexts ? 'texts' : 'json', initial: schema?.default };
  }
}

/** The schema of an optional value that may also be null: its field is left empty in place of null. */
function withoutNull(schema: ReturnType<Follow>, follow: Follow): ReturnType<Follow> {
  if (!schema) return schema;
  const { type, anyOf, oneOf, default: initial, ...rest } = schema;
  const more = initial === null || initial === undefined ? rest : { ...rest, default: initial };
  if (Array.isArray(type)) {
    const [only, ...others] = type.filter((each) => each !== 'null');
    if (others.length > 0 || type.length === 1) return schema;
    const { enum: values } = rest;
    return { ...more, type: only, ...(Array.isArray(values) && { enum: values.filter((each) => each !== null) }) };
  }
  const branches = anyOf ?? oneOf;
  if (!Array.isArray(branches)) return schema;
  const [only, ...others] = branches.map(follow).filter((branch) => branch?.type !== 'null');
  return only && others.length === 0 && branches.length > 1 ? { ...only, ...more } : schema;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
