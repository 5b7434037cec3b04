/** The user's runtime directory: it contains the sockets of shared servers and the registry of open inspectors. */
import { lstatSync, statSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { makeDirectory } from '../../core/kernel/files/make-directory.ts';
import { checkDirectory, isWindows } from '../../core/transports/socket-path.ts';
import type { Environment } from '../command-io.ts';

/**
 * Creates the directory with mode 0700 if it does not exist.
 *
 * @throws {Error} if no directory exists that only this user can write to
 */
export function runtimeDirectory(env: Environment): string {
  const directory = defaultDirectory(env);
  makeDirectory(directory, 0o700);
  checkDirectory(directory);
  // In a world-writable parent, another user could have created a symbolic link first.
  if (lstatSync(directory).isSymbolicLink())
    throw new Error(`${directory}: expected a directory, got a symbolic link: remove it`);
  return directory;
}

function defaultDirectory({ XDG_RUNTIME_DIR: runtime }: Environment): string {
  // On Windows, each user has a private directory for temporary files.
  if (isWindows) return join(tmpdir(), 'troupe');
  return runtime !== undefined && isAbsolute(runtime) && statSync(runtime, { throwIfNoEntry: false })?.isDirectory()
    ? join(runtime, 'troupe')
    : join(tmpdir(), `troupe-${userInfo().uid}`);
}
