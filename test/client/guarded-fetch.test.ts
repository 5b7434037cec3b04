/** Fetching an address that a server supplied: https, no private networks, no redirects, short answers in time. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { guardedFetch } from '../../src/features/oauth/issuers/guarded-fetch.ts';
import { suite } from '../harness/door.ts';

const test = suite('fetching what a server names');
const PUBLIC = new URL('https://mcp.example.com/mcp');

async function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'it was fetched',
    (error: unknown) => {
      assert.instance(error, TypeError);
      return String(error);
    },
  );
}

/** Serves on loopback, and counts the requests. */
async function local(serve: RequestListener): Promise<{ url: string; got: () => number; close(): void }> {
  let got = 0;
  const server = createServer((request, response) => {
    got += 1;
    serve(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    got: () => got,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const PRIVATE = [
  'https://169.254.169.254/latest/meta-data/',
  'https://[::ffff:10.0.0.1]/',
  'https://[::ffff:169.254.169.254]/',
  'https://[::10.0.0.1]/',
  'https://[64:ff9b::a00:1]/',
  'https://[2002:a00:1::]/',
  'https://[::1]/',
  'https://[::]/',
  'https://[fd00::1]/',
  'https://[fe80::1]/',
  'https://127.0.0.1/',
  'https://127.1/',
  'https://2130706433/',
  'https://0x7f.0.0.1/',
  'https://0/',
  'https://10.1.2.3/',
  'https://172.31.255.255/',
  'https://192.168.0.1/',
  'https://100.64.0.1/',
];
for (const address of PRIVATE)
  test(`U-19 ${address} is refused`, async () => {
    assert.match(await refusal(guardedFetch({ clock: systemClock, trusted: [PUBLIC] })(address)), 'is private');
  });

test('U-19 a name that resolves to a private address is rejected, and no connection is opened', async () => {
  const server = await local((_request, response) => void response.end());
  const address = server.url.replace('http://127.0.0.1', 'https://localhost');
  assert.match(await refusal(guardedFetch({ clock: systemClock, trusted: [PUBLIC] })(address)), 'is private');
  assert.is(server.got(), 0);
  server.close();
});

test('U-19 a server of this machine may name others of this machine, and no other private address', async () => {
  const server = await local((_request, response) => void response.end('{}'));
  const http = guardedFetch({ clock: systemClock, trusted: [new URL('http://localhost:1/mcp')] });
  assert.is((await http(server.url)).status, 200);
  assert.match(await refusal(http('https://10.0.0.1/')), 'is private');
  assert.match(await refusal(http('http://192.0.2.1/')), 'expected an https address');
  server.close();
});

test('U-19 a host that the program itself named may be private', async () => {
  const server = await local((_request, response) => void response.end());
  const port = new URL(server.url).port;
  const named = new URL(`https://127.0.0.1:${port}/mcp`);
  // The server speaks no TLS: the attempt shows that it was connected to.
  const message = await refusal(guardedFetch({ clock: systemClock, trusted: [PUBLIC, named] })(named.href));
  assert.not.match(message, 'is private');
  assert.not.match(message, 'it was fetched');
  server.close();
});

test('U-19 http, credentials and other schemes are refused, and credentials are not repeated', async () => {
  const http = guardedFetch({ clock: systemClock, trusted: [PUBLIC] });
  assert.match(await refusal(http('http://as.example.com/')), 'expected an https address');
  assert.match(await refusal(http('ftp://as.example.com/')), 'expected an https address');
  assert.match(await refusal(http('file:///etc/passwd')), 'file:/etc/passwd: expected an https address');
  for (const scheme of ['http', 'https']) {
    const message = await refusal(http(`${scheme}://ada:secret@as.example.com/`));
    assert.match(message, 'credentials in an address are not allowed');
    assert.not(message.includes('secret'));
  }
});

test('U-19 a redirect is not followed', async () => {
  const inside = await local((_request, response) => void response.end('secret'));
  const server = await local((_request, response) => void response.writeHead(302, { location: inside.url }).end());
  const response = await guardedFetch({ clock: systemClock, trusted: [new URL(server.url)] })(server.url);
  assert.is(response.status, 302);
  assert.is(inside.got(), 0);
  inside.close();
  server.close();
});

test('U-19 a body of 10 MB is refused before it has arrived', async () => {
  let sent = 0;
  const server = await local((_request, response) => {
    const chunk = Buffer.alloc(65_536);
    const more = (): void => {
      while (sent < 10_485_760 && !response.destroyed) {
        sent += chunk.length;
        if (!response.write(chunk)) return void response.once('drain', more);
      }
      response.end();
    };
    more();
  });
  const http = guardedFetch({ clock: systemClock, trusted: [new URL(server.url)] });
  assert.match(await refusal(http(server.url)), 'expected a response of at most 1048576 bytes');
  server.close();
});

for (const begins of [true, false])
  test(`U-19 a response that ${begins ? 'begins and does not end' : 'does not begin'} ends after 15 s`, async () => {
    const clock = new SimulatedClock();
    let arrived = (): void => {};
    const asked = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const server = await local((_request, response) => {
      if (begins) response.write('{');
      arrived();
    });
    const pending = refusal(guardedFetch({ clock, trusted: [new URL(server.url)] })(server.url));
    await asked;
    await clock.advance(15_000);
    assert.match(await pending, 'no complete response within 15 s');
    assert.is(clock.timers, 0);
    server.close();
  });

test('a signal ends a request, also one that is aborted before', async () => {
  const server = await local(() => controller.abort());
  const controller = new AbortController();
  const { signal } = controller;
  const http = guardedFetch({ clock: systemClock, trusted: [new URL(server.url)] });
  assert.match(String(await http(server.url, { signal }).catch(String)), 'cancelled');
  assert.match(String(await http(server.url, { signal }).catch(String)), 'cancelled');
  assert.is(server.got(), 1);
  server.close();
});
