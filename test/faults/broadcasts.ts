/** Broken builds: changes that thousands of clients are notified of. */
import type { BrokenBuild } from './broken-build.ts';

const test = 'test/emitters/fan-out.test.ts';

export const BROADCASTS: readonly BrokenBuild[] = [
  {
    id: 'R-44',
    test,
    file: 'src/clock.ts',
    find: 'return this.#steps >= SLICE_STEPS || this.#clock.now() >= this.#end;',
    replace: 'return false;',
    why: 'a broadcast runs in one turn of the event loop',
  },
  {
    id: 'R-44',
    test,
    file: 'src/clock.ts',
    find: 'return this.#steps >= SLICE_STEPS || this.#clock.now() >= this.#end;',
    replace: 'return this.#steps >= SLICE_STEPS;',
    why: 'a slice of a broadcast has no time limit',
  },
  {
    id: 'R-44',
    test,
    file: 'src/transports/http/node-request.ts',
    find: 'if (unwritten.length >= MOST_RESPONSES) flushAll();',
    replace: '',
    why: 'the output of a slice is written after it, without a limit',
  },
  {
    id: 'R-44',
    test: 'test/transports/http/rounds.test.ts',
    file: 'src/clock.ts',
    find: 'if (slice.over()) return clock.soon',
    replace: 'if (false) return clock.soon',
    why: 'thousands of silent streams are kept open in one turn',
  },
  {
    id: 'R-44',
    test,
    file: 'src/emitters/fan-out.ts',
    find: '    this.#next = this.#at;\n',
    replace: '',
    why: 'a change during a broadcast does not reach clients that were already notified',
  },
  {
    id: 'R-44',
    test,
    file: 'src/emitters/fan-out.ts',
    find: 'if (done || value[1] > this.#until) return false;',
    replace: 'if (done) return false;',
    why: 'a client that connects during a broadcast is notified of the earlier change',
  },
  {
    id: 'R-44',
    test,
    file: 'src/runtime/runtime.ts',
    find: "    subscriptions.mailbox.send({ type: 'flush all' });\n",
    replace: '',
    why: 'a server that closes during a broadcast leaves sessions without a notification',
  },
  {
    id: 'R-44',
    test,
    file: 'src/sessions/connections.ts',
    find: 'inSlices(this.#clock, this.#connections.values(), (connection) => connection.drain(), nothing);',
    replace: 'for (const connection of this.#connections.values()) connection.drain();',
    why: 'a server that closes ends thousands of subscriptions in one turn',
  },
  {
    id: 'R-44',
    test,
    file: 'src/sessions/connections.ts',
    find: 'return eachInSlices(this.#clock, this.#connections.values(), (connection) => connection.giveUp(reason));',
    replace:
      'for (const connection of this.#connections.values()) connection.giveUp(reason); return Promise.resolve();',
    why: 'a server that closes ends the requests of thousands of clients in one turn',
  },
  {
    id: 'R-44',
    test,
    file: 'src/transports/http/http-connections.ts',
    find: 'await eachInSlices(clock, this.#sessions.values(), (session) => {',
    replace: '[...this.#sessions.values()].forEach((session) => {',
    why: 'a server that closes ends thousands of streams in one turn',
  },
  {
    id: 'R-44',
    test,
    file: 'src/emitters/subscriptions.ts',
    find: 'for (const change of this.#pendingFor(request)) announce(request, change);',
    replace: '',
    why: 'a subscription that the server ends does not get its pending notifications',
  },
];
