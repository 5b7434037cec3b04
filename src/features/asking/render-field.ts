/** Renders a field of a form as the `PrimitiveSchemaDefinition` of the client's revision. */
import type { JsonObject, JsonValue } from '../../core/protocol/json.ts';
import type { Choice, Field } from './form-fields.ts';

/** The format since 2025-11-25. */
export function fullField(field: Field): JsonObject {
  switch (field.kind) {
    case 'one': {
      const { choices, legacy, initial } = field;
      const offered = legacy
        ? named(choices)
        : isTitled(choices)
          ? { oneOf: titled(choices) }
          : { enum: values(choices) };
      return given({ type: 'string', ...labels(field), ...offered, default: initial });
    }
    case 'several': {
      const { choices, minItems, maxItems, initial } = field;
      const items = isTitled(choices) ? { anyOf: titled(choices) } : { type: 'string', enum: values(choices) };
      return given({ type: 'array', ...labels(field), minItems, maxItems, items, default: initial });
    }
    default:
      return given({ ...simple(field), default: field.initial });
  }
}

/** The format of 2025-06-18: no lists, titles of choices as `enumNames`, and defaults only for booleans. `undefined` for a list. */
export function plainField(field: Field): JsonObject | undefined {
  switch (field.kind) {
    case 'one': {
      const { choices } = field;
      return given({
        type: 'string',
        ...labels(field),
        ...(isTitled(choices) ? named(choices) : { enum: values(choices) }),
      });
    }
    case 'several':
      return undefined;
    case 'flag':
      return given({ ...simple(field), default: field.initial });
    default:
      return given(simple(field));
  }
}

/** Renders the fields that are the same in every revision, without their default. */
function simple(field: Extract<Field, { kind: 'text' | 'number' | 'flag' }>): JsonObject {
  switch (field.kind) {
    case 'text': {
      const { minLength, maxLength, format } = field;
      return { type: 'string', ...labels(field), minLength, maxLength, format };
    }
    case 'number':
      return { type: field.type, ...labels(field), minimum: field.minimum, maximum: field.maximum };
    case 'flag':
      return { type: 'boolean', ...labels(field) };
  }
}

function labels({ title, description }: Field): JsonObject {
  return { title, description };
}

function isTitled(choices: readonly Choice[]): boolean {
  return choices.some(({ title }) => title !== undefined);
}

function values(choices: readonly Choice[]): readonly string[] {
  return choices.map(({ value }) => value);
}

function titled(choices: readonly Choice[]): readonly JsonObject[] {
  return choices.map(({ value, title = value }) => ({ const: value, title }));
}

function named(choices: readonly Choice[]): JsonObject {
  return { enum: values(choices), enumNames: choices.map(({ value, title = value }) => title) };
}

function given(members: JsonObject): JsonObject {
  const isGiven = (entry: [string, JsonValue | undefined]): entry is [string, JsonValue] => entry[1] !== undefined;
  return Object.fromEntries(Object.entries(members).filter(isGiven));
}
