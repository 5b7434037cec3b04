/**
 * `troupe call`, `inspect`, `login` and `logout`: what they print, convert, ask and store, and their exit codes. Processes of the
 * command show how it ends, and that it reads a terminal.
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { sqlite } from 'troupe';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { promptArguments, readWords, toolArguments } from '../../src/cli/call/call-arguments.ts';
import { readCallTarget } from '../../src/cli/call/call-target.ts';
import { progressLine } from '../../src/cli/call/progress-bar.ts';
import { ServerOutput } from '../../src/cli/call/server-output.ts';
import { TerminalForms } from '../../src/cli/call/terminal-forms.ts';
import type { FormAnswer } from '../../src/client/client-options.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { typeOf } from '../../src/core/schema/written-types.ts';
import { signatureOf } from '../../src/gateway/tool-signature.ts';
import { type Reachable, reachable } from '../client/fixture.ts';
import { protectedServer } from '../client/protected-server.ts';
import { suite } from '../harness/door.ts';
import { SCALE } from '../harness/scale.ts';
import { withoutStalls } from './agent.ts';
import { Cli, isBuilt, TROUPE } from './cli.ts';
import { troupe as command, type Ran, Running } from './in-process.ts';

const test = suite('troupe call: signatures, arguments and questions');
const BUILT = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));

test('a tool is a TypeScript signature', () => {
  const inputSchema = {
    type: 'object',
    properties: {
      q: { type: 'string' },
      limit: { type: 'integer' },
      kind: { enum: ['a', "b's"] },
      'x-y': { type: ['string', 'null'] },
      tags: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
      node: { $ref: '#/$defs/node' },
      any: true,
    },
    required: ['q'],
    $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
  };
  const outputSchema = {
    type: 'object',
    properties: { hits: { type: 'array', items: { type: 'string' } } },
    required: ['hits'],
  };
  assert.is(
    signatureOf({
      name: 'search',
      inputSchema: { ...inputSchema, properties: { q: { type: 'string' }, limit: { type: 'number' } } },
      outputSchema,
    }),
    'search(q: string, limit?: number): { hits: string[] }',
  );
  const long = signatureOf({ name: 'search', inputSchema });
  assert.match(long, "  kind?: 'a' | 'b\\'s',\n");
  assert.match(long, "  'x-y'?: string | null,\n");
  assert.match(long, '  tags?: (string | number)[],\n');
  assert.match(long, /node\?: \{ next\?: .*unknown/);
  assert.match(long, '  any?: unknown,\n');
});

/** Schemas, and their types on one line. */
const ON_ONE_LINE: readonly (readonly [schema: unknown, type: string])[] = [
  [{ allOf: [{ type: 'string' }, { $ref: 'https://example.com/schema.json' }] }, 'string'],
  [{ type: 'object', additionalProperties: { type: 'number' } }, 'Record<string, number>'],
  [{ type: 'object', additionalProperties: false }, '{}'],
  [{ type: 'object' }, 'object'],
  [{ type: 'array', items: { const: 1 } }, '1[]'],
  [{ type: 'array', items: { enum: ["it's", 'b & c'] } }, "('it\\'s' | 'b & c')[]"],
  [{ type: 'array', prefixItems: [{ type: 'string' }], items: false, minItems: 1 }, '[string]'],
  [{ type: 'string', nullable: true }, 'string | null'],
  [
    { enum: Array.from({ length: 14 }, (_, at) => at) },
    '0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | /* 2 more */ never',
  ],
  // An object has the members of its compositions, and is one of its alternatives if it has no members of its own.
  [
    {
      type: 'object',
      properties: { a: { type: 'string' } },
      allOf: [{ properties: { b: { type: 'number' } }, required: ['b'] }],
      anyOf: [{ required: ['a'] }, { required: ['c'] }],
    },
    '{ a?: string; b: number }',
  ],
  [
    { type: 'object', anyOf: [{ properties: { a: { type: 'null' } } }, { properties: { b: { type: 'null' } } }] },
    '{ a?: null } | { b?: null }',
  ],
  [{ properties: { next: { $ref: '#' } } }, '{ next?: { next?: { next?: unknown } } }'],
];

for (const [schema, type] of ON_ONE_LINE)
  test(`the type of ${JSON.stringify(schema).slice(0, 120)} is ${type.slice(0, 60)}`, () => {
    assert.is(typeOf(schema), type);
  });

const TOOL = {
  name: 'order',
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      count: { type: 'integer' },
      price: { anyOf: [{ type: 'number' }, { type: 'null' }] },
      gift: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'number' } },
      where: { type: 'object' },
      size: { enum: ['small', 1] },
      either: { type: ['string', 'number'] },
    },
    required: ['name'],
  },
} as const;

