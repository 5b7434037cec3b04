/** The fields of a form for a JSON Schema that the page received, and their values. */

import type { Follow } from '../../../src/features/asking/form-fields.ts';
import { type FormField, formFieldsOf } from '../../../src/features/asking/form-model.ts';
import { type Plain, REDACTED } from '../../../src/inspector/frames.ts';
import { isRecord } from '../../../src/inspector/model/plain-values.ts';
import { follow } from './schema.ts';

export type { FormField };

export function fieldsOf(root: Plain, schema: Plain): readonly FormField[] {
  const followed: Follow = (given) => {
    const found = isPlain(given) ? follow(root, given).schema : undefined;
    if (!found || !isRecord(found.properties)) return found;
    // The member that stands for what was cut is no property.
    const { '«more»': _, ...properties } = found.properties;
    return { ...found, properties };
  };
  return formFieldsOf(schema, followed);
}

/** Everything that a schema of the page contains. */
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
        : field.kind === 'field'
          ? field.field.initial
          : isPlain(field.initial)
            ? field.initial
            : undefined;
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
