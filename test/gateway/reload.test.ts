/** The gateway follows its configuration while calls run. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createServer, type Server, socket } from 'troupe';
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { Gateway } from '../../src/gateway/configured-gateway.ts';
import { suite } from '../harness/door.ts';
import { textOf } from '../harness/results.ts';
import { SCALE } from '../harness/scale.ts';
import { until } from '../harness/wait.ts';

const test = suite('changes of a configuration');

/** A gateway over servers on sockets: `a`, `b` and `c` answer with their names. */
class GatewayStage {
  readonly directory = mkdtempSync(join(tmpdir(), 'gateway-'));
  readonly file = join(this.directory, 'mcp.json');
  readonly said: string[] = [];
  /** Calls that the servers have carried out. */
  calls = 0;
  readonly host: Server = createServer({
    name: 'host',
    version: '1.0.0',
    offers: ['tools'],
    limits: { graceMs: 100 },
    log: () => {},
  });
  readonly gateway = new Gateway({
    file: this.file,
    server: this.host,
    environment: {},
    say: (_, line) => void this.said.push(line),
  });
  readonly #servers: Server[] = [];

  async open(entries: object): Promise<Client> {
    for (const name of ['a', 'b', 'c']) {
      const server = createServer({ name, version: '1.0.0', log: () => {} });
      server.tool('who', () => {
        this.calls += 1;
        return name;
      });
      server.tool('slow', async () => {
        this.calls += 1;
        await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
        return name;
      });
      await server.listen(socket(join(this.directory, name)));
      this.#servers.push(server);
    }
    this.write(entries);
    await this.gateway.open();
    const client = await connect(this.host);
    await client.tools();
    return client;
  }

  write(entries: object): void {
    writeFileSync(this.file, JSON.stringify({ mcpServers: entries }));
  }

  /** Writes the configuration, and applies it as the watch does. */
  async edit(entries: object): Promise<void> {
    this.write(entries);
    this.gateway.reload();
    await this.gateway.settled();
  }

  async close(): Promise<void> {
    this.gateway.close();
    await this.host.close();
    await Promise.all(this.#servers.map((server) => server.close()));
    rmSync(this.directory, { recursive: true, force: true });
  }
}

async function staged(entries: object, run: (stage: GatewayStage, client: Client) => Promise<void>): Promise<void> {
  const stage = new GatewayStage();
  try {
    const client = await stage.open(entries);
    await run(stage, client);
    await client.close();
  } finally {
    await stage.close();
  }
}

const names = async (client: Client): Promise<string[]> =>
  (await client.tools({ fresh: true })).map(({ name }) => name).sort();
const text = async (client: Client, tool: string): Promise<string> => {
  const [block] = (await client.call(tool)).content;
  return block?.type === 'text' ? block.text : '';
};
/** Resolves when the client has the tools. */
async function lists(client: Client, expected: readonly string[]): Promise<void> {
  const changes = client.changes({ tools: true });
  try {
    if (String(await names(client)) === String(expected)) return;
    for await (const _ of changes) if (String(await names(client)) === String(expected)) return;
  } finally {
    changes.end();
  }
}

test('added servers are mounted, removed ones are withdrawn, and options change in place', () =>
  staged({ x: { socket: 'a' } }, async (stage, client) => {
    assert.equal(await names(client), ['x_slow', 'x_who']);
    await stage.edit({ x: { socket: 'a' }, y: { socket: 'b', troupe: { only: ['who'] } } });
    await lists(client, ['x_slow', 'x_who', 'y_who']);
    assert.is(await text(client, 'y_who'), 'b');
    await stage.edit({ y: { socket: 'b', troupe: { prefix: false } } });
    await lists(client, ['slow', 'who']);
    await stage.edit({ y: { socket: 'b', disabled: true } });
    await lists(client, []);
    await stage.edit({ y: { socket: 'b' } });
    await lists(client, ['y_slow', 'y_who']);
  }));

test('lists, and the owner of a name that two servers claim, follow the order of the file after each edit', () =>
  staged({ a: { socket: 'a' }, c: { socket: 'c' } }, async (stage, client) => {
    const listed = async (): Promise<string[]> =>
      (await client.tools({ fresh: true })).map(({ name }) => name).filter((name) => !name.endsWith('slow'));
    const edit = async (entries: object, expected: readonly string[]): Promise<void> => {
      await stage.edit(entries);
      await until(
        async () => String(await listed()) === String(expected),
        () => `the list ${expected}`,
      );
      assert.equal(await listed(), expected);
    };
    const [a, b, c] = [{ socket: 'a' }, { socket: 'b' }, { socket: 'c' }];
    assert.equal(await listed(), ['a_who', 'c_who']);
    await edit({ a, b, c }, ['a_who', 'b_who', 'c_who']);
    await edit({ c, b, a }, ['c_who', 'b_who', 'a_who']);
    // The calls of `who` go to the server that comes first now.
    const named = (socket: string): object => ({ socket, troupe: { rename: { who: 'who' } } });
    await edit({ b: named('b'), a: named('a') }, ['who']);
    assert.is(textOf(await client.call('who')), 'b');
    await edit({ a: named('a'), b: named('b') }, ['who']);
    assert.is(textOf(await client.call('who')), 'a');
  }));

test('another connection takes the place of the present one when it is ready', () =>
  staged({ x: { socket: 'a' } }, async (stage, client) => {
    await stage.edit({ x: { socket: 'b' } });
    assert.is(await text(client, 'x_who'), 'b');
    assert.ok(stage.said.some((line) => line.startsWith('x: changed to socket b')));
  }));

test('a server that cannot be reached takes no place, and a later edit overtakes it', () =>
  staged({ x: { socket: 'a' } }, async (stage, client) => {
    stage.write({ x: { socket: 'nowhere' } });
    stage.gateway.reload();
    assert.is(await text(client, 'x_who'), 'a');
    await stage.edit({ x: { socket: 'b' } });
    assert.is(await text(client, 'x_who'), 'b');
  }));

test('a change of an envFile is applied as one of the configuration', () =>
  staged({ x: { socket: 'a' } }, async (stage, client) => {
    const file = join(stage.directory, 'x.env');
    writeFileSync(file, 'WHO=a');
    // A command that does not exist: its mount has the variables, and lists nothing.
    const entry = { command: join(stage.directory, 'none'), envFile: 'x.env' };
    await stage.edit({ x: { socket: 'a' }, y: entry });
    const before = stage.said.length;
    stage.gateway.reload();
    assert.is(stage.said.length, before);
    writeFileSync(file, 'WHO=b');
    stage.gateway.reload(true);
    assert.ok(stage.said.slice(before).some((line) => line.startsWith('y: changes to')));
    assert.is(await text(client, 'x_who'), 'a');
  }));

test('a configuration that does not parse changes nothing, and its line is reported', () =>
  staged({ x: { socket: 'a' } }, async (stage, client) => {
    writeFileSync(stage.file, '{\n  "mcpServers": {\n    "x": }\n}');
    stage.gateway.reload();
    await stage.gateway.settled();
    assert.match(stage.said.at(-1) ?? '', /mcp\.json:3:10: expected a value, got \}\. The servers stay as they were/);
    assert.is(await text(client, 'x_who'), 'a');
    rmSync(stage.file);
    stage.gateway.reload();
    assert.match(stage.said.at(-1) ?? '', 'The servers stay as they were');
    await stage.edit({ x: { socket: 'b' } });
    assert.is(await text(client, 'x_who'), 'b');
  }));

