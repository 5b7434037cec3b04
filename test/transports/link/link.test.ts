/** Links between nodes: exchanges and news arrive once, only from nodes that prove themselves, and within limits. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import {
  type ClientHttp2Session,
  connect,
  connect as connectTls,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
} from 'node:http2';
import { type Socket, connect as tcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { authOf } from '../../../src/messages/auth.ts';
import { SimulatedClock } from '../../../src/testing.ts';
import { LinkSignature, linkProof, newNonce } from '../../../src/transports/link/link-handshake.ts';
import { exchangeBytes } from '../../../src/transports/link/link-text.ts';
import { suite, timeLimit } from '../../harness/door.ts';
import { exchange, forward, type LinkedNode, linked, linkedNode, SECRET } from './support.ts';

const test = suite('links');
timeLimit(60_000);

const open: LinkedNode[] = [];
async function node(...args: Parameters<typeof linkedNode>): Promise<LinkedNode> {
  const made = await linkedNode(...args);
  open.push(made);
  return made;
}
async function pair(): Promise<[LinkedNode, LinkedNode]> {
  const [a, b] = [await node('node-a'), await node('node-b')];
  await linked(a, b);
  return [a, b];
}
test.afterEach(async () => {
  await Promise.all(open.splice(0).map(({ links }) => links.close()));
});

test('forwards an exchange with its caller, and carries the response back', async () => {
  const [a, b] = await pair();
  const auth = authOf('Ada Ä', ['read'], { claims: { team: 'é' }, expiresAt: 5 });
  const sent = forward(a, b, exchange({ auth, text: '{"text":"Größe"}', headers: { 'mcp-session-id': 'x' } }));
  const arrived = await b.exchanges.next();
  assert.equal(arrived.auth, auth);
  assert.is(arrived.header('mcp-session-id'), 'x');
  assert.is(arrived.remoteAddress, '127.0.0.1');
  assert.is(arrived.from, 'node-a');
  const body = await new Promise((done) => arrived.body({ maxMessageBytes: 1_000 } as never, 'Ada Ä', done));
  assert.equal(body, { text: '{"text":"Größe"}' });
  arrived.response.send(200, { 'content-type': 'application/json', 'www-authenticate': ['A', 'B'] }, '{"ok":"ß"}');
  assert.equal(await sent.done, {
    status: 200,
    headers: { 'content-type': 'application/json', 'www-authenticate': 'A, B' },
    text: '{"ok":"ß"}',
    failure: undefined,
  });
  const none = forward(b, a, exchange({ method: 'DELETE', text: '' }));
  (await a.exchanges.next()).response.send(204, { connection: 'close' }, undefined);
  assert.equal(await none.done, { status: 204, headers: {}, text: '', failure: undefined });
});

test('carries a stream in pieces, its end, and the disconnection of its client', async () => {
  const [a, b] = await pair();
  const sent = forward(a, b, exchange());
  const { response } = await b.exchanges.next();
  response.begin(200, { 'content-type': 'text/event-stream' });
  for (const text of ['data: ä\n\n', 'data: 2\n\n']) response.write(text);
  response.end();
  const { status, text, failure } = await sent.done;
  assert.equal([status, text, failure], [200, 'data: ä\n\ndata: 2\n\n', undefined]);
  const second = forward(a, b, exchange());
  const open = await b.exchanges.next();
  const gone = new Promise<void>((closed) => {
    open.response.listener = { closed, drained() {} };
  });
  second.forwarding.cancel();
  await gone;
  assert.ok(open.response.gone);
});

test('a client that reads nothing stops its own stream at 64 KiB a side, and no other exchange', async () => {
  const [a, b] = await pair();
  const slow = forward(a, b, exchange(), false);
  const { response } = await b.exchanges.next();
  response.begin(200, {});
  const line = `data: ${'x'.repeat(1_000)}\n\n`;
  let written = 0;
  while (response.write(line) || response.pending < 256 * 1024) {
    written += line.length;
    if (written > 4_000_000) break;
    if (written % (64 * line.length) === 0) await new Promise((turn) => setImmediate(turn));
  }
  assert.ok(written < 1_000_000, `${written}`);
  assert.ok(slow.text().length <= 130_000, `${slow.text().length}`);
  const other = forward(a, b, exchange());
  (await b.exchanges.next()).response.send(200, {}, 'y'.repeat(500_000));
  assert.is((await other.done).text.length, 500_000);
  const drained = new Promise<void>((done) => {
    response.listener = { closed() {}, drained: done };
  });
  const more = setInterval(() => slow.forwarding.resume(), 1);
  await drained;
  clearInterval(more);
});

test('news arrive in order, gathered, and in both directions', async () => {
  const [a, b] = await pair();
  for (let number = 0; number < 100; number += 1) a.links.tell('node-b', { news: 'watch', topics: [`${number}`] });
  for (let number = 0; number < 100; number += 1)
    assert.equal(await b.news.next(), { from: 'node-a', news: { news: 'watch', topics: [`${number}`] } });
  b.links.tell('node-a', { news: 'watch', topics: ['x'] });
  assert.equal(await a.news.next(), { from: 'node-b', news: { news: 'watch', topics: ['x'] } });
});

test('news that together are longer than any message arrive, and none stops those after it', async () => {
  const [a, b] = await pair();
  const filler = 'x'.repeat(100_000);
  for (let number = 0; number < 80; number += 1)
    a.links.tell('node-b', { news: 'watch', topics: [`${number}`, filler] });
  for (let number = 0; number < 80; number += 1) {
    const { news } = await b.news.next();
    assert.is(news.news === 'watch' && news.topics[0], `${number}`);
  }
  a.links.tell('node-b', { news: 'watch', topics: ['x'.repeat(6_000_000)] });
  a.links.tell('node-b', { news: 'watch', topics: ['after it'] });
  assert.equal((await b.news.next()).news, { news: 'missed' });
  assert.equal((await b.news.next()).news, { news: 'watch', topics: ['after it'] });
  assert.is(await a.dropped.next(), 'node-b');
});

test('more news than a link holds are discarded, and both sides learn that', async () => {
  const [a, b] = await pair();
  for (let number = 0; number < 10_001; number += 1) a.links.tell('node-b', { news: 'unwatch', topics: [`${number}`] });
  assert.equal((await b.news.next()).news, { news: 'missed' });
  assert.equal((await b.news.next()).news, { news: 'unwatch', topics: ['10000'] });
  assert.is(await a.dropped.next(), 'node-b');
  const filler = 'x'.repeat(400_000);
  for (let number = 0; number < 100; number += 1) a.links.tell('node-b', { news: 'watch', topics: [filler] });
  assert.equal((await b.news.next()).news, { news: 'missed' });
  assert.is(await a.dropped.next(), 'node-b');
});

test('a node that ends fails its exchanges and its link, and is reached again when it is back', async () => {
  const [a, b] = await pair();
  const begun = forward(a, b, exchange());
  (await b.exchanges.next()).response.begin(200, {});
  const unanswered = forward(a, b, exchange());
  await b.exchanges.next();
  await b.links.close();
  assert.is((await begun.done).failure, 'cut');
  assert.is((await unanswered.done).failure, 'lost');
  assert.is(await a.closed.next(), 'node-b');
  assert.is((await forward(a, b, exchange()).done).failure, 'unreachable');
  const again = await node('node-b', { listen: b.address });
  assert.is(await a.opened.next(), 'node-b');
  const sent = forward(a, again, exchange());
  (await again.exchanges.next()).notMine();
  assert.is((await sent.done).failure, 'not mine');
});

/** A peer that speaks HTTP/2 by hand. */
interface Intruder {
  readonly session: ClientHttp2Session;
  request(headers: Readonly<Record<string, string>>, body?: Uint8Array): Promise<IncomingHttpHeaders | undefined>;
}

