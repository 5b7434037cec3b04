/**
 * Locates this package's own code: TypeScript below `src`, or bundles below `dist/lib`, where a file's own location is
 * meaningless.
 */
import { createRequire } from 'node:module';
import { extname } from 'node:path';

/** The URL of the directory that contains the code. */
export const OWN = new URL('.', import.meta.url).href;

/** `.ts` in the sources, `.js` in the build. */
export const EXTENSION = extname(import.meta.url);

/**
 * The URL of a file that is started or loaded by name instead of by an import.
 * @param path below `src`, without extension; `bundle.ts` lists the files
 * @example new Worker(ownFile('store/sqlite/sqlite-worker'));
 */
export function ownFile(path: string): URL {
  return new URL(`./${path}${EXTENSION}`, OWN);
}

/** Returns the version of this package. */
export function packageVersion(): string {
  // Resolved from a file of the package, because a bundle may be elsewhere (bundle.ts).
  const { version }: { version: string } = createRequire(ownFile('package-files'))('troupe/package.json');
  return version;
}
