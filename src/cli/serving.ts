/** What `troupe run` and `troupe serve` share: finds out which server a target has, and lets it listen. */
import { once } from 'node:events';
import { type Launcher, launchedBy } from '../launcher.ts';
import { createServer, type Server } from '../server.ts';
import { identityOf, startTarget } from './program.ts';
import type { Target } from './target.ts';
import { say, traceOf } from './usage.ts';

export interface Serving {
  /** The command, for messages. */
  readonly command: string;
  /** Lets a server listen which was not told to by its program. */
  listen(server: Server): Promise<void>;
  /** The program tells a server to listen: see {@link Launcher.listens}. */
  readonly listens: Launcher['listens'];
}

/** Serves the target; resolves when it does. When it cannot be served, says why on stderr, and ends the process with code 1. */
export async function serveTarget(target: Target, serving: Serving): Promise<void> {
  const listens = new Promise<void>((resolve, reject) => {
    launchedBy({
      listens(server, transports) {
        const instead = serving.listens(server, transports);
        if (instead) instead.then(resolve, reject);
        else resolve();
        return instead;
      },
      reads() {},
    });
  });
  const stuck = once(process, 'beforeExit').then(() => {
    throw new Error('it neither listens nor offers anything, and has nothing left to do');
  });
  try {
    await Promise.race([serve(target, listens, serving), stuck]);
  } catch (error) {
    process.stderr.write(`troupe ${serving.command}: ${target.path} cannot be served: ${traceOf(error)}\n`, () =>
      process.exit(1),
    );
  }
}

async function serve(target: Target, listens: Promise<void>, { command, listen }: Serving): Promise<void> {
  const started = await startTarget(target, 0, listens);
  switch (started?.kind) {
    case 'listens':
      return;
    case 'exports':
      return listen(started.server);
    case 'nothing':
      say(
        `troupe ${command}: ${target.path} exports no server and nothing to offer: waiting for it to call server.listen(…)`,
      );
      return listens;
    default:
      return listen(await discovered(target));
  }
}

async function discovered(target: Target): Promise<Server> {
  const server = createServer(identityOf(target));
  const { loaded } = await server.discover([target.path]);
  if (loaded.length === 0) throw new Error('none of its modules can be served: what is wrong with them is said above');
  return server;
}
