/** Reserves stdout for the protocol: while held, all other writes to stdout go to stderr. */
import { processWide } from '../kernel/global-registry.ts';
import type { WriteBatch } from './line-writer.ts';

export interface StdoutGuard {
  /** The real write to stdout. */
  readonly write: WriteBatch;
  /** Restores stdout. */
  release(): void;
}

/** A process has one stdout, however many copies of this package are loaded. */
const stdout = processWide('troupe.stdout', (): { guard?: StdoutGuard | undefined; serves: boolean } => ({
  serves: false,
}));

/**
 * Takes over stdout: from now on `process.stdout.write`, and with it `console.log` and similar functions, writes to
 * stderr ("The server MUST NOT write anything to its stdout that is not a valid MCP message", basic/transports/stdio).
 * The guard cannot intercept `fs.writeSync(1, …)`, native code, and child processes that inherit descriptor 1.
 *
 * @throws Error if stdout is already in use
 */
export function guardStdout(): StdoutGuard {
  if (stdout.serves)
    throw new Error(
      'stdout is already in use. A process has one stdout: close the other stdio transport first, or give this one its own `output`',
    );
  stdout.serves = true;
  return reserveStdout();
}

/** Takes over stdout for a transport that opens later, so that output of a loading program does not reach it either. */
export function reserveStdout(): StdoutGuard {
  stdout.guard ??= redirect(() => {
    stdout.guard = undefined;
    stdout.serves = false;
  });
  return stdout.guard;
}

function redirect(released: () => void): StdoutGuard {
  const { stdout, stderr } = process;
  const real = stdout.write;
  const ownProperty = Object.hasOwn(stdout, 'write');
  let open = true;
  let drainDue = false;
  let stderrLost = false;
  const drained = (): void => {
    if (!drainDue) return;
    drainDue = false;
    stdout.emit('drain');
  };
  // When the client has disconnected, stderr breaks too: a late console.log must neither end the process nor wait
  // forever.
  const lose = (): void => {
    stderrLost = true;
    drained();
  };
  const redirected = new Proxy(real, {
    apply(_target, _self, args: unknown[]): unknown {
      if (!open) return Reflect.apply(real, stdout, args);
      if (stderrLost) return swallow(args);
      const accepted: unknown = Reflect.apply(stderr.write, stderr, args);
      // Callers that must wait (a pipe, a worker's console) wait for stdout's 'drain', not for stderr's.
      if (accepted === false && !drainDue) {
        drainDue = true;
        stderr.once('drain', drained);
      }
      return accepted;
    },
  });
  stdout.write = redirected;
  stderr.on('error', lose);
  return {
    write: (batch, done) => Reflect.apply(real, stdout, [batch, 'utf8', done]),
    release() {
      if (!open) return;
      open = false;
      released();
      stderr.off('error', lose);
      // Code that has wrapped this guard since then continues to work: the guard passes writes through from now on.
      if (stdout.write !== redirected) return;
      if (ownProperty) stdout.write = real;
      else Reflect.deleteProperty(stdout, 'write');
    },
  };
}

/** Discards a write and only calls the writer's callback, the last argument of `write`. */
function swallow(args: readonly unknown[]): true {
  const done = args.at(-1);
  if (typeof done === 'function') process.nextTick(() => Reflect.apply(done, undefined, []));
  return true;
}