const order = (...words: string[]): JsonObject =>
  toolArguments(TOOL, readWords('troupe call: order', words), undefined);

test('values are converted by the schema of the tool', () => {
  assert.equal(
    order(
      'name=5',
      'count=-3',
      'price=1.5e2',
      'gift=true',
      'tags=1',
      'tags=2',
      'where={"a":[1]}',
      'size=1',
      'either=7',
    ),
    { name: '5', count: -3, price: 150, gift: true, tags: [1, 2], where: { a: [1] }, size: 1, either: 7 },
  );
  assert.equal(order('name=', 'tags=[1,2]', 'price=null', 'either:="7"'), {
    name: '',
    tags: [1, 2],
    price: null,
    either: '7',
  });
  assert.equal(order('name=a=b:=c'), { name: 'a=b:=c' });
  // As a number, each of these would be another text.
  for (const either of ['007', '+49', '.5', '1.'])
    assert.equal(order('name=', `either=${either}`), { name: '', either });
  assert.equal(order('name=', 'price=007'), { name: '', price: 7 });
  const open = { name: 'open', inputSchema: { type: 'object', additionalProperties: true } };
  assert.equal(toolArguments(open, readWords('', ['a=1', 'b:=1']), { c: 2 }), { c: 2, a: '1', b: 1 });
});

for (const [words, message] of [
  [['name=a', 'count=1.5'], 'troupe call: order: count: expected number, got 1.5'],
  [['name=a', 'gift=yes'], 'gift: expected boolean, got yes'],
  [['name=a', 'count='], 'count: expected number, got an empty text'],
  [['name=a', 'where={'], 'where: expected object, got {'],
  [['name=a', 'size=large'], "size: expected 'small' | 1, got large"],
  [['name=a', 'conut=1'], 'unknown key conut (did you mean count?). The tool is order('],
  [['name=a', 'name=b'], 'name: expected one value, got several'],
  [['count=1'], 'missing name. The tool is order('],
  [['name'], 'expected key=value or key:=JSON, got name'],
  [['name=a', 'tags:=['], 'tags: expected JSON, got ['],
] as const)
  test(`${words.join(' ')} is rejected`, () => {
    assert.throws(
      () => order(...words),
      (error: Error) => error.name === 'UsageError' && error.message.includes(message),
    );
  });

test('the keys of a prompt are checked', () => {
  const prompt = { name: 'review', arguments: [{ name: 'code', required: true }, { name: 'style' }] };
  assert.equal(promptArguments(prompt, readWords('', ['code=5'])), { code: '5' });
  assert.throws(() => promptArguments(prompt, readWords('', ['cod=5'])), /unknown key cod \(did you mean code\?\)/);
  assert.throws(
    () => promptArguments(prompt, []),
    /missing code\. The prompt is review\(code: string, style\?: string\)/,
  );
});

test('progress is a bar if the total is known, and its message controls no terminal', () => {
  assert.is(progressLine({ progress: 1, total: 4, message: 'a\u001b[2Jb' }), '[######------------------] 25 % a·[2Jb');
  assert.is(progressLine({ progress: 9, total: 4, message: undefined }), `[${'#'.repeat(24)}] 100 %`);
  assert.is(progressLine({ progress: 7, total: undefined, message: undefined }), '7');
});

const FORM: JsonObject = {
  type: 'object',
  properties: {
    size: {
      type: 'string',
      title: 'Size',
      oneOf: [
        { const: 's', title: 'Small' },
        { const: 'l', title: 'Large' },
      ],
    },
    gift: { type: 'boolean', default: true },
    count: { type: 'integer', minimum: 1, maximum: 5 },
    mail: { type: 'string', format: 'email' },
    tags: { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 1 },
    note: { type: 'string', maxLength: 3 },
  },
  required: ['size', 'count', 'mail', 'tags'],
};

/** Answers a form on a terminal of the test: each line is written when its prompt is there. */
async function onTerminal(
  lines: readonly (string | null)[],
  answers: readonly string[] = [],
  schema = FORM,
): Promise<{ answer: FormAnswer; shown: string; said: readonly string[] }> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const said: string[] = [];
  let shown = '';
  const rest = [...lines];
  output.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    if (!/: $/.test(shown)) return;
    const line = rest.shift();
    if (line === null) input.end();
    else if (line !== undefined) input.write(`${line}\n`);
  });
  const questions = new TerminalForms({
    terminal: { input, output },
    answers: readWords('--answer', answers),
    open: false,
    mistake: (line) => said.push(line),
    say: (line) => said.push(line),
    interrupt() {},
  });
  const answer = await questions.form(
    { message: 'Your order\u001b[2J', requestedSchema: schema },
    new AbortController().signal,
  );
  return { answer, shown, said };
}

