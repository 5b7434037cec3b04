/** Parses `--data DIR` and `--store URL`. It does not load a store. */
import type { Environment } from '../command-io.ts';
import { UsageError } from '../usage.ts';

/** The options of run, dev and serve. */
export const STORE_OPTIONS = { data: 'DIR', store: 'URL' } as const;

/** Their part of the help of these commands. */
export const STORE_HELP = `  --data DIR             directory for durable state
  --store URL            the same in a PostgreSQL database, such as
                         postgres://shop@db.example.com/shop. Without the
                         option, the variable TROUPE_STORE names it, which other
                         users cannot read. '\${NAME}' stands for another variable`;

/** The environment variable that replaces `--store`. */
export const STORE_VARIABLE = 'TROUPE_STORE';

/** The values of the options; undefined if they are absent. */
export interface StoreOptions {
  readonly data?: string | undefined;
  readonly store?: string | undefined;
}

/**
 * Reads `--store` and its variable.
 *
 * @returns the URL with its password, which no text may contain; undefined if there is none
 * @throws {UsageError} together with `--data`, and for a variable that is not set
 */
export function storeUrl(command: string, { data, store }: StoreOptions, env: Environment): string | undefined {
  const { [STORE_VARIABLE]: fromEnvironment = '' } = env;
  if (store === undefined && fromEnvironment === '') return undefined;
  if (data !== undefined)
    throw new UsageError(
      `troupe ${command}: expected --data or ${store === undefined ? `the variable ${STORE_VARIABLE}` : '--store'}, got both`,
    );
  if (store === undefined) return fromEnvironment;
  return store.replace(/\$\{([^}]*)\}/g, (_, name: string) => {
    const { [name]: value } = env;
    if (value === undefined)
      throw new UsageError(`troupe ${command}: --store: expected the variable ${name} in the environment, got none`);
    return value;
  });
}
