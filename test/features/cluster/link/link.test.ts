/** Links between nodes: exchanges and news arrive once, only from nodes that prove themselves, and within limits. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
} from 'node:http2';
import { createServer, type Socket, connect as tcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import * as assert from 'uvu/assert';
import type { LinkedExchange } from '../../../../src/core/http/other-nodes.ts';
import { authOf } from '../../../../src/core/messages/auth.ts';
import { LinkChannel, RECORD } from '../../../../src/features/cluster/link/link-channel.ts';
import { LinkSignature, linkProof, newNonce } from '../../../../src/features/cluster/link/link-handshake.ts';
import { headText } from '../../../../src/features/cluster/link/link-text.ts';
import { SimulatedClock } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { times } from '../../../harness/scale.ts';
import { untilPassed } from '../../../harness/wait.ts';
import { exchange, forward, type LinkedNode, linked, linkedNode, SECRET } from './support.ts';

const test = suite('links');

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
    headers: { 'content-type': 'application/json', 'www-authenticate': ['A', 'B'] },
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
  // A message has 4 MB at most.
  const count = times(80, { quick: 45 });
  for (let number = 0; number < count; number += 1)
    a.links.tell('node-b', { news: 'watch', topics: [`${number}`, filler] });
  for (let number = 0; number < count; number += 1) {
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
  // A link holds 16 MB.
  const count = times(100, { quick: 45 });
  for (let number = 0; number < count; number += 1) a.links.tell('node-b', { news: 'watch', topics: [filler] });
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
  /** Sends a request without a body. @returns its stream, and the head of its response or undefined */
  request(
    headers: Readonly<Record<string, string>>,
  ): Promise<{ readonly stream: ClientHttp2Stream; readonly head: IncomingHttpHeaders | undefined }>;
}

async function intruder(to: LinkedNode): Promise<Intruder> {
  const session = connect(`http://${to.address}`);
  session.on('error', () => {});
  await once(session, 'connect');
  return {
    session,
    request(headers) {
      const stream = session.request(headers);
      stream.on('error', () => {});
      return new Promise((done) => {
        stream.once('response', (head) => done({ stream, head }));
        stream.once('close', () => done({ stream, head: undefined }));
      });
    },
  };
}

const isClosed = async ({ session }: Intruder): Promise<void> => {
  if (!session.destroyed) await once(session, 'close');
};

/** The stream of a link, and the signature of its texts. */
interface ProvedLink {
  readonly stream: ClientHttp2Stream;
  readonly signature: LinkSignature;
}

/** Proves itself as `name`. @returns undefined if it was rejected */
async function handshake(
  { request }: Intruder,
  to: LinkedNode,
  name: string,
  secret = SECRET,
): Promise<ProvedLink | undefined> {
  const dialerNonce = newNonce();
  const hello = await request({ ':path': '/hello', 'link-from': name, 'link-to': to.id, 'link-nonce': dialerNonce });
  if (!hello.head) return undefined;
  const terms = { dialer: name, listener: to.id, dialerNonce, listenerNonce: String(hello.head['link-nonce']) };
  const proof = { ':method': 'POST', ':path': '/link', 'link-proof': linkProof(secret, 'dialer', terms) };
  const { stream, head } = await request(proof);
  return head && { stream, signature: new LinkSignature(secret, 'dialer', terms) };
}

async function proved(each: Intruder, to: LinkedNode, name = 'node-a'): Promise<ProvedLink> {
  const link = await handshake(each, to, name);
  if (!link) throw new Error('no link');
  return link;
}

/** A text with these records, signed. */
async function textOf(sends: LinkSignature | undefined, write: (channel: LinkChannel) => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  const records = { record() {}, flushed() {}, broken() {} };
  const channel = new LinkChannel({ stream, sends, receives: undefined, records });
  write(channel);
  channel.end();
  await once(stream, 'finish');
  return Buffer.concat(chunks);
}

/** A text with one exchange. */
const exchangeText = (
  sends: LinkSignature | undefined,
  number = 1,
  more: Parameters<typeof exchange>[0] = {},
): Promise<Buffer> =>
  textOf(sends, (channel) => {
    const { text, ...head } = exchange(more);
    channel.add(RECORD.exchange, number, headText(head), false);
    channel.add(RECORD.body, number, text);
  });

