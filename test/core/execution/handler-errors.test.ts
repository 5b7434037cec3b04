/** What a client receives of an error that a handler throws, and what the operator and the inspector see of it. */
import { once } from 'node:events';
import { type AddressInfo, createServer as createListener } from 'node:net';
import * as assert from 'uvu/assert';
import { createMachine, fromPromise, setup } from 'xstate';
import {
  createServer,
  type InspectionRecord,
  ProtocolError,
  type Server,
  type ServerOptions,
  sqlite,
  ToolError,
} from '../../../src/index.ts';
import { connect, ErrorResponse, type TestClient, type TestClientOptions } from '../../../src/testing/testing.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { moduleUrl } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { inSession, loggedServer } from '../../harness/memory.ts';

const test = suite('errors of handlers');
const heavy = new URL(moduleUrl('test/fixtures/supervision/heavy.ts'));

const SECRET = 'password=hunter2';

function secret(): never {
  throw new Error(SECRET);
}

function forModel(): never {
  throw new ToolError('for the model');
}

interface Stage {
  readonly server: Server;
  readonly client: TestClient;
  readonly log: string[];
}

async function stage(options: Partial<ServerOptions> = {}, as: TestClientOptions = {}): Promise<Stage> {
  const { server, logged: log } = loggedServer({ name: 'errors', ...options });
  for (const [name, fail] of [
    ['secret', secret],
    ['told', forModel],
  ] as const) {
    server.tool(`sync_${name}`, {}, () => fail());
    server.tool(`async_${name}`, {}, async () => {
      await Promise.resolve();
      fail();
    });
    server.tool(`asking_${name}`, {}, async (_, ctx) => {
      await ctx.elicit({ message: 'Well?', schema: { type: 'object', properties: {} } });
      fail();
    });
    server.tool(`task_${name}`, { task: 'allowed' }, async () => fail());
    server.tool(`chart_${name}`, { machine: failing(fail) });
    server.machine(`kept_${name}`, failing(fail), { events: { go: true } });
    server.machine(`stillborn_${name}`, stillborn(fail), { events: { go: true } });
    server.resource(`x://${name}`, {}, () => fail());
    server.prompt(name, { complete: { a: () => fail() }, arguments: [{ name: 'a' }] }, () => fail());
  }
  server.tool('cpu', { input: { type: 'object', properties: { what: { type: 'string' } } }, cpu: heavy });
  return { server, client: await connect(server, as), log };
}

/** A machine whose actor fails and which has no transition for that. */
function failing(fail: () => never) {
  return setup({ actors: { work: fromPromise(async () => fail()) } }).createMachine({
    invoke: { src: 'work' },
    on: { go: {} },
  });
}

function stillborn(fail: () => never) {
  return createMachine({ context: () => fail(), on: { go: {} } });
}

/** The text of a failed tool. */
async function textOf({ client }: Stage, tool: string, args = {}): Promise<string> {
  const { content, isError } = await client.call(tool, args);
  assert.is(isError, true, tool);
  return content[0]?.type === 'text' ? content[0].text : '';
}

/** The message of an error response. */
async function errorOf({ client }: Stage, method: string, params: object): Promise<string> {
  const error: unknown = await client.modern(method, { ...params }).catch((thrown: unknown) => thrown);
  assert.instance(error, Error);
  return error instanceof Error ? error.message : '';
}

/** Every way in which a handler can fail, and the text that its client receives. */
const TOOLS = ['sync', 'async', 'chart'];
const REQUESTS: readonly ((name: string) => readonly [string, object])[] = [
  (name) => ['resources/read', { uri: `x://${name}` }],
  (name) => ['prompts/get', { name }],
  (name) => ['completion/complete', { ref: { type: 'ref/prompt', name }, argument: { name: 'a', value: '' } }],
];

async function keptFailure({ client }: Stage, name: string): Promise<string> {
  const { structuredContent } = await client.call(`kept_${name}_create`, {});
  const { handle } = Object(structuredContent);
  for (;;) {
    const { failure } = Object((await client.call(`kept_${name}_get`, { handle })).structuredContent);
    if (failure !== undefined) return String(failure);
  }
}

/** The one entry of the log that an incident's id names. */
function logged({ log }: Stage, text: string): string {
  const [, id = 'none'] = /incident (\S+?)(?:[;)]|$)/.exec(text) ?? [];
  const found = log.filter((line) => line.includes(`incident ${id} in `));
  assert.is(found.length, 1, `${text}\n${log.join('\n')}`);
  return found[0] ?? '';
}

