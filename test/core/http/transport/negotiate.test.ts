/** Accept and Content-Type: what a client takes and what it sent, by RFC 9110, in linear time. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { accepts, asksForEvents, foreignCharset, isJson } from '../../../../src/core/http/negotiate.ts';
import { suite } from '../../../harness/door.ts';
import { assertFigure, processorMs } from '../../../harness/pace.ts';
import { random } from '../../../harness/scale.ts';

const accept = suite('accept');
const contentType = suite('content type');

function form(header: string | undefined): string {
  const { json, sse } = accepts(header);
  return json && sse ? 'both' : json ? 'json' : sse ? 'sse' : 'neither';
}

const CASES: readonly (readonly [string | undefined, string])[] = [
  [undefined, 'both'],
  ['', 'both'],
  [' ', 'both'],
  [' , ,', 'both'],
  ['application/json, text/event-stream', 'both'],
  ['text/event-stream, application/json', 'both'],
  ['application/json,text/event-stream', 'both'],
  ['\tapplication/json ,\t text/event-stream ', 'both'],
  ['APPLICATION/JSON, Text/Event-Stream', 'both'],
  ['*/*', 'both'],
  ['text/html, */*;q=0.1', 'both'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['application/json;charset=utf-8', 'json'],
  ['application/json; charset="utf-8"; q=0.5', 'json'],
  ['text/event-stream', 'sse'],
  ['text/*', 'sse'],
  ['text/event-stream;q=0.001', 'sse'],
  ['text/html', 'neither'],
  ['text/plain, image/*', 'neither'],
  ['application/json-seq', 'neither'],
  ['application/jsonx, xapplication/json', 'neither'],
  ['application', 'neither'],
  ['*', 'neither'],
  ['application/json text/event-stream', 'neither'],
  ['*/json', 'neither'],
  // The most specific range decides, wherever it stands.
  ['application/json;q=0, */*', 'sse'],
  ['*/*, application/json;q=0', 'sse'],
  ['application/json, */*;q=0', 'json'],
  ['application/*;q=0, application/json', 'json'],
  ['application/*, application/json;q=0', 'neither'],
  ['text/*;q=0, */*', 'json'],
  ['text/*;q=0, text/event-stream, */*;q=0', 'sse'],
  ['*/*;q=0', 'neither'],
  ['application/json;q=0, text/event-stream;q=0', 'neither'],
  // Weights: zero in any of its forms, and only zero.
  ['application/json;q=0.0', 'neither'],
  ['application/json ; Q=0.000', 'neither'],
  ['application/json;q=0.', 'neither'],
  ['application/json;version=1;q=0', 'neither'],
  ['application/json;q=1.000', 'json'],
  ['application/json;q=0.001', 'json'],
  ['application/json;q=', 'json'],
  ['application/json;q=x', 'json'],
  ['application/json;xq=0', 'json'],
  ['application/json;q=00', 'json'],
  ['application/json;', 'json'],
  ['application/json;q=0, application/json', 'json'],
  ['application/json, application/json;q=0', 'json'],
  // Quoted strings may hold the separators.
  ['text/html;x="a, application/json"', 'neither'],
  ['text/html;x="a\\", application/json"', 'neither'],
  ['text/html;x="a\\\\", application/json', 'json'],
  ['application/json;x=";q=0"', 'json'],
  ['application/json;x="a";q=0', 'neither'],
  ['text/html;x="never closed, application/json', 'neither'],
  ['application/json, "', 'json'],
  ['application/json, x="\\', 'json'],
];

accept('the header says which forms a client takes', () => {
  for (const [header, expected] of CASES) assert.is(form(header), expected, JSON.stringify(header));
});