test('the watch applies a file that an editor replaces', () =>
  staged({ x: { socket: 'a' } }, async (stage, client) => {
    stage.write({ x: { socket: 'a' }, y: { socket: 'c' } });
    await lists(client, ['x_slow', 'x_who', 'y_slow', 'y_who']);
  }));

test('the watch follows a link to the file', () =>
  staged({ x: { socket: 'a' } }, async (stage, client) => {
    const real = join(stage.directory, 'elsewhere', 'real.json');
    mkdirSync(dirname(real));
    renameSync(stage.file, real);
    symlinkSync(real, stage.file);
    const linked = new Gateway({ file: stage.file, server: stage.host, environment: {}, say() {} });
    stage.gateway.close();
    await linked.open();
    writeFileSync(real, JSON.stringify({ mcpServers: { z: { socket: join(stage.directory, 'c') } } }));
    await lists(client, ['x_slow', 'x_who', 'z_slow', 'z_who']);
    linked.close();
  }));

test('an edit of another server does not begin a change again', () =>
  staged({ x: { socket: 'a' }, y: { socket: 'b' } }, async (stage, client) => {
    let connections = 0;
    let connected = (): void => {};
    const reached = new Promise<void>((resolve) => {
      connected = resolve;
    });
    const silent = createNetServer(() => {
      connections += 1;
      connected();
    });
    await new Promise<void>((resolve) => void silent.listen(join(stage.directory, 'silent'), resolve));
    stage.write({ x: { socket: 'silent' }, y: { socket: 'b' } });
    stage.gateway.reload();
    await reached;
    stage.write({ x: { socket: 'silent' } });
    stage.gateway.reload();
    await lists(client, ['x_slow', 'x_who']);
    assert.is(connections, 1);
    assert.is(await text(client, 'x_who'), 'a');
    await stage.edit({ x: { socket: 'b' } });
    assert.is(await text(client, 'x_who'), 'b');
    silent.close();
  }));

const EDITS = SCALE === 'quick' ? 12 : 100;

test(`U-17: no call is lost, and none is made twice, while a configuration is edited ${EDITS} times`, () =>
  staged({ x: { socket: 'a' }, y: { socket: 'b' } }, async (stage, client) => {
    let running = true;
    let made = 0;
    const failures: unknown[] = [];
    const load = async (tool: string): Promise<void> => {
      while (running) {
        made += 1;
        const answer = await client.call(tool).catch((error: unknown) => error);
        const [block] =
          typeof answer === 'object' && answer !== null && 'content' in answer ? [answer.content].flat() : [];
        if (!/^[abc]$/.test(String(Object(block).text))) failures.push(answer);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const loads = Array.from({ length: 16 }, (_, at) => load(at % 2 === 0 ? 'x_slow' : 'x_who'));
    // Everything but the name of `x` changes under its calls.
    const edits: readonly object[] = [
      { x: { socket: 'b' }, y: { socket: 'b' } },
      { x: { socket: 'b' } },
      { x: { socket: 'b', timeout: 30_000 }, y: { socket: 'a' } },
      { x: { socket: 'c', troupe: { except: ['other'] } }, y: { socket: 'a' } },
      { x: { socket: 'a' }, y: { socket: 'c' }, z: { socket: 'c' } },
      { x: { socket: 'a' }, y: { command: 'nowhere', disabled: true } },
    ];
    for (let at = 0; at < EDITS; at += 1) {
      if (at % 7 === 3) {
        writeFileSync(stage.file, '{ "mcpServers": ');
        stage.gateway.reload();
      }
      await stage.edit(edits[at % edits.length] ?? {});
    }
    running = false;
    await Promise.all(loads);
    assert.equal(failures, []);
    assert.ok(made > EDITS, `${made} calls`);
    assert.is(stage.calls, made);
  }));
