/** The registry of open inspectors: each process with an inspector writes a file that only its user can read. `troupe top` reads these files. */
import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../../core/kernel/files/make-directory.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { isObject } from '../../core/protocol/json.ts';
import { checkDirectory, codeOf, isWindows } from '../../core/transports/socket-path.ts';
import type { Environment } from '../command-io.ts';
import { runtimeDirectory } from './runtime-directory.ts';

/** An open inspector. */
interface RegisteredInspector {
  readonly pid: number;
  /** Includes the token, which grants access to the inspector. */
  readonly url: string;
  /** The name and version of the server. */
  readonly server: string;
  /** The served file or directory. */
  readonly target: string;
}

/** Only the owner can read the file. */
const MODE = 0o600;

/** The maximum number of files that are read. */
const MAX_FILES = 1_000;

/**
 * Registers an inspector until the returned function is called.
 *
 * @throws {Error} if no directory exists that only this user can write to
 */
export function registerInspector(inspector: RegisteredInspector): () => void {
  const file = join(directoryOf(process.env), `${inspector.pid}.json`);
  replaceFile(file, JSON.stringify(inspector), { mode: MODE });
  return () => rmSync(file, { force: true });
}

/** Lists the open inspectors of this user. Removes the files of dead processes. */
export function registeredInspectors(env: Environment = process.env): readonly RegisteredInspector[] {
  const directory = directoryOf(env);
  return readdirSync(directory)
    .filter((name) => /^\d+\.json$/.test(name))
    .slice(0, MAX_FILES)
    .flatMap((name) => {
      const file = join(directory, name);
      const found = read(file);
      if (found && isAlive(found.pid)) return [found];
      remove(file);
      return [];
    });
}

function directoryOf(env: Environment): string {
  const directory = join(runtimeDirectory(env), 'inspectors');
  makeDirectory(directory, 0o700);
  checkDirectory(directory);
  return directory;
}

function remove(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // A directory: Troupe has not created it.
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
    // The file was removed meanwhile, or Troupe has not written it.
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
