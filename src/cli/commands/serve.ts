/** `troupe serve FILE|DIR --http PORT --socket PATH`: serves a program, or modules that need none, to any number of clients at once. */
import { systemClock, type Timer } from '../../clock.ts';
import type { Server } from '../../server.ts';
import { watchSignals } from '../../transports/signals.ts';
import { socket } from '../../transports/socket.ts';
import type { Transport } from '../../transports/transport.ts';
import { type CommandLine, readOptions, wholeNumber } from '../command-options.ts';
import { clientConfig, plainName } from '../serving/client-config.ts';
import { dataDirectory } from '../serving/data-directory.ts';
import { type HttpAddress, openHttp, readHttpAddress } from '../serving/http-address.ts';
import { INSPECTING, INSPECTING_HELP, readInspecting } from '../serving/inspecting-options.ts';
import { watchLoop } from '../serving/loop-watch.ts';
import { serveTarget } from '../serving/serving.ts';
import { readTarget } from '../serving/target.ts';
import { say, TARGETS, UsageError } from '../usage.ts';

const OPTIONS = {
  http: '[HOST:]PORT',
  path: 'PATH',
  'allow-host': 'NAMES',
  'allow-origin': 'ORIGINS',
  socket: 'PATH',
  'max-connections': 'N',
  'idle-exit': 'MS',
  data: 'DIR',
  ...INSPECTING,
};

const HELP = `Usage: troupe serve FILE|DIR [--http [HOST:]PORT] [--socket PATH] [--inspect] [-- ARGS]

Serves as troupe run does, but over HTTP, on a socket, or both, to any number of clients in one process: each has a
session of its own, or needs none.

  --http [HOST:]PORT    an HTTP endpoint, on 127.0.0.1 unless HOST says otherwise; port 0 takes a free one
  --path PATH           its path (/mcp)
  --allow-host NAMES    by which names clients may call it, with commas between; needed to bind anything but loopback
  --allow-origin ORIGINS  whose pages may use it from a browser, with commas between
                        The program's HTTP options (createServer({ http }), http({ … })) hold here, too. Where the program
                        has such a list, these two can only shorten it.
  --socket PATH         a unix domain socket; on Windows the name of a pipe, \\\\.\\pipe\\NAME
                        A client that starts a command is given troupe attach PATH.
  --max-connections N   most clients at once on the socket (256)
  --idle-exit MS        end when nobody has been connected to the socket for so many milliseconds (never)
  --data DIR            keep what must survive this process in DIR
${INSPECTING_HELP}

SIGTERM, SIGINT and SIGHUP let what runs finish, and end the process with code 0.

${TARGETS}
A program that listens on stdio itself is served here instead, and one that listens over HTTP at the address of --http.
`;

/** What the author's own code may still take to finish, in milliseconds, once everything is closed. */
const LINGER_MS = 250;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('serve', args, OPTIONS);
  const target = line && readTarget('serve', [...line.positionals, '--', ...line.rest]);
  if (!target) return void process.stdout.write(HELP);
  const inspecting = readInspecting('serve', line);
  const service = new Service(line, async (server) => {
    if (!inspecting.inspect && inspecting.record === undefined) return;
    const { inspect } = await import('../serving/inspecting.ts');
    await inspect(server, { ...inspecting, command: 'serve', target: target.path });
  });
  await serveTarget(target, {
    command: 'serve',
    listen: (server, transports) => service.open(server, transports),
    listenMore: (transports) => service.openMore(transports),
    store: await dataDirectory('serve', line.values.data),
  });
}

/** The one server of the process, its transports, and their end. */
class Service {
  readonly #transports: readonly Transport[];
  /** How to reach the server, one line each. */
  readonly #told: string[] = [];
  readonly #idleMs: number;
  readonly #address: HttpAddress | undefined;
  /** Those that were opened when the program first listened. */
  #opened: readonly Transport[] = [];
  readonly #watch: (server: Server) => Promise<void>;
  #server: Server | undefined;
  #idle: Timer | undefined;
  #connected = 0;
  #ending = false;

