/** Runs a command line in the process of the test, with streams in memory. A command that needs a process of its own is a {@link Cli}. */
import { PassThrough, Writable } from 'node:stream';
import type { CommandIo } from '../../src/cli/command-io.ts';
import { troupe as commandLine } from '../../src/cli/command-line.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { launchedBy } from '../../src/core/server/launcher.ts';
import { Agent } from './agent.ts';

export interface Ran {
  readonly code: number | undefined;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions extends Partial<Pick<CommandIo, 'cwd' | 'env' | 'clock'>> {
  /** Stdin, stdout and stderr are a terminal. */
  readonly terminal?: boolean;
  /** Stdout carries text instead of messages. */
  readonly raw?: boolean;
}

/** A stream that passes its text on at once. */
class Printer extends Writable {
  readonly isTTY: boolean;
  readonly #print: (text: string) => void;

  constructor(isTTY: boolean, print: (text: string) => void) {
    super({ decodeStrings: false });
    this.isTTY = isTTY;
    this.#print = print;
  }

  override _write(chunk: string | Uint8Array, _: string, done: () => void): void {
    this.#print(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    done();
  }
}

/** A command that runs. One at a time may print messages on stderr, as in a process. */
export class Running extends Agent {
  override readonly exit: Promise<number | undefined>;
  readonly #stdin: PassThrough & { isTTY?: boolean } = new PassThrough();
  readonly #signals = new Map<string, (() => void)[]>();
  #done = false;

  constructor(args: readonly string[], { terminal = false, raw = false, ...options }: RunOptions = {}) {
    super(raw);
    this.#stdin.isTTY = terminal;
    const stdout = new Printer(terminal, (text) => this.printed(text));
    const { argv } = process;
    const set = new Map<string, string | undefined>();
    let exit = (_ = 0): void => {};
    const exited = new Promise<number>((resolve) => {
      exit = (code = 0) => resolve(code);
    });
    const running = commandLine(args, {
      stdin: this.#stdin,
      stdout,
      stderr: new Printer(terminal, (text) => this.printedError(text)),
      env: process.env,
      setVariable: (name, value) => {
        if (!set.has(name)) set.set(name, process.env[name]);
        process.env[name] = value;
      },
      cwd: process.cwd(),
      clock: systemClock,
      reserveStdout: () => async (text) => void stdout.write(text),
      onSignal: (signal, callback) => void this.#signals.set(signal, [...(this.#signals.get(signal) ?? []), callback]),
      exit,
      ...options,
    });
    // A command that serves on ends its process later.
    const finished = running.then((code) => code ?? exited);
    this.exit = Promise.race([finished, exited]).then((code) => {
      this.#done = true;
      // The next server of the test listens itself.
      launchedBy(undefined);
      process.argv = argv;
      for (const [name, value] of set)
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      this.awake();
      return code;
    });
  }

  /** The result, once the command has ended. */
  async ended(): Promise<Ran> {
    return { code: await this.exit, out: this.out, err: this.err };
  }

  override feed(bytes: string | Uint8Array): void {
    this.#stdin.write(bytes);
  }

  signal(name: NodeJS.Signals): void {
    for (const callback of this.#signals.get(name) ?? []) callback();
  }

  protected override close(): void {
    this.#stdin.end();
  }

  protected override get hasEnded(): boolean {
    return this.#done;
  }
}

/** Runs a command whose stdin is empty, until it ends. */
export async function troupe(args: readonly string[], options?: Omit<RunOptions, 'raw'>): Promise<Ran> {
  const running = new Running(args, { raw: true, ...options });
  await running.end();
  return running.ended();
}
