/** Connects a command to a server: signs in, answers questions, handles Ctrl-C, and turns failures into exit codes. */
import type { Authorization } from '../../client/authorization.ts';
import { ClientError, ErrorResponse } from '../../client/client-errors.ts';
import type { ConnectOptions, ConnectTarget } from '../../client/client-options.ts';
import type { ConnectedClient } from '../../client/connected-client.ts';
import { fileTokens } from '../../client/oauth/file-tokens.ts';
import { oauth } from '../../client/oauth/resource-grant.ts';
import { openClient } from '../../client/open-client.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { CommandIo } from '../command-io.ts';
import { say } from '../usage.ts';
import type { CallTarget } from './call-target.ts';
import type { OpenedApi } from './opened-api.ts';
import { tokenFile } from './state-directory.ts';

/** The exit codes of the commands that connect. Code 2 is a {@link UsageError}. */
export const EXIT = { failed: 1, noConnection: 3, notSignedIn: 4, interrupted: 130 } as const;

export interface CommandClientOptions {
  readonly io: CommandIo;
  readonly command: string;
  readonly target: CallTarget;
  /** `--data DIR`. */
  readonly data: string | undefined;
  /** Opens the browser to sign in. */
  readonly open: boolean;
  /** True if a person can sign in. */
  readonly interactive: boolean;
  /** Receives the lines that a program writes on stderr. */
  readonly stderr?: (line: string) => void;
  readonly connect: Pick<
    ConnectOptions,
    'elicit' | 'elicitUrl' | 'sample' | 'roots' | 'extensions' | 'eras' | 'timeoutMs' | 'maxTimeoutMs'
  >;
}

/** The first Ctrl-C cancels, the second ends the process. */
export class Interrupt {
  readonly #command: string;
  readonly #io: CommandIo;
  readonly #action: string;
  readonly #abort = new AbortController();
  /** True while there is something to cancel. */
  cancellable = false;

  /** @param action the effect of the first Ctrl-C, for the message about it */
  constructor(command: string, io: CommandIo, action = 'cancelling') {
    this.#command = command;
    this.#io = io;
    this.#action = action;
    io.onSignal('SIGINT', this.signalled);
    io.onSignal('SIGTERM', () => io.exit(EXIT.interrupted));
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  readonly signalled = (): void => {
    if (this.#abort.signal.aborted || !this.cancellable) return this.#io.exit(EXIT.interrupted);
    say(`troupe ${this.#command}: ${this.#action}. Press Ctrl-C again to end`);
    this.#abort.abort(new Error('interrupted'));
  };
}

/**
 * Connects, works and closes. Prints the reason of a failure on stderr.
 *
 * @returns the exit code
 * @throws {UsageError} of the work
 */
export async function withClient(
  options: CommandClientOptions,
  interrupt: Interrupt,
  work: (client: ConnectedClient) => Promise<number>,
): Promise<number> {
  const { command, target } = options;
  let client: ConnectedClient | undefined;
  let api: OpenedApi | undefined;
  try {
    api = await openApi(target.target);
    client = await openClient(api ?? targetOf(options, interrupt), {
      name: 'troupe',
      title: `troupe ${command}`,
      ...target.patience,
      ...options.connect,
    });
    return await work(client);
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    return reportClientError(options, error, client !== undefined, interrupt);
  } finally {
    await client?.close();
    await api?.close();
  }
}

/** The server of an API. @returns undefined for a server of MCP */
async function openApi(target: CallTarget['target']): Promise<OpenedApi | undefined> {
  if (typeof target !== 'object' || !('openapi' in target)) return undefined;
  const { openedApi } = await import('./opened-api.ts');
  return openedApi(target);
}

function targetOf(
  { io, target: { target, url }, data, open, interactive, stderr }: CommandClientOptions,
  interrupt: Interrupt,
): ConnectTarget {
  if (typeof target === 'object' && 'openapi' in target) throw new TypeError('expected a server of MCP, got an API');
  if (stderr && typeof target === 'object' && 'command' in target) return { ...target, stderr };
  if (url === undefined || typeof target !== 'object' || !('url' in target)) return target;
  const headers = target.headers ?? {};
  // A person who passes a token does not want another one.
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) return target;
  const show = (address: string): void => void io.stderr.write(`Sign in at this address:\n${address}\n`);
  const auth = oauth({ tokens: fileTokens(tokenFile(data, io)), interactive, openBrowser: open, show });
  return { url, headers, auth: interruptible(auth, interrupt) };
}

/** Lets Ctrl-C end a sign-in, so that its lease is free for the next one. */
function interruptible(auth: Authorization, interrupt: Interrupt): Authorization {
  return {
    headers: (method, url) => auth.headers(method, url),
    observe: (url, headers) => auth.observe?.(url, headers),
    async authorize(challenge, signal) {
      const before = interrupt.cancellable;
      interrupt.cancellable = true;
      try {
        await auth.authorize(challenge, AbortSignal.any([signal, interrupt.signal]));
      } finally {
        interrupt.cancellable = before;
      }
    },
  };
}

function reportClientError(
  { command, target, interactive }: CommandClientOptions,
  error: ClientError,
  connected: boolean,
  interrupt: Interrupt,
): number {
  const text = error.message.startsWith(`${error.server}: `)
    ? error.message.slice(error.server.length + 2)
    : error.message;
  say(`troupe ${command}: ${target.name}: ${printable(text)}`);
  if (interrupt.signal.aborted) return EXIT.interrupted;
  // A program that answers the handshake with an error is no server to talk to.
  if (error instanceof ErrorResponse) return connected ? EXIT.failed : EXIT.noConnection;
  switch (error.reason) {
    case 'unauthorized':
    case 'forbidden':
      // Without a challenge, the server does not say that a sign-in would help: a key may be missing, or the Host be wrong.
      if (!interactive && target.url !== undefined && error.challenge?.header !== undefined)
        say(adviceFor(error.challenge.header, error.reason, target.name));
      return EXIT.notSignedIn;
    case 'unreachable':
    case 'refused':
    case 'not mcp':
    case 'no common revision':
    case 'closed':
      return EXIT.noConnection;
    default:
      return connected ? EXIT.failed : EXIT.noConnection;
  }
}

/** Advises a person whose credentials do not suffice. @param challenge the value of `WWW-Authenticate` */
function adviceFor(challenge: string, reason: 'unauthorized' | 'forbidden', target: string): string {
  // A server without metadata has no authorization server that a sign-in could use (RFC 9728).
  const signsIn = /\bresource_metadata=/.test(challenge);
  if (reason === 'unauthorized')
    return signsIn
      ? `Sign in first: troupe login ${target}`
      : "Pass the credentials that the server expects, such as --header 'authorization: Bearer …'";
  const [, scope = 'another scope'] = /\bscope="([^"]*)"/.exec(challenge) ?? [];
  return signsIn
    ? `Sign in again, to be granted ${visibleLine(scope)}: troupe login ${target}`
    : `Pass credentials that have ${visibleLine(scope)}`;
}

/** Keeps the lines of a program's stderr apart, and removes control characters. */
function printable(text: string): string {
  return text
    .split('\n')
    .map((line) => visibleLine(line))
    .join('\n');
}

/** A reader such as `head` may leave early. */
export function tolerateClosedStdout({ stdout, exit }: CommandIo): void {
  stdout.on('error', (error) => {
    if ('code' in error && error.code === 'EPIPE') return exit(0);
    say(`stdout: ${messageOf(error)}`);
    exit(EXIT.failed);
  });
}

/** True if a person can answer. */
export function hasTerminal({ stdin, stderr }: CommandIo): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}
