/** Runs a command line in the process of the test, with streams in memory. A command that needs a process of its own is a {@link Cli}. */
import { PassThrough, Writable } from 'node:stream';
import type { CommandIo } from '../../src/cli/command-io.ts';
import { troupe as commandLine } from '../../src/cli/troupe.ts';
import { systemClock } from '../../src/clock.ts';
import { launchedBy, launcher } from '../../src/launcher.ts';

export interface Ran {
  readonly code: number | undefined;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions extends Partial<Pick<CommandIo, 'cwd' | 'env' | 'clock'>> {
  /** Stdin, stdout and stderr are a terminal. */
  readonly terminal?: boolean;
}

/** A stream that keeps its text. */
class Kept extends Writable {
  text = '';
  readonly isTTY: boolean;
  readonly #wake: () => void;

  constructor(isTTY: boolean, wake: () => void) {
    super({ decodeStrings: false });
    this.isTTY = isTTY;
    this.#wake = wake;
  }

  override _write(chunk: string | Uint8Array, _: string, done: () => void): void {
    this.text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
    done();
    this.#wake();
  }
}

/** A command that runs. */
export class Running {
  readonly stdin: PassThrough & { isTTY?: boolean } = new PassThrough();
  readonly ended: Promise<Ran>;
  readonly #stdout: Kept;
  readonly #stderr: Kept;
  readonly #signals = new Map<string, (() => void)[]>();
  #wake: (() => void)[] = [];
  #done = false;

  constructor(args: readonly string[], { terminal = false, ...options }: RunOptions = {}) {
    const awake = (): void => {
      for (const resolve of this.#wake.splice(0)) resolve();
    };
    this.#stdout = new Kept(terminal, awake);
    this.#stderr = new Kept(terminal, awake);
    this.stdin.isTTY = terminal;
    const before = launcher();
    let exit = (_: number): void => {};
    const exited = new Promise<number>((resolve) => {
      exit = resolve;
    });
    const running = commandLine(args, {
      stdin: this.stdin,
      stdout: this.#stdout,
      stderr: this.#stderr,
      env: process.env,
      cwd: process.cwd(),
      clock: systemClock,
      reserveStdout: () => async (text) => void this.#stdout.write(text),
      onSignal: (signal, callback) => void this.#signals.set(signal, [...(this.#signals.get(signal) ?? []), callback]),
      exit,
      ...options,
    });
    this.ended = Promise.race([running, exited]).then((code) => {
      this.#done = true;
      // The next server of the test listens itself.
      launchedBy(before);
      awake();
      return { code, out: this.out, err: this.err };
    });
  }

  get out(): string {
    return this.#stdout.text;
  }

  get err(): string {
    return this.#stderr.text;
  }

  /** Resolves when stderr contains the text. @throws if the command ends first */
  async said(text: string): Promise<void> {
    await this.until(() => this.err.includes(text), `"${text}" on stderr`);
  }

  /** Checks a condition after each output. @throws if the command ends first */
  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      if (this.#done) throw new Error(`the command ended before ${what}:\n${this.err}`);
      await new Promise<void>((resolve) => void this.#wake.push(resolve));
    }
  }

  signal(name: NodeJS.Signals): void {
    for (const callback of this.#signals.get(name) ?? []) callback();
  }
}

/** Runs a command whose stdin is empty, until it ends. */
export function troupe(args: readonly string[], options?: RunOptions): Promise<Ran> {
  const running = new Running(args, options);
  running.stdin.end();
  return running.ended;
}
