/** Arguments under wrong names: the result names them, with the names that were meant, for strict and loose schemas, in both eras. */
import { createServer } from 'troupe';
import { connect } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('wrong arguments');

const shape = { userName: z.string(), count: z.number().optional() };
const json = {
  type: 'object',
  properties: { userName: { type: 'string' }, count: { type: 'number' } },
  required: ['userName'],
} as const;
const SCHEMAS = {
  loose: z.object(shape),
  strict: z.strictObject(shape),
  'plain loose': json,
  'plain strict': { ...json, additionalProperties: false },
};

const rows: readonly (readonly [keyof typeof SCHEMAS, JsonObject, RegExp])[] = [
  [
    'loose',
    { username: 'x' },
    /userName: .*got nothing.*\n- there is no argument "username" \(did you mean userName\?\)$/,
  ],
  ['strict', { username: 'x' }, /userName: [\s\S]*\n- there is no argument "username" \(did you mean userName\?\)$/],
  [
    'plain loose',
    { username: 'x' },
    /userName: expected string, got nothing\n- there is no argument "username" \(did you mean userName\?\)$/,
  ],
  [
    'plain strict',
    { username: 'x' },
    /- username: expected no such property \(known: userName, count\), got string "x"$/,
  ],
  ['strict', { userName: 'x', cuont: 1 }, /- there is no argument "cuont" \(did you mean count\?\)$/],
  ['loose', { other: 'x' }, /- there is no argument "other"\. It has userName, count$/],
  ['loose', { userName: 5 }, /- userName: .*got number 5\)$/],
];

for (const [kind, args, expected] of rows)
  for (const era of ['legacy', 'modern'])
    test(`${kind}: ${JSON.stringify(args)} of a ${era} client is explained`, async () => {
      const server = createServer({ name: 'x', version: '1.0.0', log: () => {} });
      server.tool('t', { input: SCHEMAS[kind] as never }, () => 'ok');
      const client = era === 'legacy' ? await inSession(server) : await connect(server);
      const result = await client.request('tools/call', { name: 't', arguments: args });
      await server.close();
      assert.match(JSON.parse(JSON.stringify(result)).content[0].text, expected);
    });

test('a mistyped argument that a loose schema drops is logged once', async () => {
  const logged: string[] = [];
  const server = createServer({ name: 'x', version: '1.0.0', log: (_, message) => void logged.push(message) });
  server.tool('t', { input: SCHEMAS.loose }, () => 'ok');
  const client = await connect(server);
  for (const name of ['cuont', 'cuont', 'unrelated'])
    await client.request('tools/call', { name: 't', arguments: { userName: 'x', [name]: 1 } });
  await server.close();
  assert.equal(logged, [
    'tool "t" was called with "cuont" (did you mean count?), which its schema drops: make the schema strict, so that the model reads this',
  ]);
});
