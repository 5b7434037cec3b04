/** Loads one module of the author, once for each generation. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isObject } from '../protocol/json.ts';
import { prepareGenerations, prepareTypeScript } from './node-loader.ts';

/** What a module exports, by name. */
export type Exports = Readonly<Record<string, unknown>>;

const { cache } = createRequire(import.meta.url);

/**
 * Imports a module. In generation 0 it is the one that everybody else in the process imports by this path; each later
 * generation evaluates it afresh, and what it imports by path, but no packages.
 *
 * @param path absolute
 * @throws what the module throws, or what is wrong with its text
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

/** CommonJS knows no generations: what a module required is forgotten, so that it is read again. */
function forgetRequired(path: string): void {
  const found = cache[path];
  if (!found || path.includes('/node_modules/')) return;
  delete cache[path];
  for (const child of found.children) forgetRequired(child.filename);
}
