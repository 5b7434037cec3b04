/** Newline framing on the way out: one write a turn or for every eight texts, a slow reader told of once, a broken pipe no crash. */
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { LineWriter } from '../../../src/core/transports/line-writer.ts';
import { suite } from '../../harness/door.ts';
import { HandClock, Sink, settled } from './support.ts';

const test = suite('line writer');

function writerOn(sink: Sink, highWater?: number) {
  const clock = new HandClock();
  const said: string[] = [];
  const writer = new LineWriter({
    output: sink,
    clock,
    ...(highWater === undefined ? {} : { highWater }),
    onSlow: () => void said.push('slow'),
    onDrained: () => void said.push('drained'),
    onClosed: (reason) => void said.push(`closed: ${reason}`),
  });
  return { clock, said, writer };
}

test('the few texts of one turn leave in one write, in order', () => {
  const sink = new Sink();
  const { clock, said, writer } = writerOn(sink);
  writer.send('a');
  writer.send('é');
  assert.equal(sink.writes, []);
  clock.turn();
  writer.send('c');
  clock.turn();
  clock.turn();
  assert.equal(sink.writes, ['a\né\n', 'c\n']);
  assert.equal(said, []);
});

test('eight texts do not wait for the end of their turn, and what comes after them is no less in order', () => {
  const sink = new Sink();
  const { clock, said, writer } = writerOn(sink);
  const texts = Array.from({ length: 19 }, (_, index) => `${index}`);
  for (const text of texts) writer.send(text);
  assert.equal(sink.writes, ['0\n1\n2\n3\n4\n5\n6\n7\n', '8\n9\n10\n11\n12\n13\n14\n15\n']);
  clock.turn();
  assert.equal(sink.writes.slice(2), ['16\n17\n18\n']);
  clock.turn();
  assert.is(sink.writes.length, 3);
  assert.equal(said, []);
});

test('a stream that has enough gets no eight texts more', async () => {
  const sink = new Sink(10);
  sink.holding = true;
  const { clock, said, writer } = writerOn(sink);
  for (let index = 0; index < 24; index += 1) writer.send(`text ${index}`);
  clock.turn();
  assert.is(sink.writes.length, 1);
  assert.equal(said, ['slow']);
  await sink.take();
  assert.is(sink.writes.join('').split('\n').length, 25);
  assert.equal(said, ['slow', 'drained']);
});

test('a stream that takes a long write at once is not slow', () => {
  const { clock, said, writer } = writerOn(new Sink(10));
  writer.send('longer than the mark of the stream');
  clock.turn();
  assert.equal(said, []);
});

test('a stream that holds what it was given is slow once, and drained once when it has all of it', async () => {
  const sink = new Sink(10);
  sink.holding = true;
  const { clock, said, writer } = writerOn(sink);
  writer.send('longer than the mark');
  clock.turn();
  assert.equal(said, ['slow']);
  writer.send('more');
  writer.send('and more');
  clock.turn();
  assert.equal(sink.writes, ['longer than the mark\n']);
  assert.equal(said, ['slow']);
  await sink.take();
  assert.equal(sink.writes, ['longer than the mark\n', 'more\nand more\n']);
  assert.equal(said, ['slow', 'drained']);
});

test('gives a stream that has enough nothing more until all of it is taken', async () => {
  const sink = new Sink(10);
  sink.holding = true;
  const { clock, writer } = writerOn(sink);
  for (const text of ['short', 'longer than the mark', 'waits']) {
    writer.send(text);
    clock.turn();
  }
  assert.is(sink.writableLength, 'short\nlonger than the mark\n'.length);
  sink.takeOne();
  await settled();
  assert.is(sink.writableLength, 'longer than the mark\n'.length);
  assert.is(writer.pending, 'longer than the mark\nwaits\n'.length);
  await sink.take();
  assert.is(writer.pending, 0);
});

test('too much text within one turn is slow at once, and drained when it is written', () => {
  const { clock, said, writer } = writerOn(new Sink(), 10);
  writer.send('12345');
  assert.equal(said, []);
  writer.send('12345');
  writer.send('12345');
  assert.equal(said, ['slow']);
  clock.turn();
  assert.equal(said, ['slow', 'drained']);
  writer.send('12345678901');
  clock.turn();
  assert.equal(said, ['slow', 'drained', 'slow', 'drained']);
});

test('a long backlog leaves in several writes, whole and in order', () => {
  const sink = new Sink(1_000_000_000);
  const { clock, writer } = writerOn(sink);
  const texts = Array.from({ length: 100 }, (_, index) => String(index).repeat(10_000));
  for (const text of texts) writer.send(text);
  clock.turn();
  assert.ok(sink.writes.length > 2, `${sink.writes.length} writes`);
  assert.equal(sink.writes.join(''), texts.map((text) => `${text}\n`).join(''));
});

test('flush writes at once and resolves when the stream has handed on everything', async () => {
  const sink = new Sink();
  sink.holding = true;
  const { writer } = writerOn(sink);
  writer.send('a');
  let flushed = false;
  const flush = writer.flush().then(() => {
    flushed = true;
  });
  assert.equal(sink.writes, ['a\n']);
  await settled();
  assert.not(flushed);
  await sink.take();
  await flush;
  await writer.flush();
});

test('flush resolves when the stream dies', async () => {
  const sink = new Sink();
  sink.holding = true;
  const { said, writer } = writerOn(sink);
  writer.send('a');
  const flush = writer.flush();
  sink.destroy();
  await flush;
  await writer.flush();
  assert.equal(said, ['closed: client disconnected']);
});

for (const code of ['EPIPE', 'ECONNRESET']) {
  test(`${code} is a close, said once, and what is sent later is dropped`, async () => {
    const sink = new Sink();
    const { clock, said, writer } = writerOn(sink);
    sink.destroy(Object.assign(new Error('broken'), { code }));
    writer.send('a');
    clock.turn();
    await settled();
    writer.send('b');
    clock.turn();
    assert.equal(said, ['closed: client disconnected']);
    assert.equal(sink.writes, []);
  });
}

test('another failure is a close that says what failed', async () => {
  const sink = new Sink();
  const { said } = writerOn(sink);
  sink.destroy(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }));
  await settled();
  assert.equal(said, ['closed: writing failed: no space left on device']);
});

test('a stream that was ended before the first write is a close', async () => {
  const output = new PassThrough();
  output.end();
  const clock = new HandClock();
  const said: string[] = [];
  const writer = new LineWriter({ output, clock, onSlow() {}, onDrained() {}, onClosed: (why) => void said.push(why) });
  writer.send('a');
  clock.turn();
  await settled();
  assert.equal(said, ['client disconnected']);
});

test('after release it says nothing, and a write under way that fails ends no process', async () => {
  const sink = new Sink();
  sink.holding = true;
  const { clock, said, writer } = writerOn(sink);
  writer.send('a');
  clock.turn();
  writer.release();
  sink.destroy(new Error('late'));
  await settled();
  assert.equal(said, []);
});
