/** Likely mistakes of a registration: the compiler's message for each, and the error at run time for authors without a compiler. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { z } from 'zod';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('mistakes of a registration');
const root = fileURLToPath(new URL('../../..', import.meta.url));
const types = join(root, 'dist/types/src');

const PREAMBLE = `
import { createServer, defineMachine, definePrompt, defineResource, defineTool } from 'troupe';
import { setup } from 'xstate';
import { z } from 'zod';
const server = createServer({ name: 'a', version: '1' });
const typed = setup({ types: { events: {} as { type: 'pay' } | { type: 'stop' } } }).createMachine({ initial: 'on', states: { on: {} } });
const input = z.object({ a: z.number() });
`;

/** Statements that compile. */
const ACCEPTED = [
  `server.tool('h', () => 'x');`,
  `server.tool('h', async (_args, ctx) => ctx.principal);`,
  `server.tool('h', {}, () => undefined);`,
  `server.tool('h', { input: {} }, () => 1);`,
  `server.tool('h', { input, output: z.object({ b: z.number() }) }, ({ a }) => ({ b: a }));`,
  `server.tool('h', { machine: typed });`,
  `server.tool('h', { input, cpu: new URL('file:///x.js') });`,
  `server.resource('doc://{id}', ({ variables: { id } }) => id);`,
  `server.prompt('p', () => 'x');`,
];

const FIELDS = /"These are only the fields\. Wrap them in an object schema: input: z\.object\(\{ … \}\)"/;
const UNKNOWN_INPUTS = /'inputs' does not exist in type .*Did you mean to write 'input'\?/s;
const NO_LIST = /Type 'string' is not assignable to type 'Suggestions'/;

