/** Starts a thread of a store, from the build or from the sources. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { EXTENSION, ownFile } from '../kernel/package-files.ts';

/**
 * When built, the thread is JavaScript. From source it is TypeScript, for which Node 20 passes no loader to a thread:
 * it registers one itself.
 *
 * @param path below `src`, without extension; `bundle.ts` lists it
 * @param name for diagnostics
 */
export function startStoreThread(path: string, name: string, workerData: unknown): Worker {
  const url = ownFile(path);
  // Modules that the process preloads are not meant for this thread.
  const options = { workerData, name, execArgv: [] };
  if (EXTENSION !== '.ts') return new Worker(url, options);
  const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx/esm/api'));
  return new Worker(`import('${loader}').then((tsx) => { tsx.default.register(); return import('${url.href}'); });`, {
    ...options,
    eval: true,
  });
}
