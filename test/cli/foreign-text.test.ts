/** Text, patterns and schemas of a server at the command line: none controls the terminal, hangs the command, or hides a key. */

import { PassThrough, Readable } from 'node:stream';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { readArguments, readWords, toolArguments } from '../../src/cli/call/call-arguments.ts';
import { readCallTarget } from '../../src/cli/call/call-target.ts';
import { ResultText } from '../../src/cli/call/result-text.ts';
import { listingText } from '../../src/cli/call/server-listing.ts';
import { TerminalForms } from '../../src/cli/call/terminal-forms.ts';
import { say, UsageError } from '../../src/cli/usage.ts';
import { printable } from '../../src/core/kernel/operator-log.ts';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { writeJson } from '../../src/core/protocol/json-text.ts';
import type { CallToolResult } from '../../src/core/protocol/types.ts';
import { visibleJson } from '../../src/core/protocol/visible-text.ts';
import { isWebPage } from '../../src/core/protocol/web-page.ts';
import { withoutInvisible } from '../../src/gateway/mounts/invisible-characters.ts';
import { saidBy, visibleForm } from '../../src/gateway/mounts/question-text.ts';
import { signatureOf } from '../../src/gateway/tool-signature.ts';
import { character } from '../harness/character.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('foreign text');

