/** The stdio transport on streams of the test's own: what it says on the bus, what it asks of the server, how it ends. */
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { type StdioOptions, stdio } from '../../../src/core/transports/stdio.ts';
import { suite } from '../../harness/door.ts';
import { RecordingHost, Sink, settled } from './support.ts';

const test = suite('stdio');

function opened(options: StdioOptions = {}) {
  const host = new RecordingHost();
  const input = new PassThrough();
  const output = new Sink();
  const transport = stdio({ input, output, ...options });
  void transport.open(host);
  return { host, input, output, transport };
}

test('says what comes in, message by message', async () => {
  const { host, input } = opened();
  input.write('{"a":1}\n{"b"');
  input.write(Buffer.concat([Buffer.from(':2}\n'), Buffer.from([0xff, 0x0a])]));
  input.write(`${'x'.repeat(1_001)}\nlast\n`);
  await settled();
  assert.equal(host.heard, [
    'opened c1 stdio local user',
    'text c1 {"a":1}',
    'text c1 {"b":2}',
    'unreadable c1 not UTF-8 1',
    'unreadable c1 too long 1001',
    'text c1 last',
  ]);
});

test('S-46: large lines of two connections are passed on in different turns of the event loop, and each connection keeps its order', async () => {
  const host = new RecordingHost(1_000_000);
  const large = 'x'.repeat(300_000);
  const inputs = [new PassThrough({ highWaterMark: 1_000_000 }), new PassThrough({ highWaterMark: 1_000_000 })];
  for (const input of inputs) void stdio({ input, output: new Sink() }).open(host);
  let turn = 0;
  const passed: (readonly [turn: number, line: string])[] = [];
  const done = new Promise<void>((resolve) => {
    host.bus.on('connection.text', ({ connection, text }) => {
      passed.push([turn, `${connection} ${text.length > 10 ? 'large' : text}`]);
      if (passed.length === 6) resolve();
    });
  });
  const count = (): void => {
    turn += 1;
    if (passed.length < 6) setImmediate(count);
  };
  setImmediate(count);
  for (const input of inputs) input.write(`before\n${large}\nafter\n`);
  await done;
  for (const connection of ['c1', 'c2'])
    assert.equal(
      passed.map(([, line]) => line).filter((line) => line.startsWith(connection)),
      [`${connection} before`, `${connection} large`, `${connection} after`],
    );
  const turns = passed.filter(([, line]) => line.endsWith('large')).map(([at]) => at);
  assert.is(new Set(turns).size, 2, `both in turn ${turns.join(' and ')}`);
  for (const input of inputs) input.end();
});

test('S-46: lines that wait for their turns are passed on before the end of the input', async () => {
  const host = new RecordingHost(1_000_000);
  const large = 'x'.repeat(300_000);
  const input = new PassThrough({ highWaterMark: 1_000_000 });
  void stdio({ input, output: new Sink() }).open(host);
  input.end(`${large}\n${large}\nlast\n`);
  await new Promise<void>((resolve) => host.bus.on('connection.ended', () => resolve()));
  assert.equal(
    host.heard.slice(0, 5).map((line) => line.slice(0, 9)),
    ['opened c1', 'text c1 x', 'text c1 x', 'text c1 l', 'ended c1'],
  );
});

test('sends what is for its connection and nothing else', () => {
  const { host, output } = opened();
  host.send('c1', 'mine');
  host.send('c2', 'not mine');
  host.bus.emit('connection.end', { connection: 'c2', reason: 'not mine' });
  host.clock.turn();
  assert.equal(output.writes, ['mine\n']);
});

test('end of input ends the connection first and then asks the server to close, once', async () => {
  const { host, input, output, transport } = opened();
  input.end('the last line has no newline');
  await settled();
  assert.equal(host.heard, [
    'opened c1 stdio local user',
    'text c1 the last line has no newline',
    'ended c1',
    'asked to close: stdin ended',
  ]);
  host.send('c1', 'the answer');
  host.bus.emit('connection.end', { connection: 'c1', reason: 'all is answered' });
  await transport.close();
  assert.equal(output.writes, ['the answer\n']);
  assert.equal(host.heard.slice(4), ['closed c1 all is answered']);
});

test('an input that was over before it opened, or that fails, counts as its end', async () => {
  const input = new PassThrough();
  input.destroy();
  const { host } = opened({ input });
  host.clock.turn();
  assert.equal(host.heard, ['opened c1 stdio local user', 'ended c1', 'asked to close: stdin ended']);

  const failing = opened();
  failing.input.destroy(new Error('EIO'));
  await settled();
  assert.equal(failing.host.heard, [
    'opened c1 stdio local user',
    'ended c1',
    'asked to close: reading stdin failed: EIO',
  ]);
});

test('the end of the connection by the server closes it, ends the output and asks the server to close', async () => {
  const { host, input, output, transport } = opened();
  host.send('c1', 'bye');
  host.bus.emit('connection.end', { connection: 'c1', reason: 'session over' });
  host.send('c1', 'too late');
  input.write('not read any more\n');
  await settled();
  assert.equal(host.heard, ['opened c1 stdio local user', 'closed c1 session over', 'asked to close: session over']);
  await transport.close();
  assert.equal(output.writes, ['bye\n']);
  assert.ok(output.writableEnded);
});

