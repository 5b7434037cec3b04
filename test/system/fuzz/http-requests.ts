/** What the fuzzer sends over HTTP: requests of clients of every revision, with bodies, headers and event ids a few things wrong. */
import * as fc from 'fast-check';
import { isObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { LATEST_MODERN, LEGACY_REVISIONS } from '../../../src/core/protocol/revisions.ts';
import { input } from './hostile.ts';

/** What the fuzzer knows of the server by now: a text that names one of these stands for it. */
export interface Known {
  readonly sessions: readonly string[];
  readonly events: readonly string[];
}

export interface HttpInput {
  readonly method: string;
  readonly target: string;
  /** Lines without their ends. */
  readonly headers: readonly string[];
  readonly body: string | undefined;
  /** The body is announced in chunks of this size, not by its length. */
  readonly chunk: number | undefined;
  /** The client leaves before the answer. */
  readonly leaves: boolean;
}

const ODD = [
  '',
  ' ',
  '\t',
  ',',
  ';',
  '*',
  'null',
  'undefined',
  '__proto__',
  'constructor',
  '0',
  '-1',
  '1e9',
  '99999999999999999999',
  'é',
  '\u00ff\u00fe',
  '\u0001',
  '\u007f',
  '=?base64??=',
  '=?base64?!!!?=',
  '=?base64?AA==?=',
  `=?base64?${Buffer.from('echo').toString('base64')}?=`,
  '%00',
  '../../etc/passwd',
  "' OR 1=1 --",
  '{{7*7}}',
  'x'.repeat(3_000),
];

const odd = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...ODD) },
  { weight: 1, arbitrary: fc.string({ maxLength: 30 }) },
);

const BOTH = 'application/json, text/event-stream';

type Line = readonly [name: string, value: string];

/** What a client does wrong about its headers, each at a place from the start. */
const EDITS: readonly ((line: Line, put: string, at: number) => readonly Line[])[] = [
  () => [],
  ([name], put) => [[name, put]],
  (line, put) => [line, [line[0].toUpperCase(), put]],
  (line) => [line, line],
  ([name, value], put, at) => [[name, value.slice(0, at) + put + value.slice(at)]],
  ([name, value]) => [[name, value.toUpperCase()]],
  (line, put) => [line, ['Mcp-Param-Text', put]],
  (line, put) => [line, ['Origin', put]],
  ([, value], put) => [[put.replace(/[^!-9;-~]/g, '') || 'x', value]],
];

const edits = fc.array(fc.record({ at: fc.nat(9), how: fc.constantFrom(...EDITS), put: odd, place: fc.nat(20) }), {
  maxLength: 2,
});

function edited(lines: readonly Line[], made: typeof edits extends fc.Arbitrary<infer T> ? T : never): string[] {
  let all = lines;
  for (const { at, how, put, place } of made)
    all = all.flatMap((line, index) => (index === at % Math.max(1, all.length) ? how(line, put, place) : [line]));
  return all.map(([name, value]) => `${name}: ${value}`);
}

/** `SESSION` and `EVENT` with a number stand for one that the server has given. */
const session = fc.nat(50).map((nth) => `SESSION${nth}`);
const event = fc.nat(50).map((nth) => `EVENT${nth}`);
const host = fc.constantFrom('localhost', '127.0.0.1', '[::1]:3000');
const legacy = fc.constantFrom(undefined, ...LEGACY_REVISIONS);

const line = (name: string, value: string | undefined): Line[] => (value === undefined ? [] : [[name, value]]);

const path = fc.oneof(
  { weight: 20, arbitrary: fc.constant('/mcp') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '/',
      '/mcp?',
      '/mcp?sse=',
      '/mcp?sse=x&sse=y',
      '/mcp/',
      '//mcp',
      '*',
      '/%',
      '/healthz',
      '/readyz?x',
      'http://localhost/mcp',
    ),
  },
);

