/** Connects to a server: reads the target, makes the client, and waits for the first connection. */
import { type ActorSystem, createActorSystem } from '../core/kernel/actor-system.ts';
import { systemClock } from '../core/kernel/clock.ts';
import { guardLog, type OperatorLog, stderrLog } from '../core/kernel/operator-log.ts';
import { packageVersion } from '../core/kernel/package-files.ts';
import { throttledLog } from '../core/kernel/throttled-log.ts';
import { messageOf } from '../core/protocol/json.ts';
import { type Era, isLegacyRevision } from '../core/protocol/revisions.ts';
import type { TypesOf, UntypedServer } from '../core/protocol/server-types.ts';
import type { ClientCapabilities } from '../core/protocol/types.ts';
import { MemoryChannel } from './channels/memory-channel.ts';
import type { StdioCommand } from './channels/stdio-channel.ts';
import type { Reach } from './client-connection.actor.ts';
import type { Client } from './client-interface.ts';
import {
  type ChannelTarget,
  type ConnectOptions,
  type ConnectTarget,
  checkTarget,
  type HttpTarget,
  isChannelTarget,
  readSettings,
} from './client-options.ts';
import { ConnectedClient } from './connected-client.ts';
import { isServerInMemory, openInMemory, type ServerInMemory } from './in-memory.ts';
import type { CallPosition } from './relayed-request.ts';
import { capabilitiesOf, ServerRequests } from './server-requests.ts';

/** The inspector loads the client with its channel to a server in memory: one chunk. */
export { MemoryChannel };

/** The server of which a connection is a part. Its inspection shows the connection. */
export interface ClientHost {
  readonly system: ActorSystem;
  /** The address of the actor that has the connection. */
  readonly parent: string;
  /** The name of the connection for people. */
  readonly label: string;
  /** The era of the server, as an earlier connection found it. The first attempt takes it for granted. */
  readonly era?: Era | undefined;
}

/** Warnings and errors only: a client is a guest in its program's output. */
const quietLog: OperatorLog = (level, message) => {
  if (level !== 'info') stderrLog(level, message);
};

/**
 * Connects to an MCP server of any revision: a URL, a command, a unix socket, or a server inside the process.
 *
 * @param target a URL (`https://example.com/mcp`, also as a string); `{ url, headers, auth }`; `{ command, args, env, cwd }`,
 *   which is started without a shell; `{ socket }`; a `Server` of `createServer`
 * @throws {TypeError | RangeError} for an invalid target or option
 * @throws {ClientError} if the server cannot be reached, is no MCP server, or speaks no common revision
 * @example
 * const client = await connect('https://mcp.example.com/mcp');
 * const result = await client.call('search', { q: 'tea' });
 * await client.close();
 */
export function connect<S extends ServerInMemory>(server: S, options?: ConnectOptions): Promise<Client<TypesOf<S>>>;
/**
 * Connects to an MCP server of any revision, with the types of the server.
 *
 * @typeParam S `typeof server`, or the interface of a file of `troupe types`. Without it each name is accepted
 * @example const client = await connect<typeof server>('https://mcp.example.com/mcp');
 */
export function connect<S extends object = UntypedServer>(
  target: ConnectTarget | ServerInMemory,
  options?: ConnectOptions,
): Promise<Client<TypesOf<S>>>;
export async function connect(target: ConnectTarget | ServerInMemory, options: ConnectOptions = {}): Promise<Client> {
  return openClient(target, options);
}

/**
 * Connects for {@link connect}, or for a part of Troupe that uses more of a client than its interface.
 *
 * @param capabilities declared to the server. Default: those that the options declare
 * @param oneCaller all calls have one caller, who may get what the server sends without naming a call. Default: false
 * @param host the server whose actor the connection becomes. Default: a system of its own
 * @param resumes a call of another process in a session over HTTP: it is the first request of this client
 * @param signal ends the opening
 */
