/** What `troupe run` and `troupe serve` share: finds out which server a target has, and lets it listen. */
import { once } from 'node:events';
import { systemClock } from '../../clock.ts';
import { launchedBy, type PreviousProcess } from '../../launcher.ts';
import { createServer, isServer, type Server } from '../../server.ts';
import type { Store } from '../../store/store.ts';
import type { Transport } from '../../transports/transport.ts';
import { say, sayWhy } from '../usage.ts';
import { identityOf, startTarget } from './program.ts';
import { hearStrayErrors } from './stray-errors.ts';
import type { Target } from './target.ts';

export interface Serving {
  /** The command, for messages. */
  readonly command: string;
  /**
   * Lets a server listen, also in place of its program, which has told it to.
   *
   * @param transports those that its program told it to listen on, if it did
   */
  listen(server: Server, transports: readonly Transport[]): Promise<void>;
  /** Hears that a server which listens already is told to listen on more. @returns undefined to let it */
  listenMore?(transports: readonly Transport[]): Promise<void> | undefined;
  /** Hears that a server closes. */
  closes?(reason: string, by: 'program' | 'transport'): void;
  /** How the process before this one ended; undefined where nobody knows. */
  previous?(): PreviousProcess | undefined;
  /** For a server that has none of its own. */
  readonly store?: Store | undefined;
}

/** Milliseconds that the servers of a program which cannot be served are given to close. */
const CLOSE_MS = 5_000;

/** Serves the target; resolves when it does. When it cannot be served, says why in one line on stderr, and ends the process with code 1. */
export async function serveTarget(target: Target, serving: Serving): Promise<void> {
  /** Those that were told to listen, and when they do. */
  const told = new Map<Server, Promise<void>>();
  const listen = (server: Server, transports: readonly Transport[]): Promise<void> => {
    const listening = told.get(server) ?? serving.listen(server, transports);
    told.set(server, listening);
    return listening;
  };
  const listens = new Promise<void>((resolve, reject) => {
    launchedBy({
      listens(server, transports) {
        if (!isServer(server)) return undefined;
        if (told.has(server)) return serving.listenMore?.(transports);
        const listening = listen(server, transports);
        listening.then(resolve, reject);
        return listening;
      },
      reads() {},
      closes: (reason, by) => serving.closes?.(reason, by),
      previous: () => serving.previous?.(),
      store: () => serving.store,
    });
  });
  const stray = hearStrayErrors();
  const stuck = once(process, 'beforeExit').then(() => {
    throw new Error('it neither listens nor offers anything, and has nothing left to do');
  });
  try {
    await Promise.race([serve(target, listens, { ...serving, listen }), stuck, stray.thrown]);
    stray.end();
  } catch (error) {
    const code = sayWhy(`troupe ${serving.command}: ${target.path} cannot be served`, error, target.path);
    await closed([...told.keys()]);
    // Behind what stderr still has to take.
    process.stderr.write('', () => process.exit(code));
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

/** Lets servers that have opened their store close it: another process can open it at once, and finds nothing half done. */
async function closed(servers: readonly Server[]): Promise<void> {
  const late = new Promise<void>((resolve) => void systemClock.after(CLOSE_MS, resolve));
  await Promise.race([Promise.all(servers.map((server) => server.close('it cannot be served'))), late]);
}

async function discovered(target: Target): Promise<Server> {
  const server = createServer(identityOf(target));
  const { loaded } = await server.discover([target.path]);
  if (loaded.length === 0) throw new Error('none of its modules can be served: what is wrong with them is said above');
  return server;
}
