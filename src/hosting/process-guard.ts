/** Catches what a handler throws too late (from a timer or a promise that it left behind): it is logged with the element's name, and nothing else stops. */
import { running } from '../execution/running.ts';

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
    process.on('uncaughtException', onLate);
    process.on('unhandledRejection', onLate);
  }
  return () => {
    if (!servers.delete(server) || servers.size > 0) return;
    process.off('uncaughtException', onLate);
    process.off('unhandledRejection', onLate);
  };
}

function onLate(error: unknown): void {
  const label = running.getStore()?.label;
  const owner = [...servers].find((server) => server.ownsProcess());
  if (label !== undefined || owner) {
    const [any] = servers;
    return (owner ?? any)?.caught(label, error);
  }
  // Not ours, in a process that is not ours: leave it to the embedder's listeners, or end as Node does without any.
  if (process.listenerCount('uncaughtException') > 1 || process.listenerCount('unhandledRejection') > 1) return;
  process.stderr.write(`Uncaught ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(1);
}
