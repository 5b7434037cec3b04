/** Subscriptions of a client to a modern server that grants a part of them, none, or ends them at once. */
import { type ChangesFilter, type Channel, type ChannelHost, ClientError, connect } from 'troupe/client';
import { SimulatedClock, settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { text } from './played-server.ts';

const test = suite('subscriptions of a client');

interface Stage {
  readonly clock: SimulatedClock;
  readonly log: string[];
  /** The changes that were read, in order, and the error at their end. */
  readonly seen: string[];
  /** The requests for a subscription. */
  readonly listens: () => number;
  close(): Promise<void>;
}

/**
 * A client that reads the changes of a modern server.
 *
 * @param granted `notifications` of the acknowledgement; undefined: none is sent
 * @param lastsMs the time until the server ends the subscription; undefined: it stays open
 */
async function reading(filter: ChangesFilter, granted: object | undefined, lastsMs?: number): Promise<Stage> {
  const clock = new SimulatedClock();
  let host: ChannelHost | undefined;
  let listens = 0;
  const respond = (message: object): void => host?.send({ type: 'text', text: text(message), about: undefined });
  const common = { resultType: 'complete', serverInfo: { name: 'n', version: '1' }, ttlMs: 0, cacheScope: 'private' };
  const channel = (): Channel => ({
    kind: 'stream',
    open(to) {
      host = to;
      to.send({ type: 'opened' });
    },
    send(message) {
      const { id, method } = JSON.parse(message.text);
      if (method === 'server/discover')
        return respond({
          id,
          result: { ...common, supportedVersions: ['2026-07-28'], capabilities: { resources: {} } },
        });
      if (method !== 'subscriptions/listen') return;
      listens += 1;
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
      if (granted)
        respond({ method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications: granted } });
      if (lastsMs !== undefined) clock.after(lastsMs, () => respond({ id, result: { resultType: 'complete', _meta } }));
    },
    abandon() {},
    answered() {},
    close: () => Promise.resolve(),
  });
  const log: string[] = [];
  const client = await connect(
    { name: 'stage', channel },
    { clock, log: (_, message) => void log.push(message), drainMs: 1 },
  );
  const seen: string[] = [];
  void (async () => {
    try {
      for await (const { type } of client.changes(filter)) seen.push(type);
      seen.push('end');
    } catch (error) {
      seen.push(error instanceof ClientError ? `${error.reason}: ${error.message}` : String(error));
    }
  })();
  await settled();
  return {
    ...{ clock, log, seen, listens: () => listens },
    async close() {
      const closed = client.close();
      await clock.advance(60_000);
      await closed;
    },
  };
}

const NOTES = { resources: ['notes://1'] };

for (const [what, filter, granted, named] of [
  ['a resource', NOTES, {}, 'the resource notes://1'],
  ['a resource, in an empty list', NOTES, { resourceSubscriptions: [] }, 'the resource notes://1'],
  ['three resources', { resources: ['a:1', 'a:2', 'a:3'] }, {}, 'the resource a:1 and 2 more'],
  ['lists', { tools: true, prompts: true }, { toolsListChanged: false }, 'tools and 1 more'],
  ['a task', { tasks: ['t'] }, {}, 'the task t'],
] as const)
  for (const ends of ['ends', 'stays open'] as const)
    test(`a subscription to ${what} that is granted nothing and ${ends} is an error that names it, and is not repeated`, async () => {
      const stage = await reading(filter, granted, ends === 'ends' ? 0 : undefined);
      await stage.clock.advance(600_000);
      assert.is(stage.seen.length, 1);
      assert.match(stage.seen[0] ?? '', new RegExp(`^refused: .*changes of ${named}: .*granted nothing`));
      assert.is(stage.listens(), 1);
      await stage.close();
    });

test('a subscription that is granted a part stays open, and the log names the rest', async () => {
  const stage = await reading({ tools: true, ...NOTES }, { toolsListChanged: true });
  await stage.clock.advance(600_000);
  assert.equal([stage.seen, stage.listens()], [[], 1]);
  assert.match(stage.log.join('\n'), 'changes of the resource notes://1. Other changes are reported');
  await stage.close();
});

test('a granted URI that is written in another way is granted', async () => {
  const stage = await reading({ resources: ['file:///a b'] }, { resourceSubscriptions: ['file:///a%20b'] });
  await stage.clock.advance(600_000);
  assert.equal([stage.seen, stage.listens()], [[], 1]);
  await stage.close();
});

for (const [what, granted] of [
  ['with an acknowledgement', { resourceSubscriptions: NOTES.resources }],
  ['without one', undefined],
] as const)
  test(`a subscription that the server ends at once, ${what}, is opened again less and less often`, async () => {
    const stage = await reading(NOTES, granted, 0);
    // After 1, 2, 4, 8, 16 and each 30 seconds.
    await stage.clock.advance(31_500);
    assert.is(stage.listens(), 6);
    await stage.clock.advance(600_000);
    assert.is(stage.listens(), 26);
    assert.ok(stage.seen.every((type) => type === 'missed'));
    await stage.close();
  });

test('a subscription that lasts longer than it was waited for is opened again after a second', async () => {
  const stage = await reading(NOTES, { resourceSubscriptions: NOTES.resources }, 9_000);
  await stage.clock.advance(99_500);
  assert.is(stage.listens(), 10);
  await stage.close();
});

test('a reader of no changes sends no subscription', async () => {
  const stage = await reading({}, {}, 0);
  await stage.clock.advance(60_000);
  assert.equal([stage.seen, stage.listens()], [[], 0]);
  await stage.close();
});
