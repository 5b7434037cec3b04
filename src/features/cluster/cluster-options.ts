/** The option `cluster` of a server, and its check. */
import { isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /**
     * Makes this server one of several nodes that share its store, such as {@link postgres}: any node serves any client.
     * Default: one process has the store to itself. See docs/nodes.md.
     */
    readonly cluster?: ClusterOptions | undefined;
  }
}

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

const LEAST_SECRET = 32;
/** Addresses that other nodes cannot connect to. */
const EVERY_ADDRESS: ReadonlySet<string | undefined> = new Set(['0.0.0.0', '[::]', '*']);

const ROWS: option.Rows<ClusterOptions> = {
  listen: option.needed(
    option.expected('the address at which the other nodes reach this one, such as "10.0.0.5:7400"', (listen) => {
      const [, host, port] = (typeof listen === 'string' && /^([^\s:]+|\[[\da-f:]+\]):(\d{1,5})$/i.exec(listen)) || [];
      return port !== undefined && Number(port) <= 65_535 && !EVERY_ADDRESS.has(host);
    }),
  ),
  // Never include the secret, because errors are logged.
  secret: option.needed((secret) => {
    if (typeof secret !== 'string') return `expected a string, got ${typeof secret}`;
    return secret.length >= LEAST_SECRET
      ? undefined
      : `expected at least ${LEAST_SECRET} characters, got ${secret.length}; use random ones, such as the output of \`openssl rand -base64 32\``;
  }),
  spread: option.oneOf('principal', 'session'),
  tls: option.expected(
    '{ key, cert, ca } in PEM',
    (tls) => isObject(tls) && isPem(tls.key) && isPem(tls.cert) && isPem(tls.ca),
  ),
};

/** Finds what is wrong with the option `cluster`. */
export const problemOfCluster = option.group('{ listen, secret }', ROWS, '.');

/** @throws {TypeError} if an option is missing, unknown or invalid */
export function checkClusterOptions(cluster: ClusterOptions): void {
  option.check('createServer: ', { cluster }, { cluster: problemOfCluster });
}

function isPem(value: unknown): boolean {
  return typeof value === 'string' || value instanceof Uint8Array;
}
