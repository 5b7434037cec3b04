/** Loads one of the author's modules, once for each generation. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { processWide } from '../../core/kernel/global-registry.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import { loading, nextGeneration } from './generation.ts';
import { prepareGenerations, prepareTsx, prepareTypeScript, stripsTypes } from './node-loader.ts';

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
  const isTypeScript = /\.m?ts$/.test(path);
  if (isTypeScript) await prepareTypeScript([path]);
  if (generation > 0) {
    prepareGenerations();
    forgetRequired(path);
  }
  const exports: unknown = await (isTypeScript && stripsTypes([path])
    ? importStripped(path, generation)
    : import(urlOf(path, generation)));
  return isObject(exports) ? exports : {};
}

function urlOf(path: string, generation: number): string {
  const { href } = pathToFileURL(path);
  return generation > 0 ? `${href}?troupe=${generation}` : href;
}

/** The imports whose modules Node has linked, by their numbers. */
const linking = processWide('troupe.linking', () => ({ count: 0, linked: new Set<number>() }));

/**
 * Imports a module whose types Node removes. If Node cannot link it, tsx loads it: Node knows no enums, namespaces,
 * parameter properties, `.tsx` files or imports without an extension, and no import of a type without the word `type`.
 */
async function importStripped(path: string, generation: number): Promise<unknown> {
  const url = urlOf(path, generation);
  linking.count += 1;
  const number = linking.count;
  // This module runs first, and only if everything links. So a failure without it comes before any code of the author.
  const mark = inline(`globalThis[Symbol.for('troupe.linking')].linked.add(${number});`);
  try {
    await import(inline(`import ${JSON.stringify(mark)}; import ${JSON.stringify(url)}; // ${number}`));
  } catch (error) {
    if (linking.linked.delete(number)) throw error;
    await prepareTsx([path]);
    return importAgain(path, generation, messageOf(error));
  }
  linking.linked.delete(number);
  return import(url);
}

/** Imports a module that Node could not link. Node remembers some of these failures: then a later generation is imported. */
async function importAgain(path: string, generation: number, failure: string): Promise<unknown> {
  try {
    return await import(urlOf(path, generation));
  } catch (error) {
    if (messageOf(error) !== failure) throw error;
    const next = nextGeneration();
    if (generation === loading.program) loading.program = next;
    return import(urlOf(path, next));
  }
}

function inline(text: string): string {
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

/** Removes from Node's cache what a CommonJS module required, because `require` has no generations. */
function forgetRequired(path: string): void {
  const found = cache[path];
  if (!found || path.includes('/node_modules/')) return;
  delete cache[path];
  for (const child of found.children) forgetRequired(child.filename);
}
