/** Writes files of this program and of others: whole or not at all, with the mode that they have, and never through a planted link. */
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';

interface ReplaceOptions {
  /** The mode of a file that does not exist yet, before the umask. Default 0666. */
  readonly mode?: number;
  /**
   * `follow`: the file belongs to a person, who may have linked it to a repository, so that the linked file is replaced.
   * `replace` (default): a file of this program takes the place of the link.
   */
  readonly link?: 'follow' | 'replace';
}

/** Maximum number of links in a row, as systems follow them. */
const MAX_LINKS = 40;
const PERMISSIONS = 0o7777;

/**
 * Replaces a file with these contents. A reader sees the file as it was, or the new one whole. An existing file keeps its mode,
 * and its owner where this process may set it. A pipe or a device, such as `/dev/null`, is written to.
 *
 * @throws {Error} of the file system
 * @example replaceFile('mcp.json', text, { link: 'follow' });
 */
export function replaceFile(path: string, contents: string | Uint8Array, options: ReplaceOptions = {}): void {
  const { mode = 0o666, link = 'replace' } = options;
  const target = link === 'follow' ? linkedFile(path) : path;
  const found = lstatSync(target, { throwIfNoEntry: false });
  if (found && !found.isFile() && !found.isSymbolicLink() && !found.isDirectory())
    return writeFileSync(target, contents);
  const before = found?.isFile() ? found : undefined;
  const draft = `${target}.${randomBytes(6).toString('hex')}.new`;
  try {
    // Fails for a name that exists, a link included.
    const file = openSync(draft, 'wx', before ? before.mode & PERMISSIONS : mode);
    try {
      writeFileSync(file, contents);
      if (before) fchmodSync(file, before.mode & PERMISSIONS);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (before) keepOwner(draft, before);
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** The file that a path leads to, which need not exist. @throws {Error} for a circle of links */
function linkedFile(path: string): string {
  let at = path;
  for (let links = 0; lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink(); links += 1) {
    if (links >= MAX_LINKS) throw new Error(`${path}: more than ${MAX_LINKS} symbolic links in a row`);
    at = resolve(dirname(at), readlinkSync(at));
  }
  return at;
}

/** A file of another user, which an administrator changes, stays that user's. */
function keepOwner(draft: string, { uid, gid }: Stats): void {
  if (uid === process.getuid?.() && gid === process.getgid?.()) return;
  try {
    chownSync(draft, uid, gid);
  } catch {
    // Only an administrator may give files away.
  }
}