/** Text with every kind of character that controls a terminal, or the reader of one. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\x1b[2J',
        '\x1b]0;x\x07',
        '\x9b31m',
        '\r',
        '\b',
        '\x7f',
        '\u202e',
        '\u2066',
        '\u200b',
        '\u2028',
        '\ud800',
        '\n',
        '\t',
        '"',
        '\\',
      ),
      fc.string({ unit: character, maxLength: 4 }),
      fc.constantFrom('name', '李', '😀'),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));

/** All that may reach a terminal: no control but line breaks and tabs, no mark of direction. */
const HARMLESS = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]*$/u;
/** Controls except tabs and line breaks, and marks of direction. */
const CONTROLS = /(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const harmless = (text: string): void => assert.match(text.replaceAll(/[\n\t]/g, ''), HARMLESS);

/** The text that a function writes to stderr. */
function onStderr(write: () => void): string {
  const { write: before } = process.stderr;
  let text = '';
  process.stderr.write = (chunk: string | Uint8Array): boolean => {
    text += String(chunk);
    return true;
  };
  try {
    write();
  } finally {
    process.stderr.write = before;
  }
  return text;
}

const SIGNAL = new AbortController().signal;
const answers = (words: readonly string[]) => readWords('--answer', words);

/** Asks a form without a terminal, with `--answer`. */
async function answered(requestedSchema: JsonObject, words: readonly string[], message = 'Which?') {
  const said: string[] = [];
  const forms = new TerminalForms({
    terminal: undefined,
    answers: answers(words),
    open: false,
    mistake: (line) => void said.push(line),
    say: (line) => void said.push(line),
    interrupt: () => {},
  });
  return { answer: await forms.form({ message, requestedSchema }, SIGNAL), said };
}

test('S-83 no character of a name, a text or an error of a server controls a terminal or the log', () =>
  fc.assert(
    fc.asyncProperty(hostile, async (text) => {
      harmless(printable(text));
      harmless(onStderr(() => say(`troupe call: missing ${text}. The tool is ${text}`)));
      const result = { content: [{ type: 'text' as const, text }], structuredContent: { [text]: text } };
      harmless(new ResultText({ out: undefined, terminal: true }).ofCall(result));
      const unknown: CallToolResult = JSON.parse(
        JSON.stringify({ content: [{ type: 'error', text }, { type: text }] }),
      );
      harmless(new ResultText({ out: undefined, terminal: true }).ofCall(unknown));
      harmless(
        listingText({
          server: {
            name: text,
            version: text,
            title: text,
            revision: '2025-11-25',
            era: 'legacy',
            capabilities: {},
            instructions: text,
          },
          tools: [
            { name: text, title: text, description: text, inputSchema: { type: 'object', properties: { [text]: {} } } },
          ],
          resources: [{ uri: text, name: text, description: text }],
          templates: [],
          prompts: [{ name: text, description: text }],
        } as unknown as Parameters<typeof listingText>[0]),
      );
      try {
        toolArguments({ name: text, inputSchema: { type: 'object', required: [text] } }, [], undefined);
      } catch (error) {
        harmless(onStderr(() => say(String(error instanceof Error ? error.message : error))));
      }
      const { said } = await answered(
        { type: 'object', properties: { [text]: { type: 'string', title: text } }, required: [text] },
        [],
        text,
      );
      for (const line of said) harmless(onStderr(() => say(line)));
    }),
    { numRuns: random(300) },
  ));

for (const end of ['\n', '\v', '\f', '\r', '\r\n', '\u0085', '\u2028', '\u2029'])
  test(`S-83 each line of a question of an upstream names it, after ${JSON.stringify(end)}`, () =>
    assert.is(saidBy('shop', `Which size?${end}[bank] Your PIN?`), '[shop] Which size?\n[shop] [bank] Your PIN?'));

test('a secret in the address or the header of a command is in none of its lines', async () => {
  const url = 'http://ada:hunter2@127.0.0.1:1/mcp?key=hunter2#hunter2';
  assert.is(readCallTarget('call', [url], [], [], { cwd: '/', env: {} }).name, 'http://127.0.0.1:1/mcp');
  for (const header of ['Authorization Bearer hunter2', ': hunter2', 'X: a\nhunter2', 'X Y: hunter2', 'hunter2'])
    try {
      readCallTarget('call', [url], [], [header], { cwd: '/', env: {} });
      assert.unreachable(header);
    } catch (error) {
      assert.instance(error, UsageError);
      assert.match(String(error), '--header: expected "Name: value" on one line');
      assert.not.match(String(error), 'hunter2');
    }
});

test('S-83 a question of an upstream has no invisible character in a text that is only read, and its names and values stay', () =>
  fc.assert(
    fc.property(hostile, (text) => {
      assert.not.match(saidBy('shop', text), CONTROLS);
      const form = (read: string) => ({
        type: 'object',
        title: read,
        properties: { [`f${text}`]: { type: 'string', title: read, description: read, enum: [text], default: text } },
      });
      assert.equal(visibleForm(form(text)), form(withoutInvisible(text).text));
    }),
    { numRuns: random(300) },
  ));

for (const [url, fine] of [
  ['https://bank.example/a?b=c#d', true],
  ['HTTP://127.0.0.1:80/é', true],
  ['https://bücher.example/', true],
  ['https://bank.example@evil.example/', false],
  ['https://a:b@evil.example/', false],
  ['https://bank.example\\@evil.example/', false],
  ['https://bank.example/\u202egpj.exe', false],
  ['https://bank.example/\u200b', false],
  ['https://bank.example/\n', false],
  ['https://bank.example/ a', false],
  [' https://bank.example/', false],
  ['https:bank.example', false],
  ['ht\ntps://bank.example', false],
  ['https://[::1', false],
  ['javascript:alert(1)//https://', false],
  ['file:///etc/passwd', false],
  [undefined, false],
  [{ href: 'https://bank.example' }, false],
] as const)
  test(`S-83 ${JSON.stringify(url)} is ${fine ? 'a page' : 'no page'} that a person may be asked to open`, () =>
    assert.is(isWebPage(url), fine));

test('S-83 the JSON of a command is the same value, without a character that controls it', () =>
  fc.assert(
    fc.property(fc.dictionary(hostile, hostile), (value) => {
      const text = visibleJson(value, 2);
      harmless(text);
      assert.equal(JSON.parse(text), JSON.parse(writeJson(value)));
    }),
    { numRuns: random(500) },
  ));

const QUICK_PATTERNS = ['^(a|a)*$', '[', '^[ab]*[ab]{40000}c', '(?:(?:(?:(?:a?){100}){100}){100}){100}'];

/** Milliseconds of processor time in which a form with a hostile pattern is answered: the limit is 250, and this machine may be slow. */
const PATTERN_MS = 2_000;

for (const [pattern, value] of [
  ...['^(a|a)*$', '^(a+)+$', '(x+x+)+y', '^([a-z]|[a-z])+$', '(?:a|aa)+$', '['].map(
    (each) => [each, `${'a'.repeat(60)}!`] as const,
  ),
  ['[ab]{40000}c', 'a'.repeat(100_000)],
  ['^[ab]*[ab]{40000}c', 'a'.repeat(100_000)],
  ['(?:(?:a{255}){255}){255}', 'a'.repeat(100_000)],
  ['(?:(?:(?:(?:a?){100}){100}){100}){100}', 'a'],
  [`${'('.repeat(20_000)}${')'.repeat(20_000)}`, 'a'],
] as const) {
  // Quick: one of each kind, because each takes its limit of time.
  const add = QUICK_PATTERNS.includes(pattern) ? test : test.full;
  add(`S-84 a form with the pattern ${pattern.slice(0, 40)} is answered`, async () => {
    const before = process.cpuUsage();
    const { answer } = await answered(
      { type: 'object', properties: { name: { type: 'string', pattern } }, required: ['name'] },
      [`name=${value}`],
    );
    const { user, system } = process.cpuUsage(before);
    assert.ok((user + system) / 1_000 < PATTERN_MS, `it took ${(user + system) / 1_000} ms`);
    // A pattern that takes too long is the server's to check; one that is checked in time decides.
    assert.ok(answer === 'cancel' || (typeof answer === 'object' && answer.name === value), JSON.stringify(answer));
  });
}

test('S-84 a question on a terminal with such a pattern can be answered', async () => {
  const input = new PassThrough();
  const output = new PassThrough();
  const forms = new TerminalForms({
    terminal: { input, output },
    answers: [],
    open: false,
    mistake: () => {},
    say: () => {},
    interrupt: () => {},
  });
  const properties = { name: { type: 'string', pattern: '^(a|a)*$' } };
  const asked = forms.form({ message: 'Name?', requestedSchema: { type: 'object', properties } }, SIGNAL);
  input.write(`${'a'.repeat(60)}!\n`);
  input.write('y\n');
  input.end();
  assert.ok(await asked);
});

const UNION = {
  type: 'object',
  oneOf: [
    { properties: { action: { const: 'move' }, id: { type: 'integer' } }, required: ['action', 'id'] },
    { properties: { action: { const: 'rename' }, name: { type: 'string' } }, required: ['action', 'name'] },
  ],
};

for (const [what, inputSchema, words, expected] of [
  ['oneOf', UNION, ['action=move', 'id=7'], { action: 'move', id: 7 }],
  ['the other alternative', UNION, ['action=rename', 'name=7'], { action: 'rename', name: '7' }],
  ['anyOf', { type: 'object', anyOf: UNION.oneOf }, ['action=move', 'id=7'], { action: 'move', id: 7 }],
  [
    'allOf',
    { type: 'object', allOf: [{ properties: { a: { type: 'number' } } }, { properties: { b: { type: 'boolean' } } }] },
    ['a=1', 'b=true'],
    { a: 1, b: true },
  ],
  [
    '$ref',
    { $ref: '#/$defs/x', $defs: { x: { type: 'object', properties: { a: { type: 'number' } } } } },
    ['a=1'],
    { a: 1 },
  ],
  [
    'a list',
    { type: 'object', properties: { c: { type: 'array', items: { enum: ['red', 'blue'] } } } },
    ['c=red', 'c=blue'],
    { c: ['red', 'blue'] },
  ],
  [
    'a list of one',
    { type: 'object', properties: { c: { type: 'array', items: { type: 'integer' } } } },
    ['c=1'],
    { c: [1] },
  ],
] as const)
  test(`key=value words fit a schema with ${what}`, () =>
    assert.equal(
      toolArguments(
        { name: 't', inputSchema } as unknown as Parameters<typeof toolArguments>[0],
        readWords('t', words),
        undefined,
      ),
      expected,
    ));

test('a schema that refers to itself, or has thousands of alternatives, is read in time', () => {
  const many = Array.from({ length: 500 }, (_, index) => ({ properties: { [`k${index}`]: {} } }));
  for (const inputSchema of [
    { type: 'object', allOf: [{ $ref: '#' }, { $ref: '#' }] },
    { type: 'object', anyOf: many, oneOf: many, allOf: [{ anyOf: many }, { oneOf: many }] },
  ]) {
    assert.type(signatureOf({ name: 't', inputSchema } as unknown as Parameters<typeof signatureOf>[0]), 'string');
    assert.throws(() =>
      toolArguments(
        { name: 't', inputSchema } as unknown as Parameters<typeof toolArguments>[0],
        readWords('t', ['zzz=1']),
        undefined,
      ),
    );
  }
});

test('an id above 2^53 reaches the server as it was typed, in words, lists and JSON', async () => {
  const inputSchema = {
    type: 'object',
    properties: { id: { type: 'integer' }, ids: { type: 'array', items: { type: 'integer' } }, o: {} },
  };
  const id = '1234567890123456789';
  const args = toolArguments(
    { name: 't', inputSchema } as unknown as Parameters<typeof toolArguments>[0],
    readWords('t', [`id=${id}`, `ids=${id}`, `ids=1`, `o:={"x":${id}}`]),
    undefined,
  );
  assert.is(writeJson(args), `{"id":${id},"ids":[${id},1],"o":{"x":${id}}}`);
  const given = toolArguments(
    { name: 't', inputSchema } as unknown as Parameters<typeof toolArguments>[0],
    [],
    await readArguments(`{"id":${id}}`, { cwd: '.', stdin: Readable.from([]) }),
  );
  assert.is(writeJson(given), `{"id":${id}}`);
});

for (const [words, expected] of [
  [['colours=red', 'colours=blue'], { colours: ['red', 'blue'] }],
  [['colours=red'], { colours: ['red'] }],
  [['colours=["red","blue"]'], { colours: ['red', 'blue'] }],
  [['colours:=["blue"]'], { colours: ['blue'] }],
  [['colours=green'], 'cancel'],
] as const)
  test(`--answer ${words.join(' ')} answers a choice of several`, async () => {
    const items = { type: 'string', enum: ['red', 'blue'] };
    const { answer } = await answered(
      { type: 'object', properties: { colours: { type: 'array', items } }, required: ['colours'] },
      words,
    );
    assert.equal(answer, expected);
  });