export async function openClient(
  target: ConnectTarget | ServerInMemory,
  options: ConnectOptions,
  capabilities: ClientCapabilities = capabilitiesOf(options),
  oneCaller = false,
  host?: ClientHost,
  resumes?: CallPosition,
  signal?: AbortSignal,
): Promise<ConnectedClient> {
  if (resumes && !isLegacyRevision(resumes.revision)) throw new TypeError('a call of a legacy session is expected');
  const guest = guestOf(options, host?.system);
  const { settings, system } = guest;
  const reach = await reachOf(target, options, system.clock, settings, guest, resumes);
  const client = clientOf({ ...reach, era: host?.era, firstId: resumes?.id ?? reach.firstId }, options, {
    ...{ ...guest, capabilities, oneCaller },
    parent: host?.parent,
    label: host?.label,
    resumes: isLegacyRevision(resumes?.revision) ? resumes.revision : undefined,
  });
  const abort = (): void => void client.close(1);
  signal?.addEventListener('abort', abort);
  if (signal?.aborted) abort();
  try {
    await client.open();
  } catch (error) {
    await client.close();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
  return client;
}

/** Makes a client on a channel. It connects when it is opened. @throws as {@link connect} for an invalid option */
export function clientOn(target: ChannelTarget, options: ConnectOptions): ConnectedClient {
  const guest = guestOf(options, undefined);
  return clientOf(target, options, { ...guest, capabilities: capabilitiesOf(options), oneCaller: false });
}

/** The settings, the actors and the logs of a client. @param system of the server of which it is a part */
function guestOf(options: ConnectOptions, system: ActorSystem | undefined) {
  const settings = readSettings(options);
  const clock = options.clock ?? systemClock;
  const log = guardLog(options.log ?? quietLog, 'client');
  const own = system ?? createActorSystem({ clock, log });
  if (options.inspect) own.inspection.listen(options.inspect);
  return { settings, system: own, log, throttled: throttledLog(log, clock) };
}

function clientOf(
  reach: Reach,
  options: ConnectOptions,
  parts: Omit<
    ConstructorParameters<typeof ConnectedClient>[0],
    'reach' | 'info' | 'logLevel' | 'serverRequests' | 'onLog'
  >,
): ConnectedClient {
  const { name = 'troupe-client', version = packageVersion(), title, logLevel, onLog } = options;
  return new ConnectedClient({
    ...parts,
    reach,
    info: { name, version, ...(title === undefined ? {} : { title }) },
    logLevel,
    serverRequests: new ServerRequests(options, options.clock ?? systemClock, parts.log),
    onLog: onLog?.bind(options),
  });
}

/** Loads the channel that a target needs, and no other: `node:http` and cross-spawn take milliseconds. */
async function reachOf(
  target: ConnectTarget | ServerInMemory,
  options: ConnectOptions,
  clock: typeof systemClock,
  settings: ReturnType<typeof readSettings>,
  { log, throttled }: { readonly log: OperatorLog; readonly throttled: OperatorLog },
  resumed: CallPosition | undefined,
): Promise<Reach> {
  const { maxMessageBytes, connectMs } = settings;
  if (isServerInMemory(target))
    return {
      name: target.info.name,
      channel: () => new MemoryChannel({ clock, connect: () => openInMemory(target) }),
    };
  if (isChannelTarget(target))
    return {
      name: target.name,
      channel: target.channel,
      firstId: typeof target.firstId === 'number' ? target.firstId : undefined,
      revision: isLegacyRevision(target.revision) ? target.revision : undefined,
    };
  checkTarget('connect: ', target);
  if (typeof target === 'string' || target instanceof URL) return http({ url: target });
  if ('url' in target) return http(target);
  if ('socket' in target) {
    const { socket } = target;
    const { SocketChannel } = await import('./channels/socket-channel.ts');
    const stray = (line: string): void => log('warning', `${socket}: not a message: ${line.slice(0, 200)}`);
    return {
      name: socket,
      eraKey: socket,
      channel: () => new SocketChannel(socket, { clock, maxMessageBytes, stray }),
    };
  }
  return command(target);

  async function http({ url: address, headers = {}, auth, name }: HttpTarget): Promise<Reach> {
    const url = new URL(address);
    const authorization = auth ?? options.auth;
    const [{ HttpChannel }, { HttpSseChannel }, { nodeHttpFor }, { readHeaders }] = await Promise.all([
      import('./channels/http-channel.ts'),
      import('./channels/http-sse-channel.ts'),
      import('./channels/http-origin.ts'),
      import('../features/oauth/issuers/header-text.ts'),
    ]);
    const nodeHttp = await nodeHttpFor(url);
    const channelOptions = {
      url,
      nodeHttp,
      headers: readHeaders('connect: headers', headers),
      log: throttled,
      clock,
      maxMessageBytes,
      connectMs,
      authorization,
      resumed,
    };
    return {
      name: name ?? `${url.origin}${url.pathname}`,
      eraKey: `${url.origin}${url.pathname}`,
      channel: (kind) => (kind === 'sse' ? new HttpSseChannel(channelOptions) : new HttpChannel(channelOptions)),
      authorization,
      resource: url,
    };
  }

  async function command(program: StdioCommand): Promise<Reach> {
    const { StdioChannel } = await import('./channels/stdio-channel.ts');
    const name = (program.name ?? [program.command, ...(program.args ?? [])].join(' ')).slice(0, 200);
    return {
      name,
      eraKey: [program.command, ...(program.args ?? []), program.cwd ?? ''].join('\0'),
      channel: () =>
        new StdioChannel(program, {
          clock,
          maxMessageBytes,
          stray: (line) => log('warning', `${name}: stdout, not a message: ${line.slice(0, 200)}`),
          stderrLine: (line) => {
            if (!program.stderr) return log('info', `${name}: stderr: ${line}`);
            try {
              program.stderr(line);
            } catch (error) {
              log('error', `${name}: the receiver of stderr threw (${messageOf(error)}) for: ${line}`);
            }
          },
        }),
    };
  }
}
