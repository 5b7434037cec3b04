/** The `troupe` command in a process of its own, driven with raw JSON lines. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const BUILT = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));

/** Whether it is run as it is published, JavaScript under plain node, and not from the sources: it starts in a fifth of the time then. */
export const isBuilt: boolean = existsSync(BUILT);

/** Where a program finds the package that the command is of: two copies of it in one process are a test of their own. */
export const TROUPE: string = isBuilt
  ? new URL('../../dist/lib/index.js', import.meta.url).href
  : new URL('../../src/index.ts', import.meta.url).href;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

export class Cli {
  readonly process: ChildProcess;
  /** Every line on stdout. */
  readonly lines: string[] = [];
  readonly messages: Message[] = [];
  err = '';
  readonly exit: Promise<number | null>;
  #rest = '';
  #wake: (() => void)[] = [];
  #id = 0;

  constructor(args: readonly string[], { cwd = process.cwd() }: { readonly cwd?: string } = {}) {
    const tsx = import.meta.resolve('tsx');
    this.process = spawn(process.execPath, [...(isBuilt ? [BUILT] : ['--import', tsx, SOURCE]), ...args], {
      cwd,
      stdio: 'pipe',
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
      this.#awake();
    });
    this.process.stdin?.on('error', () => {});
    this.exit = once(this.process, 'close').then(([code]) => code);
    void this.exit.then(() => this.#awake());
    process.on('exit', () => this.process.kill('SIGKILL'));
  }

  /** Opens a session. */
  async initialize(): Promise<Readonly<Record<string, unknown>>> {
    const result = await this.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'cli-test', version: '1.0.0' },
    });
    this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return result;
  }

  send(message: object): void {
    this.process.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** Sends a request, and resolves with its result. @throws for an error, or when the process has gone */
  async request(method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
    this.#id += 1;
    const id = this.#id;
    this.send({ jsonrpc: '2.0', id, method, params });
    const answer = (): Message | undefined => this.messages.find((message) => message.id === id);
    await this.until(() => answer() !== undefined, `the answer to ${method}`);
    const { result, error } = answer() ?? {};
    if (!result) throw new Error(`${method}: ${JSON.stringify(error)}\n${this.err}`);
    return result;
  }

  /** What a tool answers, as text. */
  async call(name: string, args: object = {}): Promise<string> {
    const { content } = await this.request('tools/call', { name, arguments: args });
    return Array.isArray(content) ? content.map(({ text }: { text?: unknown }) => String(text)).join() : '';
  }

  /** The names of what a list has. */
  async list(kind: 'tools' | 'resources' | 'prompts'): Promise<string[]> {
    const { [kind]: listed } = await this.request(`${kind}/list`);
    return Array.isArray(listed) ? listed.map(({ name }: { name?: unknown }) => String(name)) : [];
  }

  /** The methods of the notifications so far. */
  get notifications(): string[] {
    return this.messages.flatMap(({ id, method }) => (id === undefined && method !== undefined ? [method] : []));
  }

  /** Resolves once stderr has this text, so many times. */
  said(text: string, times = 1): Promise<void> {
    return this.until(() => this.err.split(text).length > times, `"${text}" on stderr`);
  }

  notified(count: number): Promise<void> {
    return this.until(() => this.notifications.length >= count, `${count} notifications`);
  }

  /** Ends the input, and resolves with the exit code. */
  end(): Promise<number | null> {
    this.process.stdin?.end();
    return this.exit;
  }

  /** Looks again at each word from the process. @throws when it has gone without */
  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      if (this.process.exitCode !== null) throw new Error(`the process has gone before ${what}:\n${this.err}`);
      await new Promise<void>((resolve) => void this.#wake.push(resolve));
    }
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      this.lines.push(line);
      this.messages.push(JSON.parse(line));
    }
    this.#awake();
  }

  #awake(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }
}