/** Statements that do not compile, and the compiler's message. */
const REJECTED: readonly (readonly [statement: string, message: RegExp])[] = [
  [
    `server.tool('h', {});`,
    /"The handler is missing\. Pass it as the last argument: server\.tool\(name, options, handler\)"/,
  ],
  [`server.tool('h', { description: 'x', input });`, /"The handler is missing\./],
  [
    `server.tool('h', () => 'x', { input });`,
    /Type '\(\) => string' has no properties in common with type 'ToolOptions</,
  ],
  [`server.tool('h', { inputs: input }, () => 'x');`, UNKNOWN_INPUTS],
  [`defineTool({ name: 'h', inputs: input, handler: () => 'x' });`, UNKNOWN_INPUTS],
  [`server.tool('h', { input: { a: z.number() } }, ({ a }) => a);`, FIELDS],
  [`defineTool({ name: 'h', input: { a: z.number() }, handler: ({ a }) => a });`, FIELDS],
  [`server.prompt('p', { input: { code: z.string() } }, () => 'x');`, FIELDS],
  [`definePrompt({ name: 'p', input: { code: z.string() }, handler: () => 'x' });`, FIELDS],
  [`server.machine('m', typed, { input: { a: z.number() }, events: { pay: true } });`, FIELDS],
  [`server.tool('h', { input }, ({ b }) => b);`, /Property 'b' does not exist on type '\{ a: number; \}'/],
  [`server.tool('h', { timeoutMs: '5' }, () => 'x');`, /Type 'string' is not assignable to type 'number/],
  [`server.tool('h', { output: input }, () => ({ b: 1 }));`, /Type '\{ b: number; \}' is not assignable/],
  [`server.tool('h', { machine: typed, handlr: 1 });`, /Type 'number' is not assignable to type 'never'/],
  [`server.tool('h', { cpu: './primes.ts' });`, /Type 'string' is not assignable to type 'URL'/],
  [
    `server.tool('h', {}, (_args, ctx) => ctx.elicit('Which size?'));`,
    /Argument of type 'string' is not assignable to parameter of type 'Elicitation</,
  ],
  [`server.resource('doc://{id}', { complete: { id: async () => 'abc' } }, () => 'x');`, NO_LIST],
  [`server.prompt('p', { arguments: [{ name: 'a' }], complete: { a: async () => 'abc' } }, () => 'x');`, NO_LIST],
  [`server.resource('doc://x', { mimetype: 'text/plain' }, () => 'x');`, /Did you mean to write 'mimeType'\?/],
  [`server.prompt('p', { argument: [{ name: 'a' }] }, () => 'x');`, /Did you mean to write 'arguments'\?/],
  [`server.prompt('p', { input }, ({ kode }) => kode);`, /Property 'kode' does not exist on type '\{ a: number; \}'/],
  [
    `server.machine('m', typed);`,
    /"The events are missing\. Pass them as the third argument: server\.machine\(name, machine, \{ events: \{ pay: true \} \}\)"/,
  ],
  [`server.machine('m', typed, {});`, /Property 'events' is missing in type '\{\}'/],
  [`server.machine('m', typed, { events: { play: true } });`, /'no event of the machine, which has': "pay" \| "stop"/],
];

test.full(
  'compiles a registration without options, and names the fix of each mistake in the compiler’s message',
  () => {
    assert.ok(existsSync(types), 'dist is missing: npm run build');
    const folder = mkdtempSync(join(root, 'dist', 'mistakes-'));
    try {
      const statements = [...ACCEPTED, ...REJECTED.map(([statement]) => statement)];
      const text = PREAMBLE + statements.join('\n');
      const before = PREAMBLE.split('\n').length;
      const compilerOptions = {
        ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true, noEmit: true, target: 'es2022' },
        ...{ module: 'nodenext', types: ['node'], paths: { troupe: [join(types, 'index.d.ts')] } },
      };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['server.mts'] }));
      writeFileSync(join(folder, 'server.mts'), text);
      const tsc = join(root, 'node_modules/.bin/tsc');
      const { stdout } = spawnSync(process.execPath, [tsc, '--checkers', '1', '-p', folder, '--pretty', 'false'], {
        encoding: 'utf8',
      });
      const messages = new Map<number, string>();
      let current = -1;
      for (const line of stdout.split('\n')) {
        const [, at, message] = /server\.mts\((\d+),\d+\): (.*)/.exec(line) ?? [];
        if (at !== undefined) current = Number(at) - before;
        messages.set(current, `${messages.get(current) ?? ''}${message ?? line}\n`);
      }
      const unexpected = ACCEPTED.map((_, at) => messages.get(at)).filter((message) => message !== undefined);
      assert.equal(
        [messages.get(-1), ...unexpected].filter((message) => message !== undefined),
        [],
      );
      for (const [at, [statement, expected]] of REJECTED.entries())
        assert.match(
          messages.get(ACCEPTED.length + at) ?? 'no error',
          expected,
          `${statement}\n${messages.get(ACCEPTED.length + at)}`,
        );
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

test('serves a tool, a resource and a prompt without options', async () => {
  const server = createServer({ name: 'short', version: '1', log: () => {} });
  server.tool('ping', () => 'pong');
  server.resource('app://time', () => 'noon');
  server.prompt('standup', () => 'Summarize.');
  const client = await connect(server);
  assert.equal((await client.call('ping')).content, [{ type: 'text', text: 'pong' }]);
  assert.equal((await client.read('app://time')).contents, [{ uri: 'app://time', text: 'noon' }]);
  assert.equal((await client.prompt('standup')).messages, [
    { role: 'user', content: { type: 'text', text: 'Summarize.' } },
  ]);
  await client.close();
  await server.close();
});

test('names the fix at run time', () => {
  const server = createServer({ name: 'mistakes', version: '1', log: () => {} });
  const machine = createMachine({ initial: 'on', states: { on: { on: { pay: {} } } } });
  const handler = () => 'x';
  const input = z.object({ a: z.number() });
  const last = 'handler: expected a function (the handler is the last argument: name, options, handler), got';
  const given: readonly (readonly [
    call: 'tool' | 'resource' | 'prompt' | 'machine',
    args: readonly unknown[],
    message: string,
  ])[] = [
    ['tool', ['h', {}], `tool "h": ${last} nothing`],
    ['tool', ['h', handler, { input }], `tool "h": ${last} object`],
    ['resource', ['doc://x', handler, {}], `resource "doc://x": ${last} object`],
    ['resource', ['doc://x', {}], `resource "doc://x": ${last} nothing`],
    ['prompt', ['p', {}], `prompt "p": ${last} nothing`],
    [
      'tool',
      ['h', 'Adds', { a: z.number() }, handler],
      `tool "h": expected options, got string "Adds": a description is an option, too: { description: '…' }`,
    ],
    ['tool', ['h', input, handler], 'tool "h": expected options, got a schema: write { input: schema }'],
    [
      'tool',
      ['h', { input: { a: z.number() } }, handler],
      'tool "h": input: at #/a: a plain object contains a schema of a library; pass the library\'s own object schema instead, such as z.object({ … })',
    ],
    [
      'resource',
      ['docs', 'doc://x', {}, handler],
      'resource "docs": expected a uri with a scheme (RFC 3986), such as "app://settings" or "file:///{+path}"',
    ],
    [
      'resource',
      ['doc://:id', handler],
      'resource "doc://:id": a variable of a template stands in braces (RFC 6570): doc://{id}',
    ],
    [
      'machine',
      ['m', machine],
      'machine "m": events: expected at least one event that clients may send, got none. Write those of the machine that a client may send: events: { pay: true }, with a schema in place of true for an event that has data',
    ],
  ];
  for (const [call, args, message] of given)
    assert.throws(
      () => Reflect.apply(server[call], server, args),
      (error: unknown) => error instanceof Error && error.message === message,
      message,
    );
});
