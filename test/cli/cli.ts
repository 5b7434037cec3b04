/** Runs the `troupe` command in its own process, driven with raw JSON lines. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Agent } from './agent.ts';

const SOURCE = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const BUILT = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));

/** Whether the built command runs under plain node instead of the sources: it starts five times as fast. */
export const isBuilt: boolean = existsSync(BUILT);

/** The package that a program imports: the copy that the command uses. A separate test covers two copies. */
export const TROUPE: string = isBuilt
  ? new URL('../../dist/lib/index.js', import.meta.url).href
  : new URL('../../src/index.ts', import.meta.url).href;

export interface CliOptions {
  readonly cwd?: string;
  /** The Node that runs the command. */
  readonly node?: string;
  /** More variables of its environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Stdout carries text instead of messages. */
  readonly raw?: boolean;
}

export class Cli extends Agent {
  readonly process: ChildProcess;
  override readonly exit: Promise<number | null>;

  constructor(
    args: readonly string[],
    { cwd = process.cwd(), node = process.execPath, env = {}, raw = false }: CliOptions = {},
  ) {
    super(raw);
    const tsx = import.meta.resolve('tsx');
    this.process = spawn(node, [...(isBuilt ? [BUILT] : ['--import', tsx, SOURCE]), ...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: 'pipe',
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => this.printed(text));
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => this.printedError(text));
    this.process.stdin?.on('error', () => {});
    this.exit = once(this.process, 'close').then(([code]) => code);
    void this.exit.then(() => this.awake());
    process.on('exit', () => this.process.kill('SIGKILL'));
  }

  override feed(bytes: string | Uint8Array): void {
    this.process.stdin?.write(bytes);
  }

  override end(): Promise<number | null> {
    this.close();
    return this.exit;
  }

  protected override close(): void {
    this.process.stdin?.end();
  }

  protected override get hasEnded(): boolean {
    return this.process.exitCode !== null;
  }
}
