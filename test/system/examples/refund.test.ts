/** `examples/refund` is driven as it is by every kind of client: it asks twice, and pays exactly once each time, also across a restart. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport as TransportV1 } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import { answered, send } from '../../core/http/modern.ts';
import { textIn } from '../../core/http/support.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { elapse } from '../../harness/wait.ts';
import { command } from '../clients/wire.ts';

fullOnly('starts the example; the quick test of the examples is order.test.ts');

const test = suite('examples/refund');

const FILE = 'examples/refund/server.ts';
const DONE = 'Paid 42 back for order o-1, payment p-o-1; the receipt goes to ada@example.com.';
const CALL = { name: 'refund', arguments: { order: 'o-1' } };

/** What the user answers to each question, in order. */
const ANSWERS = [{ sure: true }, { email: 'ada@example.com' }] as const;

interface Desk {
  readonly env: Record<string, string>;
  /** What was paid. */
  payments(): string;
  /** Serves over HTTP, on this port or on any. */
  serve(port?: string): Promise<{ readonly url: URL; stop(): Promise<void> }>;
  close(): Promise<void>;
}

function openDesk(more: Record<string, string> = {}): Desk {
  const folder = mkdtempSync(join(tmpdir(), 'refund-'));
  const file = join(folder, 'ledger');
  const env = { REFUND_LEDGER: file, REFUND_KEYS: 'a secret that both processes have before and after', ...more };
  const children: ChildProcess[] = [];
  return {
    env,
    payments: () => readFileSync(file, 'utf8'),
    async serve(port = '0') {
      const { command: node, args, cwd, env: shared } = command(env);
      const child = spawn(node, [...args, 'serve', FILE, '--http', port], {
        cwd,
        env: { ...process.env, ...shared },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      children.push(child);
      const url = await new Promise<URL>((resolve, reject) => {
        let said = '';
        child.stderr?.setEncoding('utf8').on('data', (text: string) => {
          said += text;
          const at = /http:\/\/\S+\/mcp/.exec(said)?.[0];
          if (at !== undefined) resolve(new URL(at));
        });
        child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
      });
      return {
        url,
        async stop() {
          const gone = once(child, 'exit');
          child.kill('SIGKILL');
          await gone;
        },
      };
    },
    async close() {
      for (const child of children) child.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    },
  };
}

/** Runs with a desk, and holds that it paid once. */
async function once42(run: (desk: Desk) => Promise<void>, env?: Record<string, string>): Promise<void> {
  const desk = openDesk(env);
  try {
    await run(desk);
    assert.is(desk.payments(), 'o-1 42\n');
  } finally {
    await desk.close();
  }
}

/** Answers what the user is asked, in order. */
function user(meanwhile: (question: number) => Promise<void> = async () => {}) {
  let asked = 0;
  return async () => {
    const content = ANSWERS[asked];
    await meanwhile(asked);
    asked += 1;
    return content ? { action: 'accept' as const, content: { ...content } } : { action: 'cancel' as const };
  };
}

function stdioOf({ env }: Desk) {
  const { args, ...how } = command(env);
  return { ...how, args: [...args, 'run', FILE] };
}

async function withV1(
  transport: TransportV1,
  revision: string,
  run: (client: ClientV1) => Promise<void>,
): Promise<void> {
  const client = new ClientV1({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, user());
  // The client has no option for the revision that it asks for.
  const send = transport.send.bind(transport);
  transport.send = (message, options) =>
    send(
      'method' in message && message.method === 'initialize'
        ? { ...message, params: { ...message.params, protocolVersion: revision } }
        : message,
      options,
    );
  await client.connect(transport);
  await run(client);
  await client.close();
}

async function v1Pays(transport: TransportV1): Promise<void> {
  await withV1(transport, '2025-06-18', async (client) => {
    const { content } = await client.callTool(CALL);
    assert.equal(content, [{ type: 'text', text: DONE }]);
  });
}

async function v2Pays(transport: v2.Transport, meanwhile?: (question: number) => Promise<void>): Promise<void> {
  const client = new v2.Client(
    { name: 'v2', version: '2' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', user(meanwhile));
  await client.connect(transport);
  const { content } = await client.callTool(CALL);
  assert.equal(content, [{ type: 'text', text: DONE }]);
  await client.close();
}

test('the v1 client (2025-06-18) over stdio', () => once42((desk) => v1Pays(new StdioV1(stdioOf(desk)))));

test('the v1 client (2025-06-18) over HTTP', () =>
  once42(async (desk) => v1Pays(new HttpV1((await desk.serve()).url) as TransportV1)));

test('the v2 client (2026-07-28) over stdio', () => once42((desk) => v2Pays(new StdioV2(stdioOf(desk)))));

test('the v2 client (2026-07-28) over HTTP', () =>
  once42(async (desk) => v2Pays(new v2.StreamableHTTPClientTransport((await desk.serve()).url))));

for (const question of [0, 1])
  test(`the v2 client over HTTP, when the process is killed and restarted before answer ${question + 1}`, () =>
    once42(async (desk) => {
      const first = await desk.serve();
      await v2Pays(new v2.StreamableHTTPClientTransport(first.url), async (asked) => {
        if (asked !== question) return;
        await first.stop();
        await desk.serve(first.url.port);
      });
    }));

/** Asks again until it says so; a task is polled, in every revision. */
async function until<T>(poll: () => Promise<T>, fits: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await poll();
    if (fits(value)) return value;
    await elapse(20, 'a client polls');
  }
}

const SLOW = { REFUND_LOOK_UP_MS: '1200' };

test('as a task of 2026-07-28: the order system is slow, so the call becomes one, and is asked as one', () =>
  once42(async (desk) => {
    const { url } = await desk.serve();
    const extension = { 'io.modelcontextprotocol/tasks': {} };
    const meta = { [META.clientCapabilities]: { elicitation: {}, extensions: extension } };
    const request = async (method: string, params: Readonly<Record<string, unknown>>) =>
      answered(await send(url.href, method, { params, meta, headers: taskHeader(params) }));
    const { resultType, taskId } = await request('tools/call', CALL);
    assert.is(resultType, 'task');
    for (const content of ANSWERS) {
      const { inputRequests } = await until(
        () => request('tasks/get', { taskId }),
        ({ status }) => status === 'input_required',
      );
      const [key = ''] = Object.keys(Object(inputRequests));
      await request('tasks/update', { taskId, inputResponses: { [key]: { action: 'accept', content } } });
    }
    const { result } = await until(
      () => request('tasks/get', { taskId }),
      ({ status }) => status === 'completed',
    );
    assert.is(textIn({ jsonrpc: '2.0', result: Object(result) }), DONE);
  }, SLOW));

function taskHeader({ taskId }: Readonly<Record<string, unknown>>) {
  return typeof taskId === 'string' ? { 'mcp-name': taskId } : {};
}

test('as a task of 2025-11-25, by the v1 client', () =>
  once42(async (desk) => {
    const { url } = await desk.serve();
    await withV1(new HttpV1(url) as TransportV1, '2025-11-25', async (client) => {
      await client.listTools();
      let status = '';
      let text: unknown;
      for await (const message of client.experimental.tasks.callToolStream(CALL, CallToolResultSchema, {
        task: { ttl: 60_000 },
      })) {
        if (message.type === 'taskCreated') status = message.task.status;
        if (message.type === 'result') text = message.result.content;
        if (message.type === 'error') throw message.error;
      }
      assert.is(status, 'working');
      assert.equal(text, [{ type: 'text', text: DONE }]);
    });
  }));