/** A certificate with its key; undefined without openssl. */
function certificate(): { readonly key: Buffer; readonly cert: Buffer; readonly ca: Buffer } | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-link-'));
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=troupe', '-keyout', key, '-out', cert],
  ]);
  const tls = made.error ? undefined : { key: readFileSync(key), cert: readFileSync(cert), ca: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  return tls;
}

test('links with certificates carry exchanges unsigned and encrypted, and refuse a node without such a certificate', async () => {
  const [tls, other] = [certificate(), certificate()];
  if (!tls || !other) return console.log('no openssl here: certificates of links are not tested');
  const [a, b] = [await node('node-a', { tls }), await node('node-b', { tls })];
  await linked(a, b);
  const sent = forward(a, b, exchange({ text: 'x' }));
  (await b.exchanges.next()).response.send(200, {}, 'y');
  assert.is((await sent.done).text, 'y');
  // Without a certificate, and with one of another authority.
  for (const more of [{}, { tls: { ...other, ca: tls.ca } }]) {
    const stranger = await node('node-c', more);
    stranger.links.peers([{ node: 'node-b', address: b.address }]);
    // It tries again, and is rejected again.
    assert.is(await stranger.closed.next(), 'node-b');
    assert.is(await stranger.closed.next(), 'node-b');
    assert.equal(stranger.opened.all, []);
  }
});

test('D-20 S-53: a peer without the secret, under a wrong id, or of a fenced node gets no link', async () => {
  const b = await node('node-b');
  b.known = new Set(['node-a']);
  const first = await intruder(b);
  assert.is((await first.request({ ':method': 'POST', ':path': '/link' })).head, undefined);
  await isClosed(first);
  assert.is(await handshake(await intruder(b), b, 'node-a', 'another secret of at least 32 bytes'), undefined);
  assert.is(await handshake(await intruder(b), b, 'node-z'), undefined);
  assert.is(await handshake(await intruder(b), { ...b, id: 'node-c' }, 'node-a'), undefined);
  assert.is(await handshake(await intruder(b), b, 'node-b'), undefined);
  const member = await intruder(b);
  await proved(member, b);
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
  const attempts: ((signature: LinkSignature) => Promise<Buffer>)[] = [
    // Unsigned, with the room of a signature.
    async () => Buffer.concat([await exchangeText(undefined), Buffer.alloc(32)]),
    async (signature) => {
      const bytes = await exchangeText(signature, 1, { auth: authOf('ada') });
      bytes.write('bob', bytes.indexOf('ada'));
      return bytes;
    },
    // One text was left out.
    async (signature) => {
      signature.sign(Buffer.alloc(0));
      return exchangeText(signature);
    },
  ];
  for (const attempt of attempts) {
    const each = await intruder(b);
    const { stream, signature } = await proved(each, b);
    stream.write(await attempt(signature));
    await isClosed(each);
  }
  assert.equal(b.exchanges.all, []);
  const each = await intruder(b);
  const { stream, signature } = await proved(each, b);
  const bytes = await exchangeText(signature);
  stream.write(bytes);
  (await b.exchanges.next()).response.send(200, {}, 'once');
  stream.write(bytes);
  await isClosed(each);
  // The signature of one link is valid on no other.
  const next = await intruder(b);
  const link = await proved(next, b);
  link.stream.write(bytes);
  await isClosed(next);
  assert.is(b.exchanges.all.length, 1);
});

