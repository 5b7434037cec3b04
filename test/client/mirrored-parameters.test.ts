/** The parameters of a tool that a client repeats in headers, and the definitions for which a tool is left out. */
import * as assert from 'uvu/assert';
import { mirroredParameters } from '../../src/client/mirrored-parameters.ts';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { suite } from '../harness/door.ts';

const test = suite('mirrored parameters of a client');

const A = { type: 'string', 'x-mcp-header': 'A' };
const within = (schema: JsonObject): JsonObject => ({ type: 'object', properties: { outer: schema } });

test('a parameter is found below any depth of properties, and data of a schema is none', () => {
  const schema = within({ type: 'object', properties: { inner: A }, default: A, enum: [A], examples: [A] });
  assert.equal(mirroredParameters(schema), [{ name: 'A', path: ['outer', 'inner'] }]);
  assert.equal(mirroredParameters({ type: 'object' }), []);
});

for (const [what, schema, problem] of [
  ['the root', A, 'x-mcp-header of the root: the parameter is not reachable by "properties" alone'],
  [
    'an item of a list',
    within({ type: 'array', items: [within(A)] }),
    'x-mcp-header of "outer.outer": the parameter is not reachable by "properties" alone',
  ],
  [
    'a number',
    within(within({ ...A, type: 'number' })),
    'x-mcp-header of "outer.outer": expected the type string, integer or boolean, got string "number"',
  ],
  [
    'no name of a header',
    within({ ...A, 'x-mcp-header': 'a b' }),
    'x-mcp-header of "outer": expected an HTTP field name, got string "a b"',
  ],
  [
    'the same header in other capitals',
    { type: 'object', properties: { a: A, b: { ...A, 'x-mcp-header': 'a' } } },
    'x-mcp-header "a" occurs twice',
  ],
] as const)
  test(`a definition is invalid: ${what}`, () => assert.is(mirroredParameters(schema), problem));
