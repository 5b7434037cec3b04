/** The error codes of events: those of the client's profile, or those that the server's option names. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { DECLARED, eventStage, PAYLOAD } from './support.ts';

const test = suite('codes of events');

const UNKNOWN = {
  name: 'missing',
  arguments: {},
  delivery: { mode: 'webhook', url: 'https://example.com/', secret: '' },
};

for (const [codes, sep, sketch] of [
  ['auto', -32023, -32011],
  ['sep', -32023, -32023],
  ['sketch', -32011, -32011],
] as const)
  test(`${codes}: an unknown type is ${sep} for a client of SEP-3415, and ${sketch} for another one`, async () => {
    const { server, as } = eventStage({ events: { codes } });
    server.event('secret', { description: 'd', payload: PAYLOAD, scopes: ['secrets'] });
    const client = await as('ada');
    for (const method of ['events/poll', 'events/stream', 'events/subscribe']) {
      assert.is((await errorResponse(client.modern(method, UNKNOWN, DECLARED))).code, sep, method);
      assert.is((await errorResponse(client.modern(method, UNKNOWN))).code, sketch, method);
    }
    // Rules and scopes reject before the method is served.
    const poll = { name: 'secret', arguments: {} };
    assert.is((await errorResponse(client.modern('events/poll', poll, DECLARED))).code, sep - 1);
    assert.is((await errorResponse(client.modern('events/poll', poll))).code, sketch - 1);
    await server.close();
  });

test('other codes stay as they are, and another value of the option is an error', async () => {
  const { server, as } = eventStage({ events: { codes: 'sketch' } });
  server.event('note', { description: 'd', payload: PAYLOAD });
  const client = await as('ada');
  const poll = { name: 'note', arguments: {}, maxAgeMs: -1 };
  assert.is((await errorResponse(client.modern('events/poll', poll, DECLARED))).code, -32602);
  await server.close();
});

test('a subscription that is not there ends without an error for clients of the design sketch, and for all if the option says so', async () => {
  for (const [codes, fails] of [
    ['auto', true],
    ['sketch', false],
  ] as const) {
    const { server, as } = eventStage({ events: { codes } });
    server.event('note', { description: 'd', payload: PAYLOAD });
    const client = await as('ada');
    const params = { name: 'note', arguments: {}, delivery: { url: 'https://example.com/' } };
    const result = client.modern('events/unsubscribe', params, DECLARED);
    if (fails) assert.is((await errorResponse(result)).code, -32023);
    else assert.is((await result).resultType, 'complete');
    await server.close();
  }
});
