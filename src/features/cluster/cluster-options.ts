/** The option `cluster` of a server, and its check. */
import { checkOptionNames, describe, isObject } from '../../core/protocol/json.ts';

export interface ClusterOptions {
  /**
   * The address of this node's link, for the other nodes only: `10.0.0.5:7400`. Port 0 selects a free one. Never the
   * port of the clients.
   */
  readonly listen: string;
  /** A secret of at least 32 characters that all nodes share. Nodes with another one are rejected. */
  readonly secret: string;
  /**
   * Spreads the sessions of one principal over the nodes, for a service account that carries all traffic: `session`. Its
   * limits then hold for each node. Default `principal`: everything of a principal is on one node.
   */
  readonly spread?: 'principal' | 'session' | undefined;
  /**
   * The certificate of this node, and the authority that has signed those of all nodes and no others (PEM). Default: links
   * are signed with the secret, and not encrypted.
   */
  readonly tls?:
    | { readonly key: string | Uint8Array; readonly cert: string | Uint8Array; readonly ca: string | Uint8Array }
    | undefined;
}

const NAMES: ReadonlySet<string> = new Set<keyof ClusterOptions>(['listen', 'secret', 'spread', 'tls']);
const LEAST_SECRET = 32;
/** Addresses that other nodes cannot connect to. */
const EVERY_ADDRESS: ReadonlySet<string | undefined> = new Set(['0.0.0.0', '[::]', '*']);

/** @throws {TypeError | RangeError} if an option is missing, unknown or invalid */
export function checkClusterOptions(options: ClusterOptions): void {
  const where = 'createServer: cluster';
  if (!isObject(options)) throw new TypeError(`${where}: expected { listen, secret }, got ${describe(options)}`);
  checkOptionNames(`${where}.`, options, NAMES);
  const { listen, secret, spread, tls } = options;
  const [, host, port] = (typeof listen === 'string' && /^([^\s:]+|\[[\da-f:]+\]):(\d{1,5})$/i.exec(listen)) || [];
  if (port === undefined || Number(port) > 65_535 || EVERY_ADDRESS.has(host))
    throw new TypeError(
      `${where}.listen: expected the address at which the other nodes reach this one, such as "10.0.0.5:7400", got ${describe(listen)}`,
    );
  if (typeof secret !== 'string') throw new TypeError(`${where}.secret: expected a string, got ${typeof secret}`);
  // Never include the secret, because errors are logged.
  if (secret.length < LEAST_SECRET)
    throw new RangeError(
      `${where}.secret: expected at least ${LEAST_SECRET} characters, got ${secret.length}; use random ones, such as the output of \`openssl rand -base64 32\``,
    );
  if (spread !== undefined && spread !== 'principal' && spread !== 'session')
    throw new TypeError(`${where}.spread: expected "principal" or "session", got ${describe(spread)}`);
  if (tls !== undefined && !(isObject(tls) && isPem(tls.key) && isPem(tls.cert) && isPem(tls.ca)))
    throw new TypeError(`${where}.tls: expected { key, cert, ca } in PEM, got ${describe(tls)}`);
}

function isPem(value: unknown): boolean {
  return typeof value === 'string' || value instanceof Uint8Array;
}
