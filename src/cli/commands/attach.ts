/** `troupe attach PATH`: connects an agent on stdio to a server on a socket. It must start fast, so it does not load the server. */
import { connect, type Socket } from 'node:net';
import { messageOf } from '../../core/protocol/json.ts';
import { watchParent } from '../../core/transports/parent-watch.ts';
import { checkPath, checkSocket, codeOf } from '../../core/transports/socket-path.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions, wholeNumber } from '../command-options.ts';
import { RetryPolicy, Unreachable } from '../shim/retry-policy.ts';
import { type ServerLink, socketLink } from '../shim/server-link.ts';
import type { SharedServer, SharedServerOptions } from '../shim/shared-server.ts';
import { Shim } from '../shim/shim.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = { spawn: 'FILE', 'idle-exit': 'MS', wait: 'MS', inspect: '' };

const HELP = `Usage: troupe attach PATH
       troupe attach --spawn FILE|DIR [PATH] [-- ARGS]

Connects stdin and stdout to the server on the socket PATH (troupe serve FILE
--socket PATH). Many agents can share one server process; each has its own
session. After a server crash, the session continues with the next server:
requests lost in the crash get an error, later requests wait.

  --spawn FILE|DIR       start the server if it is not running
  --idle-exit MS         the started server exits when no client has been
                         connected for MS milliseconds (30000)
  --inspect              the started server opens an inspector; its URL is in
                         PATH.log, and troupe top finds it
  --wait MS              give up with exit code 1 if no server can be reached
                         within MS milliseconds (30000)

Without PATH, --spawn uses a socket in the user's runtime directory, named after
the real path of FILE and ARGS. The output of the started server is in PATH.log.
`;

/** The interval between checks for the parent process, in milliseconds. */
const PARENT_MS = 2_000;

/** The error codes of a socket on which a server may listen soon. */
const NOT_YET: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'ECONNRESET', 'EPIPE']);

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('attach', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, positionals, rest } = line;
  const [socketPath, ...more] = positionals;
  if (more.length > 0)
    throw new UsageError(`troupe attach: expected one PATH, got ${positionals.length}: ${positionals.join(' ')}`);
  const retryPolicy = new RetryPolicy(wholeNumber('attach', 'wait', values.wait, 30_000), report);
  const idleMs = wholeNumber('attach', 'idle-exit', values['idle-exit'], 30_000);
  const shared =
    values.spawn === undefined
      ? undefined
      : await load(values.spawn, rest, socketPath, {
          idleMs,
          inspect: values.inspect !== undefined,
          cwd: io.cwd,
          env: io.env,
        });
  const path = shared?.path ?? socketPath;
  if (path === undefined) throw new UsageError('troupe attach: expected the PATH of a socket, or --spawn FILE');
  if (!shared && (rest.length > 0 || values['idle-exit'] !== undefined || values.inspect !== undefined))
    throw new UsageError(
      'troupe attach: --idle-exit, --inspect and ARGS need --spawn FILE: they apply to the server that it starts',
    );
  try {
    checkPath(path);
    await run(path, retryPolicy, shared, io);
    return 0;
  } catch (error) {
    report(messageOf(error));
    return 1;
  }
}

async function run(
  path: string,
  retryPolicy: RetryPolicy,
  shared: SharedServer | undefined,
  { stdin, stdout, clock }: CommandIo,
): Promise<void> {
  const shim = new Shim({
    input: stdin,
    output: stdout,
    retryPolicy,
    dial: () => dial(path, shared),
    say: report,
  });
  const unwatch = watchParent({ clock, everyMs: PARENT_MS, onGone: () => shim.end(), onUnable() {} });
  try {
    await shim.run();
  } finally {
    unwatch();
  }
}

async function load(
  file: string,
  rest: readonly string[],
  path: string | undefined,
  options: Omit<SharedServerOptions, 'path'>,
) {
  const { SharedServer } = await import('../shim/shared-server.ts');
  return new SharedServer(file, rest, { ...options, path });
}

/** Connects to a socket that belongs to this user. With --spawn, starts the server if nothing listens. */
async function dial(path: string, shared: SharedServer | undefined): Promise<ServerLink> {
  try {
    return socketLink(await connected(checkSocket(path)));
  } catch (error) {
    const code = codeOf(error);
    if (!NOT_YET.has(code)) throw new Unreachable(`cannot connect to ${path}: ${messageOf(error)}`);
    if (!shared)
      throw new Error(`no server listens on ${path} (${code}; start one with: troupe serve FILE --socket ${path})`);
  }
  await shared.start();
  return socketLink(await connected(checkSocket(path)));
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      // 'close' follows every error, and the link handles it.
      socket.on('error', () => {});
      resolve(socket);
    });
  });
}

function report(line: string): void {
  say(`troupe attach: ${line}`);
}
