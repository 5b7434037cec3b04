/** An agent that speaks raw JSON lines with a command, in another process ({@link Cli}) or in this one ({@link Running}). */

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

/**
 * A warning of the watchdog, and a line of Node about its question to a process that ends. On a busy machine, code that loads takes
 * as long as code that blocks.
 */
const STALL =
  /^(?:.*the event loop has been blocked for .*\n(?: +(?:at|…) .*\n)*|Waiting for the debugger to disconnect\.\.\.\n)/gm;

/** The stderr of a command without the warnings that a busy machine adds. */
export function withoutStalls(err: string): string {
  return err.replace(STALL, '');
}

export abstract class Agent {
  /** The text on stdout. */
  out = '';
  err = '';
  /** Every line on stdout, unless stdout carries text. */
  readonly lines: string[] = [];
  readonly messages: Message[] = [];
  /** The exit code of the command. */
  abstract readonly exit: Promise<number | null | undefined>;
  readonly #raw: boolean;
  #rest = '';
  #wake: (() => void)[] = [];
  #id = 0;

  /** @param raw stdout carries text instead of messages */
  constructor(raw: boolean) {
    this.#raw = raw;
  }

  /** Writes on the stdin of the command. */
  abstract feed(bytes: string | Uint8Array): void;

  /** Closes the stdin of the command. */
  protected abstract close(): void;

  protected abstract get hasEnded(): boolean;

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
    this.feed(`${JSON.stringify(message)}\n`);
  }

  /** Sends a request and resolves with its result. @throws for an error response, or if the command has ended */
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

  /** Resolves when stderr contains the text the given number of times. @throws if the command ends first */
  said(text: string, times = 1): Promise<void> {
    return this.until(() => this.err.split(text).length > times, `"${text}" on stderr`);
  }

  notified(count: number): Promise<void> {
    return this.until(() => this.notifications.length >= count, `${count} notifications`);
  }

  /** Closes stdin and resolves with the exit code. */
  end(): Promise<number | null | undefined> {
    this.close();
    return this.exit;
  }

  /** Checks a condition after each output of the command. @throws if the command ends first */
  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      if (this.hasEnded) throw new Error(`the command ended before ${what}:\n${this.err}`);
      await new Promise<void>((resolve) => void this.#wake.push(resolve));
    }
  }

  protected printed(text: string): void {
    this.out += text;
    if (!this.#raw) this.#read(text);
    this.awake();
  }

  protected printedError(text: string): void {
    this.err += text;
    this.awake();
  }

  protected awake(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      this.lines.push(line);
      this.messages.push(JSON.parse(line));
    }
  }
}
