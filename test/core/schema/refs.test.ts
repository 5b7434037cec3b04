/** References in schemas: those inside the document are followed, all others are refused; and the places of x-mcp-header. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { having, input, output, refused, report } from './checking.ts';

const test = suite('schema references');
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

test('follows pointers, anchors and ids inside the document', async () => {
  const schema = {
    $id: 'https://example.com/root',
    type: 'object',
    properties: {
      pointer: { $ref: '#/$defs/a~1b~0c%25' },
      anchor: { $ref: '#named' },
      id: { $ref: 'part' },
      whole: { $ref: 'https://example.com/part' },
      into: { $ref: 'part#/properties/n' },
      self: { $ref: '#' },
    },
    $defs: {
      'a/b~c%': { type: 'string' },
      x: { $anchor: 'named', type: 'string' },
      p: {
        $id: 'part',
        type: 'object',
        properties: { n: { $ref: '#/$defs/inner' } },
        $defs: { inner: { type: 'integer' } },
      },
    },
  };
  const compiled = input(schema);
  assert.equal(
    await report(compiled, { pointer: 'x', anchor: 'x', id: { n: 1 }, whole: {}, into: 2, self: { self: {} } }),
    [],
  );
  assert.equal(
    await report(compiled, { pointer: 1, anchor: 1, id: { n: 'x' }, whole: 1, into: 'x', self: { self: 1 } }),
    [
      '- pointer: expected string, got number 1',
      '- anchor: expected string, got number 1',
      '- id.n: expected integer, got string "x"',
      '- whole: expected object, got number 1',
      '- into: expected integer, got string "x"',
      '- self.self: expected object, got number 1',
    ],
  );
});

test('follows the anchors of draft-07, where a reference replaces its siblings', async () => {
  const compiled = input({
    $schema: DRAFT_07,
    type: 'object',
    properties: { a: { $ref: '#name', minLength: 3 } },
    definitions: { x: { $id: '#name', type: 'string' } },
  });
  assert.equal(await report(compiled, { a: 'x' }), []);
  assert.equal(await report(compiled, { a: 1 }), ['- a: expected string, got number 1']);
  assert.is(
    (await report(input(having({ $ref: '#/$defs/x', minLength: 3 }, { $defs: { x: { type: 'string' } } })), { a: 'x' }))
      .length,
    1,
  );
});

test('S-10: refuses references that leave the document, whatever they look like', () => {
  for (const $ref of [
    'http://127.0.0.1:9/schema',
    'https://json-schema.org/draft/2020-12/schema',
    'http://json-schema.org/draft-07/schema#',
    'file:///etc/passwd',
    '//example.com/x',
    'other.json#/a',
    '/x',
    'urn:x:y',
    'data:application/json,{}',
  ])
    refused(having({ $ref }), 'at #/properties/a: "$ref" leads outside of the schema', 'nothing is fetched');
});

test('refuses references to nothing, and names what there is', () => {
  refused(having({ $ref: '#/$defs/nope' }, { $defs: { yes: {} } }), 'names no schema', 'known are #/$defs/yes');
  refused(having({ $ref: '#nope' }), 'names no schema');
  refused(having({ $ref: '#/properties' }), 'names no schema');
  refused(having({ $ref: '#/title' }, { title: 'x' }), 'names no schema');
  refused(having({ $ref: '#/constructor' }), 'names no schema');
  refused(having({ $ref: '#/%zz' }), 'names no schema');
});

test('lets no schema see the ids of another', () => {
  output({ $id: 'https://example.com/shared', type: 'string' });
  refused(having({ $ref: 'https://example.com/shared' }), 'leads outside of the schema');
});

test('compiles two tools that use one id for different schemas', async () => {
  const tool = (type: string) => input(having({ $id: 'https://example.com/p', type }));
  const [text, number] = [tool('string'), tool('number')];
  assert.equal(await report(text, { a: 'x' }), []);
  assert.equal(await report(number, { a: 1 }), []);
});

test('refuses an id or anchor that is given twice', () => {
  refused({ type: 'object', $defs: { a: { $anchor: 'x' }, b: { $anchor: 'x' } } }, 'also names #/$defs/a');
  refused({ type: 'object', $defs: { a: { $id: 'x' }, b: { $id: 'x' } } }, 'also names #/$defs/a');
  refused({ type: 'object', $defs: { a: { $anchor: 'no spaces' } } }, '"$anchor" is');
});

test('refuses references that come back without going into the value', () => {
  refused({ type: 'object', $ref: '#' }, 'returns here');
  refused(
    having(
      { $ref: '#/$defs/x' },
      { $defs: { x: { allOf: [{ $ref: '#/$defs/y' }] }, y: { not: { $ref: '#/$defs/x' } } } },
    ),
    'never end',
  );
  input(having({ type: 'array', items: { $ref: '#' } }));
});

test('S-10: refuses references that multiply at one place', () => {
  const $defs: Record<string, unknown> = { d0: { type: 'object' } };
  for (let n = 1; n <= 30; n++)
    $defs[`d${n}`] = { allOf: [{ $ref: `#/$defs/d${n - 1}` }, { $ref: `#/$defs/d${n - 1}` }] };
  refused({ type: 'object', $ref: '#/$defs/d30', $defs }, 'more than 10000 subschemas apply to one place');
});

test('follows a dynamic reference to the root, and refuses others', async () => {
  const tree = (reference: string) => ({
    $dynamicAnchor: 'node',
    type: 'object',
    properties: { v: { type: 'number' }, kids: { type: 'array', items: { $dynamicRef: reference } } },
    $defs: { x: { $dynamicAnchor: 'other' } },
  });
  assert.equal(await report(input(tree('#node')), { kids: [{ v: 1 }, { kids: [{ v: 'x' }] }] }), [
    '- kids[1].kids[0].v: expected number, got string "x"',
  ]);
  for (const reference of ['#other', '#nope', 'https://example.com/x#node'])
    refused(tree(reference), '"$dynamicRef" is', 'write "$ref"');
});

test('accepts x-mcp-header on primitive parameters that properties alone lead to', () => {
  input({
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      deep: {
        type: 'object',
        properties: { n: { type: 'integer', 'x-mcp-header': 'Deep-N' }, b: { type: 'boolean', 'x-mcp-header': 'B' } },
      },
      'x-mcp-header': { type: 'number' },
    },
  });
});

test('refuses an x-mcp-header that is no header name', () => {
  for (const name of ['', 'two words', 'a:b', 'Ünï', 'a\r\nb', 3, null, ['A']])
    refused(having({ type: 'string', 'x-mcp-header': name }), '#/properties/a', '"x-mcp-header" is', 'header name');
});

test('refuses an x-mcp-header on other types', () => {
  for (const type of ['number', 'object', 'array', 'null', ['string', 'null'], undefined])
    refused(having({ type, 'x-mcp-header': 'A' }), 'of type', '"string", "integer" or "boolean"');
});

test('refuses two x-mcp-header that differ only in case', () => {
  const field = (name: string) => ({ type: 'string', 'x-mcp-header': name });
  refused(
    { type: 'object', properties: { a: field('Region'), b: field('REGION') } },
    '"REGION" is also at #/properties/a',
  );
});

test('refuses an x-mcp-header where more than properties leads to it', () => {
  const field = { type: 'string', 'x-mcp-header': 'A' };
  refused({ type: 'object', 'x-mcp-header': 'A' }, 'only "properties"');
  refused(having({ type: 'array', items: field }), '#/properties/a/items');
  for (const keyword of ['anyOf', 'oneOf', 'allOf'])
    refused(having({ [keyword]: [field] }), `#/properties/a/${keyword}/0`);
  for (const keyword of ['not', 'if', 'additionalProperties'])
    refused(having({ [keyword]: field }), `#/properties/a/${keyword}`);
  refused({ type: 'object', allOf: [having(field)] }, '#/allOf/0/properties/a');
  refused(having({ $ref: '#/$defs/f' }, { $defs: { f: field } }), '#/$defs/f');
});

test('leaves x-mcp-header alone where it is data', () => {
  input(having({ type: 'object', default: { 'x-mcp-header': 'not a header' }, enum: [{ 'x-mcp-header': 3 }] }));
  output({ type: 'object', 'x-mcp-header': '?' });
});
