/** `--http`, `--socket` and their options: where `troupe serve`, `troupe gateway` and `troupe dev` serve many clients. */

import { MetricsListener } from '../../core/http/metrics-listener.ts';
import { type ConnectionSource, type HttpTransport, receiveFrom } from '../../core/http/node-transport.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { type SocketOptions, socket } from '../../core/transports/socket.ts';
import type { Transport } from '../../core/transports/transport.ts';
import type { Server } from '../../features/server/server.ts';
import type { ConnectHelp, ConnectWay } from '../../inspector/frames.ts';
import { type CommandLine, readAddress } from '../command-options.ts';
import { plainName } from '../setup/plain-name.ts';
import { inCommand, say, UsageError } from '../usage.ts';
import { type HttpAddress, openHttp, readHttpAddress } from './http-address.ts';

export const ENDPOINTS = {
  http: '[HOST:]PORT',
  path: 'PATH',
  'allow-host': 'NAMES',
  'allow-origin': 'ORIGINS',
  socket: 'PATH',
  metrics: '[HOST:]PORT',
  'drain-delay': 'MS',
} as const;

/** Their part of the help of serve and gateway. */
export const ENDPOINTS_HELP = `  --http [HOST:]PORT     serve over HTTP; HOST defaults to 127.0.0.1, port 0
                         chooses a free port
  --path PATH            path of the HTTP endpoint (/mcp)
  --allow-host NAMES     accepted Host names, separated by commas; required if
                         HOST is not a loopback address
  --allow-origin ORIGINS
                         web origins that may call the server from a browser,
                         separated by commas
  --socket PATH          serve on a unix domain socket, or on Windows a named
                         pipe such as \\\\.\\pipe\\NAME; clients that start a
                         command use troupe attach PATH
  --metrics [HOST:]PORT  serve metrics for Prometheus at /metrics of this port;
                         HOST defaults to 127.0.0.1
  --drain-delay MS       serve on for MS milliseconds after a stop signal while
                         /readyz is 503, so that a balancer learns of it (0)`;

export class Endpoints {
  readonly #command: string;
  readonly #path: string | undefined;
  readonly #socket: Transport | undefined;
  readonly #address: HttpAddress | undefined;
  readonly #metrics: MetricsListener | undefined;
  readonly #source: ConnectionSource | undefined;
  #http: HttpTransport | undefined;

  /**
   * @param source where the connections of `--http` come from, if not from a port of this process
   * @throws {UsageError} for an invalid address, or an HTTP option without `--http`
   */
  constructor(command: string, { values }: CommandLine, options: SocketOptions = {}, source?: ConnectionSource) {
    this.#source = source;
    this.#command = command;
    this.#path = values.socket;
    this.#socket = values.socket === undefined ? undefined : socket(values.socket, { ...options, ownsProcess: true });
    this.#address = inCommand(command, () => readHttpAddress(values));
    const { metrics } = values;
    // The parent process shows the metrics of all nodes.
    if (metrics !== undefined && !source)
      this.#metrics = new MetricsListener(inCommand(command, () => readAddress('--metrics', metrics, '9464')));
  }

  get hasHttp(): boolean {
    return this.#address !== undefined;
  }

  /** True without `--http` and `--socket`. */
  get none(): boolean {
    return !this.hasHttp && this.#socket === undefined;
  }

  /**
   * The transports of the command and those of the program except stdio. An HTTP transport of the program opens at the address
   * of the command.
   *
   * @param own the transports that the program opens
   * @throws {UsageError} if the command line allows more than the program does, or the program has several HTTP addresses
   */
  transports({ options }: Server, own: readonly Transport[]): readonly Transport[] {
    const others = own.filter(({ name }) => name !== 'stdio');
    const address = this.#address;
    const endpoint = address && inCommand(this.#command, () => openHttp(address, options.http, others));
    this.#http ??= endpoint;
    const source = this.#source;
    if (endpoint && source && !receiveFrom(endpoint, source))
      throw new UsageError(
        `troupe ${this.#command}: --nodes: expected a program that listens with http() of the installed version of troupe, got another HTTP transport`,
      );
    const ours = [this.#socket, endpoint, this.#metrics].filter((transport) => transport !== undefined);
    return [...new Set([...ours, ...others])];
  }

  /** Lines that tell how clients reach the server, once its transports are open. */
  announcement({ info, options }: Server): readonly string[] {
    const server = `troupe ${this.#command}: ${visibleLine(info.name)} ${visibleLine(info.version)}`;
    const lines: string[] = [];
    if (this.#path !== undefined)
      lines.push(`${server} on the socket ${this.#path}; connect clients with: troupe attach ${this.#path}`);
    if (this.#metrics) lines.push(`${server}: metrics at ${this.#metrics.url}`);
    if (!this.#http) return lines;
    const { url, clientUrl } = this.#http;
    const ways = httpWays(plainName(info.name), clientUrl, options.http?.authenticate !== undefined);
    const wide = Math.max(...ways.map(({ client }) => client.length));
    const shown = ways.map(
      ({ client, file, text }) => `  ${client.padEnd(wide)}  ${file === undefined ? '' : `in ${file}: `}${text}`,
    );
    const proxy = clientUrl.startsWith('https:') ? `, behind a proxy at ${clientUrl}` : '';
    return [...lines, `${server} at ${url}${proxy}; connect clients with:`, ...shown];
  }

  /** Prints the announcement on stderr. */
  announce(server: Server): void {
    for (const line of this.announcement(server)) say(line);
  }

  /** The longest time in milliseconds that its transports wait before they drain. */
  get drainDelayMs(): number {
    return this.#http?.drainDelayMs ?? 0;
  }

  /** Instructions for connecting clients, once the transports are open; undefined without `--http` and `--socket`. */
  connectHelp({ info, options }: Server): ConnectHelp | undefined {
    if (this.none) return undefined;
    const attach: readonly ConnectWay[] =
      this.#path === undefined
        ? []
        : [{ client: 'Any client that starts a command', text: `troupe attach ${this.#path}` }];
    const demands = options.http?.authenticate !== undefined;
    return {
      note: 'Clients connect to this process.',
      ways: [...(this.#http ? httpWays(plainName(info.name), this.#http.clientUrl, demands) : []), ...attach],
    };
  }
}

/**
 * Instructions for connecting MCP clients to a server over HTTP.
 *
 * @param name the name of the server in the configuration of the clients
 * @param demands true for a server that checks clients by a function of its own: each line then names a token
 */
function httpWays(name: string, url: string, demands: boolean): readonly ConnectWay[] {
  const config = (entry: object): string => JSON.stringify({ mcpServers: { [name]: entry } });
  const headers = demands ? { headers: { Authorization: 'Bearer TOKEN' } } : {};
  const header = demands ? ['--header', 'Authorization: Bearer TOKEN'] : [];
  const remote = { command: 'npx', args: ['-y', 'mcp-remote', url, ...header] };
  const shown = demands ? ' --header "Authorization: Bearer TOKEN"' : '';
  return [
    { client: 'Claude Code', text: `claude mcp add --transport http ${name} ${url}${shown}` },
    { client: 'VS Code', text: `code --add-mcp '${JSON.stringify({ name, type: 'http', url, ...headers })}'` },
    { client: 'Cursor', text: config({ url, ...headers }), file: '~/.cursor/mcp.json' },
    { client: 'Claude Desktop', text: config(remote), file: 'claude_desktop_config.json' },
  ];
}
