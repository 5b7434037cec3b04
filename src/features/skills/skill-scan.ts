/** One scan of a folder of skills: finds the skills, reads their files, and reports the skills that break a rule. */
import type { Buffer } from 'node:buffer';
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, readlink, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf } from '../../core/protocol/json.ts';
import { SKILL_FILE, SKILL_LIMITS, type SkillEntry } from '../../core/protocol/skills.ts';
import { digestOf, mediaTypeOf, textOf } from './file-bytes.ts';
import { type BrokenRule, readSkillFile } from './skill-rules.ts';
import type { ServedFile, ServedSkill } from './skill-source.ts';
import type { SkillProblem } from './skills-options.ts';

/** A file on the disk, as it was when it was read. */
interface ScannedFile extends ServedFile {
  readonly path: string;
  /** Changes with each write to the file. */
  readonly signature: string;
  /** The frontmatter of a SKILL.md, or the rules that it breaks. */
  readonly manifest: SkillEntry['frontmatter'] | readonly BrokenRule[] | undefined;
}

export interface Scan {
  /** In the order of their addresses. */
  readonly skills: readonly ServedSkill[];
  /** All files of the skills, by address. */
  readonly files: ReadonlyMap<string, ScannedFile>;
  /** Every folder below the root, also those without a skill: a new skill may appear there. */
  readonly directories: readonly string[];
  readonly problems: readonly SkillProblem[];
}

/** Maximum number of files and folders below one root: more of them are no folder of skills, but a mistake in a path. */
const MAX_ENTRIES = 20_000;

/**
 * @param root the folder
 * @param prefix begins the address of each skill; empty, or without slashes at its ends
 * @param before the last scan, whose digests count for files that have not changed since
 * @throws {Error} if the folder cannot be read, or has too many files
 */
export async function scanSkills(root: string, prefix: string, before?: Scan): Promise<Scan> {
  const place = await realpath(root);
  const folder = await readFolder(place, basename(place), { left: MAX_ENTRIES });
  // A skill that is the root itself has the root's name.
  const above = [...(prefix === '' ? [] : prefix.split('/')), ...(isSkill(folder) ? [folder.name] : [])];
  const places: ScannedPlace[] = [];
  const placed = placeFolder(folder, `skill://${above.map(encoded).join('/')}`, 0, 0, places);
  const scanner = new Scanner(places, before);
  await scanner.scan(placed);
  return scanner.result();
}

interface Folder {
  readonly path: string;
  readonly name: string;
  readonly files: readonly string[];
  readonly folders: readonly Folder[];
}

/**
 * Symbolic links, sockets and names that begin with a dot are left out: a link can leave the folder, and hidden files are not
 * meant to be published.
 */
async function readFolder(path: string, name: string, entries: { left: number }): Promise<Folder> {
  const found = (await readdir(path, { withFileTypes: true })).filter((entry) => !entry.name.startsWith('.'));
  entries.left -= found.length;
  if (entries.left < 0)
    throw new Error(`expected at most ${MAX_ENTRIES} files and folders, found more. Is this a folder of skills?`);
  found.sort((one, other) => (one.name < other.name ? -1 : 1));
  const folders: Folder[] = [];
  for (const entry of found)
    if (entry.isDirectory()) folders.push(await readFolder(join(path, entry.name), entry.name, entries));
  return { path, name, files: found.filter((entry) => entry.isFile()).map((entry) => entry.name), folders };
}

function isSkill({ files }: Folder): boolean {
  return files.includes(SKILL_FILE);
}

class Scanner {
  /** All files, in the order of the folders. */
  readonly #places: readonly ScannedPlace[];
  readonly #before: Scan | undefined;
  readonly #skills: ServedSkill[] = [];
  /** The files that were read in this scan: a skill in a folder of another shares them. */
  readonly #read = new Map<string, ScannedFile>();
  readonly #files = new Map<string, ScannedFile>();
  readonly #directories: string[] = [];
  readonly #problems: SkillProblem[] = [];

  constructor(places: readonly ScannedPlace[], before: Scan | undefined) {
    this.#places = places;
    this.#before = before;
  }

  result(): Scan {
    return {
      skills: this.#skills.sort((one, other) => (one.entry.uri < other.entry.uri ? -1 : 1)),
      files: this.#files,
      directories: this.#directories,
      problems: this.#problems,
    };
  }

  async scan(placed: PlacedFolder): Promise<void> {
    const { folder } = placed;
    this.#directories.push(folder.path);
    if (isSkill(folder)) await this.#skill(placed);
    else {
      const misspelled = folder.files.find((name) => name.toLowerCase() === SKILL_FILE.toLowerCase());
      if (misspelled !== undefined)
        this.#report(join(folder.path, misspelled), undefined, `expected the name ${SKILL_FILE}`);
    }
    for (const inner of placed.folders) await this.scan(inner);
  }

