/** The socket transport with a real server behind it: who may connect, what becomes of the file, and that no client disturbs another. */
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer as listener, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createServer, type Server, type SocketOptions, socket } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { times } from '../../harness/scale.ts';

const test = suite('socket');
const posix = process.platform !== 'win32';
const folder = mkdtempSync(join(tmpdir(), 'troupe-socket-'));
let count = 0;

function freshPath(): string {
  count += 1;
  return posix ? join(folder, `${count}.sock`) : `\\\\.\\pipe\\troupe-test-${process.pid}-${count}`;
}

function posixTest(title: string, body: () => Promise<void>): void {
  if (posix) test(title, body);
  else test.skip(title, 'pipes of Windows have no file');
}

/** A client that keeps what it hears. */
class Client {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  readonly lines: string[] = [];
  #rest = '';
  #wake: (() => void)[] = [];

  constructor(path: string) {
    this.socket = connect({ path, allowHalfOpen: true }).setEncoding('utf8');
    this.socket.on('error', () => {});
    this.closed = new Promise((resolve) => this.socket.once('close', resolve));
    this.socket.on('end', () => this.socket.end());
    void this.closed.then(() => this.#awake());
  }

  read(): this {
    this.socket.on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() ?? '';
      this.lines.push(...lines);
      this.#awake();
    });
    return this;
  }

  send(...messages: object[]): this {
    this.socket.write(messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join(''));
    return this;
  }

  open(name: string): this {
    return this.read().send(
      {
        id: 'open',
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } },
      },
      { method: 'notifications/initialized' },
    );
  }

  call(id: number, name: string, args: object = {}): this {
    return this.send({ id, method: 'tools/call', params: { name, arguments: args } });
  }

  async heard(text: string): Promise<string> {
    for (;;) {
      const line = this.lines.find((line) => line.includes(text));
      if (line !== undefined) return line;
      if (this.socket.closed) throw new Error(`closed before ${text}; heard:\n${this.lines.join('\n')}`);
      await new Promise<void>((resolve) => void this.#wake.push(resolve));
    }
  }

  #awake(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }
}

interface Stage {
  readonly path: string;
  readonly server: Server;
  readonly told: string[];
  /** Lets the tool `wait` answer. */
  release(): void;
  /** Resolves when `wait` runs. */
  readonly waits: Promise<void>;
}

async function stage(options: SocketOptions = {}, path = freshPath()): Promise<Stage> {
  const { server, logged: told } = loggedServer({ name: 'socket' });
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let began = (): void => {};
  const waits = new Promise<void>((resolve) => {
    began = resolve;
  });
  server.tool('who', {}, (_args, { client, session }) => `${client.info?.name} ${session?.id}`);
  server.tool('big', {}, () => 'x'.repeat(200_000));
  server.tool('wait', {}, async (_args, { signal }) => {
    began();
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await Promise.race([released, aborted]);
    return signal.aborted ? 'aborted' : 'released';
  });
  await server.listen(socket(path, { flushMs: 200, ...options }));
  return { path, server, told, release, waits };
}

async function refusal(path: string, options: SocketOptions = {}): Promise<string> {
  const error: unknown = await stage(options, path).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof Error)) throw new Error('it was not refused');
  return error.message;
}

test.after(() => rmSync(folder, { recursive: true, force: true }));

test('each client has a session of its own', async () => {
  const { server, path } = await stage();
  const clients = ['a', 'b', 'c'].map((name) => new Client(path).open(name).call(1, 'who'));
  const answers = await Promise.all(clients.map((client) => client.heard('"id":1')));
  for (const [index, name] of ['a', 'b', 'c'].entries()) assert.match(answers[index] ?? '', `"text":"${name} `);
  assert.is(new Set(answers.map((answer) => /[abc] ([\w-]{21})/.exec(answer)?.[1])).size, 3);
  await server.close();
  await Promise.all(clients.map(({ closed }) => closed));
});

posixTest('the file has mode 0600, leaves the mask of the process as it was, and goes with the server', async () => {
  const mask = process.umask(0);
  try {
    const { server, path } = await stage();
    assert.is(process.umask(), 0);
    assert.is(lstatSync(path).mode & 0o777, 0o600);
    await server.close();
    assert.not(existsSync(path));
  } finally {
    process.umask(mask);
  }
});

posixTest('a directory to which others may write is refused with what to do', async () => {
  for (const mode of [0o777, 0o1777, 0o770]) {
    const directory = join(folder, `open-${mode.toString(8)}`);
    mkdirSync(directory);
    chmodSync(directory, mode);
    assert.match(await refusal(join(directory, 's')), /other users may write to the directory .*chmod go-w/);
  }
  assert.match(await refusal(join(folder, 'none', 's')), /does not exist\. Create it with mkdir -p -m 700/);
});

posixTest('a path that no socket can have is refused with what it has to be', async () => {
  assert.match(await refusal(join(folder, 'x'.repeat(100))), /expected a path of at most 10[37] bytes, got \d+/);
  assert.match(await refusal(''), /expected the path of a file, got an empty one/);
  assert.match(await refusal('\0abstract'), /with a NUL in it/);
});

