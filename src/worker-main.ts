/** What the worker process of `troupe run` is started from: it reads no more than it takes to serve. */
import { keepCompiled } from './cli/compile-cache.ts';

keepCompiled();
const { workFor } = await import('./cli/supervisor/worker.ts');
await workFor(process.argv);
