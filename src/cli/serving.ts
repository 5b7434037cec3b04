/** What `troupe run` and `troupe serve` share: finds out which server a target has, and lets it listen. */
import { once } from 'node:events';
import { launchedBy } from '../launcher.ts';
import { createServer, isServer, type Server } from '../server.ts';
import type { Store } from '../store/store.ts';
import type { Transport } from '../transports/transport.ts';
import { identityOf, startTarget } from './program.ts';
import type { Target } from './target.ts';
import { say, traceOf } from './usage.ts';

export interface Serving {
  /** The command, for messages. */
  readonly command: string;
  /**
   * Lets a server listen.
   *
   * @param transports those that its program told it to listen on, if it did
   */
  listen(server: Server, transports: readonly Transport[]): Promise<void>;
  /** Whether `listen` is called also for a server whose program tells it to listen, in place of that. */
  readonly takesOver: boolean;
  /** Hears why a server closes that its transport, and not its program, wants closed. */
  ends?(reason: string): void;
  /** For a server that has none of its own. */
  readonly store?: Store | undefined;
}

/** Serves the target; resolves when it does. When it cannot be served, says why on stderr, and ends the process with code 1. */
export async function serveTarget(target: Target, serving: Serving): Promise<void> {
  /** Those that were told to listen by us. */
  const told = new Set<Server>();
  const listen = (server: Server, transports: readonly Transport[]): Promise<void> => {
    told.add(server);
    return serving.listen(server, transports);
  };
  const listens = new Promise<void>((resolve, reject) => {
    launchedBy({
      listens(server, transports) {
        if (!isServer(server) || told.has(server)) return undefined;
        if (!serving.takesOver) return void resolve();
        const listening = listen(server, transports);
        listening.then(resolve, reject);
        return listening;
      },
      reads() {},
      ends: (reason) => serving.ends?.(reason),
      store: () => serving.store,
    });
  });
  const stuck = once(process, 'beforeExit').then(() => {
    throw new Error('it neither listens nor offers anything, and has nothing left to do');
  });
  try {
    await Promise.race([serve(target, listens, { ...serving, listen }), stuck]);
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
      return listen(started.server, []);
    case 'nothing':
      say(
        `troupe ${command}: ${target.path} exports no server and nothing to offer: waiting for it to call server.listen(…)`,
      );
      return listens;
    default:
      return listen(await discovered(target), []);
  }
}

async function discovered(target: Target): Promise<Server> {
  const server = createServer(identityOf(target));
  const { loaded } = await server.discover([target.path]);
  if (loaded.length === 0) throw new Error('none of its modules can be served: what is wrong with them is said above');
  return server;
}
