/** Catches what a handler throws too late (from a timer or a promise that it left behind): it is logged with the element's name, and nothing else stops. */

import { messageOf, stackOf } from '../protocol/json.ts';
import { running } from '../requests/running.ts';

export interface GuardedServer {
  /** This server has the process to itself (it serves stdio): even what cannot be traced to an element is borne. */
  ownsProcess(): boolean;
  /** Hears of an exception: whose it was, where that is known. */
  caught(label: string | undefined, error: unknown): void;
}

const servers = new Set<GuardedServer>();

/** Watches for late exceptions until the returned function is called. Several servers of a process share one watch. */
export function guardProcess(server: GuardedServer): () => void {
  servers.add(server);
  if (servers.size === 1) {
    process.on('uncaughtException', onException);
    process.on('unhandledRejection', onRejection);
    process.stderr.on('error', onLost);
  }
  return () => {
    if (!servers.delete(server) || servers.size > 0) return;
    process.off('uncaughtException', onException);
    process.off('unhandledRejection', onRejection);
    process.stderr.off('error', onLost);
  };
}

/** Whoever read stderr is gone. As an exception it would be logged, to stderr, and so on for ever. */
function onLost(): void {}

function onException(error: unknown): void {
  if (!claimed(error) && process.listenerCount('uncaughtException') === 1) end(error);
}

function onRejection(error: unknown): void {
  if (claimed(error) || process.listenerCount('unhandledRejection') > 1) return;
  // Without us Node would have made an exception of it: hand it to whoever listens for those, or end as Node does.
  const others = process.listeners('uncaughtException').filter((listener) => listener !== onException);
  if (others.length === 0) return end(error);
  const exception =
    error instanceof Error ? error : new Error(`unhandled rejection: ${messageOf(error)}`, { cause: error });
  for (const listener of others) listener(exception, 'unhandledRejection');
}

/** Tells a server of an exception that is an element's, or anybody's in a process that a server owns. */
function claimed(error: unknown): boolean {
  const label = running.getStore()?.label;
  const owner = [...servers].find((server) => server.ownsProcess());
  if (label === undefined && !owner) return false;
  const [any] = servers;
  (owner ?? any)?.caught(label, error);
  return true;
}

function end(error: unknown): never {
  process.stderr.write(`Uncaught ${stackOf(error)}\n`);
  process.exit(1);
}
