/** The program that a command loads: which module it begins with, and which server that module exports. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { systemClock } from '../../clock.ts';
import { type Exports, loadModule } from '../../discovery/load-module.ts';
import { NothingOffered, readExports } from '../../discovery/module-exports.ts';
import { nearest } from '../../discovery/node-loader.ts';
import { isObject } from '../../protocol/json.ts';
import { isServer, type Server } from '../../server.ts';
import { startupError } from '../startup-error.ts';
import { say } from '../usage.ts';
import type { Target } from './target.ts';

/** Milliseconds after which a program that only waits is worth a word. */
const PATIENCE_MS = 1_000;

/** The modules of a directory that may be its program, the first that exports a server wins. */
function entriesOf(directory: string): readonly string[] {
  return ['server', 'index']
    .flatMap((name) => ['.ts', '.mts', '.js', '.mjs'].map((extension) => join(directory, `${name}${extension}`)))
    .filter((path) => existsSync(path));
}

/** The server that a module exports, its default export first. */
function exportedServer(exports: Exports): Server | undefined {
  return [exports.default, ...Object.values(exports)].find(isServer);
}

/** What a server is called whose author wrote none: as its package is, or else its file or directory. */
export function identityOf({ path, kind }: Target): { name: string; version: string } {
  const directory = kind === 'directory' ? path : dirname(path);
  const file = nearest('package.json', directory);
  const { name, version } = file === undefined ? {} : readPackage(file);
  return {
    name: typeof name === 'string' && name !== '' ? name : basename(path, extname(path)) || 'troupe',
    version: typeof version === 'string' && version !== '' ? version : '0.0.0',
  };
}

function readPackage(file: string): Readonly<Record<string, unknown>> {
  try {
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isObject(read) ? read : {};
  } catch {
    // Whatever is wrong with it is not ours to say: the name is all that was wanted.
    return {};
  }
}

/** What became of a program's first module. */
export type Started =
  /** It has told a server to listen; its module may have more to do. */
  | { readonly kind: 'listens'; readonly loaded: Promise<void> }
  /** It exports a server that nobody has told to listen. */
  | { readonly kind: 'exports'; readonly server: Server }
  /** It has tools, resources or prompts to offer. */
  | { readonly kind: 'offers' }
  /** Neither, so far: it may still come to it. */
  | { readonly kind: 'nothing' };

/**
 * Loads a program's first module.
 *
 * @param listens settled when the program tells a server to listen; a module that then waits for ever is welcome to
 * @throws what loading it throws, and {@link DefinitionError} for an export that is nearly a tool
 */
export async function start(path: string, generation: number, listens: Promise<unknown>): Promise<Started> {
  const loading = loadModule(path, generation);
  const exports = await Promise.race([loading, listens.then(() => undefined)]);
  if (!exports) {
    const loaded = loading.then(
      () => {},
      (error: unknown) => say(`${path} failed after it had begun to listen: ${startupError(error, path)}`),
    );
    return { kind: 'listens', loaded };
  }
  const server = exportedServer(exports);
  if (server) return { kind: 'exports', server };
  try {
    await readExports(exports, path);
    return { kind: 'offers' };
  } catch (error) {
    if (error instanceof NothingOffered) return { kind: 'nothing' };
    throw error;
  }
}

/**
 * Starts the program of a target: the file, or of a directory the module that is meant to be its program.
 *
 * @returns undefined for a directory without one: its modules are to be discovered
 */
export async function startTarget(
  { path, kind }: Target,
  generation: number,
  listens: Promise<unknown>,
): Promise<Started | undefined> {
  if (kind === 'file') return start(path, generation, listens);
  for (const entry of entriesOf(path)) {
    const started = await start(entry, generation, listens);
    if (started.kind === 'listens' || started.kind === 'exports') return started;
    // A module of this name will come to it.
    if (started.kind === 'nothing' && basename(entry).startsWith('server.')) return started;
  }
  return undefined;
}

/** Waits until the program listens; says so when that takes longer than a start usually does. */
export async function waitFor(listens: Promise<void>, command: string, { path }: Target): Promise<void> {
  const timer = systemClock.after(PATIENCE_MS, () =>
    say(`troupe ${command}: ${path} exports no server and nothing to offer: waiting for it to call server.listen(…)`),
  );
  await listens;
  timer.cancel();
}
