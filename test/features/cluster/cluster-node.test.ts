/** One node among others, on a database in memory and a simulated clock: what it claims, gives up and discards, and when. */
import * as assert from 'uvu/assert';
import type { CellHolder } from '../../../src/core/messages/cell-holder.ts';
import { CELLS } from '../../../src/core/protocol/cell.ts';
import { ClusterNode } from '../../../src/features/cluster/cluster-node.ts';
import { sharesOf } from '../../../src/features/cluster/shares.ts';
import { SimulatedClock, settled } from '../../../src/testing/simulated-clock.ts';
import { conclusive, suite } from '../../harness/door.ts';
import { MemoryDatabase, type MemoryProcess } from '../../harness/memory-nodes.ts';

const test = suite('a node of a cluster');
const SECRET = 'a secret that all nodes of this test share';

/** Holds cells as the parts of a server do, and notes the order of events. */
class Holder implements CellHolder {
  readonly cells = new Set<number>();
  readonly events: string[] = [];
  /** The next hibernation fails with it. */
  fails: Error | undefined;
  written?: () => Promise<void>;
  /** While set, taking and letting go wait for it. */
  held: Promise<void> | undefined;

  async take(cells: readonly number[] | undefined): Promise<void> {
    this.events.push(`take ${cells?.length}`);
    await this.held;
    for (const cell of cells ?? []) this.cells.add(cell);
  }

  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    this.events.push(`${flush ? 'hibernate' : 'discard'} ${cells.size}`);
    if (flush) await this.held;
    const { fails } = this;
    if (flush && fails) {
      this.fails = undefined;
      throw fails;
    }
    for (const cell of cells) this.cells.delete(cell);
  }
}

class Stage {
  readonly clock = new SimulatedClock();
  readonly database = new MemoryDatabase(this.clock);
  takenOver = 0;
  /** Pairs of nodes that do not reach each other. */
  unreachable: (readonly [string, string])[] = [];
  readonly nodes: { node: ClusterNode; holder: Holder; process: MemoryProcess; log: string[] }[] = [];

  async start(name: string, holder = new Holder()): Promise<Stage['nodes'][number]> {
    const process = this.database.process(name);
    const log: string[] = [];
    const { nodes } = process.store;
    assert.ok(nodes);
    const node = new ClusterNode({
      ...{ nodes, holder, clock: this.clock, version: '1.0.0', secret: SECRET, graceMs: 3_000 },
      metrics: {
        tookOver: (cells) => {
          this.takenOver += cells;
        },
      },
      links: {
        open: () => Promise.resolve(`${name}:1`),
        join() {},
        leave() {},
        peers() {},
        reaches: (node) => !this.unreachable.some((pair) => pair.includes(node) && pair.includes(process.id)),
        failure: (node) => (this.unreachable.flat().includes(node) ? 'connect ECONNREFUSED' : undefined),
        close: () => Promise.resolve(),
      },
      log: (level, message) => void log.push(`${level}: ${message}`),
    });
    const started = { node, holder, process, log };
    this.nodes.push(started);
    await node.join();
    const owning = node.own();
    await this.pass(0);
    for (let ms = 0; !node.ready && ms < 6_000; ms += 100) await this.pass(100);
    await owning;
    return started;
  }

  /** Time passes, in steps that let everything settle. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; ; left -= 100) {
      await settled();
      if (left <= 0) return;
      await this.clock.advance(Math.min(left, 100));
    }
  }

  /** Each cell is held by its owner in the database, and by no other node that may still commit. */
  check(): void {
    conclusive(() => assert.equal(this.database.violations, []));
    const holders = new Map<number, string[]>();
    for (const { holder, process } of this.nodes)
      if (process.state !== 'killed' && !this.database.isFenced(process.id))
        for (const cell of holder.cells) holders.set(cell, [...(holders.get(cell) ?? []), process.id]);
    for (const [cell, ids] of holders) assert.equal(ids, [this.database.ownerOf(cell)], `cell ${cell}`);
  }

  free(): number {
    return this.database.cells.filter(({ node }) => node === undefined).length;
  }
}

test('shares are even, the same at every node, and change only where a node comes or goes', () => {
  const before = sharesOf(['a', 'b', 'c']);
  assert.equal(sharesOf(['c', 'a', 'b']), before);
  for (const node of ['a', 'b', 'c']) {
    const share = before.filter((owner) => owner === node).length;
    assert.ok(share > CELLS / 5 && share < CELLS / 2, `${node} has ${share}`);
  }
  const after = sharesOf(['a', 'b']);
  for (let cell = 0; cell < CELLS; cell += 1) if (before[cell] !== 'c') assert.is(after[cell], before[cell]);
});

