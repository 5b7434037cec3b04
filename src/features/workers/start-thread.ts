/** Starts a thread of this package, from the build or from the sources. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { EXTENSION, ownFile } from '../../core/kernel/package-files.ts';

/**
 * @param name the file's name in this directory, without its extension
 * @param options without `execArgv`: the arguments of the program do not apply to a thread that runs none of its code
 */
export function startThread(name: string, options: Omit<WorkerOptions, 'execArgv' | 'eval'>): Worker {
  const { href } = ownFile(`features/workers/${name}`);
  const quiet = { ...options, execArgv: [] };
  if (EXTENSION !== '.ts') return new Worker(new URL(href), quiet);
  // From the sources: a thread of Node 20 does not inherit the TypeScript loader of the process.
  const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx/esm/api'));
  const start = `import('${loader}').then((tsx) => { tsx.default.register(); return import('${href}'); });`;
  return new Worker(start, { ...quiet, eval: true });
}
