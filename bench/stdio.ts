/** Measures echo over stdio: a child process serves, this process keeps a number of requests in flight. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Amount, wanting } from './http.ts';
import { INITIALIZE, META } from './http-requests.ts';
import { type Measured, measured } from './measured.ts';
import { askOver, microsOf } from './serving.ts';
import type { Echo } from './turns.ts';

export interface Served {
  /** A file below this folder. */
  readonly server: string;
  /** What it finds in `process.argv.slice(2)`. */
  readonly args?: readonly string[];
  readonly era: 'legacy' | 'modern';
  /** A bare loop has no session to open. */
  readonly handshake: boolean;
}

/** One served child, and the means to call its echo. */
export class StdioEcho implements Echo {
  readonly #child: ChildProcess;
  readonly #stdin: Writable;
  readonly #closed: Promise<number | null>;
  readonly #era: Served['era'];
  readonly #text: string;
  #rest = '';
  #nextId = 1;
  #onLine: (line: string) => void = () => {};

  private constructor(child: ChildProcess, stdin: Writable, stdout: Readable, era: Served['era'], text: string) {
    this.#child = child;
    this.#stdin = stdin;
    this.#closed = new Promise((resolve) => void child.once('close', resolve));
    // A server that died is told of by its closing.
    stdin.on('error', () => {});
    this.#era = era;
    this.#text = text;
    stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#rest + chunk).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#onLine(line);
    });
  }

  static async start({ server, args = [], era, handshake }: Served, text = 'x'.repeat(64)): Promise<StdioEcho> {
    const child = spawn(process.execPath, [server, ...args], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
    });
    const { stdin, stdout } = child;
    if (!stdin || !stdout) throw new Error(`${server}: expected to be started with pipes`);
    const echo = new StdioEcho(child, stdin, stdout, era, text);
    if (era === 'legacy' && handshake) {
      const opened = echo.#once();
      const initialize = { jsonrpc: '2.0', id: 'open', method: 'initialize', params: INITIALIZE };
      stdin.write(`${JSON.stringify(initialize)}\n`);
      await Promise.race([opened, echo.#death()]);
      stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    }
    return echo;
  }

  #once(): Promise<string> {
    return new Promise((resolve) => {
      this.#onLine = resolve;
    });
  }

  /** Fails when the child ends, which it must not while it is asked something. */
  async #death(): Promise<never> {
    throw new Error(`expected an answer, but the server ended with code ${await this.#closed}`);
  }

  /** Microseconds of processor time that the child has used so far: one of `bench/servers` or `bench/peers` tells it. */
  async processorTime(): Promise<number> {
    return microsOf(await askOver(this.#child, this.#closed, 'cpu', 'server'));
  }

  /** Calls echo `count` times with `inFlight` at once. @throws when an answer is not the echo */
  run(count: number, inFlight: number): Promise<Measured> {
    return this.call({ calls: count }, inFlight);
  }

  /** Calls echo until the amount is done, with `inFlight` at once. @throws when an answer is not the echo */
  call(amount: Amount, inFlight: number): Promise<Measured> {
    return Promise.race([this.#call(amount, inFlight), this.#death()]);
  }

  #call(amount: Amount, inFlight: number): Promise<Measured> {
    const sentAt = new Map<number, number>();
    const took: number[] = [];
    let sent = 0;
    const request = (): string => {
      const id = this.#nextId++;
      sent += 1;
      sentAt.set(id, performance.now());
      const meta = this.#era === 'modern' ? { _meta: META } : {};
      return `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { text: this.#text }, ...meta } })}\n`;
    };
    return new Promise((resolve, reject) => {
      const before = performance.eventLoopUtilization();
      const started = performance.now();
      const wants = wanting(amount, started);
      let due = 0;
      const refill = (): void => {
        let batch = '';
        for (; due > 0 && wants(sent); due -= 1) batch += request();
        due = 0;
        if (batch !== '') this.#stdin.write(batch);
        else if (sentAt.size === 0) resolve(measured(took, started, before));
      };
      this.#onLine = (line) => {
        const { id, method, result } = JSON.parse(line) as Answer;
        // A server may ask for itself, as one that pings its client.
        if (method !== undefined) return;
        const at = sentAt.get(id);
        if (at === undefined || result?.content?.[0]?.text !== this.#text)
          return reject(new Error(`not the echo: ${line.slice(0, 300)}`));
        took.push(performance.now() - at);
        sentAt.delete(id);
        // Refilled once a turn, as the contenders answer once a turn.
        if (due === 0) setImmediate(refill);
        due += 1;
      };
      due = inFlight;
      refill();
    });
  }

  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 3_000);
    this.#stdin.end();
    await this.#closed;
    clearTimeout(timer);
  }
}

interface Answer {
  readonly id: number;
  readonly method?: string;
  readonly result?: { readonly content?: readonly { readonly text?: string }[] };
}
