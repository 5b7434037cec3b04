/** The mistakes of beginners, each with the command that shows it and the words that answer it. docs/mistakes.md lists them with measured seconds. */

/** Where a beginner reads the answer: what the command prints, or the log of the server that runs beside it. */
export type Place = 'terminal' | 'log';

export interface Mistake {
  readonly title: string;
  readonly where: Place;
  /** What the folder contains, beside the installation. */
  readonly files: Readonly<Record<string, string>>;
  /** A command that runs beside the mistake. Its time does not count: the mistake begins when it has printed `ready`. */
  readonly beside?: { readonly run: string; readonly ready: string };
  /** The command with which the beginner makes the mistake; `$PORT` is a free port. */
  readonly run: string;
  /** What is said; `…` stands for any text. */
  readonly says: string;
}

export interface MistakeGroup {
  readonly title: string;
  readonly mistakes: readonly Mistake[];
}

const IMPORTS =
  "import { createServer, defineTool, http, ProtocolError, stdio, ToolError } from 'troupe';\nimport { z } from 'zod';\n";

/** A program with a server of that body. */
const program = (body: string, options = ''): string =>
  `${IMPORTS}\nconst server = createServer({ name: 'mine', version: '1.0.0'${options} });\n${body}\nexport default server;\n`;

const GREET = "server.tool('greet', { input: z.object({ name: z.string() }) }, ({ name }) => 'Hello, '.concat(name));";
const greeter = { 'server.ts': program(GREET) };
const LIST = 'npx troupe call server.ts';
const CALL = 'npx troupe call server.ts it';
/** A tool `it` with that handler. */
const tool = (handler: string, options = '{}'): Readonly<Record<string, string>> => ({
  'server.ts': program(`server.tool('it', ${options}, ${handler});`),
});
const inTerminal = (title: string, files: Mistake['files'], run: string, says: string): Mistake => ({
  title,
  where: 'terminal',
  files,
  run,
  says,
});
const inResult = (title: string, files: Mistake['files'], says: string, run = CALL): Mistake => ({
  title,
  where: 'terminal',
  files,
  run,
  says,
});

const SERVE = { run: 'npx troupe serve server.ts --http $PORT', ready: 'connect clients with' };
const POST = "curl -s -i http://127.0.0.1:$PORT/mcp -H 'content-type: application/json'";
const ACCEPT = "-H 'accept: application/json, text/event-stream'";
const PING = `-d '{"jsonrpc":"2.0","id":1,"method":"ping"}'`;
const overHttp = (title: string, run: string, says: string, files: Mistake['files'] = greeter): Mistake => ({
  title,
  where: 'terminal',
  files,
  beside: SERVE,
  run,
  says,
});

const KEYS = `, http: { authenticate: (request: { header(name: string): string | undefined }) => request.header('authorization') === 'Bearer ada' ? { principal: 'ada', scopes: ['read'], claims: {} } : undefined }`;
const guarded = { 'server.ts': program("server.tool('it', {}, (_, ctx) => ctx.principal);", KEYS) };

const CHART = `import { setup } from 'xstate';
const loan = setup({ types: { context: {} as { title: string }, input: {} as { title: string }, events: {} as { type: 'lend' } | { type: 'return' } } }).createMachine({
  context: ({ input }) => ({ title: input.title }),
  initial: 'shelf',
  states: { shelf: { on: { lend: 'out' } }, out: { on: { return: 'shelf' }, after: { 1_209_600_000: 'late' } }, late: { type: 'final' } },
});
`;
const machine = (options: string, chart = CHART, config = ''): Readonly<Record<string, string>> => ({
  'server.ts':
    chart + program(`server.machine('loan', loan, { input: z.object({ title: z.string() }), ${options} });`, config),
});

/** A machine that asks with that schema as soon as it is created. */
const asking = (schema: string): string => `import { setup } from 'xstate';
${program(`const parcel = setup({ actors: { ask: elicitWith(${schema}) } }).createMachine({
  initial: 'asking',
  states: { asking: { invoke: { src: 'ask', input: { message: 'Where to?' }, onDone: 'sent' }, on: { stop: 'sent' } }, sent: {} },
});
server.machine('parcel', parcel, { events: { stop: true } });`)}`;

const gateway = (config: unknown): Readonly<Record<string, string>> => ({
  'mcp.json': typeof config === 'string' ? config : JSON.stringify(config),
});
const GATEWAY = 'npx troupe call -- npx troupe gateway mcp.json';

const TEST = (body: string): string =>
  `import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport { connect, SimulatedClock } from 'troupe/testing';\nimport server from './server.ts';\n\ntest('mine', async () => {\n${body}\n});\n`;
const inTest = (title: string, files: Mistake['files'], body: string, says: string): Mistake => ({
  title,
  where: 'terminal',
  files: { ...files, 'server.test.ts': TEST(body), 'package.json': '{"type":"module"}' },
  run: 'node --import tsx --test server.test.ts',
  says,
});
const TSCONFIG = {
  module: 'nodenext',
  target: 'es2023',
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  types: ['node'],
};
const compiled = (title: string, files: Mistake['files'], options: object, says: string): Mistake => ({
  title,
  where: 'terminal',
  files: {
    ...files,
    'package.json': '{"type":"module"}',
    'tsconfig.json': JSON.stringify({ compilerOptions: { ...TSCONFIG, ...options }, include: ['*.ts'] }),
  },
  run: 'tsc -p .',
  says,
});

