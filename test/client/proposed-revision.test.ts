/** A server that refuses the revision of `initialize` gets another proposal, until none is left. */
import { connect, ErrorResponse } from 'troupe/client';
import * as assert from 'uvu/assert';
import { ProposedRevision } from '../../src/client/proposed-revision.ts';
import { suite } from '../harness/door.ts';
import { jsonResponse, rawServer, response } from '../harness/raw-server.ts';
import { clientError } from './fixture.ts';
import { legacy, messageOf } from './raw-peer.ts';

const test = suite('the proposed revision');

const LISTED = 'Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26, 2024-11-05)';

for (const [what, message, supported, expected] of [
  ['lists others in its words', LISTED, undefined, ['2025-06-18', '2025-03-26', '2024-11-05']],
  ['lists others in its data', 'no', ['2024-11-05', '2025-03-26', 'x'], ['2025-03-26', '2024-11-05']],
  [
    'names only the refused one',
    'unknown protocolVersion 2025-11-25',
    undefined,
    ['2025-06-18', '2025-03-26', '2024-11-05'],
  ],
  ['names none', 'bad protocol version', undefined, ['2025-06-18', '2025-03-26', '2024-11-05']],
  ['names only unknown ones', 'expected protocol version 2024-06-18', undefined, []],
  ['lists none', 'no', [], ['2025-06-18', '2025-03-26', '2024-11-05']],
  ['is about something else', 'expected a version of Node after 2025-06-18', undefined, []],
  ['has another shape', 'no', { '2025-06-18': true }, []],
] as const)
  test(`a refusal that ${what} leads to ${expected.length} more proposals`, () => {
    const proposed = new ProposedRevision(undefined);
    const next: string[] = [];
    for (let turn = 0; turn < 9 && proposed.refused(message, supported); turn += 1) next.push(proposed.current);
    assert.equal(next, expected);
    assert.is(new ProposedRevision('2025-11-25').refused(message, supported), false, 'the program asks for it');
  });

const error = (data?: object) => ({ code: -32_000, message: data ? 'Invalid request' : LISTED, ...(data && { data }) });
for (const [what, refuse] of [
  ['a JSON-RPC error with status 400', (id: unknown) => jsonResponse({ jsonrpc: '2.0', id, error: error() }, 400)],
  ['the same without an id', () => jsonResponse({ jsonrpc: '2.0', error: error() }, 400)],
  ['text with status 400', () => response(400, { 'content-type': 'text/plain' }, LISTED)],
  ['an error', (id: unknown) => jsonResponse({ jsonrpc: '2.0', id, error: error({ supported: ['2025-06-18'] }) })],
] as const)
  for (const eras of ['auto', 'legacy'] as const)
    test(`a client of ${eras} eras connects to a server that refuses its revision with ${what}`, async () => {
      const proposals: string[] = [];
      const server = await rawServer((request) => {
        const { method, ...message } = messageOf(request);
        if (method === 'server/discover') return refuse(message.id);
        if (method !== 'initialize') return legacy(request);
        const { protocolVersion } = Object(message.params);
        proposals.push(protocolVersion);
        if (protocolVersion !== '2025-06-18') return refuse(message.id);
        const serverInfo = { name: 'old', version: '1' };
        return jsonResponse({
          jsonrpc: '2.0',
          id: message.id,
          result: { protocolVersion, capabilities: {}, serverInfo },
        });
      });
      const client = await connect(`${server.url}/mcp`, { eras, log: () => {} });
      assert.is(client.server.revision, '2025-06-18');
      assert.equal(proposals, ['2025-11-25', '2025-06-18']);
      assert.equal((await client.call('add')).content, [{ type: 'text', text: 'done' }]);
      await client.close();
      await server.close();
    });

for (const [code, eras] of [
  [-31_001, 'modern'],
  [-31_001, 'auto'],
  [-31_003, 'auto'],
  [-31_004, 'modern'],
  [-32_603, 'modern'],
] as const)
  test(`a probe that fails with ${code} is reported as such with eras: ${eras}, and as no unknown revision`, async () => {
    const methods: string[] = [];
    const server = await rawServer((request) => {
      const { id, method } = messageOf(request);
      methods.push(String(method));
      return jsonResponse({ jsonrpc: '2.0', id, error: { code, message: 'too many requests' } });
    });
    const error = await connect(`${server.url}/mcp`, { eras, log: () => {} }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    await server.close();
    assert.instance(error, ErrorResponse);
    assert.match(String(error), 'too many requests');
    assert.not.match(String(error), 'revision');
    assert.not.ok(methods.includes('initialize'));
  });

test('a client fails with the words of a server that refuses every revision', async () => {
  let proposals = 0;
  const server = await rawServer((request) => {
    const { id, method } = messageOf(request);
    if (method === 'initialize') proposals += 1;
    return jsonResponse({ jsonrpc: '2.0', id, error: { code: -32_602, message: 'Unsupported protocol version' } });
  });
  const refused = await clientError(connect(`${server.url}/mcp`, { eras: 'legacy', log: () => {} }));
  assert.match(refused.message, 'Unsupported protocol version');
  assert.is(proposals, 4);
  await server.close();
});
