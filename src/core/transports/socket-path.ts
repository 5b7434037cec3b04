/**
 * Checks the path of a socket for servers and clients, detects a listening server, and replaces the file of a dead one.
 */
import { Buffer } from 'node:buffer';
import { chmodSync, lstatSync, realpathSync, renameSync, statSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

export const isWindows: boolean = process.platform === 'win32';

/** Maximum length of `sun_path`, in bytes, without the final NUL. */
const LONGEST = process.platform === 'linux' ? 107 : 103;

/** Only its owner may connect. */
const MODE = 0o600;

/** The system's error codes for a socket without a listener. */
const NO_LISTENER: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED', 'ENOTSOCK']);

/** The system's error code, such as `EADDRINUSE`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/**
 * Checks the path itself, not the file system.
 *
 * @throws {Error} for a path that this system does not allow for a socket, with the expected form
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
 * Checks a directory: anyone who may write to the directory of a socket can replace the socket.
 *
 * @throws {Error} if the directory does not exist, belongs to another user, or is writable by others, with a fix
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
 * Checks a socket before a client connects, with the rules that a server applies before it binds. A link counts as its
 * target, which must also be in a safe directory.
 *
 * @returns the path to connect to, inside the checked directory, even if a link on the way changes a moment later
 * @throws {Error} for a socket of another user or in a directory that others may write to, and for a file that is not a
 * socket; with the code ENOENT if there is no such directory
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
  // A link may exist because the path would be too long without it.
  return Buffer.byteLength(real) > LONGEST ? path : real;
}

/** True if a server listens there. @throws {Error} if that cannot be determined, as with a socket of another user */
export function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', (error) => {
      if (NO_LISTENER.has(codeOf(error))) resolve(false);
      // Its queue of clients is full, so a server exists.
      else if (codeOf(error) === 'EAGAIN') resolve(true);
      else reject(error);
    });
  });
}

/**
 * Listens on the path; the system allows one server. The file has mode 0600 from the start.
 *
 * @returns a function that stops listening and removes the file
 * @throws {Error} if another server listens there, another file exists there, or the directory is not safe
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
    // The call creates the file: with the usual umask, others could connect until its mode is changed.
    const before = isMainThread && !isWindows ? process.umask(0o777 & ~MODE) : undefined;
    try {
      server.listen(path);
    } finally {
      if (before !== undefined) process.umask(before);
    }
  });
}

/** Node removes any file at the path. Move the file of another server out of the way for that moment. */
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

/** Removes the file of a dead server. @throws {Error} if the server is alive, or the file is not a socket */
async function removeStale(path: string): Promise<void> {
  const found = look(path);
  if (!found) return;
  if (!found.isSocket()) throw noSocket(path);
  if (await isListening(path)) throw taken(path);
  // Another server may have replaced the file meanwhile, and is alive.
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
