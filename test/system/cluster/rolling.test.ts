/** D-10: a new version of the program is deployed on a fleet of nodes under load, and no client notices. */
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import * as assert from 'uvu/assert';
import { Cli, TROUPE } from '../../cli/cli.ts';
import { modern } from '../../core/http/modern.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { assertFigure } from '../../harness/pace.ts';
import { type Databases, postgresSuite, sharedPostgres } from '../../harness/postgres.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { elapse, until } from '../../harness/wait.ts';
import { placementOf } from './placement.ts';

const test = postgresSuite('rolling deployments of nodes');

/** Clients of each era. */
const CLIENTS = atScale({ quick: 1, full: 1, proof: 10 });
const NODES = 3;
/** As long as a takeover after a death may take. */
const LATE_MS = 250;
/**
 * Milliseconds between the beginnings of two calls of a client, at least: the clients need a small part of two processors, so that
 * the figures show the deployment and not the lack of processors.
 */
const EVERY_MS = 100;
/** Calls of each client that do not count: the first ones compile what they run. */
const COLD = 20;
/** Calls of each client that are measured before the deployment. */
const BEFORE = 100;

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
  /** How long each call took, in milliseconds. A call after `Connection: close` opens a connection in this time. */
  readonly #times: number[] = [];
  handle = '';
  added = 0;
  #wanted: { readonly calls: number; readonly reached: () => void } | undefined;
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

  /** Makes a call every {@link EVERY_MS}, or as soon as the last one has ended. */
  async add(over: () => boolean): Promise<void> {
    // The clients do not call in step.
    let due = performance.now() + Math.random() * EVERY_MS;
    while (!over()) {
      await elapse(Math.max(0, due - performance.now()), 'the next call is due');
      const began = performance.now();
      due = began + EVERY_MS;
      this.added += 1;
      await this.call('ledger_add', { handle: this.handle, nonce: `n${this.added}` });
      this.#times.push(performance.now() - began);
      if (this.#times.length === this.#wanted?.calls) this.#wanted.reached();
    }
  }

  /** Resolves when it has made so many calls since their times were taken. */
  made(calls: number): Promise<void> {
    return new Promise((reached) => {
      this.#wanted = { calls, reached };
    });
  }

  /** Removes and returns the times of its calls, in milliseconds. */
  taken(): readonly number[] {
    return this.#times.splice(0);
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

let database: Databases;

if (SCALE === 'quick') test.skip('D-10', 'npm run test:full runs it');
else {
  test.before(async () => {
    database = await sharedPostgres();
  });
  test.after(() => database.stop());

  test('D-10 a new version is deployed node after node: no call fails, nothing is lost, each session continues', async () => {
    const tree = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': program(1) });
    const env = {
      TROUPE_STORE: await database.database(),
      TROUPE_CLUSTER_SECRET: 'a secret of this test, 32 characters',
    };
    const fleet = new Cli(['serve', 'server.mjs', '--http', '0', '--nodes', String(NODES)], { cwd: tree.path, env });
    await fleet.until(() => fleet.err.split(' serves (process').length > NODES, 'all nodes');
    // The cells that move to the nodes after the first one are not part of the deployment.
    await shared(database, env.TROUPE_STORE);
    const url = /at (http:\S+);/.exec(fleet.err)?.[1] ?? '';
    const clients = Array.from({ length: 2 * CLIENTS }, (_, at) => new Client(url, `p${at}`, at % 2 === 0));
    await Promise.all(clients.map((client) => client.open()));

    let deployed = false;
    const loaded = Promise.all(clients.map((client) => client.add(() => deployed)));
    const made = (calls: number) => Promise.race([loaded, Promise.all(clients.map((client) => client.made(calls)))]);
    const taken = (): readonly number[] => clients.flatMap((client) => client.taken());
    await made(COLD);
    taken();
    await made(BEFORE);
    const before = taken();
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
    const during = taken();
    console.log(`D-10: before the deployment ${figures(before)}; during it ${figures(during)}`);
    // Clients without a pause meet the goal of twice the time before. These find two cores idle, and then new processes.
    assertFigure(percentile(during, 0.99), LATE_MS, 'D-10, p99 during the deployment');
    fleet.process.kill('SIGTERM');
    assert.is(await fleet.exit, 0);
  });
}

/** Resolves when each node owns its share of the cells. @throws Error if they do not */
async function shared(server: Databases, url: string): Promise<void> {
  let seen = '';
  await until(
    async () => {
      const { nodes, misplaced } = await placementOf((text) => server.query(text, url));
      seen = `${nodes.length} of ${NODES} nodes, ${misplaced.length} cells elsewhere`;
      return nodes.length === NODES && misplaced.length === 0;
    },
    () => `the shares of the cells: ${seen}`,
  );
}

/** The time that this share of the calls did not exceed. */
function percentile(times: readonly number[], share: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
}

function figures(times: readonly number[]): string {
  const [p50, p99, longest] = [0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(1));
  return `${times.length} calls, p50 ${p50}, p99 ${p99}, longest ${longest} ms`;
}
