/** Finds where npm got this copy of Troupe, so that a new project installs the same copy: also a packed file or a clone, before publication. */
import { readFileSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { isObject } from '../../core/protocol/json.ts';

/** The record of what npm has installed in a `node_modules` folder. */
const LOCK = '.package-lock.json';

/** The address of a version in a registry ends with this, also behind a proxy. */
const PUBLISHED = /^https?:.*\/-\/[^/]+$/;

/**
 * Returns what `dependencies` of a package.json contain for this copy.
 *
 * @param folder the folder of the package
 * @param version the version of the package, for a copy from a registry, or one of unknown origin
 * @returns a range of versions, or `file:` with an absolute path for a packed file and a folder
 * @example installedFrom('/home/me/clone', '1.2.0') // 'file:/home/me/clone'
 */
export function installedFrom(folder: string, version: string): string {
  const modules = dirname(folder);
  if (basename(modules) !== 'node_modules') return fileSpecifier(folder);
  const resolved = resolvedIn(join(modules, LOCK), basename(folder));
  if (resolved === undefined || PUBLISHED.test(resolved)) return `^${version}`;
  // npm writes such a path relative to the folder of `node_modules`.
  return resolved.startsWith('file:') ? fileSpecifier(resolve(dirname(modules), resolved.slice(5))) : resolved;
}

function fileSpecifier(path: string): string {
  return `file:${path.split(sep).join('/')}`;
}

/** The origin that a record of npm names for a package; undefined without one. */
function resolvedIn(lock: string, name: string): string | undefined {
  try {
    const read: unknown = JSON.parse(readFileSync(lock, 'utf8'));
    const packages = isObject(read) ? read.packages : undefined;
    const found = isObject(packages) ? packages[`node_modules/${name}`] : undefined;
    return isObject(found) && typeof found.resolved === 'string' ? found.resolved : undefined;
  } catch {
    // Another package manager, or a global installation, has no such record.
    return undefined;
  }
}
