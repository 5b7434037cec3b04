/** The fields of a form for a JSON Schema that the page received, and their values. */

import { anyShape, shapesOf } from '../../../src/core/schema/object-shapes.ts';
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

/** One of the objects that a schema allows. */
export interface Alternative {
  readonly name: string;
  readonly schema: Plain;
}

/** More alternatives become one form with the members of all of them. */
const MAX_ALTERNATIVES = 12;

/** The objects that a schema allows through `anyOf`, `oneOf` and `allOf` at its root; the schema itself without them. */
export function alternativesOf(schema: Plain): readonly Alternative[] {
  if (!isRecord(schema) || !['anyOf', 'oneOf', 'allOf'].some((word) => schema[word] !== undefined))
    return [{ name: '', schema }];
  const shapes = shapesOf(schema);
  // Alternatives with the same members differ in what they require, which the server checks.
  const differ = new Set(shapes.map(({ members }) => JSON.stringify([...members]))).size > 1;
  const shown = differ && shapes.length <= MAX_ALTERNATIVES ? shapes : [anyShape(shapes)];
  return shown.map(({ members, required }) => {
    const properties = [...members].map(([name, schemas]): readonly [string, Plain] => [name, united(schemas)]);
    const fixed = properties.flatMap(([name, part]) =>
      isRecord(part) && typeof part.const === 'string' ? [`${name}: ${part.const}`] : [],
    );
    return {
      name: (fixed.length > 0 ? fixed : properties.map(([name]) => name)).join(', '),
      schema: { type: 'object', properties: Object.fromEntries(properties), required: [...required] },
    };
  });
}

/** The schemas of one member as one schema. */
function united(schemas: readonly unknown[]): Plain {
  const parts = schemas.filter(isPlain);
  const [only, ...more] = parts;
  if (only !== undefined && more.length === 0) return only;
  return Object.fromEntries(parts.filter(isRecord).flatMap((part) => Object.entries(part)));
}

/** The alternative that entered values belong to: none of its fixed members has another value. */
export function alternativeOf(alternatives: readonly Alternative[], values: Values): number {
  const fits = ({ schema }: Alternative): boolean => {
    const { properties } = isRecord(schema) ? schema : {};
    return Object.entries(isRecord(properties) ? properties : {}).every(
      ([name, part]) =>
        !isRecord(part) || part.const === undefined || values[name] === undefined || values[name] === part.const,
    );
  };
  return Math.max(0, alternatives.findIndex(fits));
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
          ? (field.field.initial ?? onlyChoice(field))
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

/** The value of a required field that has no other. */
function onlyChoice({ required, field }: Extract<FormField, { kind: 'field' }>): string | undefined {
  const [only, ...more] = field.kind === 'one' ? field.choices : [];
  return required && more.length === 0 ? only?.value : undefined;
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
