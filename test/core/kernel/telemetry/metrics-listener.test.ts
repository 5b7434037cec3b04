/** The listener for Prometheus: a port of its own, on loopback, in both formats. */
import { request as send } from 'node:http';
import * as assert from 'uvu/assert';
import { createServer, http } from '../../../../src/index.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('the listener for Prometheus');

interface Reply {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

function ask(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = send(url, { method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode, type: response.headers['content-type'], text }));
    });
    request.on('error', reject);
    request.end();
  });
}

test('(G-14) metrics have a port of their own, and the port of the clients does not serve them', async () => {
  const server = createServer({ name: 's', version: '1', log: () => {} });
  server.tool('echo', () => 'hi');
  const transport = http({ port: 0, metrics: { port: 0 } });
  assert.is(transport.metricsUrl, undefined);
  await server.listen(transport);
  const url = transport.metricsUrl ?? '';
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  const plain = await ask(url);
  assert.equal([plain.status, plain.type], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  assert.match(plain.text, '# TYPE troupe_in_flight gauge\n');
  const open = await ask(url, { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' });
  assert.is(open.type, 'application/openmetrics-text; version=1.0.0; charset=utf-8');
  assert.ok(open.text.endsWith('# EOF\n'));
  assert.is((await ask(url, {}, 'HEAD')).text, '');
  assert.is((await ask(url, {}, 'POST')).status, 405);
  assert.is((await ask(url.replace('/metrics', '/'))).status, 404);
  const clients = new URL(transport.url).origin;
  assert.is((await ask(`${clients}/metrics`)).status, 404);

  // A page that a name of another site resolves to this machine for must not read them.
  assert.is((await ask(url, { host: 'rebound.example.com' })).status, 403);
  for (const host of ['localhost', 'localhost:1', '[::1]:9464', '127.0.0.1'])
    assert.is((await ask(url, { host })).status, 200, host);

  const { port } = new URL(url);
  const second = http({ port: 0, metrics: { port: Number(port) } });
  const other = createServer({ name: 'o', version: '1', log: () => {} });
  const failed = await other.listen(second).catch((error: unknown) => error);
  assert.match(String(failed), `metrics: cannot listen on 127.0.0.1: port ${port} is in use`);
  await other.close();
  await server.close();
  assert.instance(await ask(url).catch((error: unknown) => error), Error);
});
