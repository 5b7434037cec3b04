/** The fields of a form for a tool: optional values that may be null, lists of texts, and alternatives. */
import * as assert from 'uvu/assert';
import { alternativeOf, alternativesOf, fieldsOf, initialValues } from '../../../inspector/src/server/fields.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the fields of the page');

const object = (properties: { readonly [name: string]: Plain }, required: readonly string[] = []): Plain => ({
  type: 'object',
  properties,
  required,
});
const kindsOf = (schema: Plain): readonly string[] =>
  fieldsOf(schema, schema).map((field) => (field.kind === 'field' ? field.field.kind : field.kind));

test('an optional value that may be null has the field of its other type, which stays empty in place of null', () => {
  const schema = object({
    a: { type: ['string', 'null'], default: null },
    b: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null, title: 'B' },
    c: { oneOf: [{ type: 'null' }, { type: 'boolean' }], default: true },
    d: { type: ['string', 'null'], enum: ['x', 'y', null] },
    e: { type: ['array', 'null'], items: { type: 'string' } },
    f: { type: ['string', 'number', 'null'] },
  });
  assert.equal(kindsOf(schema), ['text', 'number', 'flag', 'one', 'texts', 'json']);
  assert.is(fieldsOf(schema, schema)[1]?.title, 'B');
  assert.equal(initialValues(fieldsOf(schema, schema)), { c: true });
  // A required value is null only as JSON.
  assert.equal(kindsOf(object({ a: { type: ['string', 'null'] } }, ['a'])), ['json']);
});

const EITHER: Plain = {
  type: 'object',
  properties: { to: { type: 'string' } },
  anyOf: [
    object({ kind: { type: 'string', const: 'email' }, address: { type: 'string' } }, ['kind', 'address']),
    object({ kind: { type: 'string', const: 'sms' }, phone: { type: 'string' } }, ['kind', 'phone']),
  ],
};

test('the alternatives at the root of a schema are forms of their own, each with its fixed values', () => {
  const alternatives = alternativesOf(EITHER);
  assert.equal(
    alternatives.map(({ name }) => name),
    ['kind: email', 'kind: sms'],
  );
  const fields = fieldsOf(EITHER, alternatives[1]?.schema ?? null);
  assert.equal(
    fields.map(({ name, required }) => [name, required]),
    [
      ['to', false],
      ['kind', true],
      ['phone', true],
    ],
  );
  assert.equal(initialValues(fields), { kind: 'sms' });
  assert.is(alternativeOf(alternatives, { kind: 'sms' }), 1);
  assert.is(alternativeOf(alternatives, { kind: 'letter' }), 0);
});

test('alternatives that only require other members are one form', () => {
  const properties = { a: { type: 'string' }, b: { type: 'string' } };
  const schema = { type: 'object', properties, anyOf: [{ required: ['a'] }, { required: ['b'] }] };
  const [only, ...more] = alternativesOf(schema);
  assert.is(more.length, 0);
  assert.equal(
    fieldsOf(schema, only?.schema ?? null).map(({ name }) => name),
    ['a', 'b'],
  );
});