test('errors: masked: no way to fail shows a client more than an incident, and the log has it with the stack', async () => {
  const at = await stage({ errors: 'masked' });
  const texts = [
    ...(await Promise.all(TOOLS.map((kind) => textOf(at, `${kind}_secret`)))),
    await textOf(at, 'cpu', { what: 'throw' }),
    ...(await Promise.all(REQUESTS.map((request) => errorOf(at, ...request('secret'))))),
    await keptFailure(at, 'secret'),
    await errorOf(at, 'tools/call', { name: 'stillborn_secret_create', arguments: {} }),
  ];
  for (const text of texts) {
    assert.not.match(text, /hunter2|as asked/);
    assert.match(logged(at, text), /(hunter2|as asked)\n {4}at .*\.[jt]s:\d+:\d+\)/);
  }
  await at.server.close();
});

test('errors: message: every client receives the message, and never the stack', async () => {
  const at = await stage({ errors: 'message' });
  const texts = [
    ...(await Promise.all(TOOLS.map((kind) => textOf(at, `${kind}_secret`)))),
    ...(await Promise.all(REQUESTS.map((request) => errorOf(at, ...request('secret'))))),
    await keptFailure(at, 'secret'),
  ];
  for (const text of texts) assert.is(text, SECRET);
  const born = await errorOf(at, 'tools/call', { name: 'stillborn_secret_create', arguments: {} });
  assert.match(born, `could not start with this input: ${SECRET} (incident `);
  assert.is(at.log.filter((line) => line.includes(`Error: ${SECRET}\n    at secret (`)).length, 8);
  await at.server.close();
});

test('the default: a tool shows the message, a resource, a prompt and a completion an incident', async () => {
  const at = await stage();
  for (const kind of TOOLS) assert.is(await textOf(at, `${kind}_secret`), SECRET);
  assert.is(await keptFailure(at, 'secret'), SECRET);
  for (const request of REQUESTS) {
    const text = await errorOf(at, ...request('secret'));
    assert.match(text, /^Internal error \(incident/);
    assert.match(logged(at, text), SECRET);
  }
  await at.server.close();
});

test('the message of a fetch that failed says why', async () => {
  const server = createServer({ name: 'errors', version: '1.0.0', log: () => {} });
  const listener = createListener().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  server.tool('fetch', {}, async () => (await fetch(`http://127.0.0.1:${port}/`)).text());
  server.tool('bare', {}, () => {
    throw new TypeError('fetch failed');
  });
  server.tool('many', {}, () => {
    throw new TypeError('fetch failed', { cause: Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }) });
  });
  server.tool('other', {}, () => {
    throw new Error('cannot save', { cause: new Error(SECRET) });
  });
  const client = await connect(server);
  const said = async (tool: string): Promise<unknown> => (await client.call(tool)).content[0];
  assert.equal(await said('fetch'), { type: 'text', text: `fetch failed: connect ECONNREFUSED 127.0.0.1:${port}` });
  assert.equal(await said('bare'), { type: 'text', text: 'fetch failed' });
  assert.equal(await said('many'), { type: 'text', text: 'fetch failed: ECONNREFUSED' });
  assert.equal(await said('other'), { type: 'text', text: 'cannot save' });
  await server.close();
});

test('a reader that returns nothing answers that there is no such resource, with the code of the revision', async () => {
  const log: string[] = [];
  const server = createServer({ name: 'errors', version: '1.0.0', log: (_, message) => void log.push(message) });
  server.resource('a://undefined', { name: 'a' }, () => undefined);
  server.resource('a://{+none}', { name: 'b' }, () => null);
  const client = await inSession(server);
  for (const uri of ['a://undefined', 'a://other'])
    for (const [code, answer] of [
      [-32002, client.send('resources/read', { uri })],
      [-32602, client.modern('resources/read', { uri })],
    ] as const) {
      const error: unknown = await answer.catch((thrown: unknown) => thrown);
      assert.ok(error instanceof ErrorResponse);
      assert.is(error.code, code);
      assert.match(error.message, 'Resource not found');
    }
  assert.equal(log, []);
  await server.close();
});

