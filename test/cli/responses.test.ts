/** Each request has exactly one response through `troupe run` and `troupe attach`, in every revision, for any input and any crash. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../harness/door.ts';
import { until } from '../harness/wait.ts';
import { withoutStalls } from './agent.ts';
import { Cli, isBuilt } from './cli.ts';

fullOnly('starts a program for each response; the quick test of `troupe run` is run.test.ts');

const all = suite('one response');

const SERVER = fileURLToPath(new URL('../fixtures/supervised/server.mjs', import.meta.url));
const MAX_BYTES = 65_536;
const root = mkdtempSync(join(tmpdir(), 'troupe-responses-'));
const servers = new Set<number>();

all.after(() => {
  for (const pid of servers) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has exited, as expected.
    }
  }
  rmSync(root, { recursive: true, force: true });
});

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const MODERN = '2026-07-28';

type Id = string | number;

/** What an agent may send that a server rejects, with the ids that a server can read in it. */
interface Sent {
  readonly title: string;
  readonly bytes: string | Buffer;
  readonly ids: readonly Id[];
}

/** The requests of a revision. */
class Wire {
  readonly revision: string;

  constructor(revision: string) {
    this.revision = revision;
  }

  get #meta(): object {
    if (this.revision !== MODERN) return {};
    return {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': MODERN,
        'io.modelcontextprotocol/clientInfo': { name: 'responses', version: '1.0.0' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    };
  }

  request(id: unknown, method: string, params: object = {}): string {
    return JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, ...this.#meta } });
  }

  call(id: Id, name: string, args: object = {}): string {
    return this.request(id, 'tools/call', { name, arguments: args });
  }

