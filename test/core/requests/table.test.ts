/** The in-flight table's store agrees with a Map, whatever comes and goes; subscriptions end in slices. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { RequestId } from '../../../src/core/protocol/jsonrpc.ts';
import { ActiveRequest } from '../../../src/core/requests/active-request.ts';
import { InFlightTable } from '../../../src/core/requests/in-flight-table.ts';
import { OpenSubscriptions } from '../../../src/core/requests/open-subscriptions.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('in-flight table');

function request(id: RequestId): ActiveRequest {
  const client = { principal: 'anonymous', capabilities: {}, info: undefined, logLevel: undefined, session: undefined };
  const dialect: never = undefined as never;
  return new ActiveRequest(
    id,
    { method: 'ping' },
    'server',
    { ...client, dialect },
    undefined,
    undefined,
    undefined,
    { address: 'none', send: () => {} },
    0,
  );
}

test('ends thousands of subscriptions in slices, each once, and other work runs in between', async () => {
  const ended: RequestId[] = [];
  const open = new OpenSubscriptions({
    subscriptions: { send: (mail) => void ('request' in mail && ended.push(mail.request.key)) },
    listenLimit: 'maxListens',
    maxListens: 1_000,
  });
  for (let id = 0; id < 1_000; id += 1) open.add(request(id), 0);
  open.endInSlices(new SimulatedClock());
  const atOnce = ended.length;
  while (ended.length < 1_000) await new Promise((resolve) => setImmediate(resolve));
  assert.is(atOnce, 256);
  assert.equal(
    ended,
    Array.from({ length: 1_000 }, (_, id) => id),
  );
});

test('agrees with a Map', () => {
  const id = fc.oneof(
    fc.integer(),
    fc.integer({ min: 0, max: 20 }),
    fc.string({ maxLength: 4 }),
    fc.integer({ min: 0, max: 20 }).map(String),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), id), { maxLength: 200 }), (steps) => {
      const table = new InFlightTable<ActiveRequest>(({ key }) => key);
      const model = new Map<RequestId, ActiveRequest>();
      for (const [adds, key] of steps) {
        const there = model.get(key);
        assert.is(table.get(key), there);
        if (adds && !there) {
          const made = request(key);
          table.add(made);
          model.set(key, made);
        } else if (!adds && there) {
          assert.is(table.delete(request(key)), false);
          assert.is(table.delete(there), true);
          model.delete(key);
        } else {
          table.shrink();
        }
        assert.is(table.size, model.size);
      }
      assert.equal(new Set(table.all()), new Set(model.values()));
    }),
  );
});

test('a number and its text are two ids', () => {
  const table = new InFlightTable<ActiveRequest>(({ key }) => key);
  const [one, text] = [request(1), request('1')];
  table.add(one);
  table.add(text);
  assert.is(table.get(1), one);
  assert.is(table.get('1'), text);
});
