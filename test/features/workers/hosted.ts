/** A process that serves over HTTP, and a supervisor as small as one can be: what ends with a failure is started again, on the same port. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { call } from '../../core/http/modern.ts';
import { startable } from '../../harness/compiled.ts';
import { until } from '../../harness/wait.ts';

export interface HostedOptions {
  /** What the fixture is told. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The fixture. Default `server.ts`. */
  readonly script?: string;
  /** More arguments of node. */
  readonly node?: readonly string[];
  /** What the command is wrapped in, such as a shell that lowers a limit. */
  readonly wrap?: (command: readonly string[]) => readonly string[];
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
}

export class Hosted {
  readonly url: string;
  /** Everything that its processes said to people. */
  err = '';
  readonly endings: Ending[] = [];
  readonly #options: HostedOptions;
  readonly #port: number;
  #child: ChildProcess | undefined;
  #stopped = false;

  private constructor(port: number, options: HostedOptions) {
    this.#port = port;
    this.#options = options;
    this.url = `http://127.0.0.1:${port}/mcp`;
  }

  static async open(options: HostedOptions = {}): Promise<Hosted> {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const address = probe.address();
    probe.close();
    const hosted = new Hosted(typeof address === 'object' && address !== null ? address.port : 0, options);
    hosted.#start();
    try {
      await hosted.served();
    } catch (error) {
      await hosted.stop();
      throw error;
    }
    return hosted;
  }

  #start(): void {
    const { script = 'server.ts', config = {}, node = [], wrap = (command) => command } = this.#options;
    const [file = '', ...args] = wrap([
      process.execPath,
      ...node,
      startable(`test/fixtures/supervision/${script}`),
      JSON.stringify({ port: this.#port, ...config }),
    ]);
    const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
    });
    child.once('exit', (code, signal) => {
      this.endings.push({ code, signal, at: performance.now() });
      if (!this.#stopped && code !== 0) this.#start();
    });
    this.#child = child;
  }

  /** The text of a tool's result, or of the error. @throws {Error} when nobody answers */
  async call(name: string, args: object = {}): Promise<string> {
    return (await call(this.url, name, args)).text();
  }

  /** Resolves when a call is answered. @returns milliseconds until then */
  async served(): Promise<number> {
    const began = performance.now();
    await until(
      async () => (await this.call('light').catch(() => '')).includes('here'),
      () => `an answer; it said: ${this.err}`,
    );
    return performance.now() - began;
  }

  /** Resolves once its processes have said this. */
  said(what: RegExp): Promise<void> {
    return until(
      () => what.test(this.err),
      () => `${what}; it said: ${this.err}`,
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}
