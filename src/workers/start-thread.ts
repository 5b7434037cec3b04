/** Starts a thread of this package, as it is built or as it is written. */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { EXTENSION, ownFile } from '../package-files.ts';

/**
 * @param name the file's name in this directory, without its extension
 * @param options `execArgv` is ours: what a program was started with is no business of a thread that runs none of it
 */
export function startThread(name: string, options: Omit<WorkerOptions, 'execArgv' | 'eval'>): Worker {
  const { href } = ownFile(`workers/${name}`);
  const quiet = { ...options, execArgv: [] };
  if (EXTENSION !== '.ts') return new Worker(new URL(href), quiet);
  // As it is written: a thread of Node 20 does not inherit what the process loads TypeScript with.
  const tsx = import.meta.resolve('tsx/esm/api');
  const start = `import('${tsx}').then(({ register }) => { register(); return import('${href}'); });`;
  return new Worker(start, { ...quiet, eval: true });
}
