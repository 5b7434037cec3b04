/** Callbacks of strangers: which addresses are reached, and what an endpoint can do to the server that calls it. */
import type { LookupFunction } from 'node:net';
import { gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { isGlobalAddress } from '../../../../src/core/kernel/global-address.ts';
import { readCallback } from '../../../../src/features/events/delivery/callback-address.ts';
import { CallbackFailed, CallbackSender } from '../../../../src/features/events/delivery/callback-sender.ts';
import { SimulatedClock, settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { type RawServer, type Responder, rawServer, response } from '../../../harness/raw-server.ts';
import { HANG_MS, inTime } from '../../../harness/wait.ts';

const test = suite('callbacks');

test('S-134: only addresses that the whole internet reaches are global', () => {
  const global = ['8.8.8.8', '1.1.1.1', '93.184.216.34', '2606:4700:4700::1111', '2a00:1450:4001:82a::200e', '3ffe::1'];
  const special = [
    ...[
      '0.0.0.0',
      '10.1.2.3',
      '100.64.0.1',
      '127.0.0.1',
      '127.255.255.254',
      '169.254.169.254',
      '172.16.0.1',
      '172.31.255.255',
    ],
    ...[
      '192.0.0.1',
      '192.0.2.1',
      '192.88.99.1',
      '192.168.0.1',
      '198.18.0.1',
      '198.19.255.255',
      '198.51.100.1',
      '203.0.113.1',
    ],
    ...[
      '224.0.0.1',
      '239.255.255.255',
      '240.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:8.8.8.8',
    ],
    ...[
      '::ffff:0:8.8.8.8',
      '::8.8.8.8',
      '64:ff9b::7f00:1',
      '64:ff9b:1::1',
      '100::1',
      '2001::1',
      '2001:db8::1',
      '2002:7f00:1::',
    ],
    ...[
      '3fff::1',
      '5f00::1',
      'fc00::1',
      'fd12::1',
      'fe80::1',
      'fec0::1',
      'ff02::1',
      '4000::1',
      'fe80::1%eth0',
      '2001:2::1',
    ],
    ...['', 'localhost', '127.1', '0x7f000001', '8.8.8.8.8'],
  ];
  assert.equal(
    global.filter((address) => !isGlobalAddress(address)),
    [],
  );
  assert.equal(special.filter(isGlobalAddress), []);
});

test('S-134: other spellings of an address are that address', () => {
  const hosts = [
    'https://127.1/',
    'https://0x7f.0.0.1/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://127.0.0.1./',
  ].map((text) => {
    const read = readCallback(text, new Set());
    return 'url' in read ? read.url.hostname : read.expected;
  });
  assert.equal(hosts, Array(5).fill('127.0.0.1'));
});

const opened: RawServer[] = [];
test.after(async () => {
  for (const server of opened) await server.close();
});

interface Sent {
  readonly outcome: string;
  readonly requests: number;
}

/** Sends a POST to an endpoint that answers in this way. */
async function sent(respond: Responder, { reads = false, timeoutMs = 2_000 } = {}): Promise<Sent> {
  const server = await rawServer(respond);
  opened.push(server);
  const url = new URL(server.url);
  const sender = new CallbackSender({ clock: systemClock, allowed: new Set([url.origin]), timeoutMs, perOrigin: 4 });
  const outcome = await inTime(
    sender.post(url, { 'webhook-id': 'e1' }, '{}', reads).then(
      ({ status, body }) => `${status}${body === '' ? '' : ' with a body'}`,
      (error: unknown) => (error instanceof CallbackFailed ? error.category : String(error)),
    ),
    'the POST to settle',
  );
  sender.close();
  return { outcome, requests: server.requests.length };
}

const HEAD = 'HTTP/1.1 200 OK\r\n';
/** Writes a text again and again, until the other side has enough. */
const endless =
  (first: string, more: string): Responder =>
  (_, socket) => {
    socket.write(first);
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer);
      else socket.write(more.repeat(200));
    }, 1);
    return undefined;
  };

