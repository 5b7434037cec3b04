/** The entry file of the worker process of `troupe run`. It loads only what serving needs. */
import { enableCompileCache } from './compile-cache.ts';

enableCompileCache();
const { workFor } = await import('./supervisor/worker.ts');
await workFor(process.argv);
