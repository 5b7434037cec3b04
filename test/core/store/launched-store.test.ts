/** The store that a command provides belongs to the server that is served; every other server of the program has its own in memory. */
import * as assert from 'uvu/assert';
import { LaunchedStore } from '../../../src/core/store/launched-store.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { StoreError, type StoreHost, type Write } from '../../../src/core/store/store.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { MemoryDatabase } from '../../harness/memory-nodes.ts';
import { rejection } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';

const test = suite('the store of a command');

const REPLY: Write = { type: 'reply', actor: 'a', request: '1', data: 'x', expires: 1_000_000 };

const TASK: Write = {
  type: 'actor',
  actor: { id: 'task/1', kind: 'task', name: 't', principal: 'ada', status: 'working', created: 1, expires: undefined },
};

/** @returns a host, and the warnings that it gets */
function host(): [StoreHost, string[]] {
  const told: string[] = [];
  const log: StoreHost['log'] = (level, message) => void told.push(`${level}: ${message}`);
  return [{ clock: new SimulatedClock(), shared: false, log }, told];
}

test('is that of the first server that opens it, and of the next one once that has closed', async () => {
  const given = new TestStore(memoryStore());
  const [opening, told] = host();
  const [first, second, third] = ['a', 'b', 'c'].map((name) => new LaunchedStore(given, name));
  await first?.open(opening);
  await first?.commit([REPLY]);
  await second?.open(opening);
  assert.is(await second?.reply('a', '1'), undefined);
  assert.equal(told, []);
  await second?.commit([{ ...REPLY, data: 'y' }]);
  assert.equal(told, [], 'a server has a secret of its own in each store');
  await second?.commit([TASK]);
  await second?.commit([TASK]);
  assert.is(told.length, 1);
  assert.match(told[0] ?? '', /^warning: b keeps its data in memory: .*sqlite\(FILE\)/);
  assert.is(await first?.reply('a', '1'), 'x');
  await second?.close();
  assert.is(await first?.reply('a', '1'), 'x', 'the other one closes its own store');
  await first?.close();
  await third?.open(opening);
  await third?.commit([REPLY]);
  assert.is(told.length, 1);
});

test('is free again if it cannot be opened', async () => {
  class Locked extends TestStore {
    locked = true;

    override open(opening: StoreHost): Promise<void> {
      return this.locked ? Promise.reject(new StoreError('locked', 'another process has it')) : super.open(opening);
    }
  }
  const given = new Locked(memoryStore());
  const [opening] = host();
  assert.match(String(await rejection(new LaunchedStore(given, 'a').open(opening))), 'another process has it');
  given.locked = false;
  const store = new LaunchedStore(given, 'b');
  await store.open(opening);
  await store.commit([REPLY]);
  assert.is(await given.reply('a', '1'), 'x');
});

test('has the node of its server only: no node takes the requests of another server', async () => {
  const clock = new SimulatedClock();
  const database = new MemoryDatabase(clock);
  const given = database.process().store;
  const [opening] = host();
  const hear = { changed() {}, lost() {} };
  const self = { address: '127.0.0.1:1', version: '1' };
  const [served, mounted] = [new LaunchedStore(given, 'served'), new LaunchedStore(given, 'mounted')];
  await served.open(opening);
  await mounted.open(opening);
  const member = await served.nodes?.join(self, hear);
  const only = await mounted.nodes?.join(self, hear);
  assert.equal([...database.nodes.keys()], [member?.id]);
  assert.equal(await only?.claim([1, 2], undefined), [1, 2]);
  await only?.release([1], undefined);
  assert.equal([only?.ownerOf(1), only?.ownerOf(2), only?.peers()], [undefined, only?.id, []]);
  assert.is(database.cells.filter(({ node }) => node !== undefined).length, 0);
  await member?.leave();
});