/** A node whose connections pass somebody who may change them. */
async function changedOnTheWay(
  to: LinkedNode,
  change: (bytes: Buffer) => void,
): Promise<LinkedNode & { stop(): void }> {
  const [host = '', port = ''] = to.address.split(':');
  const server = createServer((near) => {
    const far = tcp({ host, port: Number(port) });
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).on('data', (bytes: Buffer) => {
      change(bytes);
      near.write(bytes);
    });
    far.on('close', () => near.destroy());
    near.on('close', () => far.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const at = server.address();
  return { ...to, address: `127.0.0.1:${typeof at === 'object' ? at?.port : 0}`, stop: () => void server.close() };
}

test('S-53: an event of a stream that is changed on its way reaches no client', async () => {
  const [a, b] = [await node('node-a'), await node('node-b')];
  const way = await changedOnTheWay(b, (bytes) => {
    const at = bytes.indexOf('genuine');
    if (at !== -1) bytes.write('forged!', at);
  });
  a.links.peers([{ node: 'node-b', address: way.address }]);
  await a.opened.next();
  const sent = forward(a, b, exchange());
  const { response } = await b.exchanges.next();
  response.begin(200, { 'content-type': 'text/event-stream' });
  response.write('data: first\n\n');
  await new Promise((turn) => setImmediate(turn));
  response.write('data: genuine\n\n');
  const { failure, text } = await sent.done;
  assert.is(failure, 'cut');
  assert.not.match(text, 'forged');
  way.stop();
});

test('D-09: the exchanges of a turn, and their responses, cross a link as one signed text', async () => {
  const [a, b] = await pair();
  const { sign } = LinkSignature.prototype;
  let signed = 0;
  LinkSignature.prototype.sign = function (text) {
    signed += 1;
    return sign.call(this, text);
  };
  try {
    const all = Array.from({ length: 50 }, () => forward(a, b, exchange()));
    for (const _each of all) (await b.exchanges.next()).response.send(200, {}, '{}');
    for (const { done } of all) assert.is((await done).text, '{}');
  } finally {
    LinkSignature.prototype.sign = sign;
  }
  // Each text is signed at one end and checked at the other.
  assert.ok(signed >= 4 && signed <= 20, `${signed}`);
});

test('a body of any length arrives whole, with its characters, under a credit of its own', async () => {
  const [a, b] = await pair();
  const text = '🦉ä'.repeat(300_000);
  const sent = forward(a, b, exchange({ text }));
  const { response, body } = await b.exchanges.next().then((arrived) => ({
    response: arrived.response,
    body: new Promise((done) => arrived.body({ maxMessageBytes: 4 * 1024 * 1024 } as never, 'ada', done)),
  }));
  assert.equal(await body, { text });
  response.send(200, {}, text);
  assert.is((await sent.done).text === text, true);
});

test.full('D-20 S-53: texts and bodies without end, and half a preface, use bounded memory', async () => {
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
    await untilPassed(clock, () => socket.closed, 3_000);
  };
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
  const before = process.memoryUsage().rss;
  // The longest length that a frame can name is 16 MB; four more bytes name 1 GB in a text.
  await raw(Buffer.concat([preface, Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]), Buffer.alloc(100_000)]));
  await raw(Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  const giant = await intruder(b);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(1024 * 1024 * 1024);
  (await proved(giant, b)).stream.write(length);
  await isClosed(giant);
  const endless = await intruder(b);
  const link = await proved(endless, b);
  link.stream.resume();
  const { text: _none, ...head } = exchange();
  for (let number = 1; number <= 40; number += 1) {
    const pieces = await textOf(link.signature, (channel) => {
      channel.add(RECORD.exchange, number, headText(head), false);
      for (let piece = 0; piece < 128; piece += 1) channel.add(RECORD.body, number, 'x'.repeat(16_384), false);
    });
    if (!link.stream.write(pieces)) await once(link.stream, 'drain');
  }
  // It has reset some of them.
  link.stream.write(await exchangeText(link.signature, 41));
  await b.exchanges.next();
  assert.is(b.exchanges.all.length, 1);
  endless.session.destroy();
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 200 * 1024 * 1024, `${grown}`);
});

test('D-20 S-53: of a peer that reads nothing, few exchanges are served, and the others once it reads', async () => {
  const serve = ({ response }: LinkedExchange): void => response.send(200, {}, 'x'.repeat(60_000));
  const b = await node('node-b', { serve });
  const each = await intruder(b);
  const { stream, signature } = await proved(each, b);
  const { text: _none, ...head } = exchange();
  const count = times(1_000, { quick: 500 });
  for (let first = 1; first <= count; first += 50)
    stream.write(
      await textOf(signature, (channel) => {
        for (let number = first; number < first + 50; number += 1) channel.add(RECORD.exchange, number, headText(head));
      }),
    );
  // The answer to a ping follows what was sent before it.
  await new Promise((answered) => each.session.ping(answered));
  await new Promise((answered) => each.session.ping(answered));
  const { length } = b.exchanges.all;
  assert.ok(length >= 100 && length < 400, `${length}`);
  stream.resume();
  for (let served = 0; served < count; served += 1) await b.exchanges.next();
  each.session.destroy();
});

