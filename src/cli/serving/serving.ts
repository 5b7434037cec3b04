/** Serves a target for `troupe run` and `troupe serve`: finds its server and makes it listen. */
import { once } from 'node:events';
import { systemClock } from '../../core/kernel/clock.ts';
import { launchedBy, type PreviousProcess } from '../../core/server/launcher.ts';
import type { Store } from '../../core/store/store.ts';
import type { Transport } from '../../core/transports/transport.ts';
import type { Exports } from '../../features/discovery/load-module.ts';
import { createServer, isServer, type Server } from '../../features/server/server.ts';
import type { ExitCode } from '../command-io.ts';
import { commandLog } from '../command-log.ts';
import { reportFailure, say } from '../usage.ts';
import type { ClusterChoice } from './cluster-option.ts';
import { identityOf, reasonForNothing, startTarget, waitFor } from './program.ts';
import { catchStrayErrors } from './stray-errors.ts';
import type { Target } from './target.ts';

interface Serving {
  /** The command, for messages. */
  readonly command: string;
  /**
   * Makes a server listen, on behalf of the program if the program has called `listen`.
   *
   * @param transports the transports that the program has passed to `listen`, if any
   */
  listen(server: Server, transports: readonly Transport[]): Promise<void>;
  /** The program calls `listen` on a server that already listens. @returns undefined to allow it */
  listenMore?(transports: readonly Transport[]): Promise<void> | undefined;
  /** A server closes. */
  closes?(reason: string, by: 'program' | 'transport'): void;
  /** The end of the previous worker; undefined if unknown. */
  previous?(): PreviousProcess | undefined;
  /** For servers without a store of their own. */
  readonly store?: Store | undefined;
  /** For servers without the option `cluster`. */
  readonly cluster?: ClusterChoice | undefined;
}

/** Maximum time in milliseconds for the servers of a program that failed to start to close. */
const CLOSE_MS = 5_000;

/** Serves the target and resolves when it listens. On failure, prints the reason in one line on stderr. @returns the exit code of a failure */
export async function serveTarget(target: Target, serving: Serving): Promise<ExitCode> {
  /** The listening servers. Each promise settles when its server listens. */
  const servers = new Map<Server, Promise<void>>();
  const listen = (server: Server, transports: readonly Transport[]): Promise<void> => {
    const listening = servers.get(server) ?? serving.listen(server, transports);
    servers.set(server, listening);
    return listening;
  };
  const listens = new Promise<void>((resolve, reject) => {
    launchedBy({
      listens(server, transports) {
        if (!isServer(server)) return undefined;
        if (servers.has(server)) return serving.listenMore?.(transports);
        const listening = listen(server, transports);
        listening.then(resolve, reject);
        return listening;
      },
      reads() {},
      closes: (reason, by) => serving.closes?.(reason, by),
      previous: () => serving.previous?.(),
      log: commandLog(),
      store: () => serving.store,
      cluster: () => serving.cluster,
    });
  });
  const stray = catchStrayErrors();
  const exits = (code: number): void =>
    say(
      `troupe ${serving.command}: cannot serve ${target.path}: it ended its process with code ${code} before it listened`,
    );
  process.once('exit', exits);
  const served = new AbortController();
  let exports: Exports | undefined;
  const idle = once(process, 'beforeExit', { signal: served.signal }).then(() => {
    throw new Error(reasonForNothing(exports));
  });
  // The wait for an empty event loop loses the race.
  idle.catch(() => {});
  try {
    await Promise.race([
      serve(target, listens, { ...serving, listen }, (found) => {
        exports = found;
      }),
      idle,
      stray.thrown,
    ]);
    return undefined;
  } catch (error) {
    const code = reportFailure(`troupe ${serving.command}: cannot serve ${target.path}`, error, target.path);
    await closed([...servers.keys()]);
    return code;
  } finally {
    stray.end();
    served.abort();
    process.off('exit', exits);
  }
}

async function serve(
  target: Target,
  listens: Promise<void>,
  { command, listen }: Serving,
  onNothing: (exports: Exports) => void,
): Promise<void> {
  const started = await startTarget(target, 0, listens);
  switch (started?.kind) {
    case 'listens':
      return;
    case 'exports':
      return listen(started.server, []);
    case 'nothing':
      onNothing(started.exports);
      return waitFor(listens, command, target, started.readers);
    default:
      return listen(await discovered(target), []);
  }
}

/** Closes servers that may have opened their stores, so that another process can open these at once. */
async function closed(servers: readonly Server[]): Promise<void> {
  const timeout = new Promise<void>((resolve) => void systemClock.after(CLOSE_MS, resolve));
  await Promise.race([Promise.all(servers.map((server) => server.close('the start failed'))), timeout]);
}

async function discovered(target: Target): Promise<Server> {
  const server = createServer(identityOf(target));
  const { loaded, failed } = await server.discover([target.path]);
  if (loaded.length > 0) return server;
  throw new Error(
    failed.length > 0
      ? 'no module could be loaded. See the errors above.'
      : 'no module in the directory exports a server, a tool, a resource or a prompt',
  );
}
