/** Discovery: loads the modules below files and directories, and offers what they export. */
import { statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../clock.ts';
import { launcher } from '../launcher.ts';
import type { OperatorLog } from '../operator-log.ts';
import { loading, nextGeneration } from './generation.ts';
import { reasonOf } from './load-failure.ts';
import { loadModule } from './load-module.ts';
import { type Offers, readExports } from './module-exports.ts';
import { findModules, isBelow } from './module-files.ts';
import { prepareTypeScript } from './node-loader.ts';
import { type OfferedModules, replaceOffers, withdraw } from './offer-modules.ts';

export interface DiscoverOptions {
  /** What the paths are relative to: a directory, or the url or path of a file, such as `import.meta.url`. Default: the working directory. */
  readonly from?: string | URL;
  /** Milliseconds that one module is given to load (1 to 2^31-1). Default 30,000. */
  readonly loadMs?: number;
}

/** What came of it. Paths are absolute. */
export interface Discovered {
  /** The modules whose offers are served now as they are in their files, in the order in which they were loaded. */
  readonly loaded: readonly string[];
  /** The modules that are not, and the paths that are not there. What a module offered before it failed is still served. */
  readonly failed: readonly Failure[];
}

export interface Failure {
  readonly path: string;
  readonly reason: string;
}

/** Modules that have been loaded, but are not offered yet. */
export interface LoadedModules {
  /** The files and directories that were asked for. */
  readonly roots: readonly string[];
  /** The directories that were read. */
  readonly directories: readonly string[];
  readonly files: readonly string[];
  readonly offers: ReadonlyMap<string, Offers>;
  readonly failed: readonly Failure[];
}

/** What discovery knows of one server. */
interface Discovery {
  readonly offered: Map<string, Offers>;
  /** Every file that was loaded for it, the failed too: Node never loads one of the same generation again. */
  readonly tried: Set<string>;
  /** One call at a time. */
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

/** The program's own generation, so that it shares modules with what it discovers; but once one of the files was loaded for this server before, all are loaded afresh, together. */
function generationFor({ tried }: Discovery, files: readonly string[]): number {
  return files.some((file) => tried.has(file)) ? nextGeneration() : loading.program;
}

/**
 * Loads what is found under the roots, one module after the other.
 *
 * @param generation which generation to load the files in
 * @param loadMs milliseconds that one module is given
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
  // All at once: what they need is imported before the first of them.
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
  return readExports(await loadModule(path, generation), path);
}

/** Offers what was loaded, in place of what the same paths offered before, and tells the operator what failed. */
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
    reason: offered.has(path) ? `${reason}; what it offered before is still served` : reason,
  }));
  for (const { path, reason } of failures) log('warning', `${shown(path)}: ${reason}`);
  return { loaded: [...loaded.offers.keys()].filter((path) => !refused.has(path)), failed: failures };
}

/** Takes back all that was discovered for a server. */
export function withdrawAll(server: OfferedModules): void {
  const { offered } = discoveryOf(server);
  for (const path of offered.keys()) withdraw(server, offered, path);
}

function withinTime<T>(loading: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = systemClock.after(ms, () =>
      reject(new Error(`it did not load within ${ms} ms: what does its top-level await wait for?`)),
    );
    loading.then(resolve, reject).finally(() => timer.cancel());
  });
}

function baseOf(from: string | URL = process.cwd()): string {
  if (from instanceof URL || from.startsWith('file:')) return fileURLToPath(new URL('.', from));
  const path = resolve(from);
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? dirname(path) : path;
}

/** As an author writes it: from the working directory, if it is below. */
function shown(path: string): string {
  const short = relative(process.cwd(), path);
  return short === '' || short.startsWith('..') ? path : short;
}