test('a form is asked field by field, with defaults, numbered choices, and repeated validation', async () => {
  const { answer, shown } = await onTerminal([
    '3',
    '2',
    '',
    'six',
    '6',
    '5',
    'ada',
    'ada@example.com',
    '1, 3',
    'long',
    '',
  ]);
  assert.equal(answer, { size: 'l', gift: true, count: 5, mail: 'ada@example.com', tags: ['a', 'c'] });
  assert.match(shown, 'Your order·[2J\n');
  assert.match(shown, '  1) Small\n  2) Large\n');
  assert.match(shown, '  Size (1 to 2): ');
  assert.match(shown, 'Expected a number from 1 to 2.');
  assert.match(shown, '  gift (y/n) [y]: ');
  assert.match(shown, 'Expected a number.');
  assert.match(shown, 'Expected at most 5.');
  assert.match(shown, 'Expected the format email.');
  assert.match(shown, 'Expected at most 3 characters.');
});

test('the end of the input declines a form', async () => {
  assert.is((await onTerminal(['1', null])).answer, 'decline');
});

test('the terminal asks again for a field whose --answer the form rejects, also an optional one', async () => {
  const answers = ['size=s', 'gift=true', 'count=0', 'mail=a@b', 'tags:=["b"]', 'note=long'];
  const { answer, said } = await onTerminal(['2', 'yes'], answers);
  assert.equal(answer, { size: 's', gift: true, count: 2, mail: 'a@b', tags: ['b'], note: 'yes' });
  assert.equal(said, [
    'troupe call: --answer count: expected at least 1, got 0',
    'troupe call: --answer note: expected at most 3 characters, got long',
  ]);
});

test('--answer fills the fields that it names, and the terminal asks for the rest', async () => {
  const { answer, shown } = await onTerminal(['1', 'n', ''], ['count=2', 'mail=a@b', 'tags:=["b"]']);
  assert.equal(answer, { size: 's', gift: false, count: 2, mail: 'a@b', tags: ['b'] });
  assert.not.match(shown, 'mail');
  const { answer: whole, shown: nothing } = await onTerminal([], ['size=s', 'count=2', 'mail=a@b', 'tags:=["b"]']);
  assert.equal(whole, { size: 's', count: 2, mail: 'a@b', tags: ['b'] });
  assert.is(nothing, '');
});

test('a form that --answer does not fill is a mistake, and cancelled, not declined, if there is no terminal', async () => {
  const said: string[] = [];
  const forms = new TerminalForms({
    terminal: undefined,
    answers: readWords('--answer', ['sizes=s']),
    open: false,
    mistake: (line) => void said.push(line),
    say: (line) => void said.push(line),
    interrupt() {},
  });
  const requestedSchema = { type: 'object', properties: { size: { type: 'string' } }, required: ['size'] };
  const { signal } = new AbortController();
  assert.is(await forms.form({ message: 'Which?', requestedSchema }, signal), 'cancel');
  assert.is(await forms.page({ message: 'Pay', url: 'https://a.example' }, signal), 'cancel');
  assert.equal(said, [
    'troupe call: the form "Which?": --answer lacks size; it has no field sizes (did you mean size?)',
    'troupe call: cancelled the page "Pay", because there is no terminal: https://a.example',
  ]);
});

test('several questions at once are asked one after the other', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = '';
  output.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    if (/: $/.test(shown)) input.write('x\n');
  });
  const questions = new TerminalForms({
    terminal: { input, output },
    answers: [],
    open: false,
    mistake() {},
    say() {},
    interrupt() {},
  });
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const ask = (message: string): Promise<FormAnswer> =>
    questions.form({ message, requestedSchema: schema }, new AbortController().signal);
  assert.equal(await Promise.all([ask('one'), ask('two')]), [{ a: 'x' }, { a: 'x' }]);
  assert.ok(shown.indexOf('two') > shown.indexOf('a [none]'));
});

const built = suite(
  'troupe call: the command',
  process.platform === 'win32' ? 'the sockets of this file are those of POSIX' : undefined,
);

