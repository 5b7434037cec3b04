/** What a server tells a relay of its connection: its limit, its repeatable tools, and each line that it rejects; and nothing to a client that is none. */
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import {
  asideOf,
  isAside,
  type RelayMail,
  type RelayReport,
  readRelayMail,
  readServerMail,
} from '../../../src/core/transports/relay.ts';
import { stdio } from '../../../src/core/transports/stdio.ts';
import { StreamConnection } from '../../../src/core/transports/stream-connection.ts';
import { createServer } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { RecordingHost, Sink, settled } from './support.ts';

const test = suite('relay');

test('each mail reads as it was written, and no JSON text reads as mail', () => {
  const fromRelay: RelayMail[] = [
    { type: 'hello' },
    { type: 'unreadable', reason: 'too long', bytes: 5_000_000_000, head: '{"id": 1, x\n\uFFFD' },
    { type: 'unreadable', reason: 'not UTF-8', bytes: 0, head: '' },
  ];
  for (const mail of fromRelay) assert.equal(readRelayMail(asideOf(mail)), mail);
  const fromServer: RelayReport[] = [
    { type: 'limit', maxMessageBytes: 4_194_304 },
    { type: 'repeatable', tools: [] },
    { type: 'repeatable', tools: ['a', 'with space', 'Ünicode %20\n'] },
    { type: 'rejected', line: 1, id: undefined },
    { type: 'rejected', line: 2, id: 1 },
    { type: 'rejected', line: 3, id: '1' },
    { type: 'rejected', line: 4, id: '' },
  ];
  for (const mail of fromServer) {
    assert.equal(readServerMail(asideOf(mail)), mail);
    assert.not(asideOf(mail).includes('\n'));
  }
  for (const text of [
    '{}',
    'hello',
    '\u0001',
    '\u0001limit',
    '\u0001limit x',
    '\u0001rejected 1 number x',
    '\u0001%',
  ]) {
    assert.is(readRelayMail(text), undefined);
    assert.is(readServerMail(text), undefined);
  }
});

/** A server on streams, and the mail in what it says. */
async function open() {
  const server = createServer({ name: 's', version: '1.0.0', limits: { maxMessageBytes: 2_000 } });
  const [input, output] = [new PassThrough(), new PassThrough()];
  const lines: string[] = [];
  output.setEncoding('utf8').on('data', (text: string) => void lines.push(...text.trim().split('\n')));
  await server.listen(stdio({ input, output }));
  const mail = (): (RelayReport | undefined)[] => lines.filter(isAside).map(readServerMail);
  const messages = (): string[] => lines.filter((line) => !isAside(line));
  const send = async (...texts: readonly string[]): Promise<void> => {
    for (const text of texts) input.write(`${text}\n`);
    await settled();
  };
  return { server, input, mail, messages, send };
}

test('R-36: a relay that greets receives which tools are repeatable, in every revision, and each change once', async () => {
  const { server, mail, messages, send } = await open();
  const look = { name: 'look', annotations: { readOnlyHint: true }, handler: () => 'x' };
  server.tools.register(look);
  server.tool('set', { annotations: { idempotentHint: true } }, () => 'x');
  server.tool('pay', {}, () => 'x');
  await send(asideOf({ type: 'hello' }));
  assert.equal(mail(), [
    { type: 'limit', maxMessageBytes: 2_000 },
    { type: 'repeatable', tools: ['look', 'set'] },
  ]);
  assert.equal(messages(), []);
  server.tools.disable('set');
  server.tools.update({ ...look, annotations: { readOnlyHint: false } });
  server.tool('peek', { annotations: { readOnlyHint: true } }, () => 'x');
  await settled();
  assert.equal(mail().slice(2), [{ type: 'repeatable', tools: ['peek'] }]);
  // What changes nothing for a relay is not told.
  server.tool('more', {}, () => 'x');
  await settled();
  assert.is(mail().length, 3);
  await server.close();
});

test('R-35: a relay is notified of each line that is rejected, by its number, before the error', async () => {
  const { server, mail, send } = await open();
  server.tool('wait', {}, (_args, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)));
  const clientInfo = { name: 'c', version: '1.0.0' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const wait = JSON.stringify({ jsonrpc: '2.0', id: 'w', method: 'tools/call', params: { name: 'wait' } });
  await send(
    asideOf({ type: 'hello' }),
    JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
    wait,
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    wait,
    'nonsense',
    '{"jsonrpc":"2.0","id":7,"method":"dance"}',
    asideOf({ type: 'unreadable', reason: 'too long', bytes: 9_999, head: '{' }),
    'x'.repeat(3_000),
    '{"jsonrpc":"2.0","id":8,"method":"ping"}',
    '[]',
  );
  assert.equal(mail().slice(2), [
    { type: 'rejected', line: 3, id: undefined },
    { type: 'rejected', line: 4, id: 'w' },
    { type: 'rejected', line: 5, id: undefined },
    { type: 'rejected', line: 6, id: 7 },
    // What the relay itself has skipped counts.
    { type: 'rejected', line: 7, id: undefined },
    { type: 'rejected', line: 8, id: undefined },
    { type: 'rejected', line: 10, id: undefined },
  ]);
  await server.close();
});

test('R-35: of a batch that is served, only a request with an id is said to be rejected', async () => {
  const { server, mail, messages, send } = await open();
  const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'c', version: '1.0.0' } };
  await send(
    asideOf({ type: 'hello' }),
    JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
    '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1.5,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"dance"}]',
  );
  assert.equal(mail().slice(2), [{ type: 'rejected', line: 2, id: 2 }]);
  assert.is(JSON.parse(messages()[1] ?? '').length, 3);
  await server.close();
});

test('a client that does not greet receives nothing of it', async () => {
  const { server, mail, messages, send } = await open();
  await send('nonsense', '\u0001nonsense');
  server.tool('look', { annotations: { readOnlyHint: true } }, () => 'x');
  await settled();
  assert.equal(mail(), []);
  assert.is(messages().length, 2);
  await server.close();
});

test('a relay that reads slowly is sent the last list of tools, and not each', async () => {
  const host = new RecordingHost();
  const [input, output] = [new PassThrough(), new Sink(16)];
  const connection = new StreamConnection({
    host,
    transport: 'test',
    input,
    inputName: 'input',
    output,
    onEnded() {},
    onClosed() {},
  });
  connection.open();
  input.write(`${asideOf({ type: 'hello' })}\n`);
  await settled();
  host.clock.turn();
  await settled();
  output.writes.length = 0;
  output.holding = true;
  connection.send('x'.repeat(64));
  host.clock.turn();
  for (const name of ['a', 'b', 'c']) {
    host.repeatable = [name];
    host.bus.emit('tools.changed', {});
    host.clock.turn();
  }
  await output.take();
  host.clock.turn();
  await settled();
  assert.equal(output.writes.flatMap((text) => text.trim().split('\n')).filter(isAside), [
    asideOf({ type: 'repeatable', tools: ['c'] }),
  ]);
  assert.not(host.heard.some((line) => line.startsWith('text')));
});
