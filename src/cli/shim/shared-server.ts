/** The server process that many shims share: locates its socket and starts it once. */

import { Buffer } from 'node:buffer';
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { durationOf } from '../../core/kernel/duration.ts';
import { commandFile } from '../../core/kernel/package-files.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { checkDirectory, codeOf, isListening, isWindows } from '../../core/transports/socket-path.ts';
import type { Environment } from '../command-io.ts';
import { runtimeDirectory } from '../serving/runtime-directory.ts';
import { readTarget } from '../serving/target.ts';
import { UsageError } from '../usage.ts';
import { ServerStarting, Unreachable } from './retry-policy.ts';

/** Maximum time in milliseconds for a server to listen. */
const START_MS = 30_000;
/** The interval between checks whether the server listens, in milliseconds. */
const POLL_MS = 20;
/** The maximum number of consecutive failed starts. */
const MAX_FAILURES = 3;
/** A longer log, in bytes, is truncated when the next server starts. */
const LOG_BYTES = 1_048_576;
/** Number of bytes from the end of a failed server's log that are searched for its last line. */
const TAIL_BYTES = 8_000;

export interface SharedServerOptions {
  /** The socket. Default: {@link defaultPath}. */
  readonly path: string | undefined;
  /** The server exits after this time without a client, in milliseconds. */
  readonly idleMs: number;
  /** Opens the inspector. */
  readonly inspect: boolean;
  /** The directory of relative paths. */
  readonly cwd: string;
  /** The environment of the server. */
  readonly env: Environment;
}

export class SharedServer {
  /** The socket on which the server listens. */
  readonly path: string;
  readonly #file: string;
  readonly #args: readonly string[];
  readonly #idleMs: number;
  readonly #inspect: boolean;
  readonly #env: Environment;
  #failures = 0;

  /**
   * @param args the `process.argv.slice(2)` of `file`
   * @throws {UsageError} if `file` is not a module or a directory
   */
  constructor(file: string, args: readonly string[], { path, idleMs, inspect, cwd, env }: SharedServerOptions) {
    const target = readTarget('attach --spawn', [file], { cwd });
    if (!target) throw new UsageError(`troupe attach --spawn: expected FILE or DIR, got ${file}`);
    this.#file = target.path;
    this.#args = args;
    this.#idleMs = idleMs;
    this.#inspect = inspect;
    this.#env = env;
    this.path = path === undefined ? defaultPath(target.path, args, env) : isWindows ? path : resolve(cwd, path);
  }

  /**
   * Starts the server if it does not run, and resolves when it listens. A lock file ensures that only one of many processes starts it.
   *
   * @throws {ServerStarting} if another process is starting it
   * @throws {Error} if it fails to start, with the last line of its log; {Unreachable} after too many failures
   */
  async start(): Promise<void> {
    const lock = isWindows ? join(tmpdir(), `troupe-${hashOf([this.path])}.lock`) : `${this.path}.lock`;
    const log = lock.replace(/lock$/, 'log');
    try {
      checkDirectory(dirname(lock));
    } catch (error) {
      throw new Unreachable(messageOf(error));
    }
    if (!takeLock(lock)) throw new ServerStarting(`another process is starting the server on ${this.path}`);
    try {
      // Another process may have started the server just before this one took the lock.
      if (!(await isListening(this.path))) await this.#spawn(log);
    } finally {
      rmSync(lock, { force: true });
    }
  }

  async #spawn(logFile: string): Promise<void> {
    const log = openLog(logFile);
    const from = fstatSync(log).size;
    const main = commandFile();
    const inspected = this.#inspect ? ['--inspect'] : [];
    const options = ['--socket', this.path, '--idle-exit', String(this.#idleMs), ...inspected];
    // The server outlives the agent, and the npx that may have started it.
    const { npm_command: _, ...env } = this.#env;
    const child = spawn(
      process.execPath,
      [...process.execArgv, main, 'serve', this.#file, ...options, '--', ...this.#args],
      // Not the working directory of the first agent, which may be removed later.
      { detached: true, stdio: ['ignore', log, log], cwd: directoryOf(this.#file), env, windowsHide: true },
    );
    let ending: string | undefined;
    const ended = new Promise<void>((resolve) => {
      const end = (why: string): void => {
        ending = why;
        resolve();
      };
      child.once('error', ({ message }) => end(message));
      child.once('exit', (code, signal) => end(`it ended with ${signal ?? `code ${code}`}`));
    });
    const until = performance.now() + START_MS;
    try {
      while (!(await isListening(this.path))) {
        if (ending === undefined && performance.now() < until) {
          await Promise.race([sleep(POLL_MS), ended]);
          continue;
        }
        const late = `it did not listen within ${durationOf(START_MS)}`;
        if (ending === undefined) child.kill('SIGKILL');
        this.#failed(`${ending ?? late}. Last line of ${logFile}: ${lastLine(logFile, from)}`);
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
    const message = `cannot start the server for ${this.#file}: ${why}`;
    throw this.#failures < MAX_FAILURES ? new Error(message) : new Unreachable(message);
  }
}

/**
 * The default socket of a file's server. It depends only on the real path of the file and on the arguments.
 *
 * @throws {Error} if no directory exists that only this user can write to
 */
function defaultPath(file: string, args: readonly string[], env: Environment): string {
  const name = hashOf([file, ...args]);
  if (isWindows) return `\\\\.\\pipe\\troupe-${userInfo().username}-${name}`;
  return join(runtimeDirectory(env), `${name}.sock`);
}

function hashOf(parts: readonly string[]): string {
  return sha256(parts.join('\0'), 'hex').slice(0, 16);
}

function directoryOf(path: string): string {
  return statSync(path).isDirectory() ? path : dirname(path);
}

/** Creates the lock file with the id of this process. @returns false if a live process holds the lock */
function takeLock(lock: string): boolean {
  for (let attempt = 1; ; attempt += 1) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx', mode: 0o600 });
      return true;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      if (attempt > 1 || isHeld(lock)) return false;
      // Two processes that find the lock stale may both start a server. Only one server can bind the socket; the other ends.
      rmSync(lock, { force: true });
    }
  }
}

function isHeld(lock: string): boolean {
  try {
    const age = Date.now() - statSync(lock).mtimeMs;
    const pid = Number(readFileSync(lock, 'utf8'));
    // The owner creates the file before it writes its id.
    if (!Number.isSafeInteger(pid) || pid <= 0) return age < POLL_MS * 100;
    // A start never takes so long: the id now belongs to another process.
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

/** Finds the reason of a failure in the log after `from`: the last line of `troupe serve`, or else the last line. */
function lastLine(path: string, from: number): string {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const start = Math.max(from, size - TAIL_BYTES);
    const bytes = Buffer.alloc(Math.max(0, size - start));
    readSync(file, bytes, 0, bytes.length, start);
    const lines = bytes.toString('utf8').trim().split('\n');
    return lines.findLast((line) => line.startsWith('troupe serve: ')) ?? lines.at(-1) ?? '';
  } finally {
    closeSync(file);
  }
}
