/** `troupe serve FILE|DIR --socket PATH`: serves a program, or modules that need none, to any number of clients at once. */
import { systemClock, type Timer } from '../clock.ts';
import type { Server } from '../server.ts';
import { watchSignals } from '../transports/signals.ts';
import { socket } from '../transports/socket.ts';
import type { Transport } from '../transports/transport.ts';
import { type CommandLine, readOptions, wholeNumber } from './options.ts';
import { serveTarget } from './serving.ts';
import { readTarget } from './target.ts';
import { say, TARGETS, UsageError } from './usage.ts';

const OPTIONS = { socket: 'PATH', 'max-connections': 'N', 'idle-exit': 'MS' };

const HELP = `Usage: troupe serve FILE|DIR --socket PATH [-- ARGS]

Serves as troupe run does, but on a socket, to any number of clients in one process: each has a session of its own.
A client that starts a command is given troupe attach PATH.

  --socket PATH         a unix domain socket; on Windows the name of a pipe, \\\\.\\pipe\\NAME
  --max-connections N   most clients at once (256)
  --idle-exit MS        end when no client has been connected for so many milliseconds (never)

SIGTERM, SIGINT and SIGHUP let what runs finish, and end the process with code 0.

${TARGETS}
A program that listens on stdio itself is served here instead.
`;

/** What the author's own code may still take to finish, in milliseconds, once everything is closed. */
const LINGER_MS = 250;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('serve', args, OPTIONS);
  const target = line && readTarget('serve', [...line.positionals, '--', ...line.rest]);
  if (!target) return void process.stdout.write(HELP);
  const service = new Service(line);
  await serveTarget(target, {
    command: 'serve',
    listen: (server, transports) => service.open(server, transports),
    // What it would have done on stdio is done here.
    takesOver: true,
  });
}

/** The one server of the process, its transports, and their end. */
class Service {
  readonly #transports: readonly Transport[];
  /** How to reach the server, one line each. */
  readonly #told: string[] = [];
  readonly #idleMs: number;
  #server: Server | undefined;
  #idle: Timer | undefined;
  #connected = 0;
  #ending = false;

  constructor({ values }: CommandLine) {
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
    if (transports.length === 0)
      throw new UsageError('troupe serve: expected where to serve: --socket PATH (to serve on stdio: troupe run)');
    this.#transports = transports;
  }

  /** Opens the transports of the command, and what the program has opened besides stdio. */
  async open(server: Server, transports: readonly Transport[]): Promise<void> {
    if (this.#server)
      throw new Error('troupe serve serves one server, and this program has told another one to listen before');
    this.#server = server;
    await server.listen(...this.#transports, ...transports.filter(({ name }) => name !== 'stdio'));
    watchSignals((signal) => this.#end(signal));
    for (const told of this.#told) say(`troupe serve: ${server.info.name} ${server.info.version} ${told}`);
    this.#count(this.#connected);
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
