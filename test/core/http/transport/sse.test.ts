/** Server-sent events as text: what a client reads is what was sent, and nothing in it can begin another event (S-22). */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import {
  EventMessages,
  eventText,
  KEEP_ALIVE,
  namedEventText,
  primingText,
  retryText,
} from '../../../../src/core/http/sse.ts';
import { character } from '../../../harness/character.ts';
import { suite } from '../../../harness/door.ts';
import { random } from '../../../harness/scale.ts';

const test = suite('server-sent events');

interface Heard {
  readonly type: string;
  readonly data: string;
  readonly id: string;
}

/** Reads a stream by the letter of WHATWG HTML, "Interpreting an event stream". */
function read(stream: string): {
  readonly events: readonly Heard[];
  readonly id: string;
  readonly retry: number | undefined;
} {
  const events: Heard[] = [];
  let [type, data, id] = ['', '', ''];
  let retry: number | undefined;
  const lines = stream.split(/\r\n|\r|\n/);
  // What follows the last line end is an unfinished line.
  for (const line of lines.slice(0, -1)) {
    if (line === '') {
      if (data !== '') events.push({ type: type || 'message', data: data.slice(0, -1), id });
      [type, data] = ['', ''];
      continue;
    }
    const colon = line.indexOf(':');
    if (colon === 0) continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data += `${value}\n`;
    else if (field === 'event') type = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) retry = Number(value);
  }
  return { events, id, retry };
}

const text = fc.string({ unit: character, maxLength: 30 });
const line = fc.oneof(
  fc.json({ maxDepth: 2 }),
  text.map((each) => JSON.stringify(each)),
  text.filter((each) => !/[\r\n]/.test(each)),
  fc.constantFrom(
    '',
    ' ',
    '  x',
    ':',
    'data: x',
    'id: 1',
    'event: x',
    '\u2028',
    '\u2029',
    '\u0085',
    '\v\f',
    '\uFEFF',
    '\0',
  ),
);
const visible = fc.stringMatching(/^[!-~]{1,24}$/);

test('the messages of a stream are read from pieces of any size; one that is too long is skipped', () => {
  const long = `"${'x'.repeat(300_000)}"`;
  const texts = [primingText('a_0', 5), eventText('{"id":1}', 'a_1'), KEEP_ALIVE, eventText(long), eventText('2')];
  const text = texts.join('');
  for (const size of [1_000, 4_099, 65_536]) {
    const messages = new EventMessages();
    const read: string[] = [];
    for (let at = 0; at < text.length; at += size) read.push(...messages.add(text.slice(at, at + size)));
    assert.equal(read, ['{"id":1}', '2']);
  }
  const messages = new EventMessages();
  assert.equal(
    [...(texts[1] ?? '')].flatMap((character) => messages.add(character)),
    ['{"id":1}'],
  );
});

test('an event is an id, one line of data and an empty line', () => {
  assert.is(eventText('{"a":1}'), 'data: {"a":1}\n\n');
  assert.is(eventText('{"a":1}', 's_1'), 'id: s_1\ndata: {"a":1}\n\n');
  assert.is(namedEventText('endpoint', '/mcp?sse=1'), 'event: endpoint\ndata: /mcp?sse=1\n\n');
});

test('a stream of any events is read as they were sent, with comments between them', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(line, fc.option(visible, { nil: undefined })), { minLength: 1, maxLength: 4 }),
      (sent) => {
        const { events } = read(sent.map(([data, id]) => eventText(data, id)).join(KEEP_ALIVE));
        let last = '';
        assert.equal(
          events,
          sent.map(([data, id]) => {
            last = id ?? last;
            return { type: 'message', data, id: last };
          }),
        );
      },
    ),
    { numRuns: random(100_000) },
  );
});

test('any text is sent as one whole event, or refused', () => {
  let refused = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        text,
        text.map((each) => `${each}\n`),
        text.map((each) => `a\r${each}`),
      ),
      text,
      (data, id) => {
        const written = attempt(() => eventText(data, id));
        if (written === undefined) refused += 1;
        assert.is(written !== undefined, !/[\r\n]/.test(data) && /^[!-~]+$/.test(id));
        const named = attempt(() => namedEventText(id, data));
        assert.is(named === undefined, written === undefined);
        if (written === undefined || named === undefined) return;
        assert.equal(read(written).events, [{ type: 'message', data, id }]);
        assert.equal(read(named).events, [{ type: id, data, id: '' }]);
      },
    ),
    { numRuns: random(100_000) },
  );
  assert.ok(refused > 1_000);
});

test('data with a line end is refused, and not repeated', () => {
  for (const data of ['\n', '\r', 'a\nb', 'a\rb', '{}\r\n', '{}\n\nevent: x']) {
    for (const write of [() => eventText(data), () => eventText(data, '1'), () => namedEventText('endpoint', data)])
      assert.throws(write, (error: unknown) => error instanceof TypeError && !error.message.includes('\n'));
  }
});

test('an id or a type is visible ASCII', () => {
  for (const wrong of ['', ' ', 'a b', ' a', 'a ', 'a\nb', 'a\r', 'a\0', 'é', '\uFEFFa', 'a\n']) {
    assert.throws(() => eventText('{}', wrong), /^id: expected visible ASCII/);
    assert.throws(() => primingText(wrong, 1), /^id: expected visible ASCII/);
    assert.throws(() => namedEventText(wrong, '{}'), /^event: expected visible ASCII/);
  }
});

test('the priming event has an id, a time to come back and empty data', () => {
  const { events, retry } = read(primingText('s_0', 1000));
  assert.equal(events, [{ type: 'message', data: '', id: 's_0' }]);
  assert.is(retry, 1000);
  const without = read(primingText('s_0', undefined));
  assert.equal(without.events, events);
  assert.is(without.retry, undefined);
});

test('a time to come back alone, or a comment, is no event', () => {
  assert.equal(read(retryText(250)), { events: [], id: '', retry: 250 });
  assert.equal(read(KEEP_ALIVE), { events: [], id: '', retry: undefined });
  assert.equal(read(eventText('1', 'a') + retryText(0) + KEEP_ALIVE), {
    events: [{ type: 'message', data: '1', id: 'a' }],
    id: 'a',
    retry: 0,
  });
});

test('a time to come back is whole milliseconds', () => {
  for (const wrong of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e21]) {
    assert.throws(
      () => retryText(wrong),
      (error: unknown) => error instanceof RangeError,
    );
    assert.throws(
      () => primingText('a', wrong),
      (error: unknown) => error instanceof RangeError,
    );
  }
});

function attempt(write: () => string): string | undefined {
  try {
    return write();
  } catch (error) {
    assert.instance(error, TypeError);
    return undefined;
  }
}