let fixture: Reachable | undefined;
/** The answers that the tool `order` received. */
const ordered: string[] = [];
const root = mkdtempSync(join(tmpdir(), 'call-'));
built.before(async () => {
  fixture = await reachable((server) => {
    server.tool('fail', {}, () => {
      throw new Error('it broke\x1b[2J\x9b\u202e');
    });
    server.tool('order', {}, async (_args, ctx) => {
      const schema = z.object({ count: z.number().min(1), mail: z.string(), note: z.string().max(3).default('') });
      const answer = await ctx.elicit({ message: 'Your order?', schema });
      ordered.push(answer.status);
      return answer.status;
    });
    server.tool('nothing', {}, () => ({ content: [] }));
    server.tool('nothing_failed', {}, () => ({ content: [], isError: true }));
    server.tool('picture', {}, () => ({
      content: [{ type: 'image', mimeType: 'image/png', data: Buffer.from('png').toString('base64') }],
    }));
    server.tool(
      'tags',
      { description: 'Joins tags.\nMore text.', input: z.object({ tags: z.array(z.string()) }) },
      ({ tags }) => tags.join('+'),
    );
  });
});
built.after(async () => {
  await fixture?.close();
  rmSync(root, { recursive: true, force: true });
});

const troupe = (...args: readonly string[]) => command(args);
const quiet = (ran: Ran): Ran => ({ ...ran, err: withoutStalls(ran.err) });

function url(): string {
  return fixture?.url ?? '';
}

built('without TOOL it lists what the server offers', async () => {
  const { code, out } = await troupe('call', url());
  assert.is(code, 0);
  // On a busy machine, the answer to the probe may be late.
  assert.match(out, /^fixture 1\.2\.3 \(20(?:26-07-28|25-11-25)\)\n/);
  assert.match(out, '  add(a: number, b: number): { sum: number }\n');
  assert.match(out, '  tags(tags: string[])\n      Joins tags.\n');
  assert.not.match(out, 'More text');
  assert.match(out, '1 resource template\n  notes://{id}  notes\n');
  assert.match(out, '1 prompt\n  review(code: string)\n');
});

built('a call prints structured content once, and --json the whole result', async () => {
  assert.equal(await troupe('call', url(), 'add', 'a=2', 'b=3'), { code: 0, out: '{\n  "sum": 5\n}\n', err: '' });
  const { code, out, err } = await troupe(
    'call',
    fixture?.socket ?? '',
    'add',
    'a=2',
    'b=3',
    '--json',
    '--era',
    'legacy',
  );
  assert.equal({ code, err }, { code: 0, err: '' });
  assert.equal(JSON.parse(out).structuredContent, { sum: 5 });
  const tags = await troupe('call', url(), 'tags', 'tags=a', 'tags=b');
  assert.equal(tags, { code: 0, out: 'a+b\n', err: '' });
});

built('--args is read from a file', async () => {
  const file = join(root, 'args.json');
  writeFileSync(file, '{"a":1,"b":1}');
  assert.is((await troupe('call', url(), 'add', '--args', `@${file}`, 'b=9')).out, '{\n  "sum": 10\n}\n');
  const missing = await troupe('call', url(), 'add', '--args', '@gone.json');
  assert.is(missing.code, 2);
  assert.match(missing.err, '--args: expected @FILE that can be read, or - for stdin, got @gone.json');
});

built('--args - reads stdin', async () => {
  const running = new Running(['call', url(), 'add', '--args', '-', 'b=9'], { raw: true });
  running.feed('{"a":1,\n"b":1}\n');
  await running.end();
  assert.is(await running.exit, 0);
  assert.is(running.out, '{\n  "sum": 10\n}\n');
  const empty = await troupe('call', url(), 'add', '--args', '-');
  assert.is(empty.code, 2);
  assert.match(empty.err, '--args: expected JSON, @FILE, or - for stdin, got nothing');
});

built(
  'S-83 an error result goes to stderr, with exit code 1, and with --json to stdout, without control characters',
  async () => {
    const { code, out, err } = await troupe('call', url(), 'fail');
    assert.equal({ code, out }, { code: 1, out: '' });
    // stdout is a pipe here, and stderr may be a terminal.
    assert.is(err, 'it broke·[2J··\n');
    const json = await troupe('call', url(), 'fail', '--json');
    assert.is(json.code, 1);
    assert.is(JSON.parse(json.out).isError, true);
    assert.match(json.out, /^[\x20-\x7e\n]+$/);
  },
);

built('an image is named with its size, and --out saves it', async () => {
  assert.is((await troupe('call', url(), 'picture')).out, '[image image/png, 3 bytes; --out DIR saves it]\n');
  const out = join(root, 'pictures');
  assert.match((await troupe('call', url(), 'picture', '--out', out)).out, `in ${join(out, '1.png')}]`);
  assert.equal(readdirSync(out), ['1.png']);
  assert.is(readFileSync(join(out, '1.png'), 'utf8'), 'png');
});

built('resources are read and prompts are got', async () => {
  assert.is((await troupe('call', url(), '--read', 'notes://7')).out, 'note 7');
  assert.is((await troupe('call', url(), '--prompt', 'review', 'code=x')).out, 'user:\nReview x\n');
});

