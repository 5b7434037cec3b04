/** The shared record of poison events: several nodes write to one store, and each entry stays. */
import * as assert from 'uvu/assert';
import { REMEMBERED_MS } from '../../../src/core/kernel/poison-registry.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { toText } from '../../../src/core/store/serialize.ts';
import type { Notes, Store } from '../../../src/core/store/store.ts';
import { type QueuedCall, queuedCall } from '../../../src/features/machines/bounded-mailbox.ts';
import type { HandleEvent } from '../../../src/features/machines/handle-messages.ts';
import { PoisonEvents } from '../../../src/features/machines/poison-events.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { ANYBODY } from './support.ts';

const test = suite('poison events of several nodes');

const NOW = 1_000_000;

const BOOM = { type: 'boom', data: {} };
const callOf = (event: HandleEvent): QueuedCall => queuedCall({ type: 'event', event, key: undefined }, ANYBODY).call;

/** The store of a cluster: in it, the processes that ended themselves have left their marks, as in PostgreSQL. */
class SharedStore {
  readonly #store: Store;

  constructor(...handles: readonly string[]) {
    let ended = handles.map((handle) => ({ mark: toText([handle, toText(BOOM)]), times: 2, at: NOW }));
    const notes: Notes = {
      last: undefined,
      write() {},
      clear() {},
      ended: () => Promise.resolve(ended),
      forget(forgotten) {
        ended = ended.filter(({ mark }) => mark !== forgotten);
        return Promise.resolve();
      },
    };
    this.#store = Object.assign(memoryStore(), { notes });
  }

  /** A node that has just started. */
  async node(now = NOW): Promise<PoisonEvents> {
    const events = new PoisonEvents({ store: this.#store, log: () => {}, date: () => now });
    await events.restore();
    return events;
  }
}

const ALPHA = 'handle/order/alpha';
const BETA = 'handle/order/beta';

const incidents = (node: PoisonEvents): readonly string[] =>
  node
    .quarantined()
    .map(({ incident }) => incident)
    .sort();

test('two nodes that quarantine events at once keep both, for every node that starts later', async () => {
  const shared = new SharedStore(ALPHA, BETA);
  const [one, two] = [await shared.node(), await shared.node()];
  one.quarantine(ALPHA, callOf(BOOM), 'incident 1');
  two.quarantine(BETA, callOf(BOOM), 'incident 2');
  await settled();
  const three = await shared.node();
  assert.equal(incidents(three), ['incident 1', 'incident 2']);
  assert.is(three.ofCall(ALPHA, callOf(BOOM))?.incident, 'incident 1');
  assert.is(three.ofCall(BETA, callOf(BOOM))?.incident, 'incident 2');
});

test('an event that one node has released stays released when another node quarantines an event', async () => {
  const shared = new SharedStore(ALPHA, BETA);
  const one = await shared.node();
  one.quarantine(ALPHA, callOf(BOOM), 'incident 1');
  await settled();
  const two = await shared.node();
  assert.is(one.release('incident 1')?.id, ALPHA);
  two.quarantine(BETA, callOf(BOOM), 'incident 2');
  await settled();
  const three = await shared.node();
  assert.equal(incidents(three), ['incident 2']);
  assert.is(three.ofCall(ALPHA, callOf(BOOM)), undefined);
});

test('a record expires with its crash, whenever a node has written others', async () => {
  const shared = new SharedStore(ALPHA);
  const one = await shared.node();
  one.quarantine(ALPHA, callOf(BOOM), 'incident 1');
  await settled();
  assert.equal(incidents(await shared.node(NOW + REMEMBERED_MS - 1)), ['incident 1']);
  assert.equal(incidents(await shared.node(NOW + REMEMBERED_MS)), []);
});
