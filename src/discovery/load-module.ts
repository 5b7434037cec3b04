/** Loads one of the author's modules, once for each generation. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isObject } from '../protocol/json.ts';
import { prepareGenerations, prepareTypeScript } from './node-loader.ts';

/** A module's exports, by name. */
export type Exports = Readonly<Record<string, unknown>>;

const { cache } = createRequire(import.meta.url);

/**
 * Imports a module. Generation 0 is the module that the rest of the process imports by this path. Each later generation
 * evaluates the module afresh, with everything that it imports by path, but without packages.
 * @param path absolute
 * @throws the module's own error, or a syntax error in its text
 */
export async function loadModule(path: string, generation: number): Promise<Exports> {
  if (/\.m?ts$/.test(path)) await prepareTypeScript([path]);
  const { href } = pathToFileURL(path);
  if (generation > 0) {
    prepareGenerations();
    forgetRequired(path);
  }
  const exports: unknown = await import(generation > 0 ? `${href}?troupe=${generation}` : href);
  return isObject(exports) ? exports : {};
}

/** Removes from Node's cache what a CommonJS module required, because `require` has no generations. */
function forgetRequired(path: string): void {
  const found = cache[path];
  if (!found || path.includes('/node_modules/')) return;
  delete cache[path];
  for (const child of found.children) forgetRequired(child.filename);
}
