/**
 * Locates this package's own code, and starts its threads: TypeScript below `src`, or bundles below `dist/lib`, where a file's own
 * location is meaningless.
 */
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** The URL of the directory that contains the code. */
export const OWN = new URL('../../', import.meta.url).href;

/** `.ts` in the sources, `.js` where they are compiled, `.cjs` in the build. */
export const EXTENSION = extname(import.meta.url);

/**
 * The URL of a file that is started or loaded by name instead of by an import.
 * @param path below `src`, without extension; `bundle.ts` lists the files
 * @example ownFile('features/discovery/inherit')
 */
export function ownFile(path: string): URL {
  return new URL(`./${path}${EXTENSION}`, OWN);
}

/**
 * Starts a thread of this package. From the sources, where a thread of Node 20 does not inherit the TypeScript loader of the process,
 * the thread registers one itself.
 *
 * @param path below `src`, without extension; `bundle.ts` lists the files
 * @param options without `execArgv`: what the process preloads, and the arguments of the program, are not for the thread
 * @example startThread('features/sqlite/sqlite-worker', { name: 'troupe store', workerData })
 */
export function startThread(path: string, options: Omit<WorkerOptions, 'execArgv' | 'eval'>): Worker {
  const url = ownFile(path);
  if (EXTENSION !== '.ts') return new Worker(url, { ...options, execArgv: [] });
  // The CommonJS file of tsx looks for its loader in a folder that does not exist.
  const loader = pathToFileURL(
    manifests()
      .resolve('tsx/esm/api')
      .replace(/\.cjs$/, '.mjs'),
  );
  const start = `import('${loader}').then((tsx) => { tsx.register(); return import('${url.href}'); });`;
  return new Worker(start, { ...options, execArgv: [], eval: true });
}

/** The path of the command. Its file in the build is named by `package.json`, and its folder says that it is CommonJS. */
export function commandFile(): string {
  return fileURLToPath(new URL(`./cli/main${EXTENSION === '.cjs' ? '.js' : EXTENSION}`, OWN));
}

/** The URL of a file of this package. @param path relative to the package @throws if the package is not installed */
export function packageFile(path: string): URL {
  return new URL(path, pathToFileURL(manifests().resolve(MANIFEST)));
}

/** Returns the version of this package. */
export function packageVersion(): string {
  const { version }: { version: string } = manifests()(MANIFEST);
  return version;
}

const MANIFEST = 'troupe/package.json';

function manifests(): NodeJS.Require {
  // Resolved from a place in the package, because a bundle may be elsewhere (build/bundle.ts).
  return createRequire(new URL('package-files.js', OWN));
}
