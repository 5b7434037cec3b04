/** The entry file of the worker process of `troupe run`. It loads only what serving needs. */
import { enableCompileCache } from './compile-cache.ts';

enableCompileCache();
void import('./supervisor/worker.ts').then(({ workFor }) => workFor(process.argv));
