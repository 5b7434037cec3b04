/** Measures echo over stdio: a child process serves, this process keeps a number of requests in flight. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Measured, measured } from './measured.ts';
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

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** One served child, and the means to call its echo. */
export class StdioEcho implements Echo {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #era: Served['era'];
  readonly #text: string;
  #rest = '';
  #nextId = 1;
  #onLine: (line: string) => void = () => {};

  private constructor(child: ChildProcessWithoutNullStreams, era: Served['era'], text: string) {
    this.#child = child;
    this.#era = era;
    this.#text = text;
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#rest + chunk).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#onLine(line);
    });
  }

  static async start({ server, args = [], era, handshake }: Served, text = 'x'.repeat(64)): Promise<StdioEcho> {
    const child = spawn(process.execPath, [server, ...args], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      stdio: 'pipe',
    });
    child.stderr.pipe(process.stderr);
    const echo = new StdioEcho(child, era, text);
    if (era === 'legacy' && handshake) {
      const opened = echo.#once();
      child.stdin.write(
        `${JSON.stringify({ jsonrpc: '2.0', id: 'open', method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } } })}\n`,
      );
      await opened;
      child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    }
    return echo;
  }

  #once(): Promise<string> {
    return new Promise((resolve) => {
      this.#onLine = resolve;
    });
  }

  /** Calls echo `count` times with `inFlight` at once. @throws when an answer is not the echo */
  run(count: number, inFlight: number): Promise<Measured> {
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
      let due = 0;
      const refill = (): void => {
        let batch = '';
        for (; due > 0 && sent < count; due -= 1) batch += request();
        due = 0;
        if (batch !== '') this.#child.stdin.write(batch);
      };
      this.#onLine = (line) => {
        const { id, result } = JSON.parse(line) as { id: number; result?: { content?: { text?: string }[] } };
        if (result?.content?.[0]?.text !== this.#text) return reject(new Error(`not the echo: ${line.slice(0, 300)}`));
        took.push(performance.now() - (sentAt.get(id) ?? 0));
        sentAt.delete(id);
        if (took.length === count) return resolve(measured(took, started, before));
        // Refilled once a turn, as the contenders answer once a turn.
        if (due === 0) setImmediate(refill);
        due += 1;
      };
      due = inFlight;
      refill();
    });
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#child.once('close', () => resolve());
      this.#child.stdin.end();
      setTimeout(() => this.#child.kill('SIGKILL'), 3_000).unref();
    });
  }
}
