/** Builds the package into `dist`: the bundles of the library, of the inspector and of the views beside the declarations, because they need none of them. */
import { buildChanged, LIBRARY } from './page-build.ts';
import { buildProjects } from './typescript.ts';

async function declarations(): Promise<void> {
  process.exitCode = await buildProjects('machines', 'tsconfig.src.json', 'apps');
  if (process.exitCode === 0) await import('./declarations.ts');
}

await Promise.all([
  declarations(),
  buildChanged(LIBRARY, () => import('./bundle.ts')),
  import('../inspector/build.ts'),
  import('../apps/build.ts'),
]);
