/** Prepares Node to load the author's modules: TypeScript through Node itself or tsx, and later generations through a hook. */
import { existsSync, readFileSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MessageChannel } from 'node:worker_threads';
import { OWN, ownFile } from '../../core/kernel/package-files.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { loading } from './generation.ts';
import { inherit, resolveHere, type TypeScriptFormat } from './inherit.ts';
import { importPackages } from './packages.ts';

/** The settings of a tsconfig.json that change what a module imports or does. Node does not read the file. */
const READ_BY_TSX = /"(?:paths|baseUrl|experimentalDecorators)"\s*:|"extends"\s*:\s*\[/;
const EXTENDED = /"extends"\s*:\s*"(\.[^"]*)"/;

/**
 * Prepares loading of TypeScript modules. Does nothing in a process that already runs under tsx.
 * @param files the modules to load next; the nearest tsconfig.json above the first file applies
 */
export async function prepareTypeScript(files: readonly string[]): Promise<void> {
  if (!stripsTypes(files)) return prepareTsx(files);
  if (!loading.inherited.done) addHook('module-typescript');
}

/**
 * True if Node removes the types of these modules itself (22.18 and later). The programs that Node cannot link fail before
 * they run: {@link loadModule} loads them again with tsx.
 */
export function stripsTypes([first]: readonly string[]): boolean {
  if (loading.typescript !== undefined || !('typescript' in process.features) || !process.features.typescript)
    return false;
  if (!('registerHooks' in module) || underTsx()) return false;
  const tsconfig = first && nearest('tsconfig.json', dirname(first));
  return !tsconfig || !needsTsx(tsconfig);
}

/** @returns true also for a file that does not exist or extends itself: tsx names it in its error */
function needsTsx(tsconfig: string, extending: readonly string[] = []): boolean {
  if (extending.includes(tsconfig) || !existsSync(tsconfig)) return true;
  const text = readFileSync(tsconfig, 'utf8');
  if (READ_BY_TSX.test(text)) return true;
  const [, extended] = EXTENDED.exec(text) ?? [];
  if (extended === undefined) return false;
  const path = join(dirname(tsconfig), extended);
  return needsTsx(path.endsWith('.json') ? path : `${path}.json`, [...extending, tsconfig]);
}

/** Loads all further TypeScript modules with tsx. */
export function prepareTsx(files: readonly string[]): Promise<void> {
  loading.typescript ??= underTsx() ? Promise.resolve() : startTsx(files).catch(refused);
  return loading.typescript;
}

function refused(error: unknown): never {
  // The author may fix the problem before the next reload.
  loading.typescript = undefined;
  throw error;
}

async function startTsx(files: readonly string[]): Promise<void> {
  // With tsx installed, loading each module is slower. Packages consist of many modules and do not need tsx, so they
  // load first.
  for (const file of files) await importPackages(file);
  const register = 'registerHooks' in module ? (await import('tsx/esm/api')).register : registerInThread;
  const [first] = files;
  const tsconfig = (first && nearest('tsconfig.json', dirname(first))) ?? false;
  // The hook that is installed last runs first: ours must run before those of tsx.
  loading.inherited.remove?.();
  try {
    register({ tsconfig });
  } catch (error) {
    throw new Error(`cannot use ${tsconfig || 'tsx'}: ${messageOf(error)}`);
  } finally {
    addHook('module');
  }
}

/**
 * Registers the hooks of tsx where Node runs hooks in a thread of their own (before 22.15). The transformer loads only in
 * that thread. `register` of `tsx/esm/api` would load it here, too: a third of the processor time of a start.
 */
function registerInThread({ tsconfig }: { readonly tsconfig: string | false }): void {
  process.setSourceMapsEnabled(true);
  module.register(pathToFileURL(createRequire(import.meta.url).resolve('tsx/esm')), { data: { tsconfig } });
}

/** Installs the hook that gives a module's imports the module's generation. */
export function prepareGenerations(): void {
  if (!loading.inherited.done) addHook(undefined);
}

/** @param typescript the format of `.ts` files, see {@link inherit} */
function addHook(typescript: TypeScriptFormat | undefined): void {
  loading.inherited.done = true;
  const heard = (url: string): void => {
    for (const listener of loading.listeners) listener(fileURLToPath(url.replace(/[?#].*$/, '')));
  };
  if ('registerHooks' in module && typeof module.registerHooks === 'function') {
    inherit(typescript, OWN, heard);
    const hook: { deregister(): void } = module.registerHooks({ resolve: resolveHere });
    loading.inherited.remove = () => hook.deregister();
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.on('message', heard).unref();
  module.register(ownFile('features/discovery/inherit'), {
    data: { port: port2, typescript, own: OWN },
    transferList: [port2],
  });
}

/**
 * True if the process already runs under tsx: its name is in Node's arguments, and it registers the extension for
 * `require`.
 */
function underTsx(): boolean {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? ''];
  return options.some((option) => /\btsx\b/.test(option)) && '.ts' in createRequire(import.meta.url).extensions;
}

/** The nearest file of this name in a directory or above it. */
export function nearest(name: string, directory: string): string | undefined {
  for (let at = directory; ; at = dirname(at)) {
    const file = join(at, name);
    if (existsSync(file)) return file;
    if (at === dirname(at)) return undefined;
  }
}