async function intruder(to: LinkedNode): Promise<Intruder> {
  const session = connect(`http://${to.address}`);
  session.on('error', () => {});
  await once(session, 'connect');
  return {
    session,
    request(headers, body) {
      const stream = session.request(headers);
      stream.on('error', () => {});
      stream.end(body);
      return new Promise((done) => {
        stream.once('response', done);
        stream.once('close', () => done(undefined));
      });
    },
  };
}

/** Proves itself as `name`. @returns the signature of its exchanges, or undefined if it was rejected */
async function handshake(
  { request }: Intruder,
  to: LinkedNode,
  name: string,
  secret = SECRET,
): Promise<LinkSignature | undefined> {
  const dialerNonce = newNonce();
  const hello = await request({
    ':path': '/hello',
    'link-from': name,
    'link-to': to.id,
    'link-nonce': dialerNonce,
  });
  if (!hello) return undefined;
  const terms = { dialer: name, listener: to.id, dialerNonce, listenerNonce: String(hello['link-nonce']) };
  const proved = await request({ ':path': '/proof', 'link-proof': linkProof(secret, 'dialer', terms) });
  return proved && new LinkSignature(secret, 'dialer', terms);
}

const signed = (signature: LinkSignature, number: number, bytes: Uint8Array): Readonly<Record<string, string>> => ({
  ':method': 'POST',
  ':path': '/exchange',
  'link-signature': `${number}.${signature.sign(number, '/exchange', bytes)}`,
});

