/** The store of `--data DIR` and `--store URL`: for servers without a store of their own, and for commands that read it. */
import { join } from 'node:path';
import { makeDirectory } from '../../core/kernel/files/make-directory.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { Store } from '../../core/store/store.ts';
import type { PostgresAddress } from '../../features/postgres/postgres-address.ts';
import { absolutePath, type CommandIo, type Environment } from '../command-io.ts';
import { say, UsageError } from '../usage.ts';
import { STORE_VARIABLE, type StoreOptions, storeUrl } from './store-option.ts';

/**
 * Makes the store of these options. It opens with its server.
 *
 * @returns undefined without these options
 * @throws {UsageError} if the directory cannot be created, or the URL is none
 */
export async function chosenStore(
  command: string,
  options: StoreOptions,
  io: Pick<CommandIo, 'cwd' | 'env'>,
): Promise<Store | undefined> {
  const address = await databaseAddress(command, options, io.env);
  if (address) {
    const { postgres } = await import('../../features/postgres/postgres.ts');
    return postgres(address.url);
  }
  const { data } = options;
  if (data === undefined) return undefined;
  const path = absolutePath(io, data);
  try {
    makeDirectory(path, 0o700);
  } catch (error) {
    throw new UsageError(
      `troupe ${command}: --data: expected a directory that exists or can be created, got ${data}: ${messageOf(error)}`,
    );
  }
  // Imported lazily: it loads a database.
  const { sqlite } = await import('../../features/sqlite/sqlite.ts');
  return sqlite(join(path, 'troupe.db'));
}

/**
 * Reads the address of `--store URL` or of its variable.
 *
 * @returns undefined without both
 * @throws {UsageError} if the URL is none
 */
export async function databaseAddress(
  command: string,
  options: StoreOptions,
  env: Environment,
): Promise<PostgresAddress | undefined> {
  const url = storeUrl(command, options, env);
  if (url === undefined) return undefined;
  const { store: given } = options;
  if (given !== undefined && URL.canParse(given) && new URL(given).password !== '')
    say(
      `troupe ${command}: --store: other users of this machine can read the password in the list of processes: set the variable ${STORE_VARIABLE} instead`,
    );
  const { PostgresAddress } = await import('../../features/postgres/postgres-address.ts');
  try {
    return new PostgresAddress(url);
  } catch (error) {
    const option = given === undefined ? STORE_VARIABLE : '--store';
    throw new UsageError(`troupe ${command}: ${option}: ${messageOf(error).replace(/^postgres: url: /, '')}`);
  }
}
