/** `--data DIR`: the directory in which a server that has no store of its own keeps what must survive its process. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf } from '../../protocol/json.ts';
import type { Store } from '../../store/store.ts';
import { UsageError } from '../usage.ts';

/**
 * The store in a directory, which is made if it is not there; nobody else may look into it. None without a directory.
 *
 * @throws {UsageError} for what cannot be a directory
 */
export async function dataDirectory(command: string, directory: string | undefined): Promise<Store | undefined> {
  if (directory === undefined) return undefined;
  const path = resolve(directory);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageError(
      `troupe ${command}: --data: expected a directory that is there, or can be made, got ${directory}: ${messageOf(error)}`,
    );
  }
  // Not before it is asked for: it loads a database.
  const { sqlite } = await import('../../store/sqlite/sqlite.ts');
  return sqlite(join(path, 'troupe.db'));
}
