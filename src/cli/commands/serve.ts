/** `troupe serve FILE|DIR --http PORT --socket PATH`: serves a program or modules to many clients at once. */

import { join, parse } from 'node:path';
import type { Timer } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { Transport } from '../../core/transports/transport.ts';
import type { Server } from '../../features/server/server.ts';
import type { Watchdog } from '../../features/workers/watchdog.ts';
import type { ConnectHelp } from '../../inspector/frames.ts';
import { type CommandIo, type ExitCode, stopped } from '../command-io.ts';
import { LOG_HELP, LOG_OPTION } from '../command-log.ts';
import { type CommandLine, chooseLog, readAddress, readOptions, wholeNumber } from '../command-options.ts';
import { FleetMember, fleetIdentity } from '../fleet/fleet-member.ts';
import type { NodeIdentity } from '../fleet/fleet-messages.ts';
import { CLUSTER_HELP, CLUSTER_OPTIONS, type ClusterChoice, readCluster } from '../serving/cluster-option.ts';
import { ENDPOINTS, ENDPOINTS_HELP, Endpoints } from '../serving/endpoints.ts';
import { ENV_HELP, ENV_OPTION, readEnvBeside } from '../serving/env-file.ts';
import { readHttpAddress } from '../serving/http-address.ts';
import { INSPECTING, INSPECTING_HELP, type Inspecting, readInspecting } from '../serving/inspecting-options.ts';
import { watchLoading, watchLoop } from '../serving/loop-watch.ts';
import { chosenStore } from '../serving/served-store.ts';
import { serveTarget } from '../serving/serving.ts';
import { STORE_HELP, STORE_OPTIONS, storeUrl } from '../serving/store-option.ts';
import { passArguments, readTarget, type Target } from '../serving/target.ts';
import { inCommand, print, say, TARGETS, UsageError } from '../usage.ts';

const OPTIONS = {
  ...ENDPOINTS,
  'max-connections': 'N',
  'idle-exit': 'MS',
  nodes: 'N',
  ...STORE_OPTIONS,
  ...CLUSTER_OPTIONS,
  ...ENV_OPTION,
  ...LOG_OPTION,
  ...INSPECTING,
};

const HELP = `Usage: troupe serve [FILE|DIR] [--http [HOST:]PORT] [--socket PATH] [--nodes N] [-- ARGS]

Serves many clients over HTTP, on a socket, or both. One process serves them and
is not restarted after a crash. With --nodes, several processes serve one port,
and crashed ones are restarted.

${ENDPOINTS_HELP}
  --max-connections N    maximum number of clients on the socket (256)
  --idle-exit MS         exit when no client has been connected to the socket
                         for MS milliseconds (never)
  --nodes N              serve with N processes on the port of --http. A crashed
                         process is restarted. SIGHUP replaces them one after
                         the other with the new version of the program
${STORE_HELP}
${CLUSTER_HELP}
${ENV_HELP}
${LOG_HELP}
${INSPECTING_HELP}

The program's own HTTP options (createServer({ http }), http({ … })) also apply.
If it has allowedHosts or allowedOrigins, --allow-host and --allow-origin can
only restrict them.

SIGTERM, SIGINT and, without --nodes, SIGHUP finish the running requests and
exit with code 0.

${TARGETS}
If the program listens on stdio itself, it is served on --http and --socket
instead. If it listens over HTTP, --http sets its address.
`;

/** Maximum number of processes of one command. */
const MAX_NODES = 256;

