/** `--http`, `--socket` and their options: where `troupe serve` and `troupe dev` serve many clients. */
import type { ConnectHelp, ConnectWay } from '../../inspector/frames.ts';
import type { Server } from '../../server.ts';
import type { HttpTransport } from '../../transports/http/http.ts';
import { MetricsListener } from '../../transports/http/metrics-listener.ts';
import { type SocketOptions, socket } from '../../transports/socket.ts';
import type { Transport } from '../../transports/transport.ts';
import { type CommandLine, readAddress } from '../command-options.ts';
import { say, UsageError } from '../usage.ts';
import { type HttpAddress, openHttp, readHttpAddress } from './http-address.ts';

export const ENDPOINTS = {
  http: '[HOST:]PORT',
  path: 'PATH',
  'allow-host': 'NAMES',
  'allow-origin': 'ORIGINS',
  socket: 'PATH',
  metrics: '[HOST:]PORT',
} as const;

export class Endpoints {
  readonly #command: string;
  readonly #path: string | undefined;
  readonly #socket: Transport | undefined;
  readonly #address: HttpAddress | undefined;
  readonly #metrics: MetricsListener | undefined;
  #http: HttpTransport | undefined;

  /** @throws {UsageError} for an invalid address, or an HTTP option without `--http` */
  constructor(command: string, { values }: CommandLine, options: SocketOptions = {}) {
    this.#command = command;
    this.#path = values.socket;
    this.#socket = values.socket === undefined ? undefined : socket(values.socket, { ...options, ownsProcess: true });
    this.#address = this.#named(() => readHttpAddress(values));
    const { metrics } = values;
    if (metrics !== undefined)
      this.#metrics = new MetricsListener(this.#named(() => readAddress('--metrics', metrics, '9464')));
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
    const endpoint = address && this.#named(() => openHttp(address, options.http, others));
    this.#http ??= endpoint;
    const ours = [this.#socket, endpoint, this.#metrics].filter((transport) => transport !== undefined);
    return [...new Set([...ours, ...others])];
  }

  /** Prints on stderr how clients reach the server, once its transports are open. */
  announce({ info }: Server): void {
    const server = `troupe ${this.#command}: ${info.name} ${info.version}`;
    if (this.#path !== undefined)
      say(`${server} on the socket ${this.#path}; connect clients with: troupe attach ${this.#path}`);
    if (this.#metrics) say(`${server}: metrics at ${this.#metrics.url}`);
    if (!this.#http) return;
    const { url } = this.#http;
    say(`${server} at ${url}; connect clients with:`);
    const ways = httpWays(plainName(info.name), url);
    const wide = Math.max(...ways.map(({ client }) => client.length));
    for (const { client, file, text } of ways)
      say(`  ${client.padEnd(wide)}  ${file === undefined ? '' : `in ${file}: `}${text}`);
  }

  /** Instructions for connecting clients, once the transports are open; undefined without `--http` and `--socket`. */
  connectHelp({ info }: Server): ConnectHelp | undefined {
    if (this.none) return undefined;
    const attach: readonly ConnectWay[] =
      this.#path === undefined
        ? []
        : [{ client: 'Any client that starts a command', text: `troupe attach ${this.#path}` }];
    return {
      note: 'Clients connect to this process.',
      ways: [...(this.#http ? httpWays(plainName(info.name), this.#http.url) : []), ...attach],
    };
  }

  /** Names the command in usage errors. */
  #named<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof UsageError) throw new UsageError(`troupe ${this.#command}: ${error.message}`);
      throw error;
    }
  }
}

/**
 * Instructions for connecting MCP clients to a server over HTTP.
 *
 * @param name the name of the server in the configuration of the clients
 */
function httpWays(name: string, url: string): readonly ConnectWay[] {
  const config = (entry: object): string => JSON.stringify({ mcpServers: { [name]: entry } });
  const remote = { command: 'npx', args: ['-y', 'mcp-remote', url] };
  return [
    { client: 'Claude Code', text: `claude mcp add --transport http ${name} ${url}` },
    { client: 'VS Code', text: `code --add-mcp '${JSON.stringify({ name, type: 'http', url })}'` },
    { client: 'Cursor', text: config({ url }), file: '~/.cursor/mcp.json' },
    { client: 'Claude Desktop', text: config(remote), file: 'claude_desktop_config.json' },
  ];
}

/** Replaces the characters of a name that some clients, or a shell, would reject. */
function plainName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'server';
}
