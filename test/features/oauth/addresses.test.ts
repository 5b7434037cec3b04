/** Addresses that an issuer names: none leads the server into a private network. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { isObject } from '../../../src/core/protocol/json.ts';
import { guardedFetch } from '../../../src/features/oauth/issuers/guarded-fetch.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';
import { guardedServer, RESOURCE } from './guarded-server.ts';

const test = suite('addresses that an issuer names');

/** Private, link-local, mapped, translated and reserved addresses, in the spellings that URLs allow. */
const PRIVATE = [
  ...['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.254', '192.168.0.1', '192.168.255.255', '0.0.0.1'],
  ...['169.254.169.254', '169.254.170.2', '100.64.0.1', '100.100.100.200', '192.0.0.192', '198.18.0.1', '198.19.255.1'],
  ...['224.0.0.1', '239.255.255.250', '240.0.0.1', '255.255.255.255', '192.88.99.1', '100.127.255.254'],
  ...['0xa9.0xfe.0xa9.0xfe', '0xa9fea9fe', '2852039166', '0251.0376.0251.0376', '169.254.43518', '10.1', '0x0a000001'],
  ...['012.0.0.1', '192.168.1', '172.16.1', '3232235777', '0300.0250.0.1', '167772161', '①⓪.0.0.1', '10。0。0。1'],
  ...['[::ffff:10.0.0.1]', '[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[::ffff:192.168.0.1]', '[::10.0.0.1]'],
  ...['[::a9fe:a9fe]', '[64:ff9b::a9fe:a9fe]', '[64:ff9b::10.0.0.1]', '[64:ff9b:1::1]', '[2002:a00:1::]', '[2001::1]'],
  ...[
    '[2002:a9fe:a9fe::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[fdff::1]',
    '[fe80::1]',
    '[fe80::a9fe:a9fe]',
    '[febf::1]',
  ],
  ...['192.0.2.1', '203.0.113.7', '[2001:db8::1]', '[3fff::1]', '[::ffff:8.8.8.8]'],
  ...['[fec0::1]', '[ff02::1]', '[::]', '[::2]', '[ff0e::1]', '[0:0:0:0:0:ffff:0a00:0001]', '[::ffff:0:0]'],
];
const LOOPBACK = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f.1',
  '0177.0.0.1',
  '[::1]',
  '[::ffff:127.0.0.1]',
  'localhost',
];

/** The connections that this process opens while `work` runs, other than to these ports. */
async function connections(work: () => Promise<void>, ...ports: readonly string[]): Promise<readonly string[]> {
  const opened: string[] = [];
  const seen = (message: unknown): void => {
    const socket = isObject(message) ? message.socket : undefined;
    if (socket instanceof Socket)
      socket.once('connect', () => {
        if (!ports.includes(String(socket.remotePort))) opened.push(`${socket.remoteAddress}:${socket.remotePort}`);
      });
  };
  subscribe('net.client.socket', seen);
  await work();
  unsubscribe('net.client.socket', seen);
  return opened;
}

interface Local {
  readonly url: string;
  readonly port: string;
  readonly requests: string[];
  close(): void;
}

async function local(serve: (path: string, response: ServerResponse, own: string) => void): Promise<Local> {
  const requests: string[] = [];
  const server = createHttpServer((request, response) => {
    requests.push(request.url ?? '');
    request.resume();
    serve(request.url ?? '', response, url);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = String(typeof address === 'object' ? address?.port : '');
  const url = `http://127.0.0.1:${port}`;
  return {
    ...{ url, port, requests },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Quick: one of each line above, about. */
const NAMED = PRIVATE.filter((_, index) => SCALE !== 'quick' || index % 8 === 0);

test(`G-09 an issuer that names any of ${NAMED.length} private addresses for its keys or its introspection leads to no connection`, async () => {
  assert.ok(PRIVATE.length >= 60, String(PRIVATE.length));
  let named = '';
  const issuer = await local((path, response, own) => {
    const metadata = { issuer: own, jwks_uri: named, introspection_endpoint: named };
    response
      .writeHead(path === '/.well-known/oauth-authorization-server' ? 200 : 404, { 'content-type': 'application/json' })
      .end(JSON.stringify(metadata));
  });
  const opened = await connections(async () => {
    for (const host of NAMED)
      for (const scheme of ['https', 'http']) {
        named = `${scheme}://${host}/latest/meta-data/`;
        const guarded = await guardedServer(() => ({
          issuer: { issuer: issuer.url, introspection: { clientId: 'a', clientSecret: 'b' } },
        }));
        const jwt = await guarded.issuer.token({ audience: RESOURCE, claims: { iss: issuer.url } });
        for (const token of [jwt, 'opaque']) {
          assert.is((await guarded.bearer(token)).status, 503, named);
          await guarded.clock.advance(6_000);
        }
        assert.is(guarded.logged.length, 2);
        for (const line of guarded.logged) assert.match(line, /is private|expected an https address/);
        await guarded.close();
      }
  }, issuer.port);
  assert.equal(opened, []);
  issuer.close();
});

test('G-09 a public issuer cannot name this machine, in any spelling; a redirect is followed nowhere', async () => {
  const inside = await local((_path, response) => void response.end('{}'));
  const outside = await local((_path, response) => void response.writeHead(302, { location: inside.url }).end());
  const http = guardedFetch({ clock: systemClock, trusted: [new URL('https://login.example.com')] });
  const opened = await connections(async () => {
    for (const host of LOOPBACK)
      for (const scheme of ['https', 'http'])
        assert.match(
          await http(`${scheme}://${host}:${inside.port}/`).then(
            () => 'it was fetched',
            (error: unknown) => String(error),
          ),
          /is private|expected an https address/,
          host,
        );
    for (const issuer of [outside.url, { issuer: outside.url, jwks: `${outside.url}/jwks` }]) {
      const guarded = await guardedServer(() => ({ issuer }));
      const token = await guarded.issuer.token({ audience: RESOURCE, claims: { iss: outside.url } });
      assert.is((await guarded.bearer(token)).status, 503);
      await guarded.close();
    }
  }, outside.port);
  assert.equal(opened, []);
  assert.ok(outside.requests.length > 0);
  assert.equal(inside.requests, []);
  outside.close();
  inside.close();
});

test('G-09 an answer of an issuer that is too long or too late is given up', async () => {
  let slow = (): void => {};
  const asked = new Promise<void>((resolve) => {
    slow = resolve;
  });
  const issuer = await local((path, response) => {
    if (path === '/long') return void response.end(' '.repeat(1_100_000));
    slow();
  });
  const long = await guardedServer(() => ({ issuer: { issuer: issuer.url, jwks: `${issuer.url}/long` } }));
  const token = await long.issuer.token({ audience: RESOURCE, claims: { iss: issuer.url } });
  assert.is((await long.bearer(token)).status, 503);
  assert.match(long.logged.join(), 'at most 1048576 bytes');
  const late = await guardedServer(() => ({ issuer: { issuer: issuer.url, jwks: `${issuer.url}/late` } }));
  const answer = late.bearer(token);
  await asked;
  await late.clock.advance(5_000);
  assert.is((await answer).status, 503);
  assert.match(late.logged.join(), 'no complete response within 5 s');
  await long.close();
  await late.close();
  issuer.close();
});