  /** Lines that a server rejects. @param from the first of their ids */
  rejected(from: string): readonly Sent[] {
    const unreadable = [1.5, null, {}, [1], true, 2 ** 53].map((id) => ({
      title: `the id ${JSON.stringify(id)}`,
      bytes: this.request(id, 'tools/list'),
      ids: [],
    }));
    const id = (name: string): string => `${from} ${name}`;
    const one = (title: string, text: (id: string) => string): Sent => ({
      title,
      bytes: text(JSON.stringify(id(title))),
      ids: [id(title)],
    });
    return [
      ...unreadable,
      { title: 'bytes that are no text', bytes: Buffer.from([0xff, 0xfe]), ids: [] },
      { title: 'no JSON', bytes: 'nonsense', ids: [] },
      one('a request that is cut off', (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{`),
      one(
        'nested too deep',
        (id) => `{"jsonrpc":"2.0","id":${id},"method":"ping","params":${'['.repeat(99)}${']'.repeat(99)}}`,
      ),
      one('too long', (id) => `{"jsonrpc":"2.0","id":${id},"method":"ping","params":{"x":"${'x'.repeat(MAX_BYTES)}"}}`),
      one('the same key twice', (id) => `{"jsonrpc":"2.0","id":${id},"method":"ping","method":"ping"}`),
      one('a forbidden key', (id) => `{"jsonrpc":"2.0","id":${id},"method":"ping","params":{"__proto__":1}}`),
      one('no method', (id) => `{"jsonrpc":"2.0","id":${id}}`),
      one('no version', (id) => `{"id":${id},"method":"ping"}`),
      one('an unknown method', (id) => `{"jsonrpc":"2.0","id":${id},"method":"dance"}`),
      { title: 'an empty batch', bytes: '[]', ids: [] },
      { title: 'a batch of a number', bytes: '[1]', ids: [] },
      {
        title: 'a batch',
        bytes: `[${this.request(id('batch 1'), 'tools/list')},${this.request(id('batch 2'), 'tools/list')}]`,
        ids: [id('batch 1'), id('batch 2')],
      },
    ];
  }
}

/** A message as it came, those of a batch one by one. */
interface Heard {
  readonly id?: Id | null;
  readonly method?: string;
  readonly result?: { readonly content?: readonly { readonly text?: string }[] };
  readonly error?: { readonly code: number; readonly message: string };
}

class Agent extends Cli {
  readonly wire: Wire;
  readonly #folder: string;

  constructor(command: 'run' | 'attach', wire: Wire) {
    const folder = mkdtempSync(join(root, 'agent-'));
    const rest = ['--', folder, String(MAX_BYTES)];
    super(command === 'run' ? ['run', SERVER, ...rest] : ['attach', '--spawn', SERVER, join(folder, 's'), ...rest]);
    this.wire = wire;
    this.#folder = folder;
  }

  write(...lines: readonly (string | Buffer)[]): void {
    this.process.stdin?.write(Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')])));
  }

  /** Every response so far; of a batch that has no id, the batch is one. */
  get responses(): readonly Heard[] {
    const heard: Heard[] = this.lines.flatMap((line) => JSON.parse(line));
    return heard.filter(({ method }) => method === undefined);
  }

  to(id: Id): readonly Heard[] {
    return this.responses.filter((response) => response.id === id);
  }

  /** Errors that are for no id. */
  get withoutId(): number {
    return this.responses.filter(({ id }) => id === undefined || id === null).length;
  }

  async answered(id: Id): Promise<Heard> {
    await this.until(() => this.to(id).length > 0, `the response to ${id}`);
    return this.to(id)[0] ?? {};
  }

  async text(id: Id, name: string): Promise<string> {
    this.write(this.wire.call(id, name));
    const { result, error } = await this.answered(id);
    assert.is(error, undefined);
    return result?.content?.[0]?.text ?? '';
  }

  async pid(id: Id): Promise<number> {
    const pid = Number(await this.text(id, 'pid'));
    servers.add(pid);
    return pid;
  }

  async open(): Promise<void> {
    const { revision } = this.wire;
    if (revision === MODERN) return;
    const clientInfo = { name: 'responses', version: '1.0.0' };
    this.write(this.wire.request('open', 'initialize', { protocolVersion: revision, capabilities: {}, clientInfo }));
    await this.answered('open');
    this.write('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  }

  /** Resolves when a tool has begun so many times; what another process does to a file can only be looked for. */
  async began(name: 'reader' | 'writer', times: number): Promise<void> {
    const path = join(this.#folder, name);
    const count = (): number => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0);
    await until(() => count() >= times, `${name} to begin ${times} times`);
    assert.is(count(), times);
  }

  /** Lets the tools end that have begun, and those that will. */
  release(): void {
    writeFileSync(join(this.#folder, 'released'), '');
  }

  hold(): void {
    rmSync(join(this.#folder, 'released'));
  }

  /** The lines that were answered by an id of theirs. */
  named(sent: readonly Sent[]): readonly Sent[] {
    return sent.filter(({ ids }) => ids.some((id) => this.to(id).length > 0));
  }
}

function test(title: string, body: () => Promise<void>): void {
  if (!isBuilt) all.skip(title, 'dist is not built: npm run build');
  else if (process.platform === 'win32') all.skip(title, 'the signals of this file are those of POSIX');
  else all(title, body);
}

for (const command of ['run', 'attach'] as const)
  test(`R-35: ${command}: an agent that sends invalid requests and leaves at once gets one error for each, and the command ends`, async () => {
    const agent = new Agent(command, new Wire('2025-11-25'));
    const sent = ['{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', '{"id":null}', 'nonsense', '[]', '{"id":1}'];
    agent.write(...sent);
    assert.is(await agent.end(), 0);
    assert.is(agent.responses.length, sent.length);
    assert.ok(agent.responses.every(({ error }) => error));
    assert.is(withoutStalls(agent.err), '');
  });

for (const command of ['run', 'attach'] as const)
  for (const revision of [...LEGACY, MODERN]) {
    test(`R-35, R-36: ${command}, ${revision}: each request has one response, and rejected requests are not resent`, async () => {
      const wire = new Wire(revision);
      const agent = new Agent(command, wire);
      await agent.open();
      const first = await agent.pid('pid 1');
      agent.write(wire.call('writer', 'writer'), wire.call('reader', 'reader'));
      await Promise.all([agent.began('writer', 1), agent.began('reader', 1)]);

      // A request whose id is in flight is rejected, and the one in flight stays so. What else is rejected has one response, too.
      const rejected = wire.rejected('one');
      const known = agent.responses.length;
      agent.write(...rejected.map(({ bytes }) => bytes), wire.call('writer', 'pid'), wire.request('writer', 'dance'));
      await agent.pid('pid 2');
      assert.is(agent.to('writer').length, 2);
      for (const { error } of agent.to('writer')) assert.ok(error);
      const named = agent.named(rejected);
      for (const { ids, title } of named) for (const id of ids) assert.is(agent.to(id).length, 1, title);
      assert.is(agent.withoutId, rejected.length - named.length);
      const before = agent.responses.length;
      assert.is(before, known + 3 + agent.withoutId + named.flatMap(({ ids }) => ids).length);

      // The annotations of tools are known, though the agent has listed none, and 2024-11-05 has none to list.
      process.kill(first, 'SIGKILL');
      agent.release();
      // What the next server answers comes behind what its relay answers.
      const second = await agent.pid('pid 3');
      assert.is.not(second, first);
      assert.is(agent.to('writer').length, 3);
      assert.match(agent.to('writer')[2]?.error?.message ?? '', 'The server restarted');
      assert.is((await agent.answered('reader')).result?.content?.[0]?.text, String(second));
      assert.is(agent.responses.length, before + 3);

      // They follow what the program does to them.
      agent.hold();
      await agent.text('swap', 'swap');
      agent.write(wire.call('writer 2', 'writer'), wire.call('reader 2', 'reader'));
      await Promise.all([agent.began('writer', 2), agent.began('reader', 3)]);
      const again = wire.rejected('two');
      const errors = agent.withoutId;
      agent.write(...again.map(({ bytes }) => bytes));
      process.kill(second, 'SIGKILL');
      agent.release();
      const third = Number((await agent.answered('writer 2')).result?.content?.[0]?.text);
      servers.add(third);
      assert.is(await agent.pid('pid 4'), third);
      assert.is.not(third, second);
      assert.match((await agent.answered('reader 2')).error?.message ?? '', 'The server restarted');
      assert.is(await agent.end(), 0);
      for (const { ids } of again)
        for (const id of ids) assert.ok(agent.to(id).length <= 1, `${id}: ${JSON.stringify(agent.to(id))}`);
      for (const id of ['pid 3', 'pid 4', 'writer 2', 'reader', 'reader 2', 'swap'])
        assert.is(agent.to(id).length, 1, id);
      const withoutId = agent.withoutId - errors;
      assert.ok(withoutId <= again.length);
      // An error without an id is the response to a line that the server cannot take apart.
      assert.ok(agent.named(again).length + withoutId >= again.filter(({ ids }) => ids.length > 0).length);
      if (command === 'run') assert.is(agent.err.split('restarting').length, 3, agent.err);
    });
  }
