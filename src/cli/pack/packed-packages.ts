/** The packages that a packed program needs: those of `dependencies`, and theirs, each in a place where Node finds it. */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { isObject } from '../../core/protocol/json.ts';
import type { ZipFile } from './zip-archive.ts';

/** Files that nothing needs at run time: Node runs no TypeScript in `node_modules`. */
const UNUSED = /\.(?:[cm]?tsx?|map|md|markdown|flow|tsbuildinfo)$/i;
const UNUSED_FOLDERS: ReadonlySet<string> = new Set(['node_modules', '.bin', '.cache', '.git', '.github']);
/** The part of this package that runs. */
const OWN_USED = /^(?:dist\/(?:lib|apps|inspector)\/|package\.json$|LICENSE$|NOTICE$)/;
/** The programs are compiled, so that no archive needs the compilers. */
const COMPILERS: ReadonlySet<string> = new Set(['tsx', 'esbuild']);
/** The database of `--data`: a binary for each platform. */
const DATABASE = 'libsql';
const OWN = 'troupe';

interface Package {
  readonly name: string;
  /** Without symbolic links. */
  readonly folder: string;
  readonly needs: readonly { readonly name: string; readonly optional: boolean }[];
}

export interface PackedPackages {
  readonly files: readonly ZipFile[];
  /** The packages with binaries, which run on the platform of this machine only. */
  readonly native: readonly string[];
  /** The dependencies that are not installed. */
  readonly missing: readonly string[];
}

/**
 * Collects the packages of a project.
 *
 * @param root the folder of its `package.json`
 * @param own the folder of this copy of Troupe, for a project that does not name it
 * @param database true: with the database of `--data`
 */
export function packedPackages(root: string, own: string, database: boolean): PackedPackages {
  const placed = new Map<string, Package>();
  const missing = new Set<string>();
  const queue: { readonly from: Package; readonly at: string; readonly within: string }[] = [];
  /** Places a package in the highest `node_modules` in which its name is free, as npm does. */
  const place = (found: Package, within: string): void => {
    const folders = foldersAbove(within).map((folder) => `${folder}/${found.name}`);
    const nearest = folders.findIndex((path) => placed.has(path));
    if (nearest >= 0 && placed.get(folders[nearest] ?? '')?.folder === found.folder) return;
    const path = folders.at(nearest < 0 ? -1 : nearest - 1);
    if (path === undefined || nearest === 0) return;
    placed.set(path, found);
    queue.push({ from: found, at: found.folder, within: path });
  };
  const needs = (from: Package, at: string, within: string): void => {
    for (const { name, optional } of from.needs) {
      if (from.name === OWN && (COMPILERS.has(name) || (name === DATABASE && !database))) continue;
      const found = packageOf(name, at) ?? (name === OWN ? readPackage(own) : undefined);
      if (found) place(found, within);
      else if (!optional) missing.add(name);
    }
  };
  const project = readPackage(root) ?? { name: '', folder: root, needs: [] };
  const named = project.needs.some(({ name }) => name === OWN);
  needs({ ...project, needs: named ? project.needs : [...project.needs, { name: OWN, optional: false }] }, root, '');
  for (let next = queue.shift(); next; next = queue.shift()) needs(next.from, next.at, next.within);
  const files: ZipFile[] = [];
  const native = new Set<string>();
  for (const [path, { name, folder }] of placed)
    for (const file of filesBelow(folder)) {
      if (name === OWN && !OWN_USED.test(file)) continue;
      if (file.endsWith('.node')) native.add(name);
      files.push(packedFile(join(folder, file), `${path}/${file}`));
    }
  return { files, native: [...native].sort(), missing: [...missing].sort() };
}

/** Reads a file of the archive. @param from its path on this machine @param path its path in the archive */
export function packedFile(from: string, path: string): ZipFile {
  return { path, bytes: readFileSync(from), executable: (statSync(from).mode & 0o111) !== 0 };
}

/** The installed package that a file in a folder would import. */
function packageOf(name: string, from: string): Package | undefined {
  // A package may forbid its package.json to others, so that Node's resolution does not lead there.
  for (const folder of createRequire(join(from, 'package.json')).resolve.paths(name) ?? []) {
    const found = readPackage(join(folder, name));
    if (found) return found;
  }
  return undefined;
}

function readPackage(folder: string): Package | undefined {
  let read: unknown;
  try {
    read = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(read)) return undefined;
  const optionalPeers = isObject(read.peerDependenciesMeta) ? read.peerDependenciesMeta : {};
  const isOptional = (name: string): boolean => Object(optionalPeers[name]).optional === true;
  const names = (member: string): readonly string[] => {
    const value = isObject(read) ? read[member] : undefined;
    return isObject(value) ? Object.keys(value) : [];
  };
  const optional = new Set(names('optionalDependencies'));
  return {
    name: typeof read.name === 'string' ? read.name : '',
    folder: realpathSync(folder),
    needs: [
      ...names('dependencies')
        .filter((name) => !optional.has(name))
        .map((name) => ({ name, optional: false })),
      ...[...optional].map((name) => ({ name, optional: true })),
      // A peer that is optional comes only with a package that needs it.
      ...names('peerDependencies')
        .filter((name) => !isOptional(name))
        .map((name) => ({ name, optional: true })),
    ].sort(({ name: one }, { name: other }) => (one < other ? -1 : 1)),
  };
}

/** The files of a package, without those that nothing needs at run time and without the packages inside. */
function filesBelow(folder: string, below = ''): readonly string[] {
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) return UNUSED_FOLDERS.has(entry.name) ? [] : filesBelow(folder, path);
    return entry.isFile() && !UNUSED.test(entry.name) ? [path] : [];
  });
}

/** The folders in which Node looks for the packages of a package, the nearest first. @param within its place in the archive */
function foldersAbove(within: string): readonly string[] {
  const inside = within.split('/node_modules/').map((_, index, all) => all.slice(0, index + 1).join('/node_modules/'));
  const own = within === '' ? [] : inside.map((path) => `${path}/node_modules`).reverse();
  return [...own, 'node_modules'];
}
