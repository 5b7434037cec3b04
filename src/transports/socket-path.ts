/** The path of a socket: whether a server may bind it and a client may trust it, whether one listens there, and how the file of a dead one is replaced. */
import { Buffer } from 'node:buffer';
import { chmodSync, lstatSync, realpathSync, renameSync, statSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

export const isWindows: boolean = process.platform === 'win32';

/** What `sun_path` holds, in bytes, without the NUL at its end. */
const LONGEST = process.platform === 'linux' ? 107 : 103;

/** Only its owner may connect. */
const MODE = 0o600;

/** What the system says of a socket that nobody listens on. */
const NOBODY: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED', 'ENOTSOCK']);

/** The system's name for what went wrong: `EADDRINUSE`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/**
 * Looks at the path alone, not at what is there.
 *
 * @throws {Error} for a path that no socket can have on this system, with what it has to look like
 */
export function checkPath(path: string): void {
  if (isWindows) {
    if (!/^\\\\[.?]\\pipe\\./.test(path))
      throw new Error(
        `socket: expected the name of a pipe such as \\\\.\\pipe\\my-server, got ${path}. On Windows, sockets are named pipes`,
      );
    return;
  }
  if (path === '' || path.includes('\0'))
    throw new Error(
      'socket: expected the path of a file, got an empty one or one with a NUL in it (abstract sockets have no file mode, so every user could connect)',
    );
  const bytes = Buffer.byteLength(path);
  if (bytes > LONGEST)
    throw new Error(
      `socket: expected a path of at most ${LONGEST} bytes, got ${bytes}, the limit of this system for sockets. Choose a shorter path than ${path}`,
    );
}

/**
 * Whoever may write to the directory of a socket can put one of their own in its place.
 *
 * @throws {Error} for a directory that is not there, is another user's, or in which others may write, with what to do
 */
export function checkDirectory(directory: string): void {
  if (isWindows) return;
  const found = statSync(directory, { throwIfNoEntry: false });
  if (!found?.isDirectory())
    throw new Error(`socket: the directory ${directory} does not exist. Create it with mkdir -p -m 700 ${directory}`);
  const user = process.getuid?.();
  if (found.uid !== user && found.uid !== 0)
    throw new Error(
      `socket: the directory ${directory} belongs to the user ${found.uid}, and you are ${user}. That user could put another socket there. Choose a directory that you own`,
    );
  if ((found.mode & 0o022) !== 0)
    throw new Error(
      `socket: other users may write to the directory ${directory} (mode ${(found.mode & 0o7777).toString(8)}) and could put their own socket there. Choose a directory that you own (mkdir -m 700), or remove their write permission (chmod go-w ${directory})`,
    );
}

/**
 * What a server checks before it binds, a client checks before it connects: it tells its own server only what it is asked to do.
 * A link counts as what it leads to, which must lie in a safe directory, too.
 *
 * @returns the path to connect to: in the directory that was checked, wherever a link on the way leads a moment later
 * @throws {Error} for a socket of another user or in a directory where others may write, and for a file that is no socket;
 *   with the code ENOENT where there is no such directory
 */
export function checkSocket(path: string): string {
  checkPath(path);
  if (isWindows) return path;
  const directory = realpathSync(dirname(path));
  checkDirectory(directory);
  const real = join(directory, basename(path));
  const found = lstatSync(real, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) return checkSocket(realpathSync(real));
  if (found && !found.isSocket()) throw noSocket(path);
  const user = process.getuid?.();
  if (found && found.uid !== user)
    throw new Error(
      `socket: ${path} belongs to the user ${found.uid}, and you are ${user}. Its server could read every message. Start your own server at another path`,
    );
  // A link may be there because the path would be too long without it.
  return Buffer.byteLength(real) > LONGEST ? path : real;
}

/** Whether a server listens there. @throws {Error} when that cannot be known, as with a socket of another user */
export function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', (error) => {
      if (NOBODY.has(codeOf(error))) resolve(false);
      // Its queue of clients is full, so there is somebody who has one.
      else if (codeOf(error) === 'EAGAIN') resolve(true);
      else reject(error);
    });
  });
}

/**
 * Listens on the path; the system lets one server do so. The file has mode 0600 from the start.
 *
 * @returns a function that listens no more, and removes the file
 * @throws {Error} when another server listens there, something else is there, or the directory is not safe
 */
export async function bind(server: Server, path: string): Promise<() => void> {
  checkPath(path);
  checkDirectory(dirname(path));
  for (let attempt = 1; ; attempt += 1) {
    try {
      await listen(server, path);
      if (isWindows) return () => void server.close();
      chmodSync(path, MODE);
      const mine = look(path)?.mtimeNs;
      return () => unbind(server, path, mine);
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw error;
      if (attempt === 3 || isWindows) throw taken(path);
      await removeStale(path);
    }
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => reject(error);
    server.once('error', failed);
    server.once('listening', () => {
      server.off('error', failed);
      resolve();
    });
    // The file is created within this call: with the usual mask others could connect until its mode is changed.
    const before = isMainThread && !isWindows ? process.umask(0o777 & ~MODE) : undefined;
    try {
      server.listen(path);
    } finally {
      if (before !== undefined) process.umask(before);
    }
  });
}

/** Node removes whatever is at the path: a file that another server has put there meanwhile is out of its way for a moment. */
function unbind(server: Server, path: string, mine: bigint | undefined): void {
  const there = look(path)?.mtimeNs;
  if (there === undefined || there === mine) {
    server.close();
    return;
  }
  const aside = `${path}~`;
  renameSync(path, aside);
  server.close();
  renameSync(aside, path);
}

/** Removes the file that a dead server left behind. @throws {Error} when it is alive, or the file is no socket */
async function removeStale(path: string): Promise<void> {
  const found = look(path);
  if (!found) return;
  if (!found.isSocket()) throw noSocket(path);
  if (await isListening(path)) throw taken(path);
  // Somebody may have replaced it meanwhile, and is alive.
  if (look(path)?.mtimeNs === found.mtimeNs) unlinkSync(path);
}

function noSocket(path: string): Error {
  return new Error(`socket: the file at ${path} is not a socket. Remove it, or choose another path`);
}

function taken(path: string): Error {
  return new Error(
    `socket: a server already listens on ${path}. Use it (troupe attach ${path}), stop it, or choose another path`,
  );
}

function look(path: string) {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false });
}
