/** Starts a thread of this package: the file beside this one, as it is built or as it is written. */
import { extname } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * @param name the file's name in this directory, without its extension
 * @param options `execArgv` is ours: what a program was started with is no business of a thread that runs none of it
 */
export function startThread(name: string, options: Omit<WorkerOptions, 'execArgv' | 'eval'>): Worker {
  const extension = extname(import.meta.url);
  const { href } = new URL(`./${name}${extension}`, import.meta.url);
  const quiet = { ...options, execArgv: [] };
  if (extension !== '.ts') return new Worker(new URL(href), quiet);
  // As it is written: a thread of Node 20 does not inherit what the process loads TypeScript with.
  const tsx = import.meta.resolve('tsx/esm/api');
  const start = `import('${tsx}').then(({ register }) => { register(); return import('${href}'); });`;
  return new Worker(start, { ...quiet, eval: true });
}
