/** The examples of a server mounted in a framework, each run as a process and asked by both official clients. */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { type HttpWire, serve } from '../clients/http-wire.ts';
import { failure, type OfficialClient } from '../clients/official.ts';
import { textOf } from '../clients/stage.ts';
import { connectV1Http } from '../clients/v1.ts';
import { connectV2Http } from '../clients/v2.ts';

fullOnly('starts processes; the quick tests of mounted servers are in test/core/http/mount.test.ts');

const test = suite('examples/mounting');

for (const framework of ['express', 'fastify', 'hono', 'node'])
  test(`${framework} serves both eras at /mcp, and other things beside it`, async () => {
    const served = await serve(`examples/mounting/${framework}.ts`, { PORT: '0' });
    const clients = [await connectV1Http(served, '2025-11-25'), await connectV2Http(served, { pin: '2026-07-28' })];
    for (const client of clients) {
      assert.equal(client.introduction.info, { name: `in-${framework}`, version: '1.0.0' });
      await asks(client);
    }
    const [session, modern] = clients.map(({ wire }) => wire.exchanges.some(({ session }) => session !== undefined));
    assert.equal([session, modern], [true, false]);

    const health = await fetch(new URL('/health', served.url));
    assert.equal([health.status, await health.text()], [200, 'ok']);
    assert.equal(await foreign(served.url), [403, 'mcp.example.com']);

    for (const client of clients) {
      await client.close();
      assert.equal([client.wire.faults, client.wire.noise], [[], []]);
    }
    const started = performance.now();
    assert.is(await served.end(), 0);
    assertFigure(performance.now() - started, 2_500, 'the end, which what was cancelled does not hold up');
  });

/** Calls the tool: to the end with and without word of how far it has come, and a call that it cancels. */
async function asks(client: OfficialClient<HttpWire>): Promise<void> {
  const { wire } = client;
  const form = async (calling: Promise<object>): Promise<unknown[]> => {
    const before = wire.exchanges.length;
    const result = textOf({ ...(await calling) });
    const post = wire.exchanges.slice(before).find(({ method }) => method === 'POST');
    return [result, post?.type];
  };
  assert.equal(await form(client.callTool('count', { to: 1 })), ['Counted to 1.', 'application/json']);
  const heard = (): number => wire.notifications('notifications/progress').length;
  const counting = client.callTool('count', { to: 3 }, { onProgress: () => {} });
  assert.equal(await form(counting), ['Counted to 3.', 'text/event-stream']);
  assert.is(heard(), 3);
  const controller = new AbortController();
  const cancelled = failure(client.callTool('count', { to: 600 }, { signal: controller.signal, onProgress: () => {} }));
  // A minute before the answer: nothing between holds back what is said.
  await wire.until(() => heard() > 3);
  controller.abort();
  await cancelled;
}

/** What a client gets that calls the server by a name which nobody told it. */
function foreign(url: string): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'mcp.example.com', 'content-type': 'application/json' };
    const asked = request(url, { method: 'POST', headers }, async (response) => {
      const { message } = JSON.parse(await text(response)).error;
      resolve([response.statusCode, /"(mcp\.example\.com)"/.exec(message)?.[1]]);
    });
    asked.on('error', reject);
    asked.end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  });
}
