/**
 * Catches exceptions that a handler throws late (from a timer or promise that it left behind): logs them with the
 * element's name and lets everything else continue.
 */

import { messageOf, stackOf } from '../protocol/json.ts';
import { running } from '../requests/running.ts';

interface GuardedServer {
  /**
   * True if this server owns the process (it serves stdio): it then also tolerates exceptions that cannot be attributed
   * to an element.
   */
  ownsProcess(): boolean;
  /** Called with each exception and, if known, the element that threw it. */
  caught(label: string | undefined, error: unknown): void;
}

const servers = new Set<GuardedServer>();

/** Watches for late exceptions until the returned function is called. All servers of a process share one watch. */
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

/** The reader of stderr has gone. Logging that exception to stderr would fail again, without end. */
function onLost(): void {}

function onException(error: unknown): void {
  if (!claimed(error) && process.listenerCount('uncaughtException') === 1) end(error);
}

function onRejection(error: unknown): void {
  if (claimed(error) || process.listenerCount('unhandledRejection') > 1) return;
  // Without our listener Node would throw an exception: pass it to other listeners, or exit as Node does.
  const others = process.listeners('uncaughtException').filter((listener) => listener !== onException);
  if (others.length === 0) return end(error);
  const exception =
    error instanceof Error ? error : new Error(`unhandled rejection: ${messageOf(error)}`, { cause: error });
  for (const listener of others) listener(exception, 'unhandledRejection');
}

/** Reports an exception to the server whose element threw it, or to the server that owns the process. */
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
