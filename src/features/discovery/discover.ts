/** Loads the modules below files and directories, and registers what they export. */

import { statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { systemClock } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { OperatorLog } from '../../core/kernel/operator-log.ts';
import { launcher } from '../../core/server/launcher.ts';
import { withDeepStacks } from './deep-stacks.ts';
import { loading, nextGeneration } from './generation.ts';
import { loadModule } from './load-module.ts';
import { type Offers, readExports } from './module-exports.ts';
import { findModules, isBelow } from './module-files.ts';
import { prepareTypeScript } from './node-loader.ts';
import { type OfferedModules, replaceOffers, withdraw } from './offer-modules.ts';

export interface DiscoverOptions {
  /**
   * Base of relative paths: a directory, or the URL or path of a file, such as `import.meta.url`. Default: the working
   * directory.
   */
  readonly from?: string | URL | undefined;
  /** Milliseconds in which one module must load (1 to 2^31-1). Default 30,000. */
  readonly loadMs?: number | undefined;
}

/** The result of one discovery. Paths are absolute. */
export interface Discovered {
  /** The modules whose current definitions are registered, in the order in which they were loaded. */
  readonly loaded: readonly string[];
  /**
   * The modules that failed, and the paths that do not exist. What a module registered before it failed stays
   * registered.
   */
  readonly failed: readonly Failure[];
}

interface Failure {
  readonly path: string;
  readonly reason: string;
}

/** Modules that are loaded but not yet registered. */
export interface LoadedModules {
  /** The requested files and directories. */
  readonly roots: readonly string[];
  /** The directories that discovery read. */
  readonly directories: readonly string[];
  readonly files: readonly string[];
  readonly offers: ReadonlyMap<string, Offers>;
  readonly failed: readonly Failure[];
}

/** The state of discovery for one server. */
interface Discovery {
  readonly offered: Map<string, Offers>;
  /**
   * Every file that was loaded for this server, including failed ones: Node never loads a file of the same generation
   * twice.
   */
  readonly tried: Set<string>;
  /** The last call. Calls run one after another. */
  turn: Promise<unknown>;
}

const discoveries = new WeakMap<OfferedModules, Discovery>();

function discoveryOf(server: OfferedModules): Discovery {
  const known = discoveries.get(server) ?? { offered: new Map(), tried: new Set(), turn: Promise.resolve() };
  discoveries.set(server, known);
  return known;
}

/** See `Server.discover`. */
export function discover(
  server: OfferedModules,
  paths: readonly string[],
  log: OperatorLog,
  { from, loadMs = 30_000 }: DiscoverOptions = {},
): Promise<Discovered> {
  const discovery = discoveryOf(server);
  const base = baseOf(from);
  const roots = paths.map((path) => resolve(base, path));
  launcher()?.reads(roots);
  const turn = discovery.turn.then(async () => {
    const loaded = await load(roots, (files) => generationFor(discovery, files), loadMs);
    return offer(server, loaded, log);
  });
  discovery.turn = turn.catch(() => {});
  return turn;
}

/**
 * Returns the program's own generation for the first load, so that discovered modules share their imports with the
 * program. If one of the files was loaded for this server before, begins a new generation, so that all of them load
 * afresh together.
 */
function generationFor({ tried }: Discovery, files: readonly string[]): number {
  return files.some((file) => tried.has(file)) ? nextGeneration() : loading.program;
}

/**
 * Loads the modules below the roots, one after another.
 * @param generation the generation in which the files load
 * @param loadMs milliseconds in which one module must load
 */
export async function load(
  roots: readonly string[],
  generation: (files: readonly string[]) => number,
  loadMs: number,
): Promise<LoadedModules> {
  const files = new Set<string>();
  const directories: string[] = [];
  const failed: Failure[] = [];
  for (const root of roots) {
    try {
      const found = await findModules(root);
      for (const file of found.files) files.add(file);
      directories.push(...found.directories);
    } catch (error) {
      failed.push({ path: root, reason: reasonOf(error, root) });
    }
  }
  const now = generation([...files]);
  const offers = new Map<string, Offers>();
  // One call for all files: the packages that they need are imported before the first of them.
  const typescript = [...files].filter((file) => /\.m?ts$/.test(file));
  if (typescript.length > 0) await prepareTypeScript(typescript).catch(() => {});
  for (const path of files) {
    try {
      offers.set(path, await withinTime(readModule(path, now), loadMs));
    } catch (error) {
      failed.push({ path, reason: reasonOf(error, path) });
    }
  }
  return { roots, directories, files: [...files], offers, failed };
}

async function readModule(path: string, generation: number): Promise<Offers> {
  return readExports(await withDeepStacks(() => loadModule(path, generation)), path);
}

/** Registers the loaded modules in place of what the same paths registered before, and logs the failures. */
export function offer(server: OfferedModules, loaded: LoadedModules, log: OperatorLog): Discovered {
  const { offered, tried } = discoveryOf(server);
  for (const file of loaded.files) tried.add(file);
  const present = new Set(loaded.files);
  for (const path of offered.keys())
    if (!present.has(path) && loaded.roots.some((root) => isBelow(root, path))) withdraw(server, offered, path);
  const refused = replaceOffers(server, offered, loaded.offers);
  const failures = [
    ...loaded.failed,
    ...[...refused].map(([path, error]) => ({ path, reason: reasonOf(error, path) })),
  ].map(({ path, reason }) => ({
    path,
    reason: offered.has(path) ? `${reason}; its previous version is still registered` : reason,
  }));
  for (const { path, reason } of failures) log('warning', `${shown(path)}: ${reason}`, { event: 'program' });
  return { loaded: [...loaded.offers.keys()].filter((path) => !refused.has(path)), failed: failures };
}

/** Removes everything that was discovered for a server. */
export function withdrawAll(server: OfferedModules): void {
  const { offered } = discoveryOf(server);
  for (const path of offered.keys()) withdraw(server, offered, path);
}

function withinTime<T>(loading: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = systemClock.after(ms, () =>
      reject(new Error(`the module did not load within ${durationOf(ms)} (loadMs): check its top-level await`)),
    );
    loading.then(resolve, reject).finally(() => timer.cancel());
  });
}

