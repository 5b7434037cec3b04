/** Prepares Node to load the author's modules: TypeScript through tsx, and later generations through a hook. */
import { existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MessageChannel } from 'node:worker_threads';
import { OWN, ownFile } from '../package-files.ts';
import { messageOf } from '../protocol/json.ts';
import { loading } from './generation.ts';
import { inherit, resolveHere } from './inherit.ts';
import { importPackages } from './packages.ts';

/**
 * Prepares loading of TypeScript modules. Does nothing in a process that already runs under tsx.
 * @param files the modules to load next; the nearest tsconfig.json above the first file applies
 */
export function prepareTypeScript(files: readonly string[]): Promise<void> {
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
  const { register } = await import('tsx/esm/api');
  const [first] = files;
  const tsconfig = (first && nearest('tsconfig.json', dirname(first))) ?? false;
  try {
    register({ tsconfig });
  } catch (error) {
    throw new Error(`cannot use ${tsconfig || 'tsx'}: ${messageOf(error)}`);
  }
  addHook(true);
}

/** Installs the hook that gives a module's imports the module's generation. */
export function prepareGenerations(): void {
  if (loading.inherited.done) return;
  loading.inherited.done = true;
  addHook(false);
}

function addHook(asModules: boolean): void {
  loading.inherited.done = true;
  const heard = (url: string): void => {
    for (const listener of loading.listeners) listener(fileURLToPath(url.replace(/[?#].*$/, '')));
  };
  if ('registerHooks' in module && typeof module.registerHooks === 'function') {
    inherit(asModules, OWN, heard);
    module.registerHooks({ resolve: resolveHere });
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.on('message', heard).unref();
  module.register(ownFile('discovery/inherit'), {
    data: { port: port2, asModules, own: OWN },
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
