/** Connections that ask for nothing: clients open some ahead of need, and nobody waits for them. */
import * as assert from 'uvu/assert';
import { suite } from '../../../harness/door.ts';
import { Raw } from '../raw.ts';
import { ask, serveHttp } from '../support.ts';

const test = suite('silent connections');

test('a connection that has asked for nothing does not keep the server from closing', async () => {
  const { server, url } = await serveHttp();
  const silent = await Promise.all([Raw.open(url), Raw.open(url)]);
  const { href } = new URL('/healthz', url);
  // Connections are accepted in their order: those above are there when this is answered.
  assert.is((await ask(href, { method: 'GET', agent: false })).status, 200);
  // The clock stands still: nothing is waited for.
  await server.close();
  for (const { socket } of silent) socket.destroy();
});
