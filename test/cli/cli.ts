/** Runs the `troupe` command in its own process, driven with raw JSON lines. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const BUILT = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));

/** Whether the built command runs under plain node instead of the sources: it starts five times as fast. */
export const isBuilt: boolean = existsSync(BUILT);

/** The package that a program imports: the copy that the command uses. A separate test covers two copies. */
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
  /** The text on stdout. */
  out = '';
  err = '';
  readonly exit: Promise<number | null>;
  #rest = '';
  #wake: (() => void)[] = [];
  #id = 0;

  /**
   * @param node the Node that runs the command
   * @param env more variables of its environment
   * @param raw stdout carries text instead of messages
   */
  constructor(
    args: readonly string[],
    {
      cwd = process.cwd(),
      node = process.execPath,
      env = {},
      raw = false,
    }: { readonly cwd?: string; readonly node?: string; readonly env?: NodeJS.ProcessEnv; readonly raw?: boolean } = {},
  ) {
    const tsx = import.meta.resolve('tsx');
    this.process = spawn(node, [...(isBuilt ? [BUILT] : ['--import', tsx, SOURCE]), ...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: 'pipe',
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
      if (!raw) this.#read(text);
    });
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

  /** Sends a request and resolves with its result. @throws for an error response, or if the process has exited */
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

  /** Calls a tool and returns its text. */
  async call(name: string, args: object = {}): Promise<string> {
    const { content } = await this.request('tools/call', { name, arguments: args });
    return Array.isArray(content) ? content.map(({ text }: { text?: unknown }) => String(text)).join() : '';
  }

  /** The names in a list. */
  async list(kind: 'tools' | 'resources' | 'prompts'): Promise<string[]> {
    const { [kind]: listed } = await this.request(`${kind}/list`);
    return Array.isArray(listed) ? listed.map(({ name }: { name?: unknown }) => String(name)) : [];
  }

  /** The methods of the notifications so far. */
  get notifications(): string[] {
    return this.messages.flatMap(({ id, method }) => (id === undefined && method !== undefined ? [method] : []));
  }

  /** Resolves when stderr contains the text the given number of times. */
  said(text: string, times = 1): Promise<void> {
    return this.until(() => this.err.split(text).length > times, `"${text}" on stderr`);
  }

  notified(count: number): Promise<void> {
    return this.until(() => this.notifications.length >= count, `${count} notifications`);
  }

  /** Closes stdin and resolves with the exit code. */
  end(): Promise<number | null> {
    this.process.stdin?.end();
    return this.exit;
  }

  /** Checks a condition after each output of the process. @throws if the process exits first */
  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      if (this.process.exitCode !== null) throw new Error(`the process exited before ${what}:\n${this.err}`);
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
