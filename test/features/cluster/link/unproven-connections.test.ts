/** Connections to the port of the links that have not proved themselves: each has a deadline, whatever its peer does. */
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { UnprovenConnections } from '../../../../src/features/cluster/link/unproven-connections.ts';
import { SimulatedClock } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('unproven connections');

/** A connection from one port. */
class Connection extends EventEmitter {
  readonly remoteAddress = '10.0.0.9';
  readonly remotePort: number;
  destroyed = false;

  constructor(remotePort: number) {
    super();
    this.remotePort = remotePort;
  }

  destroy(): void {
    this.destroyed = true;
  }
}

function add(unproven: UnprovenConnections, port: number): Connection {
  const connection = new Connection(port);
  unproven.add(connection as unknown as Socket);
  return connection;
}

test('S-53: a connection from the port of one that has just ended has a deadline, too', async () => {
  const clock = new SimulatedClock();
  const unproven = new UnprovenConnections(clock);
  const first = add(unproven, 5_000);
  // Its peer resets it, and connects again before the end of the first one is reported.
  const second = add(unproven, 5_000);
  first.emit('close');
  await clock.advance(3_000);
  assert.is(second.destroyed, true);
});

test('S-53: a connection that has ended or proved itself has no deadline', async () => {
  const clock = new SimulatedClock();
  const unproven = new UnprovenConnections(clock);
  const [ended, proved, other] = [add(unproven, 5_000), add(unproven, 5_001), add(unproven, 5_002)];
  ended.emit('close');
  unproven.proved(proved);
  await clock.advance(3_000);
  assert.equal([ended.destroyed, proved.destroyed, other.destroyed], [false, false, true]);
});
