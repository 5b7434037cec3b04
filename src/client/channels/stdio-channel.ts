/** The channel to a server that this process starts as a child: stdin and stdout carry messages, stderr is captured. */
import type { ChildProcess } from 'node:child_process';
import spawn from 'cross-spawn';
import type { Timer } from '../../core/kernel/clock.ts';
import type { LineWriter } from '../../core/transports/line-writer.ts';
import { LineReader } from '../../core/transports/lines.ts';
import type { CarriedOut } from '../client-errors.ts';
import { LineChannel, type LineChannelOptions } from './line-channel.ts';
import { groupExists, guardGroup, releaseGroup, signalGroup } from './process-guardian.ts';

/** A command to start. It is not passed through a shell. */
export interface StdioCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to a minimal environment (PATH, HOME, locale and the like); nothing else of this process is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory. Default: that of this process. */
  readonly cwd?: string;
  /** The name of the program in errors and logs. Default: the command with its arguments, which may contain secrets. */
  readonly name?: string;
  /**
   * Receives each line that the program writes on stderr; of a longer one the first 8 KiB. Such a line is not logged, and not
   * repeated in errors. It is text of the program: remove control characters before a terminal shows it.
   */
  stderr?(line: string): void;
}

/** Bytes of stderr that are kept for error messages and the inspector. */
const STDERR_BYTES = 65_536;
/** Longest line of stderr that is logged whole. */
const STDERR_LINE_BYTES = 8_192;
/** Milliseconds between the end of stdin, TERM and KILL (2025-11-25 lifecycle, "Shutdown", stdio). */
const PATIENCE_MS = 2_000;
/** Milliseconds between two looks at the group of a process that has ended. */
const POLL_MS = 50;

/** The variables of a minimal environment: what programs need to find files, and nothing that may be a secret. */
const INHERITED = (
  process.platform === 'win32'
    ? 'APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE'
    : 'HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR TZ USER XDG_RUNTIME_DIR'
).split(' ');

interface StdioChannelOptions extends LineChannelOptions {
  /** Receives each line of the child's stderr. */
  readonly stderrLine: (line: string) => void;
}

export class StdioChannel extends LineChannel {
  readonly #command: StdioCommand;
  readonly #stderrLine: (line: string) => void;
  #child: ChildProcess | undefined;
  #stderr = '';
  /** Resolves when the process and its group have ended. */
  #ended: Promise<void> | undefined;
  /** The timer before the next signal. */
  #signal: Timer | undefined;
  #killed = false;

  constructor(command: StdioCommand, options: StdioChannelOptions) {
    super(options);
    this.#command = command;
    this.#stderrLine = options.stderrLine;
  }

  stderr(): string {
    return this.#stderr.slice(-STDERR_BYTES);
  }

  protected connect(): void {
    const { command, args = [], env, cwd } = this.#command;
    let child: ChildProcess;
    try {
      child = spawn(command, [...args], {
        env: { ...inherited(), ...env },
        ...(cwd === undefined ? {} : { cwd }),
        stdio: ['pipe', 'pipe', 'pipe'],
        // A group of its own: grandchildren (`npx`) end with it, and Ctrl-C reaches only this process.
        detached: process.platform !== 'win32',
        windowsHide: true,
      });
    } catch (error) {
      return this.options.clock.soon(() => this.#neverStarted(error));
    }
    this.#child = child;
    const { pid, stdin, stdout, stderr } = child;
    let problem: unknown;
    child.on('error', (error) => {
      problem = error;
      if (pid === undefined) this.#neverStarted(error);
    });
    if (pid === undefined || !stdin || !stdout || !stderr) return;
    guardGroup(pid);
    const log = new LineReader({
      maxBytes: STDERR_LINE_BYTES,
      onLine: (line) => this.#keep(line),
      onUnreadable: (_reason, bytes, head) => this.#keep(`${head}… (${bytes} bytes)`),
    });
    stderr.on('data', (chunk: Buffer) => log.push(chunk));
    stderr.on('end', () => log.end());
    // A broken pipe is the end of the process, which is reported.
    for (const pipe of [stdin, stdout, stderr]) pipe.on('error', () => {});
    let finish = (): void => {};
    this.#ended = new Promise((resolve) => {
      finish = resolve;
    });
    // Grandchildren have lost the server that they belong to. They may outlive it in its group, and hold its pipes open.
    child.on('exit', () => this.#end(child, pid));
    child.on('close', (code, signal) => {
      const how = signal ? `was killed by ${signal}` : `ended with code ${code ?? 'unknown'}`;
      const why = problem instanceof Error ? ` (${problem.message})` : '';
      this.gone({
        reason: 'closed',
        message: `the server's process ${how}${why}.${this.#lastWords()}`,
        carriedOut: 'unknown' satisfies CarriedOut,
      });
      this.#release(pid, finish);
    });
    child.once('spawn', () => this.opened({ input: stdout, output: stdin }));
  }

  protected async disconnect(writer: LineWriter | undefined): Promise<void> {
    const child = this.#child;
    const pid = child?.pid;
    if (!child || pid === undefined) return;
    if (child.exitCode === null && child.signalCode === null) {
      // Ending stdin asks the server to leave. A child that does not read must not delay that.
      void writer?.flush().then(() => child.stdin?.end());
      if (!writer) child.stdin?.end();
      this.#signal ??= this.options.clock.after(PATIENCE_MS, () => this.#end(child, pid));
    }
    await this.#ended;
  }

  /** TERM now, KILL later. */
  #end(child: ChildProcess, pid: number): void {
    if (this.#killed) return;
    this.#signal?.cancel();
    signalGroup(pid, 'SIGTERM');
    this.#signal = this.options.clock.after(PATIENCE_MS, () => {
      this.#killed = true;
      signalGroup(pid, 'SIGKILL');
      // A grandchild that left the group may hold the pipes open.
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.stdin?.destroy();
    });
  }

  /** The process has ended, and its pipes are closed. Its group is guarded until it is empty, or was killed. */
  #release(pid: number, finish: () => void): void {
    if (!this.#killed && groupExists(pid)) {
      this.options.clock.after(POLL_MS, () => this.#release(pid, finish));
      return;
    }
    this.#signal?.cancel();
    releaseGroup(pid);
    finish();
  }

  #neverStarted(error: unknown): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const { command, cwd } = this.#command;
    const why =
      code === 'ENOENT'
        ? `there is no such program in PATH${cwd === undefined ? '' : `, or no directory ${cwd}`}`
        : error instanceof Error
          ? error.message
          : String(error);
    this.gone({ reason: 'refused', message: `cannot start "${command}": ${why}`, carriedOut: 'no' }, true);
  }

  #keep(line: string): void {
    this.#stderr += `${line}\n`;
    // Cutting copies the text, so it happens once for many lines.
    if (this.#stderr.length > 2 * STDERR_BYTES) this.#stderr = this.#stderr.slice(-STDERR_BYTES);
    this.#stderrLine(line);
  }

  /** The last lines of stderr, for the message of a process that ended. */
  #lastWords(): string {
    if (this.#command.stderr) return '';
    const lines = this.#stderr.trimEnd().split('\n').slice(-5).join('\n');
    return lines === '' ? '' : ` Its last lines on stderr:\n${lines.slice(-1_000)}`;
  }
}

function inherited(): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = process.env[name];
    // An exported shell function starts with `()`, and could run code in a shell that the server starts.
    if (value !== undefined && !value.startsWith('()')) kept[name] = value;
  }
  return kept;
}