  /** @param watch shows what happens in the server, before it listens */
  constructor({ values }: CommandLine, watch: (server: Server) => Promise<void>) {
    this.#watch = watch;
    const { 'idle-exit': idleExit, 'max-connections': maxConnections, socket: path } = values;
    this.#idleMs = idleExit === undefined ? 0 : wholeNumber('serve', 'idle-exit', idleExit, 0);
    const transports: Transport[] = [];
    if (path !== undefined) {
      const most = wholeNumber('serve', 'max-connections', maxConnections, 256);
      transports.push(
        socket(path, { maxConnections: most, ownsProcess: true, onCount: (connected) => this.#count(connected) }),
      );
      this.#told.push(`on the socket ${path}; connect clients with: troupe attach ${path}`);
    }
    this.#address = readHttpAddress(values);
    if (transports.length === 0 && !this.#address)
      throw new UsageError(
        'troupe serve: expected where to serve: --http PORT, --socket PATH, or both (to serve on stdio: troupe run)',
      );
    if (idleExit !== undefined && this.#address)
      throw new UsageError(
        'troupe serve: --idle-exit counts the clients of a socket: leave it out, or leave out --http',
      );
    this.#transports = transports;
  }

  /**
   * Opens the transports of the command, and what the program has opened besides stdio: an HTTP transport of the program at
   * the address of the command.
   */
  async open(server: Server, transports: readonly Transport[]): Promise<void> {
    if (this.#server)
      throw new Error('troupe serve serves one server, and this program has told another one to listen before');
    this.#server = server;
    const own = transports.filter(({ name }) => name !== 'stdio');
    const endpoint = this.#address && openHttp(this.#address, server.options.http, own);
    this.#opened = [...new Set([...this.#transports, ...(endpoint ? [endpoint] : []), ...own])];
    await this.#watch(server);
    await server.listen(...this.#opened);
    // Nobody may be there to start it again: it is told, and not ended.
    watchLoop(server, undefined, false);
    watchSignals((signal) => this.#end(signal));
    const { name, version } = server.info;
    for (const told of this.#told) say(`troupe serve: ${name} ${version} ${told}`);
    if (endpoint) {
      const { url } = endpoint;
      say(`troupe serve: ${name} ${version} at ${url}; connect clients with:`);
      for (const line of clientConfig(plainName(name), url)) say(`  ${line}`);
    }
    this.#count(this.#connected);
  }

  /**
   * The program tells its server to listen on more. What its HTTP transport guards, the port of `--http` does not, which is
   * open: the process ends.
   */
  openMore(transports: readonly Transport[]): Promise<void> | undefined {
    const more = transports.filter((transport) => !this.#opened.includes(transport));
    if (!this.#address || !more.some(({ name }) => name === 'http')) return undefined;
    const why =
      'the program listened over HTTP after it was served on --http already, so that its options came too late: pass http() to the first server.listen(…), or its options to createServer({ http })';
    process.exitCode = 1;
    this.#end(why);
    return Promise.reject(new Error(`troupe serve: --http: ${why}`));
  }

  #count(connected: number): void {
    this.#connected = connected;
    this.#idle?.cancel();
    this.#idle = undefined;
    if (connected > 0 || this.#idleMs === 0 || this.#ending) return;
    const idle = systemClock.after(this.#idleMs, () => {
      // Timers come before what the sockets have: a client that stands at the door now is let in first.
      systemClock.soon(() => {
        if (this.#idle === idle) this.#end(`no client was connected for ${this.#idleMs} ms`);
      });
    });
    this.#idle = idle;
  }

  #end(reason: string): void {
    if (this.#ending) return;
    this.#ending = true;
    say(`troupe serve: ends: ${reason}`);
    // A timer or a socket that a tool left behind must not keep the process.
    void this.#server?.close(reason).then(() => {
      process.exitCode ??= 0;
      systemClock.after(LINGER_MS, () => process.exit());
    });
  }
}
