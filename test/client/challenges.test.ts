/** The challenges of `WWW-Authenticate` are read as servers write them. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { readChallenges } from '../../src/client/oauth/challenges.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('challenges');

const META = 'https://a.example/.well-known/oauth-protected-resource';

for (const [what, header] of [
  ['double quotes', `Bearer resource_metadata="${META}"`],
  ['no quotes', `Bearer resource_metadata=${META}`],
  ['single quotes', `Bearer resource_metadata='${META}', error='invalid_token'`],
  ['spaces around the equals sign', `Bearer resource_metadata = "${META}"`],
  ['letters of another case', `bearer RESOURCE_METADATA="${META}"`],
  [
    'a parameter before it',
    `Bearer error_description="see resource_metadata=\\"https://b.example\\"", resource_metadata="${META}"`,
  ],
  ['a comma in single quotes before it', `Bearer error_description='a, b="c"', resource_metadata='${META}'`],
  ['another scheme before it', `Basic realm="x, Bearer resource_metadata=y", Bearer resource_metadata="${META}"`],
  ['two values', `Bearer resource_metadata="${META}", resource_metadata="https://b.example"`],
] as const)
  test(`a parameter is read with ${what}`, () => {
    const bearer = readChallenges(header).filter(({ scheme }) => scheme === 'bearer');
    assert.equal(
      bearer.map(({ params }) => params.resource_metadata),
      [META],
    );
  });

test('a single quote that does not enclose a value belongs to it', () => {
  for (const value of ["it's", "'a", "a'", "'a'b"])
    assert.is(readChallenges(`Bearer realm=${value}, scope="x"`)[0]?.params.realm, value);
  assert.is(readChallenges(`Bearer realm="'a'"`)[0]?.params.realm, "'a'");
});

test('any header is read to its end, and never throws', () => {
  const part = fc.constantFrom('Bearer', 'realm', '=', '"', "'", ',', ' ', '\\', 'x', '==', '__proto__', 'é');
  const law = fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
    for (const { scheme, params } of readChallenges(parts.join(''))) {
      assert.type(scheme, 'string');
      assert.ok(Object.values(params).every((value) => typeof value === 'string'));
    }
  });
  fc.assert(law, { numRuns: random(2_000) });
});
