/** Builds the package into `dist`: the bundles of the library, of the inspector and of the views beside the declarations, because they need none of them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { buildChanged, LIBRARY } from './page-build.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiler = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));

/**
 * `tsc` prints the errors that it finds, and its exit code becomes that of the build. Each of several checkers infers most types
 * again: the default, four, took 31 s of processor time for all projects where one took 22.
 */
async function declarations(): Promise<void> {
  const tsc = spawn(process.execPath, [compiler, '-b', '--checkers', '1', 'machines', 'tsconfig.src.json', 'apps'], {
    cwd: root,
    stdio: 'inherit',
  });
  const [code] = await once(tsc, 'close');
  if (code === 0) await import('./declarations.ts');
  else process.exitCode = 1;
}

await Promise.all([
  declarations(),
  buildChanged(LIBRARY, () => import('./bundle.ts')),
  import('../inspector/build.ts'),
  import('../apps/build.ts'),
]);
