/** Stray output on a server's stdout: it is dropped, reported once per burst, and never costs a message. */
import * as assert from 'uvu/assert';
import { StrayOutput } from '../../src/cli/supervisor/stray-output.ts';
import { asideOf } from '../../src/core/transports/relay.ts';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';
import { suite } from '../harness/door.ts';

const test = suite('stray output');

const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}';

function open() {
  const clock = new SimulatedClock();
  const said: string[] = [];
  const output = new StrayOutput({ clock, say: (line) => void said.push(line) });
  return { clock, said, output };
}

test('messages pass, also in batches and with their members in another order', () => {
  const { output, said } = open();
  for (const line of [
    ANSWER,
    '{"jsonrpc":"2.0","method":"notifications/progress"}',
    `[${ANSWER},{"id":2,"error":{"code":-32603,"message":"x"},"jsonrpc":"2.0"}]`,
    ' {"id": 3, "jsonrpc": "2.0", "result": {}} ',
  ])
    assert.is(output.messageIn(line), line);
  assert.equal(said, []);
});

test('R-37: output that is not a message does not pass', () => {
  const { output } = open();
  for (const line of [
    'hello',
    '{}',
    '[]',
    'null',
    '1',
    '{"level":30,"msg":"x"}',
    '{"jsonrpc":"1.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1}',
    `[${ANSWER},1]`,
    ANSWER.slice(0, -1),
    `${ANSWER}}`,
    // Torn by a log line of a child process.
    `${ANSWER.slice(0, 40)}{"level":30}`,
  ])
    assert.is(output.messageIn(line), undefined, line);
});

test('R-37: a message after output without a newline passes without that output', () => {
  const { output, said } = open();
  assert.is(output.messageIn(`50 %${ANSWER}`), ANSWER);
  assert.is(output.messageIn(`50 %${ANSWER}oops`), undefined);
  assert.match(said[0] ?? '', '"50 %"');
  const other = '{"id": 3, "jsonrpc": "2.0", "result": {}}';
  assert.is(output.messageIn(`[info] {"id":3} ${other}`), other);
});

test('reports to the relay pass, also after output without a newline', () => {
  const { output, said } = open();
  const aside = asideOf({ type: 'rejected', line: 3, id: 'x' });
  assert.is(output.messageIn(aside), aside);
  assert.equal(said, []);
  assert.is(output.messageIn(`50 %${aside}`), aside);
  assert.match(said[0] ?? '', '"50 %"');
});

test('a burst is reported once, with the next one', async () => {
  const { clock, output, said } = open();
  for (let time = 0; time < 1_000; time += 1) output.messageIn('noise');
  assert.is(said.length, 1);
  await clock.advance(10_000);
  output.messageIn(`${'x'.repeat(1_000)}\u001b[31m`);
  assert.is(said.length, 2);
  assert.match(said[1] ?? '', '(and 999 more since the last report)');
  assert.ok((said[1] ?? '').length < 250);
  output.messageIn('noise');
  assert.is(said.length, 2);
});