test('links with certificates carry exchanges unsigned and encrypted, and refuse a node without a certificate', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-link-'));
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=troupe', '-keyout', key, '-out', cert],
  ]);
  if (made.error) return console.log('no openssl here: certificates of links are not tested');
  const tls = { key: readFileSync(key), cert: readFileSync(cert), ca: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  const [a, b] = [await node('node-a', { tls }), await node('node-b', { tls })];
  await linked(a, b);
  const sent = forward(a, b, exchange({ text: 'x' }));
  (await b.exchanges.next()).response.send(200, {}, 'y');
  assert.is((await sent.done).text, 'y');
  const without = connectTls(`https://${b.address}`, { ca: tls.cert, checkServerIdentity: () => undefined });
  without.on('error', () => {});
  const refused = without.request({ ':path': '/hello' });
  refused.on('error', () => {});
  await new Promise((closed) => refused.once('close', closed));
  without.destroy();
  const plain = await node('node-c');
  plain.links.peers([{ node: 'node-b', address: b.address }]);
  assert.is(await plain.closed.next(), 'node-b');
});

test('D-20 S-53: a peer without the secret, under a wrong id, or of a fenced node gets no link', async () => {
  const b = await node('node-b');
  b.known = new Set(['node-a']);
  const bytes = exchangeBytes(exchange());
  const first = await intruder(b);
  assert.is(await first.request({ ':method': 'POST', ':path': '/exchange' }, bytes), undefined);
  assert.ok(first.session.destroyed || (await once(first.session, 'close')));
  assert.is(await handshake(await intruder(b), b, 'node-a', 'another secret of at least 32 bytes'), undefined);
  assert.is(await handshake(await intruder(b), b, 'node-z'), undefined);
  assert.is(await handshake(await intruder(b), { ...b, id: 'node-c' }, 'node-a'), undefined);
  assert.is(await handshake(await intruder(b), b, 'node-b'), undefined);
  const member = await intruder(b);
  assert.ok(await handshake(member, b, 'node-a'));
  // Its peers hear that it is fenced.
  const closed = once(member.session, 'close');
  b.links.peers([]);
  await closed;
  assert.equal(b.exchanges.all, []);
});

test('D-20 S-53: a listener without the secret receives nothing', async () => {
  const received: string[] = [];
  // It accepts every proof, and makes one up.
  const impostor = createHttp2Server();
  const sessions = new Set<{ destroy(): void }>();
  impostor.on('session', (session) => sessions.add(session));
  impostor.on('stream', (stream, headers) => {
    received.push(String(headers[':path']));
    stream.respond({ ':status': 200, 'link-nonce': newNonce(), 'link-proof': newNonce() }, { endStream: true });
  });
  impostor.listen(0, '127.0.0.1');
  await once(impostor, 'listening');
  const at = impostor.address();
  const a = await node('node-a');
  const b = { ...a, id: 'node-b' };
  a.links.peers([{ node: 'node-b', address: `127.0.0.1:${typeof at === 'object' ? at?.port : 0}` }]);
  assert.is(await a.closed.next(), 'node-b');
  const failed = forward(a, b, exchange({ text: 'confidential' }));
  assert.is((await failed.done).failure, 'unreachable');
  assert.ok(received.length > 0);
  assert.ok(received.every((path) => path === '/hello'));
  await a.links.close();
  for (const session of sessions) session.destroy();
  impostor.close();
});

