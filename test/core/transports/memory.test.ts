/** The in-process transport: several peers, order, slow readers, and every way to end. */
import * as assert from 'uvu/assert';
import { memory } from '../../../src/core/transports/memory.ts';
import { suite } from '../../harness/door.ts';
import { RecordingHost } from './support.ts';

const test = suite('memory');

function opened(slowAfter?: number) {
  const host = new RecordingHost();
  const { transport, connect } = memory(slowAfter === undefined ? {} : { slowAfter });
  void transport.open(host);
  return { host, transport, connect };
}

function reading(peer: { onText(listener: (text: string) => void): void }): string[] {
  const texts: string[] = [];
  peer.onText((text) => void texts.push(text));
  return texts;
}

test('passes texts both ways at once, to the peer they are for', () => {
  const { host, connect } = opened();
  const [one, two] = [connect(), connect()];
  const [first, second] = [reading(one), reading(two)];
  one.send('from one');
  two.send('from two');
  host.send('c2', 'to two');
  host.send('c1', 'to one');
  host.send('c9', 'to nobody');
  assert.equal(host.heard, ['opened c1 memory', 'opened c2 memory', 'text c1 from one', 'text c2 from two']);
  assert.equal([first, second], [['to one'], ['to two']]);
});

test('keeps what comes before anybody listens', () => {
  const { host, connect } = opened();
  const peer = connect();
  host.send('c1', 'early');
  assert.equal(reading(peer), ['early']);
});

test('gives texts to a peer in the order they were sent, though its listener sends and is answered at once', () => {
  const { host, connect } = opened();
  const sent: string[] = [];
  host.bus.on('connection.text', ({ connection, text }) => {
    for (const answer of [`${text} 1`, `${text} 2`]) {
      sent.push(answer);
      host.send(connection, answer);
    }
  });
  const peer = connect();
  const texts: string[] = [];
  peer.onText((text) => {
    if (text === 'a 1') peer.send('b');
    texts.push(text);
  });
  peer.send('a');
  assert.equal(texts, sent);
  assert.equal(texts, ['a 1', 'b 1', 'b 2', 'a 2']);
});

test('a message over the limit is unreadable', () => {
  const { host, connect } = opened();
  const peer = connect();
  peer.send('é'.repeat(500));
  peer.send('é'.repeat(501));
  assert.equal(host.heard.slice(1), [`text c1 ${'é'.repeat(500)}`, 'unreadable c1 too long 1002']);
});

test('a paused peer is slow after so many texts, and drained when it has read them in order', () => {
  const { host, connect } = opened(2);
  const peer = connect();
  const texts = reading(peer);
  peer.pause();
  for (const text of ['a', 'b', 'c']) host.send('c1', text);
  assert.equal(texts, []);
  assert.equal(host.heard.slice(1), ['slow c1']);
  peer.resume();
  assert.equal(texts, ['a', 'b', 'c']);
  host.send('c1', 'd');
  assert.equal(texts, ['a', 'b', 'c', 'd']);
  assert.equal(host.heard.slice(1), ['slow c1', 'drained c1']);
});

test('a peer that closes still receives the answers, and then the reason', async () => {
  const { host, connect } = opened();
  const peer = connect();
  const texts = reading(peer);
  peer.close();
  peer.close();
  assert.throws(() => peer.send('more'), /cannot send: this peer is closed/);
  host.send('c1', 'answer');
  host.bus.emit('connection.end', { connection: 'c1', reason: 'all is answered' });
  host.send('c1', 'too late');
  assert.equal(texts, ['answer']);
  assert.is(await peer.closed, 'all is answered');
  assert.equal(host.heard.slice(1), ['ended c1', 'closed c1 all is answered']);
});

test('the end of a paused peer waits until it has read', async () => {
  const { host, connect } = opened();
  const peer = connect();
  const texts = reading(peer);
  peer.pause();
  host.send('c1', 'answer');
  host.bus.emit('connection.end', { connection: 'c1', reason: 'over' });
  assert.equal(host.heard.slice(1), []);
  peer.resume();
  assert.equal(texts, ['answer']);
  assert.equal(host.heard.slice(1), ['closed c1 over']);
});

test('a peer that vanishes is closed at once, alone', async () => {
  const { host, connect } = opened();
  const [one, two] = [connect(), connect()];
  const [first, second] = [reading(one), reading(two)];
  one.vanish();
  host.send('c1', 'lost');
  host.send('c2', 'heard');
  assert.is(await one.closed, 'client disconnected');
  assert.equal([first, second], [[], ['heard']]);
  assert.throws(() => one.send('more'), /the connection is closed \(client disconnected\)/);
});

test('close closes every peer, and connects no more', async () => {
  const { host, transport, connect } = opened();
  assert.throws(() => transport.open(host), /already open/);
  const peers = [connect(), connect()];
  peers[1]?.pause();
  host.send('c2', 'unread');
  await transport.close();
  await transport.close();
  assert.equal(await Promise.all(peers.map((peer) => peer.closed)), ['server closed', 'server closed']);
  assert.throws(connect, /the memory transport is not open/);
});
