/** D-10: a new version of the program is deployed on a fleet of nodes under load, and no client notices. */
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import * as assert from 'uvu/assert';
import { Cli, TROUPE } from '../cli/cli.ts';
import { Tree } from '../discovery/tree.ts';
import { type Postgres, postgresSuite, startPostgres } from '../harness/postgres.ts';
import { atScale, SCALE } from '../harness/scale.ts';
import { modern } from '../http/modern.ts';

const test = postgresSuite('rolling deployments of nodes');

/** Clients of each era. */
const CLIENTS = atScale({ quick: 1, full: 5, proof: 10 });
const NODES = 3;

/** Version 2 counts in another form, and takes over the instances of version 1. */
const program = (version: 1 | 2): string => `import { createServer } from '${TROUPE}';
import { assign, createMachine } from '${import.meta.resolve('xstate')}';
import { z } from '${import.meta.resolve('zod')}';
const first = createMachine({
  context: { entries: [] }, initial: 'open',
  states: { open: { on: { add: { actions: assign({ entries: ({ context, event }) => [...context.entries, event.nonce] }) } } } },
});
const second = createMachine({
  context: { list: [], version: 2 }, initial: 'open',
  states: { open: { on: { add: { actions: assign({ list: ({ context, event }) => [...context.list, event.nonce] }) } } } },
});
const server = createServer({ name: 'ledgers', version: '${version}.0.0', http: { authenticate: ({ header }) => header('authorization') } });
server.machine('ledger', ${version === 1 ? 'first' : 'second'}, {
  events: { add: z.object({ nonce: z.string() }) },
  ${
    version === 1
      ? "version: '1', view: ({ context }) => ({ entries: context.entries, version: 1 })"
      : `version: '2', view: ({ context }) => ({ entries: context.list, version: context.version }),
  migrate: ({ version, context }) => version === '1' ? { value: 'open', context: { list: context.entries, version: 2 } } : undefined`
  },
});
export default server;
`;

interface Answer {
  readonly status: number;
  readonly session: string | undefined;
  readonly result: Readonly<Record<string, unknown>>;
}

/** One client with one ledger. It repeats nothing: an error of any kind fails the test. */
class Client {
  readonly url: string;
  readonly principal: string;
  readonly legacy: boolean;
  readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly times: number[] = [];
  handle = '';
  added = 0;
  #session: string | undefined;
  #id = 0;

  constructor(url: string, principal: string, legacy: boolean) {
    this.url = url;
    this.principal = principal;
    this.legacy = legacy;
  }

  async open(): Promise<void> {
    if (this.legacy) {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } };
      this.#session = (await this.#post({ id: 0, method: 'initialize', params })).session;
      await this.#post({ method: 'notifications/initialized' });
    }
    this.handle = String((await this.call('ledger_create', {})).handle);
  }

  async add(): Promise<void> {
    const began = performance.now();
    this.added += 1;
    await this.call('ledger_add', { handle: this.handle, nonce: `n${this.added}` });
    this.times.push(performance.now() - began);
  }

  /** The entries of its ledger, and the version that has written it. */
  async read(): Promise<unknown> {
    return (await this.call('ledger_get', { handle: this.handle })).view;
  }

  async call(name: string, args: object): Promise<Readonly<Record<string, unknown>>> {
    this.#id += 1;
    const params = { name, arguments: args };
    const { headers = {}, body } = modern('tools/call', { params });
    const { result } = this.legacy
      ? await this.#post({ id: this.#id, method: 'tools/call', params })
      : await this.#post(Object(body), headers);
    if (result.isError === true) throw new Error(`${this.principal} ${name}: ${JSON.stringify(result.content)}`);
    return Object(result.structuredContent);
  }

  #post(body: object, own: object = {}): Promise<Answer> {
    const session =
      this.#session === undefined ? {} : { 'mcp-session-id': this.#session, 'mcp-protocol-version': '2025-11-25' };
    const headers = {
      ...own,
      ...session,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: this.principal,
    };
    return new Promise((resolve, reject) => {
      const failed = (why: unknown): void => reject(new Error(`${this.principal}: ${String(why)}`));
      const sent = request(this.url, { method: 'POST', agent: this.agent, headers }, (response) => {
        let text = '';
        response
          .setEncoding('utf8')
          .on('error', failed)
          .on('data', (chunk: string) => {
            text += chunk;
          });
        response.on('end', () => {
          const { statusCode: status = 0 } = response;
          if (status !== 200 && status !== 202) return failed(`${status} ${text}`);
          const [json = '{}'] = text.match(/\{.*\}/) ?? [];
          const { result = {}, error } = JSON.parse(json);
          if (error) return failed(json);
          const named = response.headers['mcp-session-id'];
          resolve({ status, session: typeof named === 'string' ? named : undefined, result });
        });
      });
      sent.on('error', failed).end(JSON.stringify({ jsonrpc: '2.0', ...body }));
    });
  }
}

let database: Postgres | undefined;
test.before(async () => {
  if (SCALE !== 'quick') database = await startPostgres({ fsync: false });
});
test.after(() => database?.stop());

if (SCALE === 'quick') test.skip('D-10', 'npm run test:full runs it');
else
  test('D-10 a new version is deployed node after node: no call fails, nothing is lost, each session continues', async () => {
    const tree = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': program(1) });
    const env = {
      TROUPE_STORE: await database?.database(),
      TROUPE_CLUSTER_SECRET: 'a secret of this test, 32 characters',
    };
    const fleet = new Cli(['serve', 'server.mjs', '--http', '0', '--nodes', String(NODES)], { cwd: tree.path, env });
    await fleet.until(() => fleet.err.split(' serves (process').length > NODES, 'all nodes');
    const url = /at (http:\S+);/.exec(fleet.err)?.[1] ?? '';
    const clients = Array.from({ length: 2 * CLIENTS }, (_, at) => new Client(url, `p${at}`, at % 2 === 0));
    await Promise.all(clients.map((client) => client.open()));

    let deployed = false;
    const before: number[] = [];
    const load = clients.map(async (client) => {
      while (!deployed) await client.add();
    });
    const loaded = Promise.all(load);
    // Each client has its first calls behind it.
    await Promise.race([loaded, called(clients, 20)]);
    for (const { times } of clients) before.push(...times.splice(0));
    writeFileSync(tree.at('server.mjs'), program(2));
    fleet.process.kill('SIGHUP');
    await Promise.race([fleet.said('all nodes are replaced'), loaded]);
    deployed = true;
    await loaded;

    for (const client of clients) {
      const entries = Array.from({ length: client.added }, (_, at) => `n${at + 1}`);
      assert.equal(await client.read(), { entries, version: 2 });
      client.agent.destroy();
    }
    const during = clients.flatMap(({ times }) => times);
    console.log(
      `D-10: ${during.length} calls during the deployment, p99 ${p99(during)} ms; ${before.length} before, p99 ${p99(before)} ms; longest ${Math.round(Math.max(...during))} ms`,
    );
    fleet.process.kill('SIGTERM');
    assert.is(await fleet.exit, 0);
  });

/** Resolves when each client has made so many calls. */
async function called(clients: readonly Client[], calls: number): Promise<void> {
  while (clients.some(({ times }) => times.length < calls)) await new Promise((resolve) => setImmediate(resolve));
}

function p99(times: readonly number[]): string {
  return ([...times].sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0).toFixed(1);
}
