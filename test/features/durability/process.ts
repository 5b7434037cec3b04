/** What the tests of durable sessions share: a server process with a store in a file or a database, which is killed and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { startable } from '../../harness/compiled.ts';
import { PROOF } from '../../harness/scale.ts';
import { inTime } from '../../harness/wait.ts';

const FIXTURE = startable('test/fixtures/durable/serving.ts');

/** Whether the tests use the full numbers of the reliability brief. */
export const FULL = PROOF;

export class DurableServer {
  readonly #folder = mkdtempSync(join(tmpdir(), 'troupe-durable-'));
  readonly #env: Readonly<Record<string, string>>;
  readonly #database: string | undefined;
  #child: ChildProcess | undefined;
  #port = '0';
  #exited: Promise<unknown> = Promise.resolve();
  /** Milliseconds from the start of the process until it answered. */
  startedIn = 0;
  url = '';
  /** What the process has said on stderr. */
  told = '';

  /** @param database the URL of one; without it, the store is a file */
  constructor(env: Readonly<Record<string, string>> = {}, database?: string) {
    this.#env = env;
    this.#database = database;
  }

  /** Starts it; a second time on the port that it had. */
  async start(...nodeFlags: readonly string[]): Promise<this> {
    const before = performance.now();
    const child = spawn(
      process.execPath,
      [...nodeFlags, FIXTURE, this.#database ?? join(this.#folder, 'store.db'), this.#port, this.#ledger],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...this.#env } },
    );
    this.#child = child;
    this.#exited = once(child, 'exit');
    child.stderr.on('data', (data: Buffer) => {
      this.told += data.toString();
    });
    const started = Promise.race([
      once(child.stdout, 'data'),
      this.#exited.then(() => {
        throw new Error(`the server did not start: ${this.told}`);
      }),
    ]);
    const [line] = await inTime(started, () => `the server to start: ${this.told}`);
    this.url = String(line).trim();
    this.#port = new URL(this.url).port;
    this.startedIn = performance.now() - before;
    return this;
  }

  /** Ends it as a crash of the machine's kernel would not: at once, and whatever it does. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#exited;
  }

  /** Asks it to stop. @returns its exit code, and how long it took */
  async stop(): Promise<{ readonly code: number | null; readonly ms: number }> {
    const before = performance.now();
    this.#child?.kill('SIGTERM');
    await this.#exited;
    return { code: this.#child?.exitCode ?? null, ms: performance.now() - before };
  }

  get #ledger(): string {
    return join(this.#folder, 'ledger');
  }

  /** The keys of the calls that were run, in order, as often as they were. */
  ran(): readonly string[] {
    try {
      return readFileSync(this.#ledger, 'utf8').split('\n').filter(Boolean);
    } catch {
      return [];
    }
  }

  /** Kills it, and removes its files. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