test('S-134: no endpoint holds or floods the server that calls it', async () => {
  const bomb = gzipSync(Buffer.alloc(10_000_000));
  const table: readonly (readonly [string, Responder, string, string])[] = [
    // Title, answer, outcome of a delivery, outcome of a challenge, whose body is read.
    ['accepts', () => response(204), '204', '204'],
    ['redirects', () => response(302, { location: 'http://127.0.0.1:1/' }), '302', '302'],
    ['sends headers without end', endless(HEAD, 'x-a: b\r\n'), 'http_5xx', 'http_5xx'],
    ['sends one header without end', endless(`${HEAD}x-a: `, 'bbbb'), 'http_5xx', 'http_5xx'],
    [
      'sends a body without end',
      endless(`${HEAD}transfer-encoding: chunked\r\n\r\n`, '3\r\nabc\r\n'),
      '200',
      'challenge_failed',
    ],
    ['promises a body that does not come', () => `${HEAD}content-length: 1000000\r\n\r\n`, '200', 'timeout'],
    [
      'sends a bomb',
      () => response(200, { 'content-encoding': 'gzip' }, bomb.subarray(0, 9_000)),
      '200',
      '200 with a body',
    ],
    ['resets', (_, socket) => void socket.resetAndDestroy() as undefined, 'connection_refused', 'connection_refused'],
    ['closes', (_, socket) => void socket.end() as undefined, 'connection_refused', 'connection_refused'],
    ['says nothing', () => undefined, 'timeout', 'timeout'],
    ['speaks no HTTP', () => 'SSH-2.0-OpenSSH_9.6\r\n', 'http_5xx', 'http_5xx'],
    [
      'switches protocols',
      () => 'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      'connection_refused',
      'connection_refused',
    ],
    ['sends interim responses without end', endless('', 'HTTP/1.1 103 Early\r\n\r\n'), 'http_5xx', 'http_5xx'],
    ['sends a status that is none', () => 'HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n', '999', '999'],
  ];
  for (const [title, respond, outcome, challenged] of table) {
    // A busy machine takes long for what ends by itself.
    const within = (expected: string): number => (expected === 'timeout' ? 200 : 30_000);
    assert.is((await sent(respond, { timeoutMs: within(outcome) })).outcome, outcome, title);
    const challenge = await sent(respond, { reads: true, timeoutMs: within(challenged) });
    assert.is(challenge.outcome, challenged, `${title}, in a challenge`);
  }
});

test('S-134: a name is resolved and checked for each connection: one that becomes private is not reached', async () => {
  let answers = 0;
  const server = await rawServer(() => response(200));
  opened.push(server);
  const port = new URL(server.url).port;
  const addresses = [['93.184.216.34', '127.0.0.1'], ['127.0.0.1'], ['::1'], ['::ffff:7f00:1']];
  const resolve: LookupFunction = (_, __, callback) => {
    const found = addresses[answers] ?? [];
    answers += 1;
    callback(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  const sender = new CallbackSender({
    clock: systemClock,
    allowed: new Set(),
    timeoutMs: HANG_MS,
    perOrigin: 4,
    resolve,
  });
  for (const _ of addresses) {
    const failed = await sender
      .post(new URL(`https://rebinding.example:${port}/`), {}, '{}')
      .catch((error: unknown) => error);
    assert.ok(failed instanceof CallbackFailed && failed.category === 'connection_refused');
    assert.match(String(failed), 'not globally reachable');
  }
  assert.is(answers, addresses.length);
  assert.is(server.requests.length, 0);
  sender.close();
});

test('S-134: connections are kept for the next POST, and one that the endpoint has closed meanwhile is no failure', async () => {
  const ports = new Set<number | undefined>();
  const server = await rawServer((_, socket) => {
    ports.add(socket.remotePort);
    return response(200);
  });
  opened.push(server);
  const url = new URL(server.url);
  const clock = new SimulatedClock();
  const sender = new CallbackSender({ clock, allowed: new Set([url.origin]), timeoutMs: 2_000, perOrigin: 4 });
  for (let n = 0; n < 5; n += 1) {
    await sender.post(url, {}, '{}');
    await settled();
  }
  assert.is(ports.size, 1);
  await clock.advance(300_000);
  await sender.post(url, {}, '{}');
  await settled();
  await sender.post(url, {}, '{}');
  assert.is(ports.size, 2, 'after five minutes a connection is closed, and its name is resolved again');
  sender.close();
});

test('S-134: an endpoint is reached although 512 others have answered, whose connections are kept', async () => {
  const servers = await Promise.all(Array.from({ length: 513 }, () => rawServer(() => response(204))));
  opened.push(...servers);
  const urls = servers.map(({ url }) => new URL(url));
  // Less than the time for which a connection is kept without a POST.
  const sender = new CallbackSender({
    ...{ clock: systemClock, allowed: new Set(urls.map(({ origin }) => origin)), timeoutMs: 20_000, perOrigin: 4 },
  });
  const last = urls.pop();
  while (urls.length > 0) await Promise.all(urls.splice(0, 64).map((url) => sender.post(url, {}, '{}')));
  await settled();
  assert.is((await sender.post(last ?? new URL('http://none'), {}, '{}')).status, 204);
  sender.close();
});