built('without a terminal the server cannot ask a form, and --answer answers it', async () => {
  const unasked = await troupe('call', url(), 'ask');
  assert.is(unasked.code, 1);
  assert.match(unasked.err, /the client does not declare the capability for it \(elicitation[^)]*\)/);
  assert.match(unasked.err, 'troupe call: the server asks, and there is no terminal. Answer with --answer key=value\n');
  assert.is(
    (await troupe('call', url(), 'ask', '--answer', 'size=small', '--answer', 'gift=true')).out,
    'small true\n',
  );
});

for (const [what, answers, expected] of [
  ['that the form rejects', ['count=0', 'mail=a'], '--answer count: expected at least 1, got 0'],
  [
    'of an optional field that the form rejects',
    ['count=1', 'mail=a', 'note=long'],
    '--answer note: expected at most 3',
  ],
  ['of another type', ['count=x', 'mail=a'], '--answer count: expected number, got x'],
  ['without a required one', ['count=1'], '--answer lacks mail'],
  [
    'that is misspelled, without the required one',
    ['count=1', 'mial=a'],
    '--answer lacks mail; it has no field mial (did you mean mail?)',
  ],
] as const)
  for (const era of ['modern', 'legacy'])
    built(`an answer ${what} ends the call with code 2 and leaves the question open (${era})`, async () => {
      ordered.length = 0;
      const words = answers.flatMap((answer) => ['--answer', answer]);
      const { code, out, err } = await troupe('call', fixture?.socket ?? '', 'order', ...words, '--era', era);
      assert.equal({ code, out, ordered }, { code: 2, out: '', ordered: [] });
      assert.ok(err.startsWith('troupe call: the form "Your order?": '), err);
      assert.ok(err.includes(expected), err);
      assert.is(err.trimEnd().split('\n').length, 1, err);
    });

for (const [what, args, code, out, err] of [
  [
    'that no form has',
    ['ask', '--answer', 'sizes=small'],
    2,
    'large false\n',
    'the field sizes (did you mean size?): expected size, gift',
  ],
  ['of a call that asks nothing', ['tags', 'tags=a', '--answer', 'x=1'], 2, 'a\n', 'the field x: it showed no form'],
  ['of a call that fails', ['fail', '--answer', 'x=1'], 1, '', 'the field x: it showed no form'],
] as const)
  built(`an answer ${what} is named on stderr, after the result`, async () => {
    const result = await troupe('call', url(), ...args);
    assert.equal({ code: result.code, out: result.out }, { code, out });
    assert.ok(result.err.includes(`troupe call: --answer: no question of the call has ${err}`), result.err);
  });

for (const [what, args, expected] of [
  ['a tool', ['nothing'], { code: 0, out: '', err: 'the result is empty\n' }],
  ['an error', ['nothing_failed'], { code: 1, out: '', err: 'the result is empty\n' }],
] as const)
  built(`an empty result of ${what} is a line on stderr`, async () => {
    assert.equal(await troupe('call', url(), ...args), expected);
    const json = await troupe('call', url(), ...args, '--json');
    assert.equal([json.code, json.err, JSON.parse(json.out).content], [expected.code, '', []]);
  });

for (const [title, args, code, message] of [
  ['a misspelled tool', ['ad'], 2, 'unknown tool ad (did you mean add?)'],
  ['a misspelled key', ['add', 'a=1', 'bb=1'], 2, 'unknown key bb. The tool is add(a: number, b: number)'],
  ['a misspelled option', ['add', '--jsn'], 2, "Unknown option '--jsn' (did you mean --json?)"],
  [
    'an argument with dashes',
    ['add', '--first', '1'],
    2,
    "Unknown option '--first' (an argument of a tool has no dashes: first=VALUE)",
  ],
  ['a misspelled prompt', ['--prompt', 'reviw'], 2, 'unknown prompt reviw (did you mean review?)'],
  ['an unknown resource', ['--read', 'other://1'], 1, /code -32(?:602|002)/],
  ['a wrong era', ['--era', 'old'], 2, '--era: expected legacy or modern, got old'],
  [
    'a malformed header',
    ['--header', 'x'],
    2,
    '--header: expected "Name: value" on one line, got 1 character of another form',
  ],
] as const)
  built(`${title} ends with code ${code}`, async () => {
    const result = await troupe('call', url(), ...args);
    assert.match(result.err, message);
    assert.equal({ code: result.code, out: result.out }, { code, out: '' });
  });

