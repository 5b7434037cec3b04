/** Health checks ask by a name of the server, or by the address that they connect to. */
import * as assert from 'uvu/assert';
import { Endpoint } from '../../../../src/core/http/endpoint.ts';
import type { HttpRequest } from '../../../../src/core/http/http-message.ts';
import { resolveHttpOptions } from '../../../../src/core/http/http-options.ts';
import type { Readiness } from '../../../../src/core/transports/transport.ts';
import { suite } from '../../../harness/door.ts';
import { RecordingHost } from '../../transports/support.ts';

const test = suite('health');

const endpoint = new Endpoint({
  ...resolveHttpOptions({ host: '0.0.0.0', allowedHosts: ['mcp.example.com'] }),
  loopback: false,
  mounted: false,
});

interface Sent {
  readonly status: number;
  readonly text: string | undefined;
}

/** The status of a GET that arrives at this address of the server. */
function status(url: string, headers: Readonly<Record<string, string>>, localAddress = '10.1.2.3'): number {
  return get(endpoint, url, headers, { localAddress, remoteAddress: '10.1.2.1' }).status;
}

function get(
  asked: Endpoint,
  url: string,
  headers: Readonly<Record<string, string>>,
  addresses: Pick<HttpRequest, 'localAddress' | 'remoteAddress'>,
): Sent {
  let sent: Sent = { status: 0, text: undefined };
  const request: HttpRequest = {
    method: 'GET',
    url,
    header: (name) => headers[name],
    values: () => [],
    pick: () => ({}),
    auth: undefined,
    repeats: () => false,
    ...addresses,
    connection: undefined,
    localPort: 3000,
    version: '1.1',
    body() {},
    response: {
      listener: undefined,
      gone: false,
      send: (answered, _, text) => {
        sent = { status: answered, text };
      },
      begin() {},
      write: () => true,
      pending: 0,
      end() {},
      destroy() {},
    },
  };
  asked.handle(request);
  return sent;
}

test('S-38: a probe passes by a name of the server, or by the address that it connected to', () => {
  for (const host of ['mcp.example.com', 'mcp.example.com:3000', '10.1.2.3', '10.1.2.3:3000'])
    assert.is(status('/healthz', { host }), 200, host);
  assert.is(status('/healthz', { host: '10.1.2.3' }, '::ffff:10.1.2.3'), 200);
  assert.is(status('/healthz', { host: '[2001:DB8:0::1]:3000' }, '2001:db8::1'), 200);
  // It is not open yet, and says so.
  assert.is(status('/readyz', { host: '10.1.2.3:3000' }), 503);
});

test('S-38: any other Host or Origin is kept out of the health paths', () => {
  for (const host of ['evil.example.com', 'localhost', '127.0.0.1', '10.1.2.4', '10.1.2.3.nip.io', '0.0.0.0'])
    for (const path of ['/healthz', '/readyz']) assert.is(status(path, { host }), 403, host);
  assert.is(status('/healthz', {}), 400);
  assert.is(status('/healthz', { host: '10.1.2.3', origin: 'http://evil.example.com' }), 403);
  assert.is(status('/healthz', { host: '10.1.2.3', origin: 'http://10.1.2.3' }), 403);
});

test('S-38: the address passes for health only', () => {
  for (const path of ['/mcp', '/sse', '/', '/healthz/x']) assert.is(status(path, { host: '10.1.2.3' }), 403, path);
  assert.is(status('/nowhere', { host: 'mcp.example.com' }), 404);
});

test('S-38: the reasons for which a server is not ready are for clients on the same machine', async () => {
  class UnreadyHost extends RecordingHost {
    override readiness(): Readiness {
      return { ready: false, reasons: ['store read-only'] };
    }

    override document(): string {
      return 'the reasons';
    }
  }
  const open = new Endpoint({
    ...resolveHttpOptions({ host: '0.0.0.0', allowedHosts: ['mcp.example.com'] }),
    ...{ loopback: false, mounted: false },
  });
  await open.open(new UnreadyHost());
  const asked = (remoteAddress: string | undefined, accept = 'application/json', url = '/readyz'): Sent =>
    get(open, url, { host: 'mcp.example.com', accept }, { localAddress: '10.1.2.3', remoteAddress });
  for (const here of ['127.0.0.1', '::1', '::ffff:127.0.0.1'])
    assert.equal(asked(here), { status: 503, text: 'the reasons' }, here);
  for (const elsewhere of ['10.1.2.1', '::ffff:10.1.2.1', '2001:db8::1', undefined])
    assert.equal(asked(elsewhere), { status: 503, text: 'not ready\n' }, elsewhere);
  assert.equal(asked('127.0.0.1', '*/*'), { status: 503, text: 'not ready\n' });
  assert.equal(asked('127.0.0.1', 'application/json', '/healthz'), { status: 200, text: 'ok\n' });
});