test('the first node owns everything; one that joins gets its share within seconds, and nothing is in two places', async () => {
  const stage = new Stage();
  const first = await stage.start('one');
  assert.is(first.holder.cells.size, CELLS);
  const second = await stage.start('two');
  assert.ok(second.holder.cells.size > 0 && second.holder.cells.size <= 6 * 16, String(second.holder.cells.size));
  for (let seconds = 0; seconds < 8; seconds += 1) {
    await stage.pass(1_000);
    stage.check();
  }
  assert.equal(
    [first.node.report().cells, second.node.report().cells],
    ['one-1', 'two-1'].map((id) => sharesOf(['one-1', 'two-1']).filter((owner) => owner === id).length),
  );
  assert.is(stage.free(), 0);
  assert.equal(
    first.node.report().nodes.map(({ node, cells }) => [node, cells]),
    second.node
      .report()
      .nodes.map(({ node, cells }) => [node, cells])
      .reverse(),
  );
});

test('cells whose data takes long to become durable move 16 in a second', async () => {
  const stage = new Stage();
  const holder = new Holder();
  const drop = holder.drop.bind(holder);
  holder.drop = async (cells, flush) => {
    await new Promise<void>((resolve) => stage.clock.after(200, resolve));
    await drop(cells, flush);
  };
  const first = await stage.start('one', holder);
  await stage.start('two');
  let before = first.holder.cells.size;
  for (let seconds = 0; seconds < 5; seconds += 1) {
    await stage.pass(1_000);
    stage.check();
    assert.is(before - first.holder.cells.size, 16);
    before = first.holder.cells.size;
  }
});

test('a node that withdraws and is fenced meanwhile joins again and serves its cells', async () => {
  const stage = new Stage();
  const [one, , three] = [await stage.start('one'), await stage.start('two'), await stage.start('three')];
  await stage.pass(60_000);
  stage.unreachable = [
    ['three-1', 'one-1'],
    ['three-1', 'two-1'],
  ];
  let release = (): void => {};
  three.holder.fails = new Error('the store is away');
  const dropped = three.holder.drop.bind(three.holder);
  // Letting go of a group fails; letting go of the rest takes its time.
  three.holder.drop = async (cells, flush) => {
    if (flush && !three.holder.fails)
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    return dropped(cells, flush);
  };
  await stage.pass(11_500);
  assert.is(three.node.report().state, 'withdrawing');
  const row = stage.database.nodes.get('three-1');
  if (row) row.fenced = true;
  await stage.pass(5_000);
  release();
  stage.unreachable = [];
  await stage.pass(60_000);
  assert.is(three.node.report().state, 'owning');
  assert.is(three.node.report().cells, three.holder.cells.size);
  assert.ok(three.holder.cells.size > 100, String(three.holder.cells.size));
  assert.is(one.node.report().nodes.length, 3);
  stage.check();
});

test('a node writes nothing more of a cell before another one owns it: commits in flight end first', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const waits: { end(): void }[] = [];
  const seen: boolean[] = [];
  let given: readonly number[] = [];
  const { holder } = one;
  const drop = holder.drop.bind(holder);
  holder.drop = (cells, flush) => {
    given = [...cells];
    return drop(cells, flush);
  };
  holder.written = () => {
    seen.push(given.some((cell) => one.node.owns(cell)));
    return new Promise<void>((end) => waits.push({ end }));
  };
  await stage.start('two');
  assert.equal(seen.includes(true), false);
  assert.ok(waits.length > 0);
  assert.is(stage.database.cells.filter(({ node }) => node === 'two-1').length, 0);
  for (const { end } of waits) end();
  await stage.pass(0);
  assert.ok(stage.database.cells.filter(({ node }) => node === 'two-1').length >= 16);
  stage.check();
});

test('cells of a node that is killed are taken up at once, when its link closes', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const two = await stage.start('two');
  await stage.pass(40_000);
  const had = two.holder.cells.size;
  assert.ok(had > 300);
  two.process.kill();
  void one.node.closed('two-1');
  await stage.pass(0);
  assert.is(one.holder.cells.size, CELLS);
  assert.is(stage.takenOver, had);
  stage.check();
});

