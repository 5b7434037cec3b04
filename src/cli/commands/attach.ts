/** `troupe attach PATH`: a thin shim between an agent on stdio and a server on a socket. It must start fast: it loads no server. */
import { connect, type Socket } from 'node:net';
import { systemClock } from '../../clock.ts';
import { messageOf } from '../../protocol/json.ts';
import { watchParent } from '../../transports/parent-watch.ts';
import { checkPath, checkSocket, codeOf } from '../../transports/socket-path.ts';
import { readOptions, wholeNumber } from '../command-options.ts';
import { RetryPolicy, Unreachable } from '../shim/retry-policy.ts';
import { type ServerLink, socketLink } from '../shim/server-link.ts';
import type { SharedServer, SharedServerOptions } from '../shim/shared-server.ts';
import { Shim } from '../shim/shim.ts';
import { say, UsageError } from '../usage.ts';

const OPTIONS = { spawn: 'FILE', 'idle-exit': 'MS', wait: 'MS', inspect: '' };

const HELP = `Usage: troupe attach PATH
       troupe attach --spawn FILE|DIR [PATH] [-- ARGS]

Connects what starts it, over stdin and stdout, to the server on the socket PATH (troupe serve FILE --socket PATH), so
that many agents share one process, each with a session of its own. When the server dies, the session goes on with the
next one: requests that were lost get an error, those that come meanwhile wait.

  --spawn FILE|DIR   start the server when there is none: one does, the others join it
  --idle-exit MS     the server that it starts ends when no client was connected for so long (30000)
  --inspect          the server that it starts has an inspector, at an address that is in PATH.log; troupe top finds it, too
  --wait MS          how long to try to reach a server before giving up with exit code 1 (30000)

PATH, when it is left out, lies in the user's runtime directory, under a name made of the real path of FILE (and ARGS).
What the server says is in PATH.log.
`;

/** Between two looks for a vanished parent process, in milliseconds. */
const PARENT_MS = 2_000;

/** What the system says of a socket on which a server may listen soon. */
const NOT_YET: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'ECONNRESET', 'EPIPE']);

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('attach', args, OPTIONS);
  if (!line) return void process.stdout.write(HELP);
  const { values, positionals, rest } = line;
  const [given, ...more] = positionals;
  if (more.length > 0)
    throw new UsageError(`troupe attach: expected one PATH, got ${positionals.length}: ${positionals.join(' ')}`);
  const patience = new RetryPolicy(wholeNumber('attach', 'wait', values.wait, 30_000), tell);
  const idleMs = wholeNumber('attach', 'idle-exit', values['idle-exit'], 30_000);
  const shared =
    values.spawn === undefined
      ? undefined
      : await load(values.spawn, rest, given, { idleMs, inspect: values.inspect !== undefined });
  const path = shared?.path ?? given;
  if (path === undefined) throw new UsageError('troupe attach: expected the PATH of a socket, or --spawn FILE');
  if (!shared && (rest.length > 0 || values['idle-exit'] !== undefined || values.inspect !== undefined))
    throw new UsageError('troupe attach: --idle-exit, --inspect and ARGS are for the server that --spawn FILE starts');
  let code = 0;
  try {
    checkPath(path);
    await run(path, patience, shared);
  } catch (error) {
    tell(messageOf(error));
    code = 1;
  }
  // An open stdin would keep the process.
  process.stdout.write('', () => process.exit(code));
}

async function run(path: string, patience: RetryPolicy, shared: SharedServer | undefined): Promise<void> {
  const shim = new Shim({
    input: process.stdin,
    output: process.stdout,
    patience,
    dial: () => dial(path, shared),
    say: tell,
  });
  watchParent({ clock: systemClock, everyMs: PARENT_MS, onGone: () => shim.end(), onUnable() {} });
  await shim.run();
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

/** Connects, if the socket is this user's; with --spawn it starts the server where there is none. */
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
      // 'close' follows, and says enough.
      socket.on('error', () => {});
      resolve(socket);
    });
  });
}

function tell(line: string): void {
  say(`troupe attach: ${line}`);
}
