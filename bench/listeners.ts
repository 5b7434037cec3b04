/** Clients that listen: opens streams to a server, and says when each has heard of a change. A process of its own: `listeners.ts URL ERA CHANGE COUNT [TASK]`. */
import { connect, type Socket } from 'node:net';

/** Streams that are being opened at once. */
const AT_ONCE = 64;

const [href = '', era = 'legacy', change = 'list', streams = '1', task = ''] = process.argv.slice(2);
const url = new URL(href);

/** What only a notification of the change has in it. */
const MARKS: Readonly<Record<string, string>> = {
  list: 'notifications/tools/list_changed',
  resource: 'notifications/resources/updated',
  task: 'notifications/tasks"',
  tasks: 'notifications/tasks/status',
};
const MARK = MARKS[change] ?? '';

/** One buffer for all that is read: a generator that makes garbage measures itself. */
const buffer = Buffer.allocUnsafe(64 * 1_024);

let heard = 0;
let lastAt = 0n;
let failure: Error | undefined;
let allHeard: () => void = () => {};

class Listener {
  /** Notifications of the change since the last time that somebody began to count. */
  heard = 0;
  readonly #socket: Socket;
  #text = '';
  #streaming = false;
  #onText: () => void = () => {};

  private constructor(opened: () => void) {
    const callback = (length: number): boolean => {
      this.#read(buffer.toString('latin1', 0, length));
      return true;
    };
    const { hostname: host, port } = url;
    this.#socket = connect({ host, port: Number(port), noDelay: true, onread: { buffer, callback } }, opened);
    this.#socket.on('error', fail);
    this.#socket.on('close', () => fail(new Error('the server closed a stream')));
  }

  static open(): Promise<Listener> {
    return new Promise((resolve) => {
      const listener = new Listener(() => resolve(listener));
    });
  }

  /** Sends a message, and waits for its whole answer. */
  async exchange(head: string, body: string): Promise<string> {
    this.#socket.write(`${head}\r\n\r\n${body}`);
    const whole = /^HTTP\/1\.1 (\d+)[\s\S]*?\r\ncontent-length: *(\d+)[\s\S]*?\r\n\r\n/i;
    for (;;) {
      const [matched, status, length] = whole.exec(this.#text) ?? [];
      if (matched !== undefined && this.#text.length >= matched.length + Number(length)) {
        const answer = this.#text;
        this.#text = '';
        if (Number(status) >= 300) throw new Error(`expected an answer, got ${answer}`);
        return answer;
      }
      await this.#more();
    }
  }

  /** Sends what is answered with a stream, and waits until that has begun. @param first what it begins with */
  async stream(head: string, body: string, first: string): Promise<void> {
    this.#socket.write(`${head}\r\n\r\n${body}`);
    while (!this.#text.includes('\r\n\r\n') || !this.#text.includes(first)) await this.#more();
    if (!this.#text.startsWith('HTTP/1.1 200')) throw new Error(`expected a stream, got ${this.#text}`);
    this.#text = '';
    this.#streaming = true;
  }

  close(): void {
    this.#socket.removeAllListeners('close').destroy();
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#onText = resolve;
    });
  }

  #read(text: string): void {
    this.#text += text;
    if (!this.#streaming) return this.#onText();
    for (let at = this.#text.indexOf(MARK); at >= 0; at = this.#text.indexOf(MARK, at + 1)) {
      this.heard += 1;
      heard += 1;
    }
    // What may be the beginning of another mark.
    this.#text = this.#text.slice(this.#text.lastIndexOf('\n') + 1);
    if (this.#text.includes(MARK)) this.#text = '';
    if (heard < listeners.length) return;
    lastAt = process.hrtime.bigint();
    allHeard();
  }
}

const listeners: Listener[] = [];
const sessions: string[] = [];
let calls = 1;

function fail(error: Error): void {
  failure ??= error;
}

function headOf(method: string, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries({ Host: url.host, ...headers }).map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${url.pathname} HTTP/1.1`, ...lines].join('\r\n');
}

function posted(message: object, headers: Readonly<Record<string, string>>): readonly [head: string, body: string] {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const all = {
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    ...headers,
  };
  return [headOf('POST', all), body];
}

const SELF = { name: 'bench', version: '1.0.0' };

async function openLegacy(listener: Listener): Promise<void> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: SELF };
  const opened = await listener.exchange(...posted({ id: 0, method: 'initialize', params }, {}));
  const session = /\r\nmcp-session-id: *([^\r\n]+)/i.exec(opened)?.[1] ?? '';
  const headers = { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25' };
  await listener.exchange(...posted({ method: 'notifications/initialized' }, headers));
  if (change === 'resource')
    await listener.exchange(...posted({ id: 1, method: 'resources/subscribe', params: { uri: 'doc://1' } }, headers));
  sessions.push(session);
  await listener.stream(headOf('GET', { Accept: 'text/event-stream', ...headers }), '', '');
}

async function openModern(listener: Listener): Promise<void> {
  const FILTERS: Readonly<Record<string, object>> = {
    list: { toolsListChanged: true },
    resource: { resourceSubscriptions: ['doc://1'] },
    task: { taskIds: [task] },
  };
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': SELF,
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  };
  const message = { id: 1, method: 'subscriptions/listen', params: { notifications: FILTERS[change], _meta } };
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'subscriptions/listen' };
  await listener.stream(...posted(message, headers), 'acknowledged');
}

async function open(): Promise<number> {
  let begun = 0;
  const opening = async (): Promise<void> => {
    while (begun < Number(streams)) {
      begun += 1;
      const listener = await Listener.open();
      await (era === 'legacy' ? openLegacy(listener) : openModern(listener));
      listeners.push(listener);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, opening));
  return listeners.length;
}

/** Begins to count what is heard. A task of a session ends once: each is given another. */
async function count(): Promise<number> {
  if (change === 'tasks') await createTasks();
  heard = 0;
  for (const listener of listeners) listener.heard = 0;
  return heard;
}

async function createTasks(): Promise<void> {
  calls += 1;
  const left = sessions.values();
  const message = { id: calls, method: 'tools/call', params: { name: 'work', arguments: {}, task: {} } };
  const creating = async (connection: Listener): Promise<void> => {
    for (const session of left)
      await connection.exchange(
        ...posted(message, { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25' }),
      );
  };
  // Opened anew for each time: a server closes connections that are idle in between.
  const callers = await Promise.all(Array.from({ length: AT_ONCE }, () => Listener.open()));
  await Promise.all(callers.map(creating));
  for (const caller of callers) caller.close();
}

/** Resolves once each has heard of the change. @returns when the last has, in nanoseconds of the monotonic clock */
async function hear(): Promise<string> {
  if (heard < listeners.length)
    await new Promise<void>((resolve) => {
      allHeard = resolve;
    });
  if (failure) throw failure;
  const wrong = listeners.find((listener) => listener.heard !== 1);
  if (wrong) throw new Error(`expected each stream to hear of the change once, got one that did ${wrong.heard} times`);
  return String(lastAt);
}

const ANSWERS: Readonly<Record<string, () => unknown>> = { open, count, hear };

process.on('message', async (question) => process.send?.(await ANSWERS[String(question)]?.()));
process.stdout.write(`${href}\n`);
process.stdin.resume().once('end', () => process.exit());
