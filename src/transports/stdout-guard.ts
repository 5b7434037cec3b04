/** Keeps stdout for the protocol: while held, what anything else in the process writes to stdout goes to stderr. */
import { processWide } from '../global-registry.ts';
import type { WriteBatch } from './line-writer.ts';

export interface StdoutGuard {
  /** The real write to stdout. */
  readonly write: WriteBatch;
  /** Gives stdout back. */
  release(): void;
}

/** A process has one stdout, however many copies of this package it holds. */
const stdout = processWide('troupe.stdout', (): { guard?: StdoutGuard | undefined; serves: boolean } => ({
  serves: false,
}));

/**
 * Takes stdout: from now on `process.stdout.write`, and with it `console.log` and its siblings, writes to stderr
 * ("The server MUST NOT write anything to its stdout that is not a valid MCP message", basic/transports/stdio).
 * What it cannot catch: `fs.writeSync(1, …)`, native code, and child processes that inherit descriptor 1.
 *
 * @throws Error when stdout is served already.
 */
export function guardStdout(): StdoutGuard {
  if (stdout.serves)
    throw new Error(
      'stdout is already in use. A process has one stdout: close the other stdio transport first, or give this one its own `output`',
    );
  stdout.serves = true;
  return reserveStdout();
}

/** Takes stdout for a transport that is still to come: what a program writes while it loads must not reach it either. */
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
  // With the client gone stderr breaks too: a late console.log must neither end the process nor wait for ever.
  const lose = (): void => {
    stderrLost = true;
    drained();
  };
  const redirected = new Proxy(real, {
    apply(_target, _self, args: unknown[]): unknown {
      if (!open) return Reflect.apply(real, stdout, args);
      if (stderrLost) return swallow(args);
      const accepted: unknown = Reflect.apply(stderr.write, stderr, args);
      // Whoever was told to wait (a pipe, a worker's console) waits for stdout's 'drain', not for stderr's.
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
      // Something that wrapped ours since then keeps working: ours passes through from here on.
      if (stdout.write !== redirected) return;
      if (ownProperty) stdout.write = real;
      else Reflect.deleteProperty(stdout, 'write');
    },
  };
}

/** Writes nowhere: only the writer's callback, the last argument of `write`, hears of it. */
function swallow(args: readonly unknown[]): true {
  const done = args.at(-1);
  if (typeof done === 'function') process.nextTick(() => Reflect.apply(done, undefined, []));
  return true;
}