/** Maximum time in milliseconds for the author's code after everything is closed. */
const LINGER_MS = 250;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('serve', args, OPTIONS);
  const json = line !== undefined && chooseLog('serve', line);
  const target = line && readTarget('serve', [...line.positionals, '--', ...line.rest], io);
  if (!target) return print(io, HELP);
  const identity = fleetIdentity();
  const variables = readEnvBeside('serve', target, line.values, io);
  // Each node reads the file itself, so that the next version of the program gets its variables.
  if (line.values.nodes !== undefined && !identity) return serveNodes(target, args, line, json, variables);
  variables.apply();
  const inspecting = inspectingOf(readInspecting('serve', line), identity);
  const watch = async (server: Server): Promise<void> => {
    if (!inspecting.inspect && inspecting.record === undefined) return;
    const { inspect } = await import('../serving/inspecting.ts');
    const connect = () => service.connectHelp(server);
    await inspect(server, { ...inspecting, command: 'serve', target: target.path, connect });
  };
  watchLoading({});
  const service = new Service(line, watch, identity, io);
  passArguments(target, line.rest);
  return serveTarget(target, {
    command: 'serve',
    listen: (server, transports) => service.open(server, transports),
    listenMore: (transports) => service.openMore(transports),
    store: await chosenStore('serve', line.values, io),
    cluster: clusterOf(line, identity, io),
  });
}

/** The nodes of a fleet with `--store` are a cluster, also without `--cluster`. @throws {UsageError} */
function clusterOf(
  { values }: CommandLine,
  identity: NodeIdentity | undefined,
  { env }: CommandIo,
): ClusterChoice | undefined {
  if (!identity || storeUrl('serve', values, env) === undefined) return readCluster('serve', values, undefined, env);
  return readCluster('serve', values, { index: Number(identity.name) - 1, generation: identity.generation }, env);
}

/** Serves with several processes. @throws {UsageError} */
async function serveNodes(
  { path }: Target,
  args: readonly string[],
  line: CommandLine,
  json: boolean,
  { env }: Pick<CommandIo, 'env'>,
): Promise<undefined> {
  const { nodes, socket, data, metrics } = line.values;
  const count = wholeNumber('serve', 'nodes', nodes, 1, MAX_NODES);
  const address = inCommand('serve', () => readHttpAddress(line.values));
  if (!address || socket !== undefined)
    throw new UsageError(
      'troupe serve: --nodes needs --http PORT, without --socket: the processes share the port and cannot share a socket',
    );
  if (data !== undefined)
    throw new UsageError(
      'troupe serve: expected --nodes or --data, got both: several processes cannot share the database in a directory. Use --store postgres://…',
    );
  if (process.execArgv.some((option) => option.startsWith('--inspect')))
    throw new UsageError('troupe serve: a debugger attaches to one process: omit --nodes');
  // The nodes read it again. An error is printed once.
  if (storeUrl('serve', line.values, env) !== undefined)
    readCluster('serve', line.values, { index: 0, generation: 0 }, env);
  const { runFleet } = await import('../fleet/fleet.ts');
  await runFleet({
    nodes: count,
    // This process has found the program, and has said so.
    args: ['serve', ...(line.positionals.length === 0 ? [path] : []), ...args],
    address,
    metrics: metrics === undefined ? undefined : readAddress('troupe serve: --metrics', metrics, '9464'),
    named: !json,
  });
  return undefined;
}

/** Each process of a node records in a file of its own: `calls.troupe` becomes `calls-2.troupe`, then `calls-2.1.troupe`. */
function inspectingOf(inspecting: Inspecting, identity: NodeIdentity | undefined): Inspecting {
  const { record } = inspecting;
  if (!identity || record === undefined) return inspecting;
  const { dir, name, ext } = parse(record);
  const generation = identity.generation === 0 ? '' : `.${identity.generation}`;
  return { ...inspecting, record: join(dir, `${name}-${identity.name}${generation}${ext}`) };
}

/** Owns the one server of the process, its transports and its shutdown. */
class Service {
  readonly #endpoints: Endpoints;
  readonly #idleMs: number;
  /** The transports that opened when the program first listened. */
  #opened: readonly Transport[] = [];
  readonly #watch: (server: Server) => Promise<void>;
  readonly #member: FleetMember | undefined;
  #server: Server | undefined;
  #idle: Timer | undefined;
  #connected = 0;
  #ending = false;
  readonly #io: CommandIo;
  #watchdog: Watchdog | undefined;
  /** The exit code after a mistake of the program; undefined for what the program has set, or 0. */
  #code: number | undefined;

