/**
 * Real input that is late: a process that preloads this file gets what sockets, pipes and threads bring after a while, as on a
 * busy machine. A test that counts turns of the event loop where it must wait for such input is red at each run then.
 * `npm run test:stress -- --late 25` runs tests so.
 */
import net from 'node:net';
import { Worker } from 'node:worker_threads';

/** Milliseconds by which input is late. */
const LATE_MS = Number(process.env.TROUPE_TEST_LATE_MS ?? 0);

/** Runs a function later. Timers of one duration keep their order. */
function later(run: () => void): void {
  setTimeout(run, LATE_MS);
}

/** The part of a handle of Node that reads. */
interface Reading {
  reading: boolean;
  readStop(): void;
}

function isReading(handle: unknown): handle is Reading {
  return typeof handle === 'object' && handle !== null && 'reading' in handle && 'readStop' in handle;
}

/** The events that a thread sends. */
const FROM_THREAD: readonly (string | symbol)[] = ['message', 'exit'];

if (LATE_MS > 0) {
  const { push } = net.Socket.prototype;
  net.Socket.prototype.push = function (this: net.Socket, ...given: Parameters<typeof push>): boolean {
    // It reads nothing more meanwhile: its stream asks for more once it has this, if its reader does.
    const handle: unknown = Reflect.get(this, '_handle');
    if (isReading(handle)) {
      handle.reading = false;
      handle.readStop();
    }
    later(() => {
      if (this.destroyed) return;
      push.apply(this, given);
      // As Node does: nobody reads a socket that HTTP/2 has had, and its end would not be seen.
      if (given[0] === null) this.read(0);
    });
    return true;
  };
  const { emit } = Worker.prototype;
  Worker.prototype.emit = function (this: Worker, ...given: Parameters<typeof emit>): boolean {
    if (!FROM_THREAD.includes(given[0])) return emit.apply(this, given);
    later(() => void emit.apply(this, given));
    return true;
  };
  // With the exit of a thread, which is late, Node removes its listeners.
  const { removeAllListeners } = Worker.prototype;
  Worker.prototype.removeAllListeners = function (this: Worker, ...given: [(string | symbol)?]): Worker {
    later(() => void removeAllListeners.apply(this, given));
    return this;
  };
  // The parser of an HTTP server reads the socket past its stream, unless another reader has the handle.
  const serve = net.Server.prototype.emit;
  net.Server.prototype.emit = function (this: net.Server, name: string | symbol, ...given: unknown[]): boolean {
    const [socket] = given;
    if (name === 'connection' && socket instanceof net.Socket) {
      const handle: unknown = Reflect.get(socket, '_handle');
      if (typeof handle === 'object' && handle !== null) Reflect.set(handle, '_consumed', true);
    }
    return Reflect.apply(serve, this, [name, ...given]);
  };
}
