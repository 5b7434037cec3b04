/** Parses `--cluster HOST:PORT`: the server becomes a node of the cluster that shares its store. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../../core/protocol/json.ts';
import { problemOfCluster } from '../../features/cluster/cluster-options.ts';
import type { Environment } from '../command-io.ts';
import { UsageError } from '../usage.ts';

/** The options of run and serve. */
export const CLUSTER_OPTIONS = { cluster: 'HOST:PORT', 'cluster-secret-file': 'PATH' } as const;

/** Their part of the help of these commands. */
export const CLUSTER_HELP = `  --cluster HOST:PORT    share the database of --store with other nodes, which
                         reach this one at HOST:PORT, so never 0.0.0.0; port 0
                         chooses a free port. The variable TROUPE_CLUSTER_SECRET
                         has the secret of all nodes, of at least 32 characters
  --cluster-secret-file PATH
                         the file with this secret, instead of the variable`;

const SECRET_VARIABLE = 'TROUPE_CLUSTER_SECRET';

/** The address of a node's link, and the secret of all nodes, as `createServer({ cluster })` takes them. */
export interface ClusterChoice {
  readonly listen: string;
  readonly secret: string;
}

export interface ClusterValues {
  readonly cluster?: string | undefined;
  readonly 'cluster-secret-file'?: string | undefined;
}

/** The place of a process among those of one `troupe serve --nodes`, from 0, and the number of its predecessors. */
interface FleetPlace {
  readonly index: number;
  readonly generation: number;
}

/**
 * @param place of a node of a fleet. Each of its processes has a port of its own, also while one replaces another: PORT to
 * PORT + 2 N - 1. Without `--cluster`, the nodes of a fleet use free ports of loopback
 * @returns undefined without `--cluster`, except for a node of a fleet
 * @throws {UsageError} for an invalid address, and without a secret
 */
export function readCluster(
  command: string,
  values: ClusterValues,
  place?: FleetPlace,
  env: Environment = process.env,
): ClusterChoice | undefined {
  const { cluster, 'cluster-secret-file': file } = values;
  const given = cluster ?? (place && '127.0.0.1:0');
  if (given === undefined) {
    if (file !== undefined) throw new UsageError(`troupe ${command}: --cluster-secret-file needs --cluster`);
    return undefined;
  }
  const [, host, port] = /^(.+):(\d+)$/.exec(given) ?? [];
  const offset = place && Number(port) !== 0 ? 2 * place.index + (place.generation % 2) : 0;
  const listen = host === undefined ? given : `${host}:${Number(port) + offset}`;
  const choice = { listen, secret: secretOf(command, file, env) };
  const why = problemOfCluster(choice);
  if (why === undefined) return choice;
  const source = file === undefined ? SECRET_VARIABLE : '--cluster-secret-file';
  throw new UsageError(`troupe ${command}: ${why.replace(/^\.listen/, '--cluster').replace(/^\.secret/, source)}`);
}

function secretOf(command: string, file: string | undefined, env: Environment): string {
  const { [SECRET_VARIABLE]: variable = '' } = env;
  if (file === undefined && variable !== '') return variable;
  if (file === undefined)
    throw new UsageError(
      `troupe ${command}: nodes that share a database need a secret: expected it in the variable ${SECRET_VARIABLE} or in --cluster-secret-file, got none. Make one with: openssl rand -base64 32`,
    );
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`troupe ${command}: --cluster-secret-file: ${messageOf(error)}`);
  }
}
