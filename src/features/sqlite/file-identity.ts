/** The files of an open store by device and inode: detects that one of them was removed, renamed or replaced. */
import { statSync } from 'node:fs';

/** The device and inode of a file; undefined if the path leads to no file. */
export function fileIdOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}

/**
 * SQLite writes to the files that it has opened, whatever their paths lead to now: it commits to a removed file without an
 * error, and that data is lost when the process ends.
 */
export class FileIdentity {
  /** The database itself, which a later thread of this process must find again. */
  readonly database: string | undefined;
  readonly #path: string;
  readonly #files: readonly (readonly [path: string, identity: string | undefined])[];

  /** @param path of the database, as messages name it, whose log exists */
  constructor(file: string, path: string) {
    this.#path = path;
    this.#files = [file, `${file}-wal`].map((name) => [name, fileIdOf(name)]);
    this.database = this.#files[0]?.[1];
  }

  /** Returns the message for the operator if a path no longer leads to its file. */
  displaced(): string | undefined {
    for (const [name, identity] of this.#files) {
      const now = fileIdOf(name);
      if (now !== identity) return displacedText(this.#path, name.endsWith('-wal') ? '-wal' : '', now);
    }
    return undefined;
  }
}

/** @param now the identity of the file that the path leads to; undefined if it leads to none */
export function displacedText(path: string, end: '' | '-wal', now: string | undefined): string {
  const what = now === undefined ? 'removed or renamed' : 'replaced by another file';
  return `${path}${end} was ${what} while the store was open, so nothing that is written would remain. The store neither reads nor writes any more. Put the original files back, or restore a backup, then restart this process`;
}