test('close flushes, closes the connection and leaves nothing behind, however often it is called', async () => {
  const { host, input, output, transport } = opened();
  output.holding = true;
  host.send('c1', 'answer');
  const closed = Promise.all([transport.close(), transport.close()]);
  host.send('c1', 'too late');
  await settled();
  assert.equal(host.heard, ['opened c1 stdio local user']);
  await output.take();
  await closed;
  await transport.close();
  assert.equal(host.heard, ['opened c1 stdio local user', 'closed c1 server closed']);
  host.send('c1', 'still too late');
  host.clock.turn();
  assert.equal(output.writes, ['answer\n']);
  assert.is(host.clock.timers, 0);
  assert.is(input.listenerCount('data') + input.listenerCount('end') + output.listenerCount('error'), 0);
});

test('close gives up on a client that does not read, and says so', async () => {
  const { host, output, transport } = opened({ flushMs: 500 });
  output.holding = true;
  host.send('c1', 'answer');
  const closed = transport.close();
  host.clock.pass(499);
  await settled();
  assert.equal(host.heard, ['opened c1 stdio local user']);
  host.clock.pass(1);
  await closed;
  assert.equal(host.heard.slice(1), [
    'warning: stdio: the client read nothing for 500 ms while closing; the remaining output is lost',
    'closed c1 server closed',
  ]);
});

test('close waits on for a client that is slow, as long as it reads', async () => {
  const { host, output, transport } = opened({ flushMs: 500 });
  output.holding = true;
  for (let part = 0; part < 3; part += 1) host.send('c1', String(part).repeat(300_000));
  const closed = transport.close();
  for (let part = 0; part < 3; part += 1) {
    await settled();
    host.clock.pass(499);
    output.takeOne();
    await settled();
    host.clock.pass(1);
  }
  await closed;
  assert.is(output.writes.join('').length, 900_003);
  assert.equal(host.heard, ['opened c1 stdio local user', 'slow c1', 'drained c1', 'closed c1 server closed']);
});

test('while the client does not read, nothing is read from it', async () => {
  const { host, input, output } = opened();
  output.holding = true;
  host.send('c1', 'x'.repeat(20_000));
  host.clock.turn();
  input.write('waits\n');
  await settled();
  assert.equal(host.heard, ['opened c1 stdio local user', 'slow c1']);
  assert.ok(input.isPaused());
  await output.take();
  assert.equal(host.heard.slice(2), ['drained c1', 'text c1 waits']);
});

test('does not read again when the input ended while it was slow', async () => {
  const { host, input, output, transport } = opened();
  output.holding = true;
  input.end('one\n');
  await settled();
  host.send('c1', 'x'.repeat(20_000));
  host.clock.turn();
  await output.take();
  await transport.close();
  assert.equal(host.heard, [
    'opened c1 stdio local user',
    'text c1 one',
    'ended c1',
    'asked to close: stdin ended',
    'slow c1',
    'drained c1',
    'closed c1 server closed',
  ]);
});

test('a closed connection does not read on once its client has read the last of it', async () => {
  const { host, input, output } = opened();
  output.holding = true;
  host.send('c1', 'x'.repeat(20_000));
  host.bus.emit('connection.end', { connection: 'c1', reason: 'over' });
  await output.take();
  assert.equal(host.heard.slice(1), ['slow c1', 'drained c1', 'closed c1 over', 'asked to close: over']);
  assert.ok(input.isPaused());
});

test('holds the process alive by its input while open, and not after', async () => {
  const said: string[] = [];
  const input = Object.assign(new PassThrough(), {
    ref: () => void said.push('ref'),
    unref: () => void said.push('unref'),
  });
  const { transport } = opened({ input });
  assert.equal(said, ['ref']);
  await transport.close();
  assert.equal(said, ['ref', 'unref']);
});

test('a broken pipe closes the connection and asks the server to close', async () => {
  const { host, input, output, transport } = opened();
  output.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  await settled();
  assert.equal(host.heard, [
    'opened c1 stdio local user',
    'closed c1 client disconnected',
    'asked to close: client disconnected',
  ]);
  input.write('nobody to answer\n');
  host.send('c1', 'nobody to hear');
  host.clock.turn();
  await transport.close();
  assert.is(host.heard.length, 3);
});

test('opens once', async () => {
  const { host, transport } = opened();
  assert.throws(() => transport.open(host), /was already opened/);
  const unopened = stdio();
  await unopened.close();
  assert.throws(() => unopened.open(host), /was already opened/);
});

test('has the process to itself only on the real stdin and stdout', () => {
  assert.is(stdio().ownsProcess, true);
  assert.is(stdio({ input: new PassThrough() }).ownsProcess, false);
  assert.is(stdio({ output: new PassThrough() }).ownsProcess, false);
});

test('takes stdout for itself and gives it back', async () => {
  const before = process.stdout.write;
  const host = new RecordingHost();
  const transport = stdio({ input: new PassThrough() });
  void transport.open(host);
  assert.is.not(process.stdout.write, before);
  assert.throws(() => stdio({ input: new PassThrough() }).open(host), /stdout is already in use/);
  await transport.close();
  assert.is(process.stdout.write, before);
  assert.not(Object.hasOwn(process.stdout, 'write'));
});
