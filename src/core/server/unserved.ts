/** Tells the author of a program that ends without serving its server. Started with node or tsx, it would print nothing. */
import { relative } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { launcher } from './launcher.ts';

/** The first server of this process that has neither served nor closed. */
let unserved: string | undefined;
let began = false;

/** A server was created. */
export function created(name: string): void {
  if (began) return;
  began = true;
  unserved = name;
  // The event loop is empty. After process.exit there is no such event.
  process.once('beforeExit', report);
}

/** A server of this process serves, or its program has closed it: the program does what its author means. */
export function used(): void {
  began = true;
  unserved = undefined;
}

function report(): void {
  // Asked here, because a start without threads does not load the module of threads.
  if (unserved === undefined || launcher() !== undefined || !isMainThread) return;
  const program = relative('', process.argv[1] ?? '') || 'server.ts';
  process.stderr.write(
    `troupe: the program created the server ${JSON.stringify(unserved)} and has ended without serving it. Serve it with npx troupe run ${program}, or call await server.listen(stdio()) in the program\n`,
  );
}