test('the message of a ToolError is always sent, from every kind of handler, and is not logged', async () => {
  for (const errors of [undefined, 'message', 'masked'] as const) {
    const at = await stage(errors === undefined ? {} : { errors });
    for (const kind of TOOLS) assert.is(await textOf(at, `${kind}_told`), 'for the model');
    if (errors === 'masked') assert.is(await textOf(at, 'cpu', { what: 'throw for the model' }), 'for the model');
    for (const request of REQUESTS) assert.is(await errorOf(at, ...request('told')), 'for the model');
    assert.is(await keptFailure(at, 'told'), 'for the model');
    assert.equal(at.log, []);
    const born = await errorOf(at, 'tools/call', { name: 'stillborn_told_create', arguments: {} });
    assert.match(born, 'could not start with this input: for the model (incident ');
    await at.server.close();
  }
});

test('masked holds for questions, in both eras, and for tasks', async () => {
  for (const revision of ['2025-11-25', 'modern'] as const) {
    const at = await stage({ errors: 'masked' }, { elicit: () => ({ action: 'accept', content: {} }) });
    if (revision !== 'modern') await at.client.initialize(revision);
    const text = await textOf(at, 'asking_secret');
    assert.match(text, /^The tool failed \(incident /);
    assert.match(logged(at, text), 'in tool "asking_secret": Error: password=hunter2');
    assert.is(await textOf(at, 'asking_told'), 'for the model');
    await at.server.close();
  }
  const at = await stage({ errors: 'masked' });
  await at.client.initialize('2025-11-25');
  const created = await at.client.send('tools/call', { name: 'task_secret', arguments: {}, task: {} });
  const { taskId } = Object(Object(created).task);
  const { content } = Object(await at.client.send('tasks/result', { taskId }));
  assert.match(content[0].text, /^The tool failed \(incident /);
  assert.match(logged(at, content[0].text), SECRET);
  await at.server.close();
});

test('a machine that failed in another process stays masked, and its ToolError stays shown', async () => {
  const tree = new Tree();
  const store = () => sqlite(tree.at('errors.db'));
  const first = await stage({ errors: 'masked', store: store() });
  const handles: Record<string, string> = {};
  for (const name of ['secret', 'told']) {
    const { structuredContent } = await first.client.call(`kept_${name}_create`, {});
    const { handle } = Object(structuredContent);
    handles[name] = handle;
    for (let status: unknown = ''; status !== 'failed'; ) {
      const view = await first.client.call(`kept_${name}_get`, { handle });
      ({ status } = Object(view.structuredContent));
    }
  }
  await first.server.close();
  const next = await stage({ errors: 'masked', store: store() });
  const failureOf = async (name: string): Promise<unknown> =>
    Object((await next.client.call(`kept_${name}_get`, { handle: handles[name] ?? '' })).structuredContent).failure;
  assert.is(await failureOf('secret'), "the machine failed (the server's log has the details)");
  assert.is(await failureOf('told'), 'for the model');
  await next.server.close();
});

test('an error that follows the end of its call is no incident', async () => {
  const at = await stage();
  at.server.tool('wait', { timeoutMs: 1 }, (_, ctx) => {
    return new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)));
  });
  assert.match(await errorOf(at, 'tools/call', { name: 'wait', arguments: {} }), 'took longer than its timeout');
  assert.equal(at.log, []);
  await at.server.close();
});

test('the inspection records the error with the request as its cause, and only while something listens', async () => {
  const at = await stage({ errors: 'masked' });
  const records: InspectionRecord[] = [];
  const stop = at.server.inspect((record) => void records.push(record));
  const text = await textOf(at, 'async_secret');
  await errorOf(at, ...(REQUESTS[0]?.('secret') ?? ['', {}]));
  at.server.tool('protocol', {}, () => {
    throw new ProtocolError(-32602, 'by hand');
  });
  await errorOf(at, 'tools/call', { name: 'protocol', arguments: {} });
  await textOf(at, 'sync_told');
  stop();
  const failed = records.flatMap((record) => (record.type === 'failed' ? [record] : []));
  assert.equal(
    failed.map(({ element, incident, actor }) => [element, incident !== undefined, actor]),
    [
      ['tool "async_secret"', true, 'executor/tools'],
      ['resource "x://secret"', true, 'executor/resources'],
      ['tool "protocol"', false, 'executor/tools'],
      ['tool "sync_told"', false, 'executor/tools'],
    ],
  );
  assert.ok(text.includes(String(failed[0]?.incident)));
  for (const { cause } of failed) {
    let at = records.find(({ seq }) => seq === cause);
    while (at && at.type !== 'wire') at = records.find(({ seq }) => seq === at?.cause);
    assert.ok(at?.type === 'wire' && at.direction === 'in');
  }
  await at.server.close();
});