built('a server that cannot be reached is exit code 3', async () => {
  const { code, err } = await troupe('call', 'http://127.0.0.1:9/mcp');
  assert.is(code, 3);
  assert.match(err, 'troupe call: http://127.0.0.1:9/mcp: ');
  const command = await troupe('call', '--', join(root, 'no-such-program'));
  assert.is(command.code, 3);
  assert.match(command.err, 'cannot start');
  const echo = await troupe('call', '--', process.execPath, '-e', 'process.stdin.pipe(process.stdout)');
  assert.is(echo.code, 3, echo.err);
  assert.is((await troupe('call', 'gone.ts')).code, 2);
  assert.is((await troupe('call')).code, 2);
});

built('a program is started as a command after --, and as a file', async () => {
  const file = join(root, 'server.mjs');
  writeFileSync(
    file,
    `import { createServer, stdio } from '${TROUPE}';
const server = createServer({ name: 'small', version: '1.0.0' });
server.tool('env', {}, () => process.env.CALL_TEST ?? 'none');
server.tool('fail', {}, () => { console.log('to the log'); throw new Error('no database'); });
await server.listen(stdio());`,
  );
  const env = { ...process.env, CALL_TEST: 'inherited' };
  const ran = await command(['call', 'env', '--', process.execPath, file], { env });
  assert.equal(quiet(ran), { code: 0, out: 'inherited\n', err: '' });
  const failed = await command(['call', file, 'fail'], { env });
  assert.equal([failed.code, failed.out], [1, '']);
  // The result and the lines of the server come on two pipes.
  assert.match(failed.err, /^to the log$/m);
  assert.match(failed.err, /^troupe error: incident [\w-]+ in tool "fail": Error: no database$/m);
  if (SCALE === 'quick') return;
  assert.equal(quiet(await command(['call', file, 'env'], { env })), { code: 0, out: 'inherited\n', err: '' });
});

built('a program that fails to start is started once, and its reason is printed once', async () => {
  const file = join(root, 'broken.mjs');
  writeFileSync(file, "throw new Error('no configuration');");
  const { code, err } = await command(['call', file]);
  assert.is(code, 3);
  assert.is(err.split('no configuration').length, 2, err);
  assert.match(err, /process ended with code 1\.\n$/);
});

for (const [what, terminal, env, line, expected] of [
  ['plain', false, {}, 'ready', 'ready\n'],
  ['a tab', false, {}, 'a\tb', 'a\tb\n'],
  ['colours, a cleared screen and a bell', false, {}, '\x07\x1b[31mred\x1b[0m\x1b[2J', '·red\n'],
  ['on a terminal', true, {}, 'ready', '\x1b[2mready\x1b[22m\n'],
  ['on a terminal without colours', true, { NO_COLOR: '1' }, 'ready', 'ready\n'],
  ['that ends the dimming', true, {}, '\x1b[22mready\u202e', '\x1b[2mready·\x1b[22m\n'],
] as const)
  test(`S-83 a line of the server on stderr, ${what}, is passed on`, () => {
    const { written, output } = serverOutput(terminal, env);
    output.line(line);
    output.end();
    assert.is(written(), expected);
  });

test('S-83 output of the server on stderr beyond 256 KiB is left out, apart from the last twenty lines', () => {
  const { written, output } = serverOutput(false);
  for (let line = 0; line < 100; line += 1) output.line(`${line} `.padEnd(8_192, 'x'));
  const before = written();
  assert.ok(before.length <= 262_144);
  output.line('short');
  assert.is(written(), before);
  output.end();
  const lines = written().slice(before.length).split('\n');
  assert.match(lines[0] ?? '', /^\(\d+ lines of the server on stderr were left out\)$/);
  assert.equal([lines.length, lines.at(-2)], [22, 'short']);
  assert.ok(written().length <= 262_144 + 21_000);
});

function serverOutput(isTTY: boolean, env = {}): { readonly output: ServerOutput; written(): string } {
  const stderr: PassThrough & { isTTY?: boolean } = new PassThrough({ highWaterMark: 1_000_000, encoding: 'utf8' });
  stderr.isTTY = isTTY;
  let text = '';
  return {
    output: new ServerOutput({ stderr, env }, () => {}),
    written: () => {
      text += String(stderr.read() ?? '');
      return text;
    },
  };
}

test('FILE is a program that troupe run serves without a supervisor', () => {
  const file = join(root, 'target.mjs');
  writeFileSync(file, '');
  const io = { cwd: root, env: { ONE: '1' } };
  const { target, name, words } = readCallTarget('call', ['target.mjs', 'env'], [], [], io);
  assert.equal([name, words], ['target.mjs', ['env']]);
  const { command: node, args, env } = Object(target);
  assert.equal(
    [node, args.slice(-3), env],
    [process.execPath, ['run', realpathSync(file), '--no-supervisor'], { ...io.env, TROUPE_CALLED: '1' }],
  );
  const stateful = readCallTarget('call', ['target.mjs'], [], [], io, { data: 'state' });
  assert.is(Object(stateful.target).args.at(-1), `--data=${join(root, 'state')}`);
});

