/** Everything that a command uses of its process. A test runs the command in its own process, with streams in memory. */
import { constants } from 'node:os';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { type Clock, systemClock } from '../core/kernel/clock.ts';
import type { StopSignal } from '../core/transports/signals.ts';
import { reserveStdout } from '../core/transports/stdout-guard.ts';

/** The variables of an environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface CommandIo {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Environment;
  /** Sets a variable for the program that the command loads. */
  setVariable(name: string, value: string): void;
  /** The directory of relative paths. */
  readonly cwd: string;
  readonly clock: Clock;
  /** Sends the output of a program that the command loads to stderr from now on. @returns a function that writes on stdout */
  reserveStdout(): (text: string) => Promise<void>;
  /** Calls back at each signal of this name. */
  onSignal(signal: NodeJS.Signals, callback: () => void): void;
  /** Ends the process at once. Output may be lost. @param code default: what the program has set, or 0 */
  exit(code?: number): void;
}

/**
 * The exit code of a command: 0 for success, 1 for a program that failed, 2 for wrong arguments. Undefined if the command serves
 * on, and ends its process itself.
 */
export type ExitCode = number | undefined;

/** The io of the command in this process. */
export function processIo(): CommandIo {
  return {
    // The first look at one of them opens it.
    get stdin() {
      return process.stdin;
    },
    get stdout() {
      return process.stdout;
    },
    get stderr() {
      return process.stderr;
    },
    env: process.env,
    setVariable: (name, value) => void Object.assign(process.env, { [name]: value }),
    cwd: workingDirectory(),
    clock: systemClock,
    reserveStdout() {
      const { write } = reserveStdout();
      return (text) => new Promise((resolve) => void write(text, () => resolve()));
    },
    onSignal: (signal, callback) => void process.on(signal, callback),
    exit: (code) => process.exit(code),
  };
}

/** Ends the process if the directory was removed while a shell was in it: then Node has no answer, and no path means anything. */
function workingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    process.stderr.write('troupe: the current directory does not exist any more: change to another one\n');
    return process.exit(2);
  }
}

/** The absolute path of a file or directory that a person named. */
export function absolutePath({ cwd }: Pick<CommandIo, 'cwd'>, given: string): string {
  return resolve(cwd, given);
}

/** Resolves at the first SIGTERM, SIGINT or SIGHUP. A second one ends the process. @param signals the ones to watch, if not all three */
export function stopped(
  io: CommandIo,
  signals: readonly StopSignal[] = ['SIGTERM', 'SIGINT', 'SIGHUP'],
): Promise<StopSignal> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of signals)
      io.onSignal(signal, () => {
        if (asked) io.exit(128 + constants.signals[signal]);
        asked = true;
        resolve(signal);
      });
  });
}

/** Ends this process when its output is written: timers and sockets that the command has opened must not keep it alive. */
export function endProcess(code: ExitCode): void {
  if (code === undefined) return;
  process.exitCode = code;
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}