  /** @param watch opens the inspector before the server listens */
  constructor(
    line: CommandLine,
    watch: (server: Server) => Promise<void>,
    identity: NodeIdentity | undefined,
    io: CommandIo,
  ) {
    this.#io = io;
    this.#watch = watch;
    this.#member = identity && new FleetMember(identity, (reason) => this.#end(reason));
    const { 'idle-exit': idleExit, 'max-connections': maxConnections } = line.values;
    this.#idleMs = idleExit === undefined ? 0 : wholeNumber('serve', 'idle-exit', idleExit, 0);
    const sockets = {
      maxConnections: wholeNumber('serve', 'max-connections', maxConnections, 256),
      onCount: (connected: number) => this.#count(connected),
    };
    this.#endpoints = new Endpoints('serve', line, sockets, this.#member?.source);
    if (this.#endpoints.none)
      throw new UsageError(
        'troupe serve: expected --http PORT, --socket PATH, or both (to serve on stdio, use troupe run)',
      );
    if (idleExit !== undefined && this.#endpoints.hasHttp)
      throw new UsageError(
        'troupe serve: expected --idle-exit or --http, got both: --idle-exit counts only socket clients',
      );
  }

  /** Opens the transports of the command and those of the program except stdio. */
  async open(server: Server, transports: readonly Transport[]): Promise<void> {
    if (this.#server)
      throw new Error('troupe serve serves one server per process, and this program has called listen() on two');
    this.#server = server;
    const member = this.#member;
    this.#opened = [...(member ? [member] : []), ...this.#endpoints.transports(server, transports)];
    await this.#watch(server);
    await server.listen(...this.#opened);
    // Without a parent the watchdog only reports: nothing would restart the process.
    this.#watchdog = watchLoop(server, { supervised: member !== undefined });
    // SIGHUP goes to the parent process, which replaces its nodes.
    void stopped(this.#io, member ? ['SIGTERM', 'SIGINT'] : undefined).then((signal) => this.#end(signal));
    const { drainDelayMs } = this.#endpoints;
    if (member) member.serves(server, this.#endpoints.announcement(server), drainDelayMs);
    else this.#endpoints.announce(server);
    this.#count(this.#connected);
  }

  /**
   * Ends the process if the program opens an HTTP transport after `--http` is open: that port would lack the guards of the
   * program's transport.
   */
  openMore(transports: readonly Transport[]): Promise<void> | undefined {
    const more = transports.filter((transport) => !this.#opened.includes(transport));
    if (!this.#endpoints.hasHttp || !more.some(({ name }) => name === 'http')) return undefined;
    const why =
      'the program opened http() after --http was already open, so its options cannot apply: pass http() to the first server.listen(…), or its options to createServer({ http })';
    this.#code = 1;
    this.#end(why);
    return Promise.reject(new Error(`troupe serve: --http: ${why}`));
  }

  /** Instructions for connecting clients, for the page of the inspector. */
  connectHelp(server: Server): ConnectHelp | undefined {
    return this.#endpoints.connectHelp(server);
  }

  #count(connected: number): void {
    this.#connected = connected;
    this.#idle?.cancel();
    this.#idle = undefined;
    if (connected > 0 || this.#idleMs === 0 || this.#ending) return;
    const idle = this.#io.clock.after(this.#idleMs, () => {
      // Timers run before socket events: first accept a client that is connecting right now.
      this.#io.clock.soon(() => {
        if (this.#idle === idle) this.#end(`no client was connected for ${durationOf(this.#idleMs)}`);
      });
    });
    this.#idle = idle;
  }

  #end(reason: string): void {
    if (this.#ending) return;
    this.#ending = true;
    say(`troupe serve: shutting down: ${reason}`);
    if (!this.#server) return this.#io.exit();
    // Timers and sockets that a tool has left behind must not keep the process alive.
    void this.#server.close(reason).then(() => {
      this.#watchdog?.stop();
      this.#io.clock.after(LINGER_MS, () => this.#io.exit(this.#code));
    });
  }
}
