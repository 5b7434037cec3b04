/** The directory in which this user's commands find each other: sockets, and who can be inspected. */
import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { checkDirectory, isWindows } from '../../transports/socket-path.ts';

/**
 * Makes it, with mode 0700, if it is not there.
 *
 * @throws {Error} when there is no directory for it that only this user may write to
 */
export function runtimeDirectory(): string {
  const directory = placeOf();
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  checkDirectory(directory);
  // Where everybody may write, somebody else may have put a link there first.
  if (lstatSync(directory).isSymbolicLink())
    throw new Error(`${directory}: expected a directory that is no link, got one to elsewhere: remove it`);
  return directory;
}

function placeOf(): string {
  // On Windows each user has a directory for temporary files.
  if (isWindows) return join(tmpdir(), 'troupe');
  const { XDG_RUNTIME_DIR: runtime } = process.env;
  return runtime !== undefined && isAbsolute(runtime) && statSync(runtime, { throwIfNoEntry: false })?.isDirectory()
    ? join(runtime, 'troupe')
    : join(tmpdir(), `troupe-${userInfo().uid}`);
}