test('D-12: a node that is paused beyond its lease discards everything before it does anything else, and joins again under another id', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const two = await stage.start('two');
  await stage.pass(40_000);
  two.process.pause();
  void one.node.closed('two-1');
  await stage.pass(1_000);
  assert.is(stage.database.isFenced('two-1'), false);
  await stage.pass(3_000);
  assert.is(stage.database.isFenced('two-1'), true);
  assert.is(one.holder.cells.size, CELLS);
  // A commit of the zombie is refused, and it lets go before anything else.
  two.process.resume();
  const refused = two.process.store.commit([]).catch((error: Error) => error.message);
  await stage.pass(0);
  assert.match(String(await refused), 'fenced');
  assert.match(two.holder.events.join(), 'discard');
  assert.not.match(two.holder.events.slice(-1).join(), 'hibernate');
  assert.is(two.holder.cells.size, 0);
  await stage.pass(60_000);
  assert.is(two.process.id, 'two-2');
  assert.ok(two.node.ready && two.holder.cells.size > 300);
  stage.check();
});

test('a node that is cut off from the database assumes the worst after its lease', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const two = await stage.start('two');
  await stage.pass(40_000);
  two.process.cut();
  await stage.pass(2_000 + 1_000);
  assert.is(two.holder.cells.size, 0);
  assert.is(two.node.ready, false);
  assert.is(two.node.placeOf(5).at, 'nobody');
  await stage.pass(1_000);
  assert.is(one.holder.cells.size, CELLS);
  two.process.resume();
  await stage.pass(40_000);
  assert.ok(two.holder.cells.size > 300);
  stage.check();
});

test('a node that leaves gives all its cells to the others, in groups, and each is elsewhere before it leaves', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const two = await stage.start('two');
  await stage.pass(40_000);
  let left = false;
  const leaving = two.node.leave().then(() => {
    left = true;
  });
  for (let ms = 0; !left && ms < 5_000; ms += 100) {
    await stage.pass(100);
    stage.check();
  }
  await leaving;
  assert.is(two.holder.cells.size, 0);
  await stage.pass(600);
  assert.is(one.holder.cells.size, CELLS);
  assert.ok(
    two.holder.events.filter((event) => event.startsWith('hibernate')).every((event) => Number(event.slice(10)) <= 64),
  );
  assert.not.match(two.holder.events.join(), 'discard');
  await two.node.end();
  await stage.pass(600);
  assert.equal(
    one.node.report().nodes.map(({ node }) => node),
    ['one-1'],
  );
  stage.check();
});

test('a surplus cell moves after the requests that it serves, and stays if they do not end; that of a node that leaves moves after the grace time', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const shares = sharesOf(['one-1', 'two-1']);
  const busy = Array.from({ length: CELLS }, (_, cell) => cell).filter((cell) => shares[cell] === 'two-1');
  const ends = busy.map((cell) => one.node.enter(cell));
  const starting = stage.start('two');
  await stage.pass(1_500);
  const moving = busy.filter((cell) => one.node.placeOf(cell).at === 'nobody');
  assert.is(moving.length, 16);
  const [first = 0, second = 0] = moving;
  const places = [one.node.settle(first, 3_000), one.node.settle(second, 3_000)];
  ends[busy.indexOf(first)]?.();
  // The requests for the others do not end: their clients wait for a second, and not for the grace time.
  await stage.pass(1_000);
  assert.equal(
    (await Promise.all(places)).map(({ at }) => at),
    ['peer', 'here'],
  );
  await starting;
  stage.check();
  // What becomes quiet moves, in groups that become larger while that is quick.
  const quiet = new Set(busy.slice(100));
  for (const cell of quiet) if (cell !== first) ends[busy.indexOf(cell)]?.();
  await stage.pass(8_000);
  assert.is([...quiet].filter((cell) => one.holder.cells.has(cell)).length, 0);
  assert.ok(busy.slice(0, 50).every((cell) => cell === first || one.node.placeOf(cell).at === 'here'));
  stage.check();
  const left = one.node.leave();
  await stage.pass(2_000);
  assert.ok(one.holder.cells.size > 0);
  await stage.pass(2_000);
  await left;
  assert.is(one.holder.cells.size, 0);
  stage.check();
});

test('a request for a free cell has it claimed then and there, and of two nodes one wins', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const two = await stage.start('two');
  await stage.pass(40_000);
  const three = await stage.start('three');
  await stage.pass(40_000);
  const cells = [...three.holder.cells].slice(0, 64);
  assert.is(cells.length, 64);
  // Its cells are free, and the others do not know that yet.
  await three.node.end();
  const places = cells.map((cell) => Promise.all([one.node.settle(cell, 1_000), two.node.settle(cell, 1_000)]));
  await stage.pass(100);
  for (const both of await Promise.all(places)) assert.equal(both.map(({ at }) => at).sort(), ['here', 'peer']);
  stage.check();
});

