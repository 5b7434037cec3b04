/** What viewers are told of a record: nothing that could be a secret, nothing without a bound, and a chart before whom it governs. */
import * as assert from 'uvu/assert';
import { createActor, createMachine } from 'xstate';
import type { InspectionRecord, NewRecord } from '../../src/core/kernel/inspection/records.ts';
import type { ChartFrame, TraceRecord } from '../../src/inspector/frames.ts';
import { Redactor } from '../../src/inspector/redaction/redact.ts';
import { FrameEncoder } from '../../src/inspector/stream/frame-encoder.ts';
import { suite } from '../harness/door.ts';

const test = suite('inspector: telling');
const SECRET = 'zq7wxk3v9';

function encoder(wants = false) {
  const charts: ChartFrame[] = [];
  const made = new FrameEncoder({
    redactor: new Redactor(),
    wants: () => wants,
    chart: (frame) => void charts.push(frame),
  });
  const encode = (record: NewRecord): TraceRecord => {
    const placed: InspectionRecord = Object.assign(record, { seq: 1, at: 2, cause: 0 });
    return made.encode(placed);
  };
  return { charts, encode };
}

const wire = (text: string): NewRecord => ({ type: 'wire', connection: 'c', direction: 'in', text, about: 0 });

test('S-29 a text that is no JSON is shown as far as it has no secret', () => {
  const record = encoder().encode(wire(`{"method":"x","password":"${SECRET}", token=${SECRET}`));
  assert.ok(record.type === 'wire' && record.message === undefined);
  assert.match(record.text ?? '', /"method":"x"/);
  assert.not.match(record.text ?? '', SECRET);
  assert.not.ok('about' in record);
});

test('S-29 of a message that is too long to be read, viewers receive the beginning: enough to pair it, and no content', () => {
  const fill = `${SECRET}${'x'.repeat(300_000)}`;
  const message = (text: string): unknown => {
    const record = encoder().encode(wire(text));
    return record.type === 'wire' ? record.message : undefined;
  };
  const params = { name: 'echo', arguments: { password: fill } };
  const request = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params });
  const cut = { '«cut»': `${request.length} bytes, not parsed` };
  assert.equal(message(request), { jsonrpc: '2.0', id: 7, method: 'tools/call', ...cut });
  for (const outcome of ['result', 'error']) {
    const answer = JSON.stringify({ jsonrpc: '2.0', id: 'a', [outcome]: { fill } });
    const expected = { jsonrpc: '2.0', id: 'a', [outcome]: {}, '«cut»': `${answer.length} bytes, not parsed` };
    assert.equal(message(answer), expected);
  }
  assert.not.match(JSON.stringify(message(`"${fill}"`)), SECRET);
});

test('texts in records are bounded, and contain no secret', () => {
  const { encode } = encoder();
  const why = `password=${SECRET} ${'x'.repeat(100_000)}`;
  for (const record of [
    encode({ type: 'gone', actor: 'a', why }),
    encode({ type: 'crashed', actor: 'a', mail: 'm', error: new Error(why), quarantined: true }),
    encode({ type: 'failed', actor: 'a', element: why, error: new Error(why, { cause: new Error(why) }) }),
    encode({ type: 'created', actor: 'a', kind: 'task', label: why }),
    encode({ type: 'state', actor: 'a', state: why }),
    encode({ type: 'mail', actor: 'a', mail: Object.assign({ type: 'm' }, { why, error: new Error(why) }) }),
    encode({ type: 'control', action: 'call', data: { arguments: { why } } }),
  ]) {
    const text = JSON.stringify(record);
    assert.ok(text.length < 5_000, `${record.type}: ${text.length}`);
    assert.not.match(text, SECRET);
  }
});

test('a chart is reported once, before its first actor; its context only if a viewer requests it', () => {
  const machine = createMachine({
    id: 'm',
    context: { secret: SECRET, n: 1 },
    initial: 'a',
    states: { a: { on: { go: 'b' } }, b: {} },
  });
  const { charts, encode } = encoder();
  const created = encode({ type: 'created', actor: 'a', kind: 'handle', machine });
  assert.is(charts.length, 1);
  assert.is(created.type === 'created' && created.chart, charts[0]?.id);
  encode({ type: 'created', actor: 'b', kind: 'handle', machine });
  // Another that is equal to it.
  encode({ type: 'created', actor: 'c', kind: 'handle', machine: createMachine(machine.config) });
  assert.is(charts.length, 1);
  const snapshot = createActor(machine).getSnapshot();
  const event = { type: 'go', card: { apiKey: SECRET } };
  const step: NewRecord = { type: 'step', actor: 'a', event, edges: ['a#0'], snapshot, handled: true };
  const bare = encode({ ...step });
  assert.equal(bare, {
    ...{ seq: 1, at: 2, cause: 0, type: 'step', actor: 'a', event: 'go', edges: ['a#0'], handled: true },
    ...{ chart: charts[0]?.id, data: { card: { apiKey: '«redacted»' } }, active: ['a'], status: 'active' },
  });
  const whole = encoder(true).encode({ ...step });
  assert.equal(whole.type === 'step' && whole.context, { secret: '«redacted»', n: 1 });
});

test('a machine without an id is called as its author calls it for clients', () => {
  const { charts, encode } = encoder();
  encode({ type: 'created', actor: 'handle/plant/9f2a', kind: 'handle', machine: createMachine({}) });
  encode({
    type: 'created',
    actor: 'handle/door/9f2a',
    kind: 'handle',
    machine: createMachine({ id: 'gate', on: { x: {} } }),
  });
  assert.equal(
    charts.map(({ chart }) => chart.key),
    ['plant', 'gate'],
  );
});

test('an actor whose statechart cannot be read is still reported', () => {
  const machine = createMachine({});
  Object.defineProperty(machine, 'root', {
    get() {
      throw new Error('it cannot be read');
    },
  });
  const record = encoder().encode({ type: 'created', actor: 'a', kind: 'handle', machine });
  assert.equal([record.type, 'chart' in record], ['created', false]);
});