posixTest('the file of a dead server is replaced', async () => {
  const path = freshPath();
  const dead = listener().listen(`${path}-dead`);
  await once(dead, 'listening');
  linkSync(`${path}-dead`, path);
  dead.close();
  assert.ok(lstatSync(path).isSocket());
  const { server } = await stage({}, path);
  await new Client(path).open('a').heard('"id":"open"');
  await server.close();
});

test('a live server is left alone, and the second one fails with that reason', async () => {
  const { server, path } = await stage();
  assert.match(await refusal(path), /a server already listens on .*\. Use it \(troupe attach/);
  await new Client(path).open('a').heard('"id":"open"');
  await server.close();
});

posixTest('a file that is no socket is left alone', async () => {
  const path = freshPath();
  writeFileSync(path, 'precious');
  assert.match(await refusal(path), /the file at .* is not a socket/);
  const link = freshPath();
  symlinkSync(path, link);
  assert.match(await refusal(link), /is not a socket/);
});

posixTest('a server that closes leaves the file of its successor where it is', async () => {
  const first = await stage();
  rmSync(first.path);
  const second = await stage({}, first.path);
  await first.server.close();
  await new Client(first.path).open('a').heard('"id":"open"');
  await second.server.close();
  assert.not(existsSync(first.path));
});

test('a client beyond the bound gets one error and the end; when another goes, the next is served', async () => {
  const counts: number[] = [];
  const { server, path, told } = await stage({
    maxConnections: 2,
    onCount: (connected) => void counts.push(connected),
  });
  const [a, b] = [new Client(path).open('a'), new Client(path).open('b')];
  await Promise.all([a.heard('"id":"open"'), b.heard('"id":"open"')]);
  const refused = [new Client(path).open('c'), new Client(path).open('d')];
  await Promise.all(refused.map(({ closed }) => closed));
  for (const { lines } of refused) {
    assert.is(lines.length, 1);
    const { id, error } = JSON.parse(lines[0] ?? '');
    assert.equal({ id, code: error.code }, { id: null, code: -31_001 });
    assert.match(error.message, /accepts 2 connections at once \(maxConnections of socket\(\)\)/);
  }
  assert.is(told.filter((line) => line.includes('rejected a client')).length, 1);
  a.socket.end();
  await a.closed;
  await new Client(path).open('e').heard('"id":"open"');
  assert.equal(counts, [1, 2, 1, 2]);
  await server.close();
});

test('a client that ends its input is answered, then ended; the others live on', async () => {
  const { server, path, release, waits } = await stage();
  const other = new Client(path).open('other');
  const client = new Client(path).open('a').call(1, 'wait');
  client.socket.end();
  await waits;
  release();
  assert.match(await client.heard('"id":1'), 'released');
  await client.closed;
  assert.match(await other.call(2, 'who').heard('"id":2'), 'other');
  await server.close();
});

test('a client that vanishes in the middle of a line, or with answers on their way, disturbs no other client', async () => {
  const { server, path, told } = await stage();
  const other = new Client(path).open('other');
  for (let index = 0; index < times(20, { quick: 6 }); index += 1) {
    const client = new Client(path).open('gone');
    await client.heard('"id":"open"');
    for (let id = 1; id <= 10; id += 1) client.call(id, 'big');
    client.socket.write('{"jsonrpc":"2.0","id":99,');
    client.socket.destroy();
  }
  assert.match(await other.call(2, 'who').heard('"id":2'), 'other');
  await server.close();
  assert.equal(told, []);
});

/** Results of 200 KB: more than a socket buffers. */
const BIG = 30;

test('a client that does not read holds up only itself, and gets everything once it reads', async () => {
  const { server, path } = await stage();
  const slow = new Client(path);
  for (let id = 1; id <= BIG; id += 1)
    slow.send({
      id,
      method: 'tools/call',
      params: {
        name: 'big',
        arguments: {},
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'slow', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    });
  const other = new Client(path).open('other');
  for (let id = 1; id <= 50; id += 1) await other.call(id, 'who').heard(`"id":${id},`);
  slow.read();
  for (let id = 1; id <= BIG; id += 1) assert.match(await slow.heard(`"id":${id},`), 'xxx');
  await server.close();
});

test('a server that closes answers what is in flight, takes no new clients, and ends those it has', async () => {
  const { server, path, release, waits } = await stage();
  const client = new Client(path).open('a').call(1, 'wait');
  await waits;
  const closing = server.close();
  const late = new Client(path);
  await late.closed;
  assert.equal(late.lines, []);
  release();
  assert.match(await client.heard('"id":1'), 'released');
  await closing;
  await client.closed;
});

test('a client that never reads does not keep a server from closing', async () => {
  const { server, path, told } = await stage();
  const stuck = new Client(path);
  stuck.open('stuck').socket.pause();
  for (let id = 1; id <= 100; id += 1) stuck.call(id, 'big');
  await new Client(path).open('a').heard('"id":"open"');
  await server.close();
  assert.match(told.join('\n'), 'the client read nothing for 200 ms while closing');
});

test('a transport opens once', async () => {
  const transport = socket(freshPath());
  const [one, two] = [1, 2].map((index) => createServer({ name: `server ${index}`, version: '1' }));
  await one?.listen(transport);
  try {
    await two?.listen(transport);
    assert.unreachable();
  } catch (error) {
    assert.match(String(error), 'was already opened. Call socket() for another');
  }
  await one?.close();
});