function baseOf(from: string | URL = process.cwd()): string {
  if (from instanceof URL || from.startsWith('file:')) return fileURLToPath(new URL('.', from));
  const path = resolve(from);
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? dirname(path) : path;
}

/** The path as an author writes it: relative to the working directory if it is below it. */
function shown(path: string): string {
  const short = relative(process.cwd(), path);
  return short === '' || short.startsWith('..') ? path : short;
}

/**
 * @param path the module's path
 * @example reasonOf(new Error('no database'), '/tools/a.ts') // no database (at line 3, column 7)
 */
function reasonOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `it threw ${String(error)}`;
  // Our own errors and those of schemas need no class name in front.
  const message = ['Error', 'DefinitionError', 'SchemaError', 'TemplateError'].includes(error.name)
    ? error.message
    : `${error.name}: ${error.message}`;
  const said = message.trim().replace(/\s*\n\s*/g, ' ');
  if (said.includes(path)) return said;
  const place = placeIn(error.stack ?? '', path);
  if (place !== undefined) return `${said} (at ${place})`;
  // For a syntax error in JavaScript, Node names neither the position nor the module.
  return error instanceof SyntaxError ? `${said} (in this module or in one that it imports)` : said;
}

/** The line and column in the module itself, if the stack contains them. */
function placeIn(stack: string, path: string): string | undefined {
  for (const name of [pathToFileURL(path).href, path]) {
    for (const line of stack.split('\n')) {
      const at = line.indexOf(name);
      const [, place] = (at === -1 ? null : /^(?:\?[^:]*)?:(\d+(?::\d+)?)/.exec(line.slice(at + name.length))) ?? [];
      if (place !== undefined) return `line ${place.replace(':', ', column ')}`;
    }
  }
  return undefined;
}
