/** The stdio transport: one connection over stdin and stdout, and a process that ends when its client does. */
import type { Readable, Writable } from 'node:stream';
import { MessageChannel } from 'node:worker_threads';
import { watchParent } from './parent-watch.ts';
import { watchSignals } from './signals.ts';
import { guardStdout, type StdoutGuard } from './stdout-guard.ts';
import { StreamConnection } from './stream-connection.ts';
import type { Transport, TransportHost } from './transport.ts';

/** After the connection is closed, what the author's own code may still take to finish, in milliseconds, before the process is ended. */
const LINGER_MS = 250;

export interface StdioOptions {
  /** Where messages come from. Default: `process.stdin`. */
  readonly input?: Readable;
  /** Where messages go. Default: `process.stdout`, which nothing else can write to then (it goes to stderr). Another output is ended on close. */
  readonly output?: Writable;
  /** End the process after close, so that a timer which a tool left behind keeps no orphan alive. Default: only on the real stdin and stdout. */
  readonly exit?: boolean;
  /** Drain on SIGTERM, SIGINT and SIGHUP; a second signal exits at once. Default: only on the real stdin and stdout. */
  readonly signals?: boolean;
  /** Time between two looks for a vanished parent process, in milliseconds; 0 for none. Default: 2,000 on the real stdin and stdout, else 0. */
  readonly parentCheckMs?: number;
  /** How long close waits for a client that reads nothing, in milliseconds. Default 2,000. */
  readonly flushMs?: number;
}

/**
 * Serves one client over stdin and stdout (MCP basic/transports/stdio).
 *
 * End of input, a vanished parent and a stop signal ask the server to close; a client that is gone (EPIPE) does too.
 * While the client does not read, stdin is not read either: then only the vanished parent, a signal or the broken pipe ends it.
 *
 * @example await server.listen(stdio());
 */
export function stdio(options: StdioOptions = {}): Transport {
  return new Stdio(options);
}

class Stdio implements Transport {
  readonly name = 'stdio';
  readonly #options: StdioOptions;
  #host: TransportHost | undefined;
  #connection: StreamConnection | undefined;
  #guard: StdoutGuard | undefined;
  #output: Writable | undefined;
  #cleanup: (() => void)[] = [];
  #asked = false;
  #closing: Promise<void> | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  get ownsProcess(): boolean {
    return this.#isReal();
  }

  open(host: TransportHost): void {
    if (this.#host || this.#closing)
      throw new Error('this stdio transport was already opened. It serves one client, once. Call stdio() for another');
    const { input = process.stdin, output = process.stdout, signals, parentCheckMs } = this.#options;
    if (output === process.stdout) this.#guard = guardStdout();
    this.#host = host;
    this.#output = output;
    const connection = new StreamConnection({
      host,
      transport: this.name,
      session: process.env.TROUPE_SESSION,
      input,
      inputName: 'stdin',
      output,
      ...(this.#guard ? { write: this.#guard.write } : {}),
      onEnded: (reason) => {
        if (this.ownsProcess) this.#cleanup.push(holdProcess());
        this.#askToClose(reason);
      },
      // Without its one connection a stdio server has nothing left to serve.
      onClosed: (reason) => this.#askToClose(reason),
    });
    this.#connection = connection;
    if (input === process.stdin && process.stdin.isTTY) {
      // A person started it by hand, and would see nothing at all.
      host.log(
        'info',
        'serving stdio on this terminal: a client writes JSON-RPC here, one message per line. Configure this command in an MCP client, or stop it with Ctrl-C',
      );
    }
    this.#cleanup = [
      host.bus.on('connection.send', (event) => {
        if (event.connection === connection.id) connection.send(event.text);
      }),
      host.bus.on('connection.end', (event) => {
        if (event.connection === connection.id) void connection.close(event.reason, this.#flushMs());
      }),
    ];
    if (signals ?? this.#isReal()) this.#cleanup.push(watchSignals((signal) => this.#askToClose(signal)));
    const everyMs = parentCheckMs ?? (this.#isReal() ? 2_000 : 0);
    if (everyMs > 0) this.#cleanup.push(this.#watchParent(host, connection, everyMs));
    connection.open();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (!this.#host || !this.#connection) return;
    this.#asked = true;
    await this.#connection.close('server closed', this.#flushMs());
    for (const undo of this.#cleanup.splice(0)) undo();
    if (this.#output !== process.stdout) this.#output?.end();
    if (this.#options.exit ?? this.#isReal()) this.#exit(this.#host);
    else this.#guard?.release();
  }

  /** Ends the process, unless it ends by itself first. Stdout stays guarded: a tool's last words are still no message. */
  #exit(host: TransportHost): void {
    process.exitCode ??= 0;
    host.clock.after(LINGER_MS, () => process.exit());
  }

  #watchParent(host: TransportHost, connection: StreamConnection, everyMs: number): () => void {
    return watchParent({
      clock: host.clock,
      everyMs,
      onGone: () => connection.endInput('parent process exited'),
      onUnable: (why) =>
        host.log(
          'warning',
          `stdio: cannot watch the parent process (${why}): only the end of stdin tells that the client disconnected`,
        ),
    });
  }

  /** Once is enough, however many signs there are that the client is leaving. */
  #askToClose(reason: string): void {
    if (this.#asked) return;
    this.#asked = true;
    this.#host?.requestClose(reason);
  }

  #isReal(): boolean {
    const { input = process.stdin, output = process.stdout } = this.#options;
    return input === process.stdin && output === process.stdout;
  }

  #flushMs(): number {
    return this.#options.flushMs ?? 2_000;
  }
}

/**
 * Keeps the process alive until the returned function is called. An open stdin did so; once it has ended, a handler that
 * waits for nothing the event loop knows of would let the process go before the grace time, and its request unanswered.
 */
function holdProcess(): () => void {
  const { port1 } = new MessageChannel();
  port1.ref();
  return () => port1.close();
}
