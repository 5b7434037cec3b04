/** The PostgreSQL of a run of test files: it starts when the first of them asks for it, and ends with the run. */
import { join } from 'node:path';
import type { Postgres } from '../harness/postgres.ts';
import type { SharedPostgres } from './reports.ts';

/** Several files have nodes at the same time, each with its connections. */
const SETTINGS = { max_connections: 600, shared_buffers: '64MB' };

interface Started {
  readonly server: Postgres;
  readonly shared: SharedPostgres;
}

let started: Promise<Started> | undefined;

/**
 * The PostgreSQL of this run, for a job that asks for it.
 *
 * @param directory the temporary files of the run
 * @returns its port and the data of an empty server, or why there is none
 */
export async function runPostgres(directory: string): Promise<SharedPostgres | { readonly error: string }> {
  try {
    started ??= start(directory);
    return (await started).shared;
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

async function start(parent: string): Promise<Started> {
  const { EMPTY, startPostgres } = await import('../harness/postgres.ts');
  const server = await startPostgres({ fsync: false, settings: SETTINGS, parent, copied: true });
  return { server, shared: { port: server.port, empty: join(server.folder, EMPTY) } };
}

/** Ends it, if a file asked for it. */
export async function stopRunPostgres(): Promise<void> {
  const found = await started?.catch(() => undefined);
  await found?.server.stop();
}