  /** Adds a skill, if it breaks no rule. */
  async #skill({ folder, uri, depth, start, end }: PlacedFolder): Promise<void> {
    const before = this.#problems.length;
    const files: ScannedFile[] = [];
    let left: number = SKILL_LIMITS.bytes;
    for (let at = start; at < end; at += 1) {
      const place = this.#places[at];
      if (!place) break;
      if (files.length === SKILL_LIMITS.files) {
        this.#report(folder.path, undefined, `expected a skill of at most ${SKILL_LIMITS.files} files, found more`);
        break;
      }
      if (place.badDepth > depth) {
        this.#report(place.path, undefined, 'expected a name without backslashes and control characters');
        break;
      }
      const read = this.#read.get(place.path);
      const file = read && read.size <= left ? read : await this.#file(place, left);
      if (!file) break;
      files.push(file);
      left -= file.size;
    }
    const entry = `${uri}/${SKILL_FILE}`;
    const { manifest, path } = files.find((file) => file.uri === entry) ?? {};
    if (manifest && path !== undefined && !isFrontmatter(manifest))
      for (const { line, message } of manifest) this.#report(path, line, message);
    if (!isFrontmatter(manifest) || this.#problems.length > before) return;
    const resources = files.map(({ uri, digest, size }) => ({ uri, digest, size }));
    this.#skills.push({ entry: { uri: entry, frontmatter: manifest, resources }, files });
    for (const file of files) this.#files.set(file.uri, file);
  }

  async #file(place: ScannedPlace, most: number): Promise<ScannedFile | undefined> {
    const { path } = place;
    const before = this.#before?.files.get(place.uri);
    try {
      const found = this.#read.get(path) ?? (await readBytes(path, most, before?.path === path ? before : undefined));
      const file = found && 'bytes' in found ? await described(found, place) : found;
      if (!file || file.size > most)
        return this.#report(
          path,
          undefined,
          `expected a skill of at most ${SKILL_LIMITS.bytes} bytes, found more with this file`,
        );
      this.#read.set(path, file);
      return file;
    } catch (error) {
      return this.#report(path, undefined, `cannot be read: ${messageOf(error)}`);
    }
  }

  #report(file: string, line: number | undefined, message: string): undefined {
    this.#problems.push({ file, line, message });
  }
}

/** A file of a folder, and its address. */
interface ScannedPlace {
  readonly path: string;
  readonly name: string;
  /** The name of its folder. */
  readonly folder: string;
  readonly uri: string;
  /** The depth of the last of its folders, or of itself, whose name no address may have; 0 if there is none. */
  readonly badDepth: number;
}

/** A folder with its address. Its files, and those of its folders, are the places from `start` to before `end`. */
interface PlacedFolder {
  readonly folder: Folder;
  readonly uri: string;
  readonly depth: number;
  readonly start: number;
  readonly end: number;
  readonly folders: readonly PlacedFolder[];
}

/** Names that some system reads as several, or shows as another one. */
const BAD_NAME = /[\\\p{Cc}]/u;

/** Adds all files of a folder once: first its own in the order of their names, then those of its folders. */
function placeFolder(
  folder: Folder,
  uri: string,
  depth: number,
  badDepth: number,
  places: ScannedPlace[],
): PlacedFolder {
  const start = places.length;
  const root = uri === 'skill://' ? uri : `${uri}/`;
  const badUntil = (name: string): number => (BAD_NAME.test(name) ? depth + 1 : badDepth);
  for (const name of folder.files)
    places.push({
      path: join(folder.path, name),
      ...{ name, folder: folder.name, uri: `${root}${encoded(name)}`, badDepth: badUntil(name) },
    });
  const folders = folder.folders.map((inner) =>
    placeFolder(inner, `${root}${encoded(inner.name)}`, depth + 1, badUntil(inner.name), places),
  );
  return { folder, uri, depth, start, end: places.length, folders };
}

/** The name of a file in an address: only letters, digits and a few marks stay as they are (RFC 3986 section 2.1). */
function encoded(name: string): string {
  return encodeURIComponent(name.toWellFormed());
}

function isFrontmatter(manifest: ScannedFile['manifest']): manifest is SkillEntry['frontmatter'] {
  return manifest !== undefined && !Array.isArray(manifest);
}

async function described(
  { bytes, signature }: FileBytes,
  { path, name, folder, uri }: ScannedPlace,
): Promise<ScannedFile> {
  const text = name === SKILL_FILE ? textOf(bytes) : undefined;
  const unreadable = name === SKILL_FILE ? [{ line: 1, message: 'expected text in UTF-8' }] : undefined;
  return {
    uri,
    name,
    path,
    signature,
    mimeType: mediaTypeOf(name, bytes),
    digest: await digestOf(bytes),
    size: bytes.length,
    manifest: text === undefined ? unreadable : await readSkillFile(text, folder),
  };
}

/** The bytes of a file, and its signature from before they were read. */
interface FileBytes {
  readonly bytes: Buffer<ArrayBuffer>;
  readonly signature: string;
}

/**
 * Reads a file. A link in its place is not followed, nor one in the place of a folder above it, and a device or a pipe is not
 * read.
 *
 * @param path without links
 * @param most most bytes
 * @param known returned if the file has not changed since
 * @returns undefined if it has more bytes
 */
export async function readBytes(
  path: string,
  most: number,
  known?: ScannedFile,
): Promise<FileBytes | ScannedFile | undefined> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const found = await file.stat({ bigint: true });
    if (!found.isFile()) throw new Error('it is no file');
    const place = await placeOf(file, path);
    // Deleted: another file has taken its place since.
    if (place !== path && place !== `${path} (deleted)`) throw new Error('it is a link');
    const signature = `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
    if (known?.signature === signature) return known;
    if (found.size > BigInt(most)) return undefined;
    const bytes = await file.readFile();
    return bytes.length > most ? undefined : { bytes, signature };
  } finally {
    await file.close();
  }
}

/** The path of an open file. Only Linux knows it: elsewhere it is that of the file which is there now. */
async function placeOf(file: FileHandle, path: string): Promise<string> {
  const known = process.platform === 'linux' ? readlink(`/proc/self/fd/${file.fd}`) : realpath(path);
  return known.catch(() => realpath(path));
}
