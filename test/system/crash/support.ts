/** What the crash suites share: clients whose every message is held to the official schemas. */

import type { Server } from '../../../src/index.ts';
import { connect, type TestClient } from '../../../src/testing/testing.ts';
import { wireChecker } from '../../harness/wire.ts';

/** A client in a session, or a modern one where no revision is given. */
export async function client(server: Server, revision?: string): Promise<TestClient> {
  const check = wireChecker('2025-06-18');
  const made = await connect(server, { onMessage: ({ direction, text }) => check(direction, text) });
  if (revision !== undefined) await made.initialize(revision);
  return made;
}

/** The states of the actors that live now, by their addresses. */
export function states(server: Server): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const stop = server.inspect((record) => {
    if (record.type === 'state') found.set(record.actor, record.state);
  });
  stop();
  return found;
}

/** Everything that can be thrown, and the words of it that a model may read. */
export const THROWN: readonly (readonly [what: string, make: () => unknown, words: RegExp])[] = [
  ['an Error', () => new Error('the door is stuck'), /^the door is stuck$/],
  ['an Error without a message', () => new RangeError(), /^RangeError$/],
  ['a string', () => 'just words', /^just words$/],
  ['a number', () => 0, /^0$/],
  ['undefined', () => undefined, /^undefined$/],
  ['null', () => null, /^null$/],
  ['a symbol', () => Symbol('odd'), /odd/],
  ['an object without a prototype', () => Object.create(null), /the thrown value has no text/],
  [
    'an Error whose message throws',
    () =>
      Object.defineProperty(new Error(), 'message', {
        get() {
          throw new Error('not even this');
        },
      }),
    /the thrown value has no text/,
  ],
  ['an Error whose message is an object', () => Object.assign(new Error(), { message: { deep: 1 } }), /object Object/],
  ['a revoked Proxy', revoked, /the thrown value has no text/],
];

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
