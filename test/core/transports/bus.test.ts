/** The listeners of the bus: which events have one, and what happens if one throws. */
import * as assert from 'uvu/assert';
import { Bus, type Fault } from '../../../src/core/transports/bus.ts';
import { suite } from '../../harness/door.ts';

const test = suite('bus');

test('has a listener from the subscription to its end', () => {
  const bus = new Bus();
  assert.is(bus.has('client.limited'), false);
  const stop = bus.on('client.limited', () => {});
  assert.is(bus.has('client.limited'), true);
  assert.is(bus.has('authentication.failed'), false);
  stop();
  assert.is(bus.has('client.limited'), false);
});

test('a listener that throws is a fault, and the next listener still receives the event', () => {
  const bus = new Bus();
  const faults: Fault[] = [];
  const received: (string | undefined)[] = [];
  bus.on('fault', (fault) => faults.push(fault));
  bus.on('authentication.failed', () => {
    throw new Error('broken');
  });
  bus.on('authentication.failed', ({ remoteAddress }) => received.push(remoteAddress));
  bus.emit('authentication.failed', { remoteAddress: '192.0.2.1' });
  assert.equal(received, ['192.0.2.1']);
  assert.equal(
    faults.map(({ where }) => where),
    ['authentication.failed'],
  );
});

test('an event goes to the listeners that existed when it was emitted, as often as each has subscribed', () => {
  const bus = new Bus();
  const received: string[] = [];
  const twice = () => received.push('twice');
  bus.on('client.limited', () => {
    received.push('first');
    stop();
    bus.on('client.limited', () => received.push('late'));
  });
  const stop = bus.on('client.limited', twice);
  bus.on('client.limited', twice);
  const event = { principal: 'a', option: 'limits.maxSessions', remoteAddress: undefined };
  bus.emit('client.limited', event);
  assert.equal(received.splice(0), ['first', 'twice', 'twice']);
  bus.emit('client.limited', event);
  assert.equal(received, ['first', 'twice', 'late']);
});

test('a listener of faults that throws causes no further fault', () => {
  const bus = new Bus();
  let faults = 0;
  bus.on('fault', () => {
    faults++;
    throw new Error('broken, too');
  });
  bus.emit('fault', { where: 'connection.text', error: new Error('broken') });
  assert.is(faults, 1);
});
