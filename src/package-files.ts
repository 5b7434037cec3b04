/** Where this package's own code lies: as it is written below `src`, or as it is bundled below `dist/lib`, where a file's own place says nothing. */
import { extname } from 'node:path';

/** The directory that holds all of it, as the beginning of a url. */
export const OWN = new URL('.', import.meta.url).href;

/** `.ts` as it is written, `.js` as it is built. */
export const EXTENSION = extname(import.meta.url);

/**
 * A file that is started or loaded by its name, and not by an import.
 *
 * @param path below `src`, without its extension; `bundle.ts` lists those that there are
 * @example new Worker(ownFile('store/sqlite/sqlite-worker'));
 */
export function ownFile(path: string): URL {
  return new URL(`./${path}${EXTENSION}`, OWN);
}
