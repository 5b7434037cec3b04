/** Checks the types of the whole repository, then its style. */
import { buildProjects } from './typescript.ts';

process.exitCode = await buildProjects();
if (process.exitCode === 0) await import('./style.ts');