test('D-20 S-53: connections without a proof are bounded for each address, and no node waits for them', async () => {
  const b = await node('node-b', { clock: new SimulatedClock() });
  const [host = '', port = ''] = b.address.split(':');
  const flood = Array.from({ length: 300 }, () => tcp({ host, port: Number(port) }));
  for (const socket of flood) socket.on('error', () => {}).resume();
  await Promise.all(flood.slice(0, 268).map((socket) => socket.closed || once(socket, 'close')));
  assert.is(flood.filter((socket) => !socket.closed).length, 32);
  const after = await node('node-c');
  await linked(b, after);
  for (const socket of flood) socket.destroy();
});

test('D-20 S-53: a link has a limit of exchanges at both ends, and a node that has too many says so', async () => {
  const [a, b] = [await node('node-a', { maxExchanges: 3 }), await node('node-b', { maxExchanges: 2 })];
  await linked(a, b);
  const sent = [];
  for (let number = 0; number < 2; number += 1) {
    sent.push(forward(a, b, exchange()));
    await b.exchanges.next();
  }
  assert.is((await forward(a, b, exchange()).done).failure, 'full');
  assert.is(b.exchanges.all.length, 2);
  b.exchanges.all[0]?.response.send(200, {}, 'room');
  assert.is((await sent[0]?.done)?.text, 'room');
  forward(a, b, exchange());
  await b.exchanges.next();
  forward(b, a, exchange());
  forward(b, a, exchange());
  assert.is((await forward(b, a, exchange()).done).failure, 'full');
});

test('a node that ends serves the exchanges that have arrived, and the others may go elsewhere', async () => {
  const [a, b] = await pair();
  const served = forward(a, b, exchange());
  const arrived = await b.exchanges.next();
  const closing = b.links.close();
  await new Promise((turn) => setImmediate(turn));
  arrived.response.send(200, {}, 'the last');
  const late = forward(a, b, exchange());
  assert.is((await served.done).text, 'the last');
  assert.is((await late.done).failure, 'unreachable');
  await closing;
});

test('a node learns why a link does not open: another secret, no server, another server, no answer, an address that is none, one direction only', async () => {
  const clock = new SimulatedClock();
  const one = await node('one', { clock });
  const two = await node('two', { secret: `${SECRET}, and another one` });
  const three = await node('three');
  const silent = createServer().listen(0, '127.0.0.1');
  const gone = createServer().listen(0, '127.0.0.1');
  await Promise.all([once(silent, 'listening'), once(gone, 'listening')]);
  const portOf = (server: typeof silent): string => {
    const bound = server.address();
    return `127.0.0.1:${bound && typeof bound === 'object' ? bound.port : 0}`;
  };
  const refused = portOf(gone);
  gone.close();
  await once(gone, 'close');
  const connected = once(silent, 'connection');
  one.links.peers([
    { node: 'two', address: two.address },
    { node: 'not-three', address: three.address },
    { node: 'three', address: three.address },
    { node: 'refused', address: refused },
    { node: 'silent', address: portOf(silent) },
    { node: 'nowhere', address: 'no address' },
  ]);
  await one.opened.next();
  const closed = new Set<string>();
  while (closed.size < 4) closed.add(await one.closed.next());
  await connected;
  await clock.advance(3_000);
  while (!closed.has('silent')) closed.add(await one.closed.next());
  const why = (other: string): string => one.links.failure(other) ?? 'linked';
  assert.match(why('two'), 'the nodes have different secrets');
  assert.match(why('not-three'), 'another server has this address');
  assert.match(why('refused'), 'ECONNREFUSED');
  assert.match(why('silent'), 'no answer within 3 s');
  assert.match(why('nowhere'), 'expected an address with a port, such as "10.0.0.5:7400", got "no address"');
  assert.match(why('three'), `it does not reach this node at ${one.address}`);
  assert.match(why('four'), 'it is no node of the cluster');
  three.links.peers([{ node: 'one', address: one.address }]);
  await three.opened.next();
  assert.is(why('three'), 'linked');
  silent.close();
});