test('a request claims a free cell in the share of another node if that one does not', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const two = await stage.start('two');
  await stage.pass(40_000);
  const [cell = 0] = two.holder.cells;
  two.process.pause();
  // Free by a mistake, say, of an operator.
  const row = stage.database.cells[cell];
  assert.ok(row);
  row.node = undefined;
  const place = one.node.settle(cell, 1_000);
  await stage.pass(100);
  assert.not(one.holder.cells.has(cell));
  await stage.pass(300);
  assert.is((await place).at, 'here');
});

test('a takeover that is cut short by a loss leaves nothing in memory', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const holder = new Holder();
  const two = await stage.start('two', holder);
  await stage.pass(5_000);
  let read = (): void => {};
  holder.held = new Promise((resolve) => {
    read = resolve;
  });
  one.process.kill();
  void two.node.closed('one-1');
  await stage.pass(100);
  assert.match(String(holder.events.at(-1)), 'take');
  // Fenced while it reads what it has just claimed.
  const row = stage.database.nodes.get('two-1');
  assert.ok(row);
  row.fenced = true;
  await stage.pass(600);
  assert.match(String(holder.events.at(-1)), 'discard');
  const before = holder.events.length;
  assert.is(two.process.id, 'two-1');
  holder.held = undefined;
  read();
  await stage.pass(0);
  // What arrived too late is discarded before the node joins again.
  assert.equal(holder.events.slice(before - 1, before + 1), [
    holder.events.at(before - 1),
    holder.events.at(before - 1),
  ]);
  await stage.pass(6_000);
  assert.is(two.process.id, 'two-2');
  assert.is(holder.cells.size, CELLS);
  stage.check();
});

test('a principal has the same cell at every node of the cluster, and principals are spread over the cells', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const two = await stage.start('two');
  const cells = new Set<number>();
  for (let n = 0; n < 500; n += 1) {
    const cell = one.node.cellFor(`user ${n}`);
    assert.is(two.node.cellFor(`user ${n}`), cell);
    cells.add(cell);
  }
  assert.ok(cells.size > 350, String(cells.size));
  for (let n = 0; n < 50; n += 1) assert.is(one.node.placeOf(one.node.ownCell()).at, 'here');
});

test('D-05: of two nodes that do not reach each other one withdraws, and joins again later', async () => {
  const stage = new Stage();
  const names = ['one', 'two', 'three'];
  for (const name of names) await stage.start(name);
  await stage.pass(60_000);
  const seats = (): number => stage.nodes.filter(({ process }) => !stage.database.isFenced(process.id)).length;
  stage.unreachable = [['one-1', 'two-1']];
  await stage.pass(9_000);
  assert.is(seats(), 3);
  await stage.pass(11_000);
  assert.is(seats(), 2);
  assert.equal([stage.free(), stage.database.ownerOf(0)?.startsWith('two')], [0, false]);
  stage.check();
  await stage.pass(60_000);
  assert.is(seats(), 3);
  assert.equal(
    stage.nodes.map(({ process }) => process.id),
    ['one-1', 'two-2', 'three-1'],
  );
  stage.check();
});

test('D-05: a node that reaches no other withdraws before the nodes that do not reach it', async () => {
  const stage = new Stage();
  for (const name of ['a', 'b', 'c', 'd']) await stage.start(name);
  await stage.pass(60_000);
  stage.unreachable = ['a', 'b', 'c'].map((name) => [`${name}-1`, 'd-1']);
  await stage.pass(14_000);
  assert.equal(
    stage.nodes.map(({ process }) => stage.database.isFenced(process.id)),
    [false, false, false, true],
  );
  await stage.pass(10_000);
  assert.is(stage.free(), 0);
  stage.check();
});

test('cells that could not be given up are discarded and served again by the same node, and move later', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  one.holder.fails = new Error('the disk failed');
  const two = await stage.start('two');
  await stage.pass(3_000);
  assert.match(one.log.join('\n'), 'could not give up 16 cells; the next round tries again: the disk failed');
  assert.match(one.holder.events.join(), 'hibernate 16,discard 16,take 16');
  stage.check();
  await stage.pass(60_000);
  assert.ok(two.holder.cells.size > 300);
  assert.is(one.node.report().moving + two.node.report().moving, 0);
  stage.check();
});

