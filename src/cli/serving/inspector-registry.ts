/** Who can be inspected: each process with an inspector says so in a file that only its user may read, for `troupe top` to find. */
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../protocol/json.ts';
import { checkDirectory, codeOf, isWindows } from '../../transports/socket-path.ts';
import { runtimeDirectory } from './runtime-directory.ts';

/** An inspector that is open. */
export interface RegisteredInspector {
  readonly pid: number;
  /** With its token: whoever knows it may look. */
  readonly url: string;
  /** What the server is called, with its version. */
  readonly server: string;
  /** The file or directory that it serves. */
  readonly target: string;
}

/** Only its owner may read it. */
const MODE = 0o600;

/** Most files that are looked at: more are nothing of ours. */
const MOST = 1_000;

/**
 * Makes an inspector known until the returned function is called.
 *
 * @throws {Error} when there is no directory for it that only this user may write to
 */
export function registerInspector(announced: RegisteredInspector): () => void {
  const file = join(directoryOf(), `${announced.pid}.json`);
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  // Nobody reads half of it, and nobody has put it there before.
  writeFileSync(fresh, JSON.stringify(announced), { flag: 'wx', mode: MODE });
  renameSync(fresh, file);
  return () => rmSync(file, { force: true });
}

/** The inspectors of this user whose processes live. What dead ones have left behind is removed. */
export function registeredInspectors(): readonly RegisteredInspector[] {
  const directory = directoryOf();
  return readdirSync(directory)
    .filter((name) => /^\d+\.json$/.test(name))
    .slice(0, MOST)
    .flatMap((name) => {
      const file = join(directory, name);
      const found = read(file);
      if (found && isAlive(found.pid)) return [found];
      remove(file);
      return [];
    });
}

function directoryOf(): string {
  const directory = join(runtimeDirectory(), 'inspectors');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  checkDirectory(directory);
  return directory;
}

function remove(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // It is a directory, and nothing of ours.
  }
}

function read(file: string): RegisteredInspector | undefined {
  try {
    const found = lstatSync(file);
    if (!found.isFile() || (!isWindows && found.uid !== process.getuid?.())) return undefined;
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!isObject(read)) return undefined;
    const { pid, url, server, target } = read;
    if (typeof pid !== 'number' || typeof url !== 'string') return undefined;
    return { pid, url, server: String(server), target: String(target) };
  } catch {
    // It was removed meanwhile, or is nothing of ours.
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