test('D-20 S-53: an exchange that is unsigned, changed or repeated closes the link and reaches nothing', async () => {
  const b = await node('node-b');
  const bytes = exchangeBytes(exchange({ auth: authOf('ada') }));
  const forged = exchangeBytes(exchange({ auth: authOf('bob') }));
  const attempts: ((each: Intruder, signature: LinkSignature) => Promise<unknown>)[] = [
    ({ request }) => request({ ':method': 'POST', ':path': '/exchange' }, bytes),
    ({ request }, signature) => request(signed(signature, 1, bytes), forged),
    ({ request }, signature) => request({ ...signed(signature, 1, bytes), ':path': '/news' }, bytes),
  ];
  for (const attempt of attempts) {
    const each = await intruder(b);
    const signature = await handshake(each, b, 'node-a');
    assert.ok(signature);
    if (signature) assert.is(await attempt(each, signature), undefined);
    assert.ok(each.session.destroyed || (await once(each.session, 'close')));
  }
  assert.equal(b.exchanges.all, []);
  const each = await intruder(b);
  const signature = await handshake(each, b, 'node-a');
  if (!signature) throw new Error('no link');
  const sent = each.request(signed(signature, 1, bytes), bytes);
  (await b.exchanges.next()).response.send(200, {}, 'once');
  assert.is((await sent)?.[':status'], 200);
  assert.is(await each.request(signed(signature, 1, bytes), bytes), undefined);
  assert.is(b.exchanges.all.length, 1);
  // The signature of one link is valid on no other.
  const next = await intruder(b);
  assert.ok(await handshake(next, b, 'node-a'));
  assert.is(await next.request(signed(signature, 2, bytes), bytes), undefined);
  assert.is(b.exchanges.all.length, 1);
});

test('D-20 S-53: frames of 1 GB, half a preface, floods of connections and bodies use bounded memory', async () => {
  const clock = new SimulatedClock();
  const b = await node('node-b', { clock });
  const [host = '', port = ''] = b.address.split(':');
  const raw = async (bytes: Uint8Array): Promise<void> => {
    const socket: Socket = tcp({ host, port: Number(port) });
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(bytes);
    socket.resume();
    // The time of the handshake is over.
    while (!socket.closed) await clock.advance(3_000);
  };
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
  const before = process.memoryUsage().rss;
  // The longest length that a frame can name is 16 MB; four more bytes name 1 GB in a body.
  await raw(Buffer.concat([preface, Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]), Buffer.alloc(100_000)]));
  await raw(Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  const each = await intruder(b);
  const signature = await handshake(each, b, 'node-a');
  if (!signature) throw new Error('no link');
  const giant = Buffer.alloc(1024 * 1024);
  giant.writeUInt32BE(1024 * 1024 * 1024);
  assert.is(await each.request(signed(signature, 1, giant), giant), undefined);
  const stream = each.session.request(signed(signature, 2, giant));
  stream.on('error', () => {});
  const ended = new Promise((closed) => stream.once('close', closed));
  for (let sent = 0; sent < 64 && !stream.destroyed; sent += 1)
    if (!stream.write(giant)) await Promise.race([ended, new Promise((drained) => stream.once('drain', drained))]);
  await ended;
  const flood = Array.from({ length: 300 }, () => tcp({ host, port: Number(port) }));
  for (const socket of flood) socket.on('error', () => {});
  await Promise.all(flood.slice(256).map((socket) => socket.closed || once(socket.resume(), 'close')));
  for (const socket of flood) socket.destroy();
  assert.equal(b.exchanges.all, []);
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 64 * 1024 * 1024, `${grown}`);
  const after = await node('node-c');
  await linked(b, after);
});

test('D-20 S-53: a link has a limit of exchanges, and a node that has too many says so', async () => {
  const a = await node('node-a', { maxExchanges: 2 });
  const b = await node('node-b');
  await linked(a, b);
  for (let number = 0; number < 2; number += 1) {
    forward(a, b, exchange());
    await b.exchanges.next();
  }
  assert.is((await forward(a, b, exchange()).done).failure, 'full');
});
