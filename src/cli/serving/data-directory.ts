/** `--data DIR`: the directory for the durable state of servers without a store of their own. */
import { join, resolve } from 'node:path';
import { makeDirectory } from '../../make-directory.ts';
import { messageOf } from '../../protocol/json.ts';
import type { Store } from '../../store/store.ts';
import { UsageError } from '../usage.ts';

/**
 * Creates the directory if it does not exist, with access for this user only.
 *
 * @returns the store in the directory; undefined without a directory
 * @throws {UsageError} if the directory cannot be created
 */
export async function dataDirectory(command: string, directory: string | undefined): Promise<Store | undefined> {
  if (directory === undefined) return undefined;
  const path = resolve(directory);
  try {
    makeDirectory(path, 0o700);
  } catch (error) {
    throw new UsageError(
      `troupe ${command}: --data: expected a directory that exists or can be created, got ${directory}: ${messageOf(error)}`,
    );
  }
  // Imported lazily: it loads a database.
  const { sqlite } = await import('../../store/sqlite/sqlite.ts');
  return sqlite(join(path, 'troupe.db'));
}