accept('the order of ranges, case and white space mean nothing', () => {
  const range = fc.constantFrom('application/json', 'application/*', 'text/event-stream', 'text/*', '*/*', 'text/html');
  const weight = fc.constantFrom('', ';q=1', ';q=0', ';q=0.5', ' ; q=0.00');
  const ranges = fc.array(fc.tuple(range, weight), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(ranges, fc.constantFrom(',', ' , ', ',,', '\t,'), (list, comma) => {
      const parts = list.map((pair) => pair.join(''));
      const expected = form(parts.join(','));
      assert.is(form(parts.toReversed().join(comma).toUpperCase()), expected);
    }),
    { numRuns: random(5_000) },
  );
});

accept('any header is read, in time that grows with its length', () => {
  fc.assert(
    fc.property(fc.string(), (header) => void form(header)),
    { numRuns: random(5_000) },
  );
  const before = processorMs();
  for (const part of [',', ';', '"', '"\\"', '\\', ' ', '\t', 'a;', 'a,', '*/*,', ';q=0', '"",', 'q=0.', ';q=0.000'])
    form(`${part.repeat(100_000)}x`);
  form(`a;q=0.${'0'.repeat(500_000)}x`);
  assert.ok(processorMs() - before < 2_000);
});

contentType('only application/json is JSON, with parameters or without', () => {
  const yes = [
    'application/json',
    'Application/JSON',
    'application/json;charset=utf-8',
    'application/json; charset="UTF-8"',
    'application/json ;charset=utf-8',
    ' application/json ',
    'application/json;',
  ];
  const no = [
    undefined,
    '',
    'json',
    'text/plain',
    'text/json',
    'text/plain;application/json',
    'text/plain; charset=application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=application/json',
    'application/json-seq',
    'application/jsonx',
    'application/jsonp; a',
    'application/ld+json',
    'application/json+x',
    'application/json text/plain',
    'application/json, text/plain',
    'application/json; charset=utf-8, text/plain',
    'text/plain, application/json',
    'application/*',
    '*/*',
    'application/json\u00a0',
    'application/json\n',
    'application/jſon',
    'application /json',
    'application/ json',
    'application%2Fjson',
  ];
  for (const each of yes) assert.ok(isJson(each), each);
  for (const each of no) assert.not.ok(isJson(each), JSON.stringify(each));
});

contentType('S-39: UTF-8 is the one character set, by either of its names, and without one', () => {
  for (const each of [
    undefined,
    'application/json',
    'application/json;',
    'application/json; charset',
    'application/json; charset=utf-8',
    'application/json;Charset="UTF-8"',
    'application/json; charset = utf8',
    'application/json; charset="ut\\f-8"',
    'application/json; x="; charset=latin1"',
    'application/json; xcharset=latin1',
  ])
    assert.is(foreignCharset(each), undefined, each);
  for (const [each, named] of [
    ['application/json; charset=utf-16', 'utf-16'],
    ['application/json; charset="ISO-8859-1"', 'iso-8859-1'],
    ['application/json; charset=us-ascii', 'us-ascii'],
    ['application/json; charset=utf-8; charset=utf-7', 'utf-7'],
    ['application/json; charset=', ''],
    ['application/json; a=b;CHARSET=utf-32le', 'utf-32le'],
  ] as const)
    assert.is(foreignCharset(each), named, each);
});

accept('a GET asks for events by their name or by any type, and a browser that opens a page does not', () => {
  for (const each of ['text/event-stream', '*/*', 'text/*', 'TEXT/EVENT-STREAM, text/html', 'application/json, */*'])
    assert.ok(asksForEvents(each), each);
  for (const each of [
    undefined,
    'application/json',
    '*/*;q=0',
    'text/event-stream;q=0, */*',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  ])
    assert.not.ok(asksForEvents(each), each);
});

contentType('any header is read in time that grows with its length', () => {
  const started = performance.now();
  for (const part of [' ', '\t', ';', 'application/json', 'application/json ']) {
    isJson(`${part.repeat(200_000)}x`);
    isJson(`application/json${part.repeat(200_000)},`);
    foreignCharset(`application/json;${part.repeat(200_000)}charset=${part.repeat(200_000)}`);
  }
  assertFigure(performance.now() - started, 500, 'reading the headers');
});
