/** The stdio transport: one connection over stdin and stdout, and a process that ends when its client disconnects. */
import { basename } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { MessageChannel } from 'node:worker_threads';
import { isObject } from '../protocol/json.ts';
import * as option from '../protocol/option-rows.ts';
import { namedClient } from './check-caller.ts';
import { watchParent } from './parent-watch.ts';
import { watchSignals } from './signals.ts';
import { guardStdout, type StdoutGuard } from './stdout-guard.ts';
import { StreamConnection } from './stream-connection.ts';
import type { NamedClient, Transport, TransportHost } from './transport.ts';

/** Milliseconds after closing the connection that the author's code may still use before the process exits. */
const LINGER_MS = 250;

export interface StdioOptions {
  /** The source of messages. Default: `process.stdin`. */
  readonly input?: Readable;
  /**
   * The destination of messages. Default: `process.stdout`, which is then reserved: other writes go to stderr. Another
   * output is ended on close.
   */
  readonly output?: Writable;
  /**
   * Exit the process after close, so that a timer left by a tool does not keep an orphan alive. Default: only on the
   * real stdin and stdout.
   */
  readonly exit?: boolean;
  /** Drain on SIGTERM, SIGINT and SIGHUP; a second signal exits at once. Default: only on the real stdin and stdout. */
  readonly signals?: boolean;
  /**
   * Interval of the checks for an exited parent process, in milliseconds; 0 disables them. Default: 2,000 on the real
   * stdin and stdout, else 0.
   */
  readonly parentCheckMs?: number;
  /** Milliseconds that close waits for a client that reads nothing. Default 2,000. */
  readonly flushMs?: number;
  /**
   * The principal of the client, which owns what it creates. Default `local user`. Set the name that `http.authenticate`
   * returns for the same user, if the server also serves HTTP or shares its store with such a server.
   */
  readonly principal?: string;
  /** The scopes of that principal, for the rules of the server. Default: every scope for `local user`, none for another name. */
  readonly scopes?: readonly string[];
}

const ROWS: option.Rows<StdioOptions> = {
  input: option.expected('a readable stream', (value) => isObject(value) && option.isFunction(value.pipe)),
  output: option.expected('a writable stream', (value) => isObject(value) && option.isFunction(value.write)),
  exit: option.flag,
  signals: option.flag,
  parentCheckMs: option.delay,
  flushMs: option.delay,
  // namedClient checks them.
  principal: option.anything,
  scopes: option.anything,
};

/** The names of files that `node --test` runs. */
const TEST_FILE = /(?:^|[.\-_])test(?:[-_].*)?\.[cm]?[jt]s$/;

/** True in a process of `node --test`, and false in a server that a test starts, which inherits the variable. */
function isTestFile(): boolean {
  return process.env.NODE_TEST_CONTEXT !== undefined && TEST_FILE.test(basename(process.argv[1] ?? ''));
}

/**
 * Serves one client over stdin and stdout (MCP basic/transports/stdio).
 *
 * End of input, an exited parent, a stop signal, and a disconnected client (EPIPE) make the server close. While the
 * client does not read, stdin is not read either: then only the exited parent, a signal or the broken pipe closes it.
 *
 * @throws {TypeError | RangeError} for an unknown or invalid option, such as the principal `anonymous`
 * @example await server.listen(stdio());
 */
export function stdio(options: StdioOptions = {}): Transport {
  return new Stdio(options);
}

class Stdio implements Transport {
  readonly name = 'stdio';
  readonly oneClient = true;
  readonly everyClient: NamedClient;
  readonly #options: StdioOptions;
  #host: TransportHost | undefined;
  #connection: StreamConnection | undefined;
  #guard: StdoutGuard | undefined;
  #output: Writable | undefined;
  #cleanup: (() => void)[] = [];
  #asked = false;
  #closing: Promise<void> | undefined;

  constructor(options: StdioOptions) {
    option.check('stdio: ', options, ROWS);
    this.everyClient = namedClient('stdio', options);
    this.#options = options;
  }

  get ownsProcess(): boolean {
    return this.#isReal();
  }

  open(host: TransportHost): void {
    if (this.#host || this.#closing)
      throw new Error('this stdio transport was already opened. It serves one client, once. Call stdio() for another');
    if (this.#isReal() && isTestFile())
      throw new Error(
        'stdio: this process runs tests, whose results go to stdout. Export the server in place of server.listen(stdio()): export default server. troupe run and troupe dev serve an exported server',
      );
    const { input = process.stdin, output = process.stdout, signals, parentCheckMs } = this.#options;
    if (output === process.stdout) this.#guard = guardStdout();
    this.#host = host;
    this.#output = output;
    const connection = new StreamConnection({
      host,
      transport: this.name,
      session: process.env.TROUPE_SESSION,
      client: this.everyClient,
      input,
      inputName: 'stdin',
      output,
      ...(this.#guard ? { write: this.#guard.write } : {}),
      onEnded: (reason) => {
        if (this.ownsProcess) this.#cleanup.push(holdProcess());
        this.#askToClose(reason);
      },
      // Without its one connection, a stdio server has nothing left to serve.
      onClosed: (reason) => this.#askToClose(reason),
    });
    this.#connection = connection;
    if (input === process.stdin && process.stdin.isTTY) {
      // A person who starts the server by hand would see no output at all.
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

  /**
   * Exits the process, unless it ends on its own first. Stdout stays guarded: late output of a tool is still not a
   * message.
   */
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

  /** Acts once, however many signs show that the client disconnects. */
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
 * Keeps the process alive until the returned function is called. An open stdin does so. After stdin has ended, a
 * handler that waits for nothing in the event loop would let the process exit before the grace time, without answering
 * its request.
 */
function holdProcess(): () => void {
  const { port1 } = new MessageChannel();
  port1.ref();
  return () => port1.close();
}