test('D-05: a node that joins and that others do not reach claims nothing and gets nothing, says why, and joins once they reach it', async () => {
  const stage = new Stage();
  const [one, two] = [await stage.start('one'), await stage.start('two')];
  await stage.pass(60_000);
  stage.unreachable = [
    ['three-1', 'one-1'],
    ['three-1', 'two-1'],
  ];
  const starting = stage.start('three');
  for (let ms = 0; ms < 12_000; ms += 1_000) {
    await stage.pass(1_000);
    assert.is(stage.database.cells.filter(({ node }) => node?.startsWith('three')).length, 0);
    assert.equal([stage.free(), one.node.ready, two.node.ready], [0, true, true]);
  }
  const three = await starting;
  assert.is(three.node.ready, false);
  assert.match(
    three.log.join('\n'),
    'node three-1 withdraws: it reaches 0 of 2 other nodes. one-1 at one:1: connect ECONNREFUSED; two-1 at two:1: connect ECONNREFUSED',
  );
  assert.match(
    one.log.join('\n'),
    'node three-1 at three:1 and this node do not reach each other: connect ECONNREFUSED',
  );
  await stage.pass(10_000);
  assert.is(three.process.id, 'three-2');
  await stage.pass(60_000);
  assert.ok(three.holder.cells.size > 200, String(three.holder.cells.size));
  stage.check();
});

test('a node that leaves gives its cells to the nodes that it reaches', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  for (const name of ['two', 'three']) await stage.start(name);
  await stage.pass(60_000);
  stage.unreachable = [['one-1', 'two-1']];
  await stage.pass(1_000);
  const had = [...one.holder.cells];
  void one.node.leave();
  await stage.pass(100);
  assert.equal([...new Set(had.map((cell) => stage.database.ownerOf(cell)))], ['three-1']);
});

test('cells that an earlier seat could not give up stay with the next seat, which serves them', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  let fail = (_: Error): void => {};
  one.holder.written = () =>
    new Promise((_, reject) => {
      fail = reject;
    });
  const two = await stage.start('two');
  await stage.pass(3_000);
  assert.ok(one.node.report().moving > 0);
  two.process.kill();
  const row = stage.database.nodes.get('one-1');
  if (row) row.fenced = true;
  await stage.pass(20_000);
  assert.is(one.process.id, 'one-2');
  assert.is(one.holder.cells.size, CELLS);
  // The earlier seat learns only now that its commits have failed.
  fail(new Error('the connection is lost'));
  await stage.pass(0);
  assert.is(one.holder.cells.size, one.node.report().cells);
  stage.check();
});

test('cells whose data can be neither read nor discarded are read again in the next round', async () => {
  const stage = new Stage();
  const holder = new Holder();
  const [take, drop] = [holder.take.bind(holder), holder.drop.bind(holder)];
  let fails = true;
  holder.take = (cells) => (fails ? Promise.reject(new Error('the database is away')) : take(cells));
  holder.drop = (cells, flush) => (fails ? Promise.reject(new Error('a session is stuck')) : drop(cells, flush));
  const one = await stage.start('one', holder);
  assert.match(one.log.join('\n'), 'could not read 1024 cells; the next round tries again: the database is away');
  fails = false;
  await stage.pass(3_000);
  assert.is(one.holder.cells.size, CELLS);
  assert.is(one.node.ready, true);
});

test('a node that leaves with cells that it has not given away is not reported as dead', async () => {
  const stage = new Stage();
  const [one, two] = [await stage.start('one'), await stage.start('two')];
  await stage.pass(30_000);
  two.holder.drop = () => new Promise(() => {});
  void two.node.leave();
  await stage.pass(2_000);
  two.process.kill();
  void one.node.closed('two-1');
  await stage.pass(5_000);
  const had = CELLS - sharesOf(['one-1', 'two-1']).filter((node) => node === 'one-1').length;
  assert.equal(
    one.log.filter((line) => line.includes('two-1')),
    [
      'info: node two-1 at two:1 has joined',
      `info: node two-1 at two:1 has left. Other nodes take over its ${had} cells`,
    ],
  );
  assert.is(one.holder.cells.size, CELLS);
});

test('the log has each node that joins, leaves and dies', async () => {
  const stage = new Stage();
  const one = await stage.start('one');
  const [two, three] = [await stage.start('two'), await stage.start('three')];
  await stage.pass(30_000);
  const had = three.holder.cells.size;
  void two.node.leave().then(() => two.node.end());
  await stage.pass(5_000);
  const cells = three.holder.cells.size;
  assert.ok(cells > had);
  three.process.kill();
  void one.node.closed('three-1');
  await stage.pass(1_000);
  assert.equal(
    one.log.filter((line) => /two-1|three-1/.test(line)),
    [
      'info: node two-1 at two:1 has joined',
      'info: node three-1 at three:1 has joined',
      'info: node two-1 at two:1 has left',
      `warning: node three-1 at three:1 is dead. Other nodes take over its ${cells} cells`,
    ],
  );
});
