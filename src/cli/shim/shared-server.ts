/** The one server process that many shims share: where its socket is, and who starts it. */
import { Buffer } from 'node:buffer';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ownFile } from '../../package-files.ts';
import { messageOf } from '../../protocol/json.ts';
import { checkDirectory, codeOf, isListening, isWindows } from '../../transports/socket-path.ts';
import { runtimeDirectory } from '../serving/runtime-directory.ts';
import { readTarget } from '../serving/target.ts';
import { UsageError } from '../usage.ts';
import { ServerStarting, Unreachable } from './retry-policy.ts';

/** How long a server may take to listen, in milliseconds. */
const START_MS = 30_000;
/** Between two looks whether it listens, in milliseconds. */
const LOOK_MS = 20;
/** How many servers in a row may fail to start. */
const MOST_FAILURES = 3;
/** A log longer than this, in bytes, is begun anew with the next server. */
const LOG_BYTES = 1_048_576;
/** How far from the end of the log of a server that failed its last line is looked for, in bytes. */
const SHOWN_BYTES = 8_000;

export interface SharedServerOptions {
  /** Where it listens. Default: {@link defaultPath}. */
  readonly path: string | undefined;
  /** Milliseconds without a client after which it ends. */
  readonly idleMs: number;
  /** It has an inspector. */
  readonly inspect: boolean;
}

export class SharedServer {
  /** Where it listens. */
  readonly path: string;
  readonly #file: string;
  readonly #args: readonly string[];
  readonly #idleMs: number;
  readonly #inspect: boolean;
  #failures = 0;

  /**
   * @param args what `file` finds in `process.argv.slice(2)`
   * @throws {UsageError} when `file` is nothing that can be served
   */
  constructor(file: string, args: readonly string[], { path, idleMs, inspect }: SharedServerOptions) {
    const target = readTarget('attach --spawn', [file]);
    if (!target) throw new UsageError(`troupe attach --spawn: expected FILE or DIR, got ${file}`);
    this.#file = target.path;
    this.#args = args;
    this.#idleMs = idleMs;
    this.#inspect = inspect;
    this.path = path === undefined ? defaultPath(target.path, args) : isWindows ? path : resolve(path);
  }

  /**
   * Starts the server, unless there is one; resolves when it listens. Of many callers in as many processes one starts it.
   *
   * @throws {BeingStarted} when another process is about to start it
   * @throws {Error} when it fails to start, with the end of its log; {Hopeless} when it has done so too often
   */
  async start(): Promise<void> {
    const lock = isWindows ? join(tmpdir(), `troupe-${hashOf([this.path])}.lock`) : `${this.path}.lock`;
    const log = lock.replace(/lock$/, 'log');
    try {
      checkDirectory(dirname(lock));
    } catch (error) {
      throw new Unreachable(messageOf(error));
    }
    if (!takeLock(lock)) throw new ServerStarting(`another process is starting the server of ${this.path}`);
    try {
      // Another may have started it between our last look and the lock.
      if (!(await isListening(this.path))) await this.#spawn(log);
    } finally {
      rmSync(lock, { force: true });
    }
  }

  async #spawn(logFile: string): Promise<void> {
    const log = openLog(logFile);
    const from = fstatSync(log).size;
    const main = fileURLToPath(ownFile('cli/main'));
    const inspected = this.#inspect ? ['--inspect'] : [];
    const options = ['--socket', this.path, '--idle-exit', String(this.#idleMs), ...inspected];
    const child = spawn(
      process.execPath,
      [...process.execArgv, main, 'serve', this.#file, ...options, '--', ...this.#args],
      // Not in the directory of the agent that happens to be first: it may be gone tomorrow.
      { detached: true, stdio: ['ignore', log, log], cwd: directoryOf(this.#file), windowsHide: true },
    );
    let over: string | undefined;
    const ended = new Promise<void>((resolve) => {
      const end = (why: string): void => {
        over = why;
        resolve();
      };
      child.once('error', ({ message }) => end(message));
      child.once('exit', (code, signal) => end(`it ended with ${signal ?? `code ${code}`}`));
    });
    const until = performance.now() + START_MS;
    try {
      while (!(await isListening(this.path))) {
        if (over === undefined && performance.now() < until) {
          await Promise.race([sleep(LOOK_MS), ended]);
          continue;
        }
        const late = `it did not listen within ${START_MS} ms`;
        if (over === undefined) child.kill('SIGKILL');
        this.#failed(`${over ?? late}, and said in ${logFile}: ${tail(logFile, from)}`);
      }
    } finally {
      child.unref();
      child.removeAllListeners();
      closeSync(log);
    }
    this.#failures = 0;
  }

  #failed(why: string): never {
    this.#failures += 1;
    const message = `the server of ${this.#file} cannot be started: ${why}`;
    throw this.#failures < MOST_FAILURES ? new Error(message) : new Unreachable(message);
  }
}

/**
 * Where the server of a file listens: the same for all who name the same file, however they name it.
 *
 * @throws {Error} when there is no directory for it that only this user may write to
 */
export function defaultPath(file: string, args: readonly string[]): string {
  const name = hashOf([file, ...args]);
  if (isWindows) return `\\\\.\\pipe\\troupe-${userInfo().username}-${name}`;
  return join(runtimeDirectory(), `${name}.sock`);
}

function hashOf(parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 16);
}

function directoryOf(path: string): string {
  return statSync(path).isDirectory() ? path : dirname(path);
}

/** Makes the lock file, with our process id in it. @returns false when a process that lives has made it before */
function takeLock(lock: string): boolean {
  for (let attempt = 1; ; attempt += 1) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx', mode: 0o600 });
      return true;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      if (attempt > 1 || isHeld(lock)) return false;
      // Two who find it stale at once may both start a server. Only one of those can bind the socket; the other ends.
      rmSync(lock, { force: true });
    }
  }
}

function isHeld(lock: string): boolean {
  try {
    const age = Date.now() - statSync(lock).mtimeMs;
    const pid = Number(readFileSync(lock, 'utf8'));
    // It is made first, and written to then.
    if (!Number.isSafeInteger(pid) || pid <= 0) return age < LOOK_MS * 100;
    // Nobody needs so long: the id belongs to another process now.
    if (age > 2 * START_MS) return false;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

function openLog(path: string): number {
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: 0 };
  return openSync(path, size > LOG_BYTES ? 'w' : 'a', 0o600);
}

/** Of what was written since `from` the last line of the command, which says why; or else the last line. */
function tail(path: string, from: number): string {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const start = Math.max(from, size - SHOWN_BYTES);
    const bytes = Buffer.alloc(Math.max(0, size - start));
    readSync(file, bytes, 0, bytes.length, start);
    const lines = bytes.toString('utf8').trim().split('\n');
    return lines.findLast((line) => line.startsWith('troupe serve: ')) ?? lines.at(-1) ?? '';
  } finally {
    closeSync(file);
  }
}