for (const [what, argv, message] of [
  ['a socket', [() => fixture?.socket ?? '', '--data', 'x'], '--data needs FILE, DIR or a URL as TARGET'],
  ['a command', ['--data', 'x', '--', 'node'], '--data needs FILE, DIR or a URL as TARGET'],
] as const)
  built(`--data of ${what} is rejected, whose state it cannot choose`, async () => {
    const words = argv.map((word) => (typeof word === 'string' ? word : word()));
    for (const name of ['call', 'inspect', 'types']) {
      const { code, err } = await troupe(name, ...words);
      assert.is(code, 2);
      assert.match(err, `troupe ${name}: ${message}`);
    }
  });

for (const [tool, body, says] of [
  [
    'leave',
    'process.exit(7)',
    /tool "leave" ended the process with code 7 \(process\.exit\).*\n.*ends\.mjs:3:\d+[\s\S]*ended with code 7/,
  ],
  ['abort', 'process.abort()', /the server's process was killed by SIGABRT/],
] as const)
  (tool === 'abort' ? built.full : built)(
    `a program that ends in the middle of a call by ${body} is said to have ended, with the tool and how`,
    async () => {
      const program = `import { createServer } from '${TROUPE}';
const server = createServer({ name: 'ends', version: '1.0.0' });
server.tool('${tool}', {}, () => ${body});
export default server;`;
      writeFileSync(join(root, 'ends.mjs'), program);
      const { code, err } = await command(['call', 'ends.mjs', tool], { cwd: root });
      assert.is(code, 3);
      assert.match(err, says);
      assert.match(err, `the server's process ended while it ran the tool ${tool}`);
    },
  );

built('a tool that never ends is named with its line, and ends with the call', async () => {
  const program = `import { createServer } from '${TROUPE}';
const server = createServer({ name: 'spins', version: '1.0.0', limits: { timeoutMs: 4_000 } });
const cell = new Int32Array(new SharedArrayBuffer(4));
server.tool('spin', {}, () => { for (;;) Atomics.wait(cell, 0, 0, 10); });
export default server;`;
  writeFileSync(join(root, 'spins.mjs'), program);
  const { code, err } = await command(['call', 'spins.mjs', 'spin'], { cwd: root });
  assert.is(code, 3, err);
  assert.match(err, /blocked for \d+ ms by tool "spin"[\s\S]*spins\.mjs:4:[\s\S]*the watchdog kills the process/);
  assert.match(err, "the server's process ended while it ran the tool spin");
});

const withState = (...words: readonly string[]) => {
  writeFileSync(
    join(root, 'cart.mjs'),
    `import { createServer, defineState } from '${TROUPE}';
const { lent } = defineState({ lent: { type: 'string' } });
const server = createServer({ name: 'books', version: '1.0.0' });
server.tool('borrow', {}, async (_, ctx) => { await ctx.state.set(lent, 'dune'); return 'lent'; });
server.tool('give_back', {}, async (_, ctx) => (await ctx.state.get(lent)) ?? 'nothing');
export default server;`,
  );
  return command(['call', 'cart.mjs', ...words], { cwd: root });
};

built('two calls of FILE with --data, one after the other, see one state', async () => {
  assert.equal(quiet(await withState('borrow', '--data', 'state')), { code: 0, out: 'lent\n', err: '' });
  assert.equal(quiet(await withState('give_back', '--data', 'state')), { code: 0, out: 'dune\n', err: '' });
});

built.full('a call of FILE with --data says that another process has the store open', async () => {
  mkdirSync(join(root, 'held'));
  const holder = sqlite(join(root, 'held', 'troupe.db'));
  await holder.open({ clock: systemClock, log() {} });
  const locked = await withState('give_back', '--data', 'held');
  await holder.close();
  assert.is(locked.code, 3, locked.err);
  assert.match(locked.err, 'another process has the store open');
});

built('inspect prints everything as one JSON document', async () => {
  const { code, out, err } = await troupe('inspect', url(), '--json');
  assert.equal({ code, err }, { code: 0, err: '' });
  const document = JSON.parse(out);
  assert.equal(Object.keys(document), ['server', 'capabilities', 'tools', 'resources', 'templates', 'prompts']);
  assert.is(document.server.name, 'fixture');
  assert.is(document.tools[0].name, 'add');
});

built('inspect shows the server, the chart and the wire of its connection in the inspector, until Ctrl-C', async () => {
  const command = new Running(['inspect', url(), '--no-open'], { raw: true });
  await command.said('inspector at http');
  const [, base = '', token = ''] = /inspector at (http:\/\/127\.0\.0\.1:\d+)\/#([\w-]+)/.exec(command.err) ?? [];
  let stream = '';
  await new Promise<void>((resolve, reject) => {
    const options = { agent: false, headers: { authorization: `Bearer ${token}` } };
    const request = get(`${base}/api/stream?viewer=test`, options, (response) => {
      response.setEncoding('utf8').on('data', (text: string) => {
        stream += text;
        if (!stream.includes('prompts/list') || !stream.includes('"review"')) return;
        request.destroy();
        resolve();
      });
    });
    request.on('error', reject);
  });
  assert.match(stream, '"name":"fixture"');
  assert.match(stream, '"connection"');
  assert.match(stream, /"type":"wire"/);
  assert.match(stream, '"ready"');
  const offered = await fetch(`${base}/api/catalogue`, { headers: { authorization: `Bearer ${token}` } });
  assert.match(await offered.text(), '"name":"review"');
  command.signal('SIGINT');
  assert.is(await command.exit, 0, command.err);
});

built.full('the process prints the result, and ends with the exit code, also while stdin stays open', async () => {
  const process = new Cli(['call', url(), 'add', 'a=2', 'b=3'], { raw: true });
  assert.is(await process.exit, 0);
  assert.equal([process.out, process.err], ['{\n  "sum": 5\n}\n', '']);
});

built('the first Ctrl-C cancels the call on the server', async () => {
  let command: Running | undefined;
  let cancelled = (): void => {};
  const whenCancelled = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  fixture?.server.tool('interrupted', {}, (_args, ctx) => {
    command?.signal('SIGINT');
    return new Promise((resolve) =>
      ctx.signal.addEventListener('abort', () => {
        cancelled();
        resolve('cancelled');
      }),
    );
  });
  command = new Running(['call', url(), 'interrupted'], { raw: true });
  assert.is(await command.exit, 130);
  await whenCancelled;
  assert.match(command.err, 'troupe call: cancelling. Press Ctrl-C again to end');
});

built('login signs in and keeps the grant, call uses it, logout revokes it', async () => {
  const server = await protectedServer();
  const data = ['--data', join(root, 'state')];
  const refused = await troupe('call', server.url, 'whoami', ...data);
  assert.is(refused.code, 4);
  assert.match(refused.err, `Sign in first: troupe login ${server.url}`);
  assert.is(server.counts.registrations, 0);

  const login = new Running(['login', server.url, '--no-open', ...data], { raw: true });
  await login.said('&resource=');
  const [, address = ''] = /^(http\S+)$/m.exec(login.err) ?? [];
  const redirected = await server.authorize(new URL(address));
  await new Promise<void>(
    (resolve) => void get(redirected, { agent: false }, (response) => void response.resume().on('end', resolve)),
  );
  assert.is(await login.exit, 0, login.err);
  assert.match(login.out, `Signed in to ${server.url}.`);

  assert.equal(await troupe('call', server.url, 'whoami', ...data), { code: 0, out: 'ada\n', err: '' });
  const token = await troupe(
    'call',
    server.url,
    'whoami',
    '--header',
    'Authorization: Bearer access-2',
    '--data',
    join(root, 'none'),
  );
  assert.equal(token, { code: 0, out: 'ada\n', err: '' });
  assert.not(existsSync(join(root, 'none')));

  assert.is((await troupe('logout', server.url, ...data)).out, `Signed out of ${server.url}.\n`);
  assert.is(server.revoked.length, 1);
  assert.is((await troupe('logout', server.url, ...data)).out, `Not signed in to ${server.url}.\n`);
  assert.is((await troupe('call', server.url, ...data)).code, 4);
  await server.close();
});

const script = isBuilt && spawnSync('script', ['--version']).status === 0;
if (!script) built.skip('on a terminal a form is asked', 'there is no util-linux script on this machine');
else
  built('on a terminal a form is asked', async () => {
    const { spawn } = await import('node:child_process');
    const command = `'${process.execPath}' '${BUILT}' call '${url()}' ask`;
    const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
    let shown = '';
    const lines = ['1\n', 'y\n'];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
      const prompts = shown.split(/\[[\d]\]: |\[[yn]\]: /).length - 1;
      if (prompts > 2 - lines.length) child.stdin.write(lines.shift() ?? '');
    });
    const code = await new Promise((resolve) => void child.on('close', resolve));
    assert.is(code, 0, shown);
    assert.match(shown, 'Which size?');
    assert.match(shown, 'small true');
  });