export const MISTAKES: readonly MistakeGroup[] = [
  {
    title: 'Install and start',
    mistakes: [
      inTerminal(
        'Node.js is too old',
        {
          'old.cjs':
            "Object.defineProperty(process.versions, 'node', { value: '16.20.2' }); Object.defineProperty(process, 'version', { value: 'v16.20.2' });",
        },
        'NODE_OPTIONS="--require ./old.cjs" npx troupe --help',
        'expected Node.js 20.19 or later, got v16.20.2',
      ),
      inTerminal(
        'The name of the file is misspelled',
        greeter,
        'npx troupe call sever.ts',
        'expected URL, FILE, DIR, SOCKET or -- COMMAND, got sever.ts: no such file or directory',
      ),
      inTerminal(
        'The folder contains no program',
        {},
        'npx troupe run',
        'expected FILE or DIR, got none, and … has none of server.ts, …',
      ),
      inTerminal(
        'The command does not exist',
        greeter,
        'npx troupe start server.ts',
        'expected a command (run, dev, serve, …), got start',
      ),
      inTerminal(
        '`serve` does not say where',
        greeter,
        'npx troupe serve server.ts',
        'expected --http PORT, --socket PATH, or both (to serve on stdio, use troupe run)',
      ),
      inTerminal(
        'An option is misspelled',
        greeter,
        'npx troupe serve server.ts --htp 3000',
        "Unknown option '--htp' (did you mean --http?)",
      ),
      inTerminal(
        '`init` meets a folder with files',
        greeter,
        'npx troupe init .',
        'expected a directory without server.ts, and . contains it. Choose another directory',
      ),
      {
        ...inTerminal(
          'The port is in use',
          greeter,
          'npx troupe serve server.ts --http $PORT',
          'is in use. Choose another, or 0 for any free port',
        ),
        beside: SERVE,
      },
      inTerminal(
        'The port is no port',
        greeter,
        'npx troupe serve server.ts --http 99999',
        '--http: expected PORT or HOST:PORT, such as 3000 or 0.0.0.0:3000, got 99999',
      ),
      inTerminal(
        'An import names a package that is not installed',
        { 'server.ts': "import 'zodd';\n" },
        LIST,
        "Cannot find package 'zodd' imported from …/server.ts. If it is a package, install it: npm install zodd",
      ),
      inTerminal(
        '`tsx` runs a program that only exports its server',
        greeter,
        'node --import tsx server.ts',
        'has ended without serving it. Serve it with npx troupe run server.ts, or call await server.listen(stdio()) in the program',
      ),
      inTerminal(
        '`run` is started by hand, without an agent',
        greeter,
        'echo hello | npx troupe run server.ts',
        'not valid JSON: …',
      ),
      inTerminal(
        '`install` names a program that does not exist',
        greeter,
        'npx troupe install server.ts --client clade',
        '--client: expected claude-desktop, …, got clade',
      ),
    ],
  },
  {
    title: 'The module',
    mistakes: [
      inTerminal(
        'Nothing is exported, and nothing listens',
        { 'server.ts': program(GREET).replace('export default server;', '') },
        LIST,
        'it neither listens nor exports anything to serve, and its event loop is empty. Export the server (export default server) or tools, or call server.listen(stdio())',
      ),
      inTerminal(
        'A function that creates the server is exported',
        { 'server.ts': program(GREET).replace('export default server', 'export default () => server') },
        LIST,
        'It exports the function "default", which is no tool. If it creates the server, call it: export default createServer({ … })',
      ),
      inTerminal(
        'A syntax error',
        { 'server.ts': program("server.tool('it', {}, () => 'a';") },
        LIST,
        'server.ts:5:31: ERROR: Expected ")" but found ";"',
      ),
      inTerminal(
        'An imported file does not exist',
        { 'server.ts': "import { x } from './othr.ts';\nconsole.log(x);\n" },
        LIST,
        "Cannot find module '…/othr.ts' imported from …/server.ts",
      ),
      inTerminal(
        'An import names something that the file does not export',
        { 'server.ts': "import { y } from './other.ts';\nconsole.log(y);\n", 'other.ts': 'export const x = 1;\n' },
        LIST,
        "The requested module './other.ts' does not provide an export named 'y' (at …/server.ts:1)",
      ),
      inTerminal(
        'The module throws while it loads',
        {
          'server.ts': program(
            "const key: string = process.env.API_KEY ?? (() => { throw new Error('API_KEY is not set'); })();\nserver.tool('it', {}, () => key);",
          ),
        },
        LIST,
        'API_KEY is not set (at …/server.ts:5:…)',
      ),
      inTerminal(
        '`createServer()` without options',
        { 'server.ts': "import { createServer } from 'troupe';\nexport default createServer();\n" },
        LIST,
        "createServer: expected options such as { name: 'my-server', version: '1.0.0' }, got nothing (at …/server.ts:2:…)",
      ),
      inTerminal(
        '`createServer` without a version',
        { 'server.ts': "import { createServer } from 'troupe';\nexport default createServer({ name: 'mine' });\n" },
        LIST,
        'createServer: version: expected a string such as "1.0.0", got nothing (at …/server.ts:2:…)',
      ),
      inTerminal(
        '`listen()` without a transport',
        { 'server.ts': program('await server.listen();') },
        LIST,
        'server.listen: expected at least one transport, such as stdio(), got none (at …/server.ts:5:…)',
      ),
      inTerminal(
        'A tool is registered in a module that `require`s',
        {
          'server.ts':
            "const { createServer } = require('troupe');\nmodule.exports = createServer({ name: 'mine', version: '1.0.0' });\n",
          'package.json': '{"type":"module"}',
        },
        LIST,
        'require is not defined in ES module scope, you can use import instead (at …/server.ts:1:…)',
      ),
      inTerminal(
        'The program exits while it loads',
        { 'server.ts': program('process.exit();') },
        LIST,
        'it ended its process with code 0 before it listened',
      ),
      inTerminal(
        'Endless code in the module',
        { 'server.ts': program('while (true);') },
        LIST,
        'the event loop has been blocked for … ms while the program loads: nothing is served before this code ends, or awaits something\n… at …/server.ts:5:…',
      ),
      inTerminal(
        'The server of another library is exported',
        {
          'server.ts':
            'class McpServer { connect() {} registerTool() {} } // of @modelcontextprotocol/sdk\nexport default new McpServer();\n',
        },
        LIST,
        'its export "default" is a server of another library (McpServer), which Troupe cannot serve. Start it without Troupe, and call it with: troupe call -- npx tsx FILE. …',
      ),
      inTerminal(
        'The program answers its client with another library',
        { 'server.ts': "process.stdin.on('data', (line) => console.log('{}', line));\n" },
        LIST,
        'it calls no server.listen(…) of Troupe and reads stdin itself, as a server of another library does. …',
      ),
      inTerminal(
        'A top-level `await` never ends',
        { 'server.ts': `await new Promise(() => {});\n${program(GREET)}` },
        LIST,
        'its module never finishes: a top-level await waits for something that cannot happen, because the event loop is empty',
      ),
    ],
  },
  {
    title: 'Tools and schemas',
    mistakes: [
      inTerminal(
        '`input` is a plain object of schemas',
        tool("() => ''", '{ input: { a: z.number() } }'),
        LIST,
        "a plain object contains a schema of a library; pass the library's own object schema instead, such as z.object({ … })",
      ),
      inTerminal(
        'The handler is missing',
        { 'server.ts': program("server.tool('it', { description: 'It' });") },
        LIST,
        'handler: expected a function (the handler is the last argument: name, options, handler), got nothing (at …/server.ts:5:…)',
      ),
      inTerminal(
        'The handler stands before the options',
        { 'server.ts': program("server.tool('it', () => '', { description: 'It' });") },
        LIST,
        'handler: expected a function (the handler is the last argument: name, options, handler), got object (at …/server.ts:5:…)',
      ),
      inTerminal(
        'A name has a space',
        { 'server.ts': program("server.tool('find tables', () => '');") },
        LIST,
        'tool "find tables": a name has 1 to 128 letters, digits, "_", "-" and "."; use "title" for the display name (at …/server.ts:5:…)',
      ),
      inTerminal(
        'Two tools have one name',
        { 'server.ts': program("server.tool('it', () => '');\nserver.tool('it', () => '');") },
        LIST,
        'tool "it" is already registered (by code): choose another name, or update or remove the registered one (at …/server.ts:6:…)',
      ),
      inTerminal(
        'An option is misspelled',
        tool("() => ''", "{ desciption: 'It' }"),
        LIST,
        'tool "it": desciption: no such option (did you mean description?) (at …/server.ts:5:…)',
      ),
      inTerminal(
        'An option has the name of another SDK',
        tool("() => ''", '{ inputSchema: z.object({}) }'),
        LIST,
        'tool "it": inputSchema: this member is called "input" here (at …/server.ts:5:…)',
      ),
      inTerminal(
        '`server.tool(defineTool(…))`',
        { 'server.ts': program("server.tool(defineTool({ name: 'it', handler: () => '' }));") },
        LIST,
        "server.tool: expected a name, got a definition of a tool. Write server.tool('name', { … }, handler), …",
      ),
      inTerminal(
        'A schema of zod 3',
        {
          'server.ts': program("server.tool('it', { input: z.object({ a: z.number() }) }, () => '');").replace(
            "'zod'",
            "'zod/v3'",
          ),
        },
        LIST,
        'this schema of zod cannot produce JSON Schema; use zod >= 4.2',
      ),
      inTerminal(
        '`input` is no object',
        tool("() => ''", '{ input: z.string() }'),
        LIST,
        'the root has the type "string", but arguments are an object; make the value a property: …',
      ),
      inTerminal(
        'A date in `input`',
        tool("() => ''", '{ input: z.object({ on: z.date() }) }'),
        LIST,
        'Date cannot be represented in JSON Schema; use types that JSON has; for a date, accept a string in format date-time and transform it (at …/server.ts:5:…)',
      ),
      inTerminal(
        'JSON Schema with a misspelled type',
        tool("() => ''", "{ input: { type: 'object', properties: { a: { type: 'strng' } } } }"),
        LIST,
        'at #/properties/a: "type" is "strng"; it must be one of "array", …',
      ),
      inTerminal(
        '`required` stands in the property',
        tool("() => ''", "{ input: { type: 'object', properties: { a: { type: 'string', required: true } } } }"),
        LIST,
        'at #/properties/a: "required" is true; it must be a list of different strings',
      ),
      inResult(
        'The handler takes the context first',
        tool(
          'async (ctx, { name }) => { await ctx.progress(1, 2); return name; }',
          '{ input: z.object({ name: z.string() }) }',
        ),
        'TypeError: ctx.progress is not a function\n… at …/server.ts:5:…',
        `${CALL} name=Ada`,
      ),
      inTerminal(
        'The tool is registered after `listen`, in a timer',
        { 'server.ts': program("setTimeout(() => server.tool('it', {}, () => ''), 1_000_000);") },
        CALL,
        'unknown tool it. The server has no tools',
      ),
    ],
  },
  {
    title: 'Results',
    mistakes: [
      inResult(
        '`return` is forgotten',
        tool("() => { 'Hello'; }"),
        'tool "it" returned undefined, so the model gets an empty result. Is a return missing? If nothing is to be said, return a text such as "done"',
      ),
      inResult(
        'The body of an arrow function has braces in place of parentheses',
        tool('() => { answer: 42 }'),
        'tool "it" returned undefined, so the model gets an empty result. …',
      ),
      inResult(
        'A `Map`',
        tool('() => ({ when: new Map() })'),
        'result.structuredContent.when: a Map would be sent as {}. Use Object.fromEntries(map)',
      ),
      inResult(
        'A promise in the result',
        tool('() => ({ later: Promise.resolve(1) })'),
        'result.structuredContent.later: a Promise, which would be sent as {}. Await it first',
      ),
      inResult(
        'A `bigint`',
        tool('() => ({ number: 1n })'),
        'result.structuredContent.number: a BigInt has no JSON form. Use String(value), or Number(value) if it is small',
      ),
      inResult(
        'Bytes',
        tool('() => new Uint8Array(1)'),
        'an Uint8Array has no useful JSON form. Use image(bytes, mimeType), …',
      ),
      inResult(
        'An object that contains itself',
        tool('() => { const a: Record<string, unknown> = {}; a.a = a; return a; }'),
        'result.structuredContent.a: a cycle has no JSON form. Use ids in place of references',
      ),
      inResult(
        'A function',
        tool('() => () => 1'),
        'expected the tool to return a string, data, content blocks or a result, got function',
      ),
      inResult(
        'A `Response` of fetch',
        tool("() => new Response('x')"),
        'result.structuredContent: a Response would be sent as {}. Use an object of its data',
      ),
      inResult(
        '`output` promises other data',
        tool("() => ({ a: 'one' })", '{ output: z.object({ a: z.number() }) }'),
        '(it does not fit the tool\'s own output schema):\n…- a: Invalid input: expected number, received string (got string "one")',
      ),
      inResult(
        '`output`, and a text as result',
        tool("() => 'one'", '{ output: z.object({ a: z.number() }) }'),
        '(it does not fit the tool\'s own output schema):\n…- Invalid input: expected object, received string (got string "one")',
      ),
      inResult(
        'A content block with an unknown type',
        tool("() => ({ content: [{ type: 'txt', text: 'x' }] })"),
        'content[0]: expected a block such as text(…), image(…), audio(…), link(…) or embedded(…), got the type "txt" with text',
      ),
      inResult(
        'A picture by its address',
        tool("() => ({ content: [{ type: 'image', data: 'https://example.com/a.png', mimeType: 'image/png' }] })"),
        'image: expected bytes, base64 or a data: URI, got an address ("https://example.com/a.png"). Read it and pass its bytes, or return link(uri, name)',
      ),
    ],
  },
  {
    title: 'Errors',
    mistakes: [
      inResult(
        'An error is thrown',
        tool("() => { throw new Error('The database is down'); }"),
        'Error: The database is down\n… at …/server.ts:5:…',
      ),
      inResult(
        'A property of `undefined` is read',
        tool('() => { const rows: { a: string }[] = []; return rows[0]!.a; }'),
        "Cannot read properties of undefined (reading 'a')\n… at …/server.ts:5:…",
      ),
      inResult('A text is thrown', tool("() => { throw 'down'; }"), 'in tool "it": down'),
      inResult(
        '`fetch` fails',
        tool("async () => (await fetch('http://127.0.0.1:9/')).text()"),
        'fetch failed: bad port',
      ),
      inTerminal(
        'A resource throws',
        { 'server.ts': program("server.resource('app://broken', () => { throw new Error('no database'); });") },
        'npx troupe call server.ts --read app://broken',
        'in resource "app://broken": Error: no database\n… at …/server.ts:5:…',
      ),
      inResult(
        'A promise fails without `await`',
        tool(
          "async () => { void Promise.reject(new Error('lost')); await new Promise((r) => setTimeout(r, 100)); return 'ok'; }",
        ),
        'in tool "it", in code that it does not await: Error: lost\n… at …/server.ts:5:…',
      ),
      inResult(
        'A timer throws',
        tool(
          "async () => { setTimeout(() => { throw new Error('late'); }, 10); await new Promise((r) => setTimeout(r, 500)); return 'ok'; }",
        ),
        'in tool "it", in code that it does not await: Error: late\n… at …/server.ts:5:…',
      ),
      inResult(
        '`process.exit` in a tool',
        tool("() => { process.exit(1); return ''; }"),
        'tool "it" ended the process with code 1 (process.exit): throw an error instead, which only this call gets\n… at …/server.ts:5:…',
      ),
      inResult(
        'The process ends in the middle of a call, without a word',
        tool("() => { process.kill(process.pid, 'SIGKILL'); return new Promise<string>(() => {}); }"),
        "troupe call: the server's process ended while it ran the tool it",
      ),
      inResult(
        '`isError` with a text',
        tool("() => ({ isError: true, message: 'down' })"),
        'expected only "content", "structuredContent" and "_meta" beside "isError", got "message". Or throw a ToolError(message)',
      ),
    ],
  },
  {
    title: 'Asynchronous code',
    mistakes: [
      inResult(
        '`await` is forgotten before a question',
        tool(
          "async (_, ctx) => { ctx.elicit({ message: 'Sure?', schema: z.object({ ok: z.boolean() }) }); return 'done'; }",
        ),
        'the handler returned before its question (elicitation/create) was answered. Await ctx.elicit, ctx.sample, ctx.roots and ctx.ask',
        `${CALL} --answer ok=true`,
      ),
      inResult(
        '`await` is forgotten, and a property is read',
        tool(
          "async (_, ctx) => { const answer: any = ctx.elicit({ message: 'Sure?', schema: z.object({ ok: z.boolean() }) }); return answer.content.ok; }",
        ),
        'the handler returned before its question (elicitation/create) was answered. Await ctx.elicit, ctx.sample, ctx.roots and ctx.ask',
        `${CALL} --answer ok=true`,
      ),
      inResult(
        '`await` is forgotten before `ctx.state.set`',
        tool("(_, ctx) => { void ctx.state.set('a', 1); return 'ok'; }"),
        'tool "it" returned before its ctx.state.set("a") had ended: await it, or what it returns and throws is lost',
      ),
      inResult(
        '`await` is forgotten, and the promise becomes a text',
        tool("(_, ctx) => 'You have '.concat(String(ctx.state.get('points')))"),
        'tool "it" returned a text that contains [object Promise]: await the promise before you put it in the text',
      ),
      inResult(
        'The promise never ends',
        tool('() => new Promise<string>(() => {})', '{ timeoutMs: 500 }'),
        "tools/call took longer than its timeout of 500 ms (the server's options are timeoutMs and maxTimeoutMs)",
      ),
      inResult(
        'An endless loop in a tool',
        tool('() => { while (true); }'),
        'the event loop has been blocked for … ms by tool "it": no other request is served meanwhile; add awaits, or run the tool in a thread (cpu)\n… at …/server.ts:5:…',
      ),
      inResult('A callback returns the result', tool("() => { setTimeout(() => 'done', 10); }"), 'the result is empty'),
    ],
  },
  {
    title: 'Resources and prompts',
    mistakes: [
      inTerminal(
        'The URI has no scheme',
        { 'server.ts': program("server.resource('notes/1', () => 'x');") },
        LIST,
        'expected a uri with a scheme (RFC 3986), such as "app://settings" or "file:///{+path}" (at …/server.ts:5:…)',
      ),
      inTerminal(
        'A template with a colon, as of a router',
        { 'server.ts': program("server.resource('notes://:id', ({ variables }) => variables.id);") },
        'npx troupe call server.ts --read notes://1',
        'a variable of a template stands in braces (RFC 6570): notes://{id} (at …/server.ts:5:…)',
      ),
      inTerminal(
        'The reader returns undefined',
        { 'server.ts': program("server.resource('notes://{id}', { name: 'note' }, () => undefined);") },
        'npx troupe call server.ts --read notes://1',
        'Resource not found',
      ),
      inTerminal(
        'The reader returns an object',
        { 'server.ts': program("server.resource('notes://{id}', { name: 'note' }, () => ({ title: 'x' }));") },
        'npx troupe call server.ts --read notes://1',
        'expected the reader to return a string, bytes, or contents, got object',
      ),
      inTerminal(
        'The resource does not exist',
        { 'server.ts': program("server.resource('notes://{id}', { name: 'note' }, () => 'x');") },
        'npx troupe call server.ts --read note://1',
        'Resource not found',
      ),
      inTerminal(
        'The reader takes the variable itself',
        { 'server.ts': program("server.resource('notes://{id}', { name: 'note' }, ({ id }) => id.toUpperCase());") },
        'npx troupe call server.ts --read notes://1',
        "Cannot read properties of undefined (reading 'toUpperCase')\n… at …/server.ts:5:…",
      ),
      inTerminal(
        'An argument of a prompt is missing',
        {
          'server.ts': program(
            "server.prompt('sum', { arguments: [{ name: 'id', required: true }] }, ({ id }) => id);",
          ),
        },
        'npx troupe call server.ts --prompt sum',
        'prompt sum: missing id. The prompt is sum(id: string)',
      ),
      inTerminal(
        'A prompt returns a message with the role system',
        {
          'server.ts': program(
            "server.prompt('sum', {}, () => ({ messages: [{ role: 'system', content: { type: 'text', text: 'x' } }] }));",
          ),
        },
        'npx troupe call server.ts --prompt sum',
        'messages ({ role, content }) of the role "user" or "assistant", got the role string "system"',
      ),
      inTerminal(
        'The arguments of a prompt are names only',
        { 'server.ts': program("server.prompt('sum', { arguments: ['id'] }, ({ id }) => id);") },
        'npx troupe call server.ts --prompt sum id=1',
        'prompt "sum": arguments: expected each argument to have a string "name" (at …/server.ts:5:…)',
      ),
    ],
  },
  {
    title: 'Machines',
    mistakes: [
      inTerminal(
        '`events` names an event that the chart does not have',
        machine('events: { lend: true, retrun: true }'),
        LIST,
        'machine "loan": events.retrun: no state accepts this event; the machine has lend, return (at …/server.ts:…)',
      ),
      inTerminal(
        'A transition leads to a state that does not exist',
        machine('events: { lend: true }', CHART.replace("lend: 'out'", "lend: 'outt'")),
        LIST,
        "Invalid transition definition for state node '(machine).shelf': Child state 'outt' does not exist on '(machine)' (at …/server.ts:2:…)",
      ),
      inTerminal(
        'The form of a machine is nested',
        {
          'server.ts': `import { elicitWith } from 'troupe';\n${asking('z.object({ to: z.object({ city: z.string() }) })')}`,
        },
        LIST,
        'machine "parcel": state "asking", invoke of "ask": at #/properties/to: property "to" is an object, but a form is flat; make each of its properties a field, such as "address_city" (at …/server.ts:…)',
      ),
      inResult(
        'A machine asks a client that cannot be asked, and has no `onError`',
        { 'server.ts': `import { elicitWith } from 'troupe';\n${asking('z.object({ city: z.string() })')}` },
        'It failed: this call needs an answer from the user, but the client does not declare the capability for it (elicitation.form). …',
        'npx troupe call server.ts parcel_create',
      ),
      inTerminal(
        'A timer of 14 days in an instance that lives seven',
        machine('events: { lend: true }'),
        LIST,
        'machine "loan": state "out", …',
      ),
      inTerminal(
        'A lifetime in days instead of milliseconds',
        machine('events: { lend: true }, ttlMs: 21'),
        LIST,
        'machine "loan": state "out", …',
      ),
      inTerminal(
        'The chart is missing',
        { 'server.ts': program("server.machine('loan', { events: { lend: true } });") },
        LIST,
        'machine "loan": machine: expected a statechart of XState v5 (from createMachine, or setup({ … }).createMachine), got object (at …/server.ts:5:…)',
      ),
      inResult(
        'The event does not fit the state',
        machine('events: { lend: true, return: true }, ttlMs: 30 * 86_400_000'),
        '"return" is not accepted in state "shelf".\nAccepted next:\n- loan_lend ()',
        'h=$(npx troupe call server.ts loan_create title=Emma --data d --json | grep -o \'"handle": *"[^"]*"\' | head -1 | cut -d\\" -f4); npx troupe call server.ts loan_return handle=$h --data d',
      ),
      inResult(
        'The handle is invented',
        machine('events: { lend: true, return: true }, ttlMs: 30 * 86_400_000'),
        'unknown handle of "loan".\nCall loan_list to find your handles, or loan_create to create a new one.',
        'npx troupe call server.ts loan_lend handle=1',
      ),
      inResult(
        'The instance was made without `--data`',
        machine('events: { lend: true, return: true }, ttlMs: 30 * 86_400_000'),
        'unknown handle of "loan".\nCall loan_list to find your handles, or loan_create to create a new one.',
        'h=$(npx troupe call server.ts loan_create title=Emma --json | grep -o \'"handle": *"[^"]*"\' | head -1 | cut -d\\" -f4); npx troupe call server.ts loan_lend handle=$h',
      ),
      inResult(
        'The context contains a `Map`',
        machine(
          'events: { lend: true }, ttlMs: 30 * 86_400_000',
          CHART.replace('({ title: input.title })', '({ title: input.title, seen: new Map() })'),
        ),
        'context.seen: a Map cannot be stored. Store plain data, such as the ISO text of a Date',
        'npx troupe call server.ts loan_create title=Emma',
      ),
      inResult(
        'A tool whose chart never ends',
        {
          'server.ts':
            CHART +
            program("server.tool('it', { machine: loan, input: z.object({ title: z.string() }), timeoutMs: 500 });"),
        },
        "tools/call took longer than its timeout of 500 ms (the server's options are timeoutMs and maxTimeoutMs)",
        `${CALL} title=Emma`,
      ),
    ],
  },
  {
    title: 'Tasks, questions and state',
    mistakes: [
      inTerminal(
        '`task: true`',
        tool("() => ''", '{ task: true }'),
        LIST,
        'tool "it": task: expected "never", "allowed" or "required", got boolean true (at …/server.ts:5:…)',
      ),
      inResult(
        'The client cannot be asked',
        tool(
          "async (_, ctx) => (await ctx.elicit({ message: 'Sure?', schema: z.object({ ok: z.boolean() }) })).status",
        ),
        'the server asks, and there is no terminal. Answer with --answer key=value',
      ),
      inResult(
        'The schema of a question is nested',
        tool(
          "async (_, ctx) => (await ctx.elicit({ message: 'Sure?', schema: z.object({ a: z.object({ b: z.string() }) }) })).status",
        ),
        'property "a" is an object, but a form is flat; make each of its properties a field, such as "address_city"',
        `${CALL} --answer a=1`,
      ),
      inResult(
        'The question has no schema',
        tool("async (_, ctx) => (await ctx.elicit({ message: 'Sure?' })).status"),
        'ctx.elicit: schema: the schema is nothing; pass a schema of zod, arktype or valibot, or a JSON Schema object',
        `${CALL} --answer ok=true`,
      ),
      inResult(
        'The answer names another field',
        tool(
          "async (_, ctx) => (await ctx.elicit({ message: 'Sure?', schema: z.object({ ok: z.boolean() }) })).status",
        ),
        'the form "Sure?": --answer lacks ok; it has no field yes',
        `${CALL} --answer yes=true`,
      ),
      inResult(
        'The answer is read without its status',
        tool(
          "async (_, ctx) => { const a: any = await ctx.elicit({ message: 'Sure?', schema: z.object({ ok: z.boolean() }) }); return { ok: a.ok.toString() }; }",
        ),
        "Cannot read properties of undefined (reading 'toString')\n… at …/server.ts:5:…",
        `${CALL} --answer ok=true`,
      ),
      inResult(
        '`ctx.state` stores a `Map`',
        tool("async (_, ctx) => { await ctx.state.set('a', new Map()); return 'ok'; }"),
        'state: the value of "a": a Map would be stored as {}. Use Object.fromEntries(map)',
      ),
      inResult(
        '`ctx.state` without a key',
        tool("async (_, ctx) => { await ctx.state.set({ a: 1 }); return 'ok'; }"),
        'state: expected a text of at least one character as a key, or a key from defineState, got object',
      ),
      inResult(
        '`ctx.state` stores a picture',
        tool("async (_, ctx) => { await ctx.state.set('a', 'x'.repeat(2_000_000)); return 'ok'; }"),
        'state: the value of "a" has 2000002 bytes of at most 65536 (limits.maxStateValueBytes). Store less, or an id of data in a database of your own',
      ),
      overHttp(
        '`ctx.state` for callers who did not sign in',
        'npx troupe call http://127.0.0.1:$PORT/mcp it',
        'state: this caller is anonymous and has no session, as each client of 2026-07-28 over HTTP, so its state would be that of everybody. Let clients sign in …',
        tool("async (_, ctx) => { await ctx.state.set('a', 1); return 'ok'; }"),
      ),
      inResult(
        'A step has no name',
        tool('async (_, ctx) => ctx.step(() => 1)'),
        "step: expected the name of the step and a function, such as ctx.step('pay', () => pay(order)), got function and nothing",
      ),
    ],
  },
  {
    title: 'HTTP',
    mistakes: [
      inTerminal(
        '`0.0.0.0` without the names of the host',
        greeter,
        'npx troupe serve server.ts --http 0.0.0.0:$PORT',
        'List the names that clients may use in allowedHosts, for example allowedHosts: ["mcp.example.com"] (--allow-host for allowedHosts, …)',
      ),
      overHttp(
        'Another `Host`',
        `${POST} ${ACCEPT} ${PING} -H 'host: mcp.example.com'`,
        "Host: expected localhost, 127.0.0.1, [::1] or a name from this server's allowedHosts, got …",
      ),
      overHttp(
        'The page of another origin',
        `${POST} ${ACCEPT} ${PING} -H 'origin: https://example.com'`,
        "Origin: expected a page of this machine or an origin from this server's allowedOrigins, got …",
      ),
      overHttp(
        'A browser opens the endpoint',
        "curl -s -i http://127.0.0.1:$PORT/mcp -H 'accept: text/html'",
        'this address is an MCP server, and shows no page. Give it to an MCP client, or try it with `npx troupe call ADDRESS`',
      ),
      overHttp(
        'The path is missing',
        'npx troupe call http://127.0.0.1:$PORT',
        'path: expected /mcp, the MCP endpoint of this server (http.path), got /',
      ),
      overHttp(
        '`curl` without `Accept`',
        `${POST} -H 'accept: text/plain' ${PING}`,
        'Accept: expected application/json and text/event-stream, got …',
      ),
      overHttp('The body is no JSON', `${POST} ${ACCEPT} -d '{jsonrpc:2.0}'`, 'not valid JSON: …'),
      overHttp(
        'A request without a session',
        `${POST} ${ACCEPT} -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`,
        '(revision 2026-07-28), or \\"initialize\\" first (2025-11-25 and earlier); got neither',
      ),
      inTerminal(
        'No server runs there',
        {},
        'npx troupe call http://127.0.0.1:$PORT/mcp',
        'cannot be reached: connect ECONNREFUSED 127.0.0.1:…',
      ),
      overHttp(
        '`https` in place of `http`',
        'npx troupe call https://127.0.0.1:$PORT/mcp',
        'cannot be reached: no TLS is spoken there. Write http: in place of https: in its address',
      ),
      overHttp(
        'The token is missing',
        'npx troupe call http://127.0.0.1:$PORT/mcp it',
        "Pass the credentials that the server expects, such as --header 'authorization: Bearer …'",
        guarded,
      ),
      overHttp(
        'The token is wrong',
        "npx troupe call http://127.0.0.1:$PORT/mcp it --header 'authorization: Bearer bob'",
        'authentication failed: expected credentials that this server accepts (Authorization)',
        guarded,
      ),
      overHttp(
        'The token has too few scopes',
        "npx troupe call http://127.0.0.1:$PORT/mcp it --header 'authorization: Bearer ada'",
        'Pass credentials that have write',
        { 'server.ts': program("server.tool('it', { scopes: ['write'] }, () => 'ok');", KEYS) },
      ),
      {
        ...overHttp(
          '`authenticate` returns true',
          'npx troupe call http://127.0.0.1:$PORT/mcp it',
          "http.authenticate: expected a principal's name, { principal, scopes, claims, expiresAt } or undefined, got boolean true",
          { 'server.ts': program("server.tool('it', {}, () => 'ok');", ', http: { authenticate: () => true }') },
        ),
        where: 'log',
      },
      overHttp(
        'The token of `oauth()` is no JWT',
        `${POST} -H 'authorization: Bearer secret' ${PING}`,
        'authentication failed: the token is not a JWT',
        {
          'server.ts': `import { oauth } from 'troupe/oauth';\n${program(GREET, ", http: { auth: oauth({ issuer: 'http://127.0.0.1:9', resource: 'http://127.0.0.1:3000/mcp' }) }")}`,
        },
      ),
      inTerminal(
        '`oauth()` without a resource',
        {
          'server.ts': `import { oauth } from 'troupe/oauth';\n${program(GREET, ", http: { auth: oauth({ issuer: 'http://127.0.0.1:9' }) }")}`,
        },
        'npx troupe serve server.ts --http $PORT',
        'oauth: resource: expected the https address of the MCP endpoint, such as "https://mcp.example.com/mcp", got nothing (at …/server.ts:…)',
      ),
    ],
  },
  {
    title: 'Arguments of `troupe call`',
    mistakes: [
      inResult(
        'The tool does not exist',
        greeter,
        'unknown tool gret (did you mean greet?)',
        'npx troupe call server.ts gret name=Ada',
      ),
      inResult(
        'The argument has another name',
        greeter,
        'greet: unknown key nam (did you mean name?). The tool is greet(name: string)',
        'npx troupe call server.ts greet nam=Ada',
      ),
      inResult(
        'An argument has another type',
        { 'server.ts': program("server.tool('add', { input: z.object({ a: z.number() }) }, ({ a }) => a);") },
        'add: a: expected number, got one',
        'npx troupe call server.ts add a=one',
      ),
      inResult(
        'The model writes the argument in another style',
        {
          'server.ts': program(
            "server.tool('it', { input: z.object({ user_name: z.string().optional() }) }, (a) => a);",
          ),
        },
        'tool "it" was called with "userName" (did you mean user_name?), which its schema drops: make the schema strict, so that the model reads this',
        `${CALL} --args '{"userName":"Ada"}'`,
      ),
      inResult(
        'The same, with a strict schema',
        { 'server.ts': program("server.tool('it', { input: z.strictObject({ user_name: z.string() }) }, (a) => a);") },
        'did you mean user_name?',
        `${CALL} --args '{"userName":"Ada","user_name":"Ada"}'`,
      ),
      inResult(
        'An argument with dashes',
        greeter,
        "Unknown option '--name' (an argument of a tool has no dashes: name=VALUE)",
        'npx troupe call server.ts greet --name Ada',
      ),
      inResult(
        'No arguments',
        greeter,
        'greet: missing name. The tool is greet(name: string)',
        'npx troupe call server.ts greet',
      ),
      inTerminal(
        'An argument without `=`',
        greeter,
        'npx troupe call server.ts greet Ada',
        'greet: expected key=value or key:=JSON, got Ada',
      ),
      inTerminal(
        'Arguments as broken JSON',
        greeter,
        "npx troupe call server.ts greet '{name: Ada}'",
        'greet: expected key=value or key:=JSON, got {name: Ada}',
      ),
      inTerminal(
        'The program is not after `--`',
        greeter,
        'npx troupe call node server.js',
        'expected URL, FILE, DIR, SOCKET or -- COMMAND, got node: no such file or directory',
      ),
      {
        ...inTerminal(
          'Two processes use one `--data`',
          greeter,
          'npx troupe call server.ts greet name=Ada --data d',
          'another process has the store open (pid …). Stop that process, or name another file',
        ),
        beside: { run: 'npx troupe serve server.ts --http $PORT --data d', ready: 'connect clients with' },
      },
    ],
  },
  {
    title: 'The gateway’s file',
    mistakes: [
      inTerminal(
        'The file is no JSON',
        gateway('{ mcpServers: '),
        'npx troupe gateway mcp.json',
        'mcp.json:1:3: expected the name of a member, in double quotes, or }, got m',
      ),
      inTerminal(
        'An entry has neither command nor URL',
        gateway({ mcpServers: { files: { args: ['x'] } } }),
        'npx troupe gateway mcp.json',
        'mcpServers.files: expected one of command, url and socket, got none. The server is not mounted',
      ),
      inTerminal(
        'An entry has both command and URL',
        gateway({ mcpServers: { files: { command: 'node', url: 'http://127.0.0.1:9/mcp' } } }),
        'npx troupe gateway mcp.json',
        'mcpServers.files: expected one of command, url and socket, got command and url. The server is not mounted',
      ),
      inTerminal(
        'The command is not installed',
        gateway({ mcpServers: { files: { command: 'no-such-command' } } }),
        GATEWAY,
        'cannot start "no-such-command": there is no such program in PATH, …',
      ),
      inTerminal(
        'The command is one text',
        gateway({ mcpServers: { files: { command: 'node server.js' } } }),
        GATEWAY,
        'mcpServers.files.command: a program with its arguments in one text is read as a shell reads it. Write the arguments in args',
      ),
      inTerminal(
        '`args` is one text',
        gateway({ mcpServers: { files: { command: 'node', args: 'server.js' } } }),
        'npx troupe gateway mcp.json',
        'mcpServers.files.args: expected a list of strings, got string "server.js". The server is not mounted',
      ),
      inTerminal(
        'The URL does not answer',
        gateway({ mcpServers: { files: { url: 'http://127.0.0.1:9/mcp' } } }),
        GATEWAY,
        'cannot be reached: connect ECONNREFUSED 127.0.0.1:9',
      ),
    ],
  },
  {
    title: 'Tests',
    mistakes: [
      inTest(
        '`await` before `connect` is forgotten',
        greeter,
        "const client = connect(server);\nawait (client as any).call('greet', { name: 'Ada' });",
        'client.call is not a function',
      ),
      inTest(
        'A tool is misspelled',
        greeter,
        "const client = await connect(server);\nawait client.call('gret' as 'greet', { name: 'Ada' });",
        'Unknown tool: gret',
      ),
      inTest(
        'A result is compared that is an error',
        greeter,
        "const client = await connect(server);\nconst data = await client.data('greet', {} as { name: string });\nassert.equal(data, 'Hello');",
        'tools/call greet: Invalid arguments for tool "greet":…- name: Invalid input: expected string, received undefined (got nothing)',
      ),
      inTest(
        'The server asks, and the test answers nothing',
        tool(
          "async (_, ctx) => (await ctx.elicit({ message: 'Sure?', schema: z.object({ ok: z.boolean() }) })).status",
        ),
        "const client = await connect(server);\nassert.deepEqual((await client.call('it')).content, [{ type: 'text', text: 'accepted' }]);",
        'this call needs an answer from the user, but the client does not declare the capability for it (elicitation.form). …',
      ),
      inTest(
        'The tested file listens on stdio',
        { 'server.ts': program(`${GREET}\nawait server.listen(stdio());`) },
        "const client = await connect(server);\nconst { content } = await client.call('greet', { name: 'Ada' });\nassert.deepEqual(content, [{ type: 'text', text: 'Hello' }]);",
        'stdio: this process runs tests, whose results go to stdout. Export the server in place of server.listen(stdio())',
      ),
    ],
  },
  {
    title: 'TypeScript',
    mistakes: [
      compiled(
        'An argument has another name',
        { 'server.ts': program("server.tool('it', { input: z.object({ name: z.string() }) }, ({ nmae }) => nmae);") },
        {},
        "server.ts(5,65): error TS2339: Property 'nmae' does not exist on type '{ name: string; }'.",
      ),
      compiled(
        'The result does not fit `output`',
        { 'server.ts': program("server.tool('it', { output: z.object({ a: z.number() }) }, () => ({ a: 'one' }));") },
        {},
        "server.ts(5,…Type 'string' is not assignable to type 'number'.",
      ),
      compiled(
        'The variable of a template is misspelled',
        { 'server.ts': program("server.resource('notes://{id}', {}, ({ variables }) => variables.ids);") },
        {},
        "server.ts(5,66): error TS2339: Property 'ids' does not exist on type …",
      ),
      compiled(
        'Without `@types/node`',
        { 'server.ts': program("server.tool('it', {}, () => process.env.KEY ?? '');") },
        { types: [] },
        "Cannot find name 'process'. …Try `npm i --save-dev @types/node` …",
      ),
      compiled(
        'An import without its ending',
        { 'server.ts': "import { x } from './other';\nconsole.log(x);\n", 'other.ts': 'export const x = 1;\n' },
        {},
        'Relative import paths need explicit file extensions …',
      ),
      compiled(
        'An option is misspelled',
        { 'server.ts': program("server.tool('it', { desciption: 'It' }, () => '');") },
        {},
        "'desciption' does not exist in type 'ToolOptions<undefined, AuthorSchema>'. Did you mean to write 'description'?",
      ),
      compiled(
        'A forgotten `await` of a question',
        {
          'server.ts': program(
            "server.tool('it', {}, async (_, ctx) => { const answer = ctx.elicit({ message: 'Sure?', schema: z.object({ ok: z.boolean() }) }); return answer.status; });",
          ),
        },
        {},
        "Property 'status' does not exist on type 'Promise<…>'.",
      ),
    ],
  },
];