/** The headers by which an honest client would send this body, where it can be read. */
function honest(text: string, id: string, revision: string | undefined): readonly Line[] {
  const message = read(text);
  const { method, params } = isObject(message) ? message : {};
  const { name, uri, _meta: meta } = isObject(params) ? params : {};
  const named = name ?? uri;
  if (isObject(meta) && meta[META.protocolVersion] === LATEST_MODERN)
    return [
      ['MCP-Protocol-Version', LATEST_MODERN],
      ...(typeof method === 'string' && isPlain(method) ? line('Mcp-Method', method) : []),
      ...(typeof named === 'string' && isPlain(named) ? line('Mcp-Name', named) : []),
    ];
  if (method === 'initialize') return [];
  return [['Mcp-Session-Id', id], ...line('MCP-Protocol-Version', revision)];
}

const isPlain = (text: string): boolean => /^[\x21-\x7e]{1,200}$/.test(text);

function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const post: fc.Arbitrary<HttpInput> = fc
  .record({
    host,
    accept: fc.constantFrom(BOTH, BOTH, BOTH, 'application/json', 'text/event-stream', '*/*'),
    text: input.map(({ text }) => text),
    session,
    revision: legacy,
    edits,
    target: path,
    chunk: fc.option(fc.integer({ min: 100, max: 5_000 }), { freq: 8, nil: undefined }),
    leaves: fc.nat(39),
  })
  .map(({ host, accept, text, session, revision, edits, target, chunk, leaves }) => ({
    method: 'POST',
    target,
    headers: edited(
      [['Host', host], ['Content-Type', 'application/json'], ['Accept', accept], ...honest(text, session, revision)],
      edits,
    ),
    body: text,
    chunk,
    leaves: leaves === 0,
  }));

const GETS: readonly string[] = Array(10).fill('GET');

const others: fc.Arbitrary<HttpInput> = fc
  .record({
    method: fc.constantFrom(...GETS, 'DELETE', 'OPTIONS', 'PUT', 'HEAD', 'PROPFIND'),
    host,
    session,
    revision: legacy,
    last: fc.option(event, { freq: 3, nil: undefined }),
    edits,
    target: path,
  })
  .map(({ method, host, session, revision, last, edits, target }) => ({
    method,
    target,
    headers: edited(
      [
        ['Host', host],
        ['Accept', 'text/event-stream'],
        ['Mcp-Session-Id', session],
        ...line('MCP-Protocol-Version', revision),
        ...line('Last-Event-ID', last),
      ],
      edits,
    ),
    body: undefined,
    chunk: undefined,
    leaves: false,
  }));

export const httpInput: fc.Arbitrary<HttpInput> = fc.oneof(
  { weight: 4, arbitrary: post },
  { weight: 1, arbitrary: others },
);

/** The bytes of an input, one character a byte, with what is known filled in. */
export function bytesOf({ method, target, headers, body, chunk }: HttpInput, { sessions, events }: Known): string {
  const fill = (line: string): string =>
    line
      .replace(/SESSION(\d+)/g, (_, nth) => sessions[Number(nth) % Math.max(1, sessions.length)] ?? 'none')
      .replace(/EVENT(\d+)/g, (_, nth) => events[Number(nth) % Math.max(1, events.length)] ?? 'none');
  const bytes = body === undefined ? '' : Buffer.from(body).toString('latin1');
  const framing =
    body === undefined
      ? []
      : chunk === undefined
        ? [`Content-Length: ${bytes.length}`]
        : ['Transfer-Encoding: chunked'];
  const head = [`${method} ${target} HTTP/1.1`, ...headers.map(fill), ...framing].join('\r\n');
  return `${head}\r\n\r\n${chunk === undefined ? bytes : chunked(bytes, chunk)}`;
}

function chunked(bytes: string, size: number): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.slice(at, at + size);
    text += `${part.length.toString(16)}\r\n${part}\r\n`;
  }
  return `${text}0\r\n\r\n`;
}
