/** Loads the program of a command: finds its entry module and the server that this module exports. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { systemClock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/protocol/json.ts';
import { withDeepStacks } from '../../features/discovery/deep-stacks.ts';
import { type Exports, loadModule } from '../../features/discovery/load-module.ts';
import { NothingOffered, readExports } from '../../features/discovery/module-exports.ts';
import { nearest } from '../../features/discovery/node-loader.ts';
import { isServer, type Server } from '../../features/server/server.ts';
import { startupError } from '../startup-error.ts';
import { say } from '../usage.ts';
import type { Target } from './target.ts';

/** The time after which a program that has not called `listen` is reported, in milliseconds. */
const LISTEN_MS = 1_000;

/** The possible entry modules of a directory. The first that exports a server is its program. */
function entriesOf(directory: string): readonly string[] {
  return ['server', 'index']
    .flatMap((name) =>
      ['.ts', '.mts', '.js', '.mjs', '.cjs'].map((extension) => join(directory, `${name}${extension}`)),
    )
    .filter((path) => existsSync(path));
}

/** Returns the server that a module exports, the default export first. */
function exportedServer(exports: Exports): Server | undefined {
  // A CommonJS module's exports are the default export.
  const { default: main } = exports;
  return [main, ...Object.values(exports), ...(isObject(main) ? Object.values(main) : [])].find(isServer);
}

/** Names a server that Troupe creates for a program: the name and version of the package, or else the name of the file or directory. */
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
    // An unreadable package.json does not prevent a start: only its name and version are needed.
    return {};
  }
}

/** The result of loading a program's entry module. */
type Started =
  /** The program has called `listen`; its module may still be loading. */
  | { readonly kind: 'listens'; readonly loaded: Promise<void> }
  /** The module exports a server that does not listen yet. */
  | { readonly kind: 'exports'; readonly server: Server }
  /** The module exports tools, resources or prompts. */
  | { readonly kind: 'offers' }
  /** None of these: the program may still call `listen` later. */
  | {
      readonly kind: 'nothing';
      readonly exports: Exports;
      /** The readers of stdin before the program was loaded. */
      readonly readers: number;
    };

/**
 * Loads a program's entry module.
 *
 * @param listens settles when the program calls `listen`; its module may then never finish loading
 * @throws the error of the module, and {@link DefinitionError} for an export that is an invalid definition
 */
async function start(path: string, generation: number, listens: Promise<unknown>): Promise<Started> {
  const readers = readersOfStdin();
  const loading = loadModule(path, generation);
  const exports = await withDeepStacks(() => Promise.race([loading, listens.then(() => undefined)]));
  if (!exports) {
    const loaded = loading.then(
      () => {},
      (error: unknown) => say(`${path} failed after it called server.listen(…): ${startupError(error, path)}`),
    );
    return { kind: 'listens', loaded };
  }
  const server = exportedServer(exports);
  if (server) return { kind: 'exports', server };
  try {
    await readExports(exports, path);
    return { kind: 'offers' };
  } catch (error) {
    if (error instanceof NothingOffered) return { kind: 'nothing', exports, readers };
    throw error;
  }
}

/**
 * Starts the program of a target: the file, or the entry module of a directory.
 *
 * @returns undefined for a directory without an entry module: the caller discovers its modules
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
    // A module of this name is expected to call `listen` later.
    if (started.kind === 'nothing' && basename(entry).startsWith('server.')) return started;
  }
  return undefined;
}

/**
 * Says why a program serves nothing although its event loop is empty.
 *
 * @param exports those of its module; undefined while the module loads
 */
export function reasonForNothing(exports: Exports | undefined): string {
  if (exports === undefined)
    return 'its module never finishes: a top-level await waits for something that cannot happen, because the event loop is empty';
  const foreign = Object.entries(exports).find(([, value]) => isForeignServer(value));
  if (foreign) {
    const [name, value] = foreign;
    return `its export "${name}" is a server of another library${kindOf(value)}, which Troupe cannot serve. ${FOREIGN}`;
  }
  const [made] = Object.entries(exports).find(([, value]) => typeof value === 'function') ?? [];
  const advice =
    made === undefined
      ? 'Export the server (export default server) or tools, or call server.listen(stdio())'
      : `It exports the function "${made}", which is no tool. If it creates the server, call it: export default createServer({ … })`;
  return `it neither listens nor exports anything to serve, and its event loop is empty. ${advice}`;
}

const FOREIGN =
  'Start it without Troupe, and call it with: troupe call -- npx tsx FILE. Or write it with createServer of troupe';

/** True for a server of the official SDK, or of FastMCP for TypeScript. */
function isForeignServer(value: unknown): boolean {
  if (!isObject(value) || isServer(value)) return false;
  const { connect, registerTool, setRequestHandler, start, addTool } = value;
  return (
    (typeof connect === 'function' && [registerTool, setRequestHandler].some((each) => typeof each === 'function')) ||
    (typeof start === 'function' && typeof addTool === 'function')
  );
}

function kindOf(value: unknown): string {
  const name = isObject(value) ? value.constructor?.name : undefined;
  return typeof name === 'string' && name !== '' ? ` (${name})` : '';
}

/**
 * Waits until the program listens. After a second, reports on stderr that it waits.
 *
 * @param readers the readers of stdin before the program was loaded
 * @throws {Error} for a program that reads stdin itself: a server of another library would take the messages of the client
 */
export async function waitFor(
  listens: Promise<void>,
  command: string,
  { path }: Target,
  readers: number,
): Promise<void> {
  let give = (_: Error): void => {};
  const foreign = new Promise<never>((_, reject) => {
    give = reject;
  });
  foreign.catch(() => {});
  const timer = systemClock.after(LISTEN_MS, () => {
    if (readersOfStdin() > readers)
      return give(
        new Error(
          `it calls no server.listen(…) of Troupe and reads stdin itself, as a server of another library does. ${FOREIGN}`,
        ),
      );
    say(
      `troupe ${command}: ${path} exports neither a server nor definitions: waiting for it to call server.listen(…). Or export the server: export default server`,
    );
  });
  try {
    await Promise.race([listens, foreign]);
  } finally {
    timer.cancel();
  }
}

function readersOfStdin(): number {
  return process.stdin.listenerCount('data') + process.stdin.listenerCount('readable');
}
