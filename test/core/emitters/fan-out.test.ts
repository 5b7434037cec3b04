/** Broadcasts to many clients: told in slices between which other work runs, each change once, in order, and none is lost. */
import { createServer as createNodeServer, type ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { FanOut } from '../../../src/core/emitters/fan-out.ts';
import { SlicedQueue } from '../../../src/core/kernel/clock.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { type Limits, type MemoryPeer, memory, type Server } from '../../../src/index.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { openSession } from '../http/support.ts';
import { flicker, mostInOneTurn, short, stage, turn } from './support.ts';

const test = suite('fan-out');

/** In a quick run a slice has a fourth of the steps, too: there its time ends it, not their number. */
const MANY = times(600, { quick: 150 });
const newClock = (): SimulatedClock => (MANY < 600 ? new BusyClock(2 / 64) : new SimulatedClock());

const DECLARED = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

type Era = 'legacy' | 'modern';
type Kind = 'list' | 'resource' | 'task';

/** One client of a crowd, with what it was told of changes, in short. */
interface Listener {
  readonly peer: MemoryPeer;
  readonly told: string[];
}

/** Time passes when somebody looks: so many milliseconds each time. */
class BusyClock extends SimulatedClock {
  readonly #ms: number;
  #looks = 0;

  constructor(ms: number) {
    super();
    this.#ms = ms;
  }

  override now(): number {
    this.#looks += 1;
    return super.now() + this.#looks * this.#ms;
  }
}

interface Crowd {
  readonly server: Server;
  readonly clock: SimulatedClock;
  readonly listeners: readonly Listener[];
  /** Connects one more client, which hears nothing of changes yet. */
  connect(): MemoryPeer;
  change(): Promise<void>;
  /** How many have been told so many times at least. */
  told(times?: number): number;
}

const CHANGED = /notifications\/(tools\/list_changed|resources\/updated|tasks)/;

/** Opens a crowd in which everybody hears of one kind of change. */
async function crowd(era: Era, kind: Kind, clock = newClock(), limits: Partial<Limits> = {}): Promise<Crowd> {
  const { server } = stage({ maxSessionsPerPrincipal: MANY + 10, maxTasksPerPrincipal: MANY, ...limits }, clock);
  const work: { report(): void; end(): void }[] = [];
  let reports = 0;
  server.tool('work', { task: 'required' }, (_, ctx) => {
    return new Promise<string>((resolve) => {
      work.push({ report: () => ctx.progress(++reports, undefined, `report ${reports}`), end: () => resolve('done') });
      ctx.signal.addEventListener('abort', () => resolve('aborted'));
    });
  });
  const { transport, connect } = memory();
  await server.listen(transport);
  const task = era === 'modern' && kind === 'task' ? await createTask(connect()) : '';
  const listeners = Array.from({ length: MANY }, (): Listener => {
    const peer = connect();
    const told: string[] = [];
    peer.onText((text) => void (CHANGED.test(text) && told.push(shortly(text))));
    if (era === 'legacy') openLegacy(peer, kind);
    else openModern(peer, kind, task);
    return { peer, told };
  });
  await settled();
  // What a task is now, a subscription is told at once.
  for (const { told } of listeners) told.length = 0;
  return {
    server,
    clock,
    listeners,
    connect,
    async change() {
      if (kind === 'list') flicker(server);
      else if (kind === 'resource') server.resourceUpdated('doc://1');
      else if (era === 'modern') work[0]?.report();
      else for (const { end } of work) end();
      // A handler that ends does so in promises.
      await settled();
    },
    told: (times = 1) => listeners.filter(({ told }) => told.length >= times).length,
  };
}

function shortly(text: string): string {
  return text.includes('notifications/tasks') ? 'task' : short(JSON.parse(text));
}

function say(peer: MemoryPeer, message: object): void {
  peer.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

function openLegacy(peer: MemoryPeer, kind: Kind): void {
  const clientInfo = { name: 'listener', version: '1.0.0' };
  say(peer, { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } });
  say(peer, { method: 'notifications/initialized' });
  if (kind === 'resource') say(peer, { id: 2, method: 'resources/subscribe', params: { uri: 'doc://1' } });
  if (kind === 'task') say(peer, { id: 2, method: 'tools/call', params: { name: 'work', arguments: {}, task: {} } });
}

const SELF = { [META.protocolVersion]: '2026-07-28', [META.clientCapabilities]: DECLARED };

function openModern(peer: MemoryPeer, kind: Kind, task: string): void {
  const wanted = {
    list: { toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true },
    resource: { resourceSubscriptions: ['doc://1'] },
    task: { taskIds: [task] },
  };
  say(peer, { id: 1, method: 'subscriptions/listen', params: { notifications: wanted[kind], _meta: SELF } });
}

async function createTask(peer: MemoryPeer): Promise<string> {
  let id = '';
  peer.onText((text) => {
    id = /"taskId":"([^"]+)"/.exec(text)?.[1] ?? id;
  });
  say(peer, { id: 1, method: 'tools/call', params: { name: 'work', arguments: {}, _meta: SELF } });
  await settled();
  return id;
}

/** Runs turns until all have been told so often. */
async function untilTold({ told }: Crowd, times = 1): Promise<void> {
  for (let turns = 0; told(times) < MANY; turns += 1) {
    assert.ok(turns < MANY, `after ${turns} turns ${told(times)} of ${MANY} were told ${times} times`);
    await turn();
  }
}

/** `npm test` has each era and each kind once. */
const QUICK = ['legacy list', 'modern resource', 'modern task'];

for (const era of ['legacy', 'modern'] as const)
  for (const kind of ['list', 'resource', 'task'] as const) {
    const add = QUICK.includes(`${era} ${kind}`) ? test : test.full;
    add(
      `R-44 a call is answered during the broadcast of a ${kind} change to ${MANY} ${era} clients, and each is notified once`,
      async () => {
        const all = await crowd(era, kind);
        const bystander = all.connect();
        let toldBefore: number | undefined;
        bystander.onText(() => {
          toldBefore = all.told();
        });
        await all.change();
        assert.is(all.told(), 0);
        all.clock.pass(10);
        const first = all.told();
        assert.ok(first > 0 && first < MANY / 2, `${first} were told in one turn`);
        say(bystander, { id: 1, method: 'tools/call', params: { name: 'good', arguments: {}, _meta: SELF } });
        await untilTold(all);
        assert.ok(toldBefore !== undefined && toldBefore < MANY, `the call was answered after ${toldBefore} were told`);
        await settled();
        assert.is(all.told(2), 0);
        await all.server.close();
      },
    );
  }

test('R-44 a slice ends when its time is over, however few clients were notified', async () => {
  const all = await crowd('legacy', 'list', new BusyClock(0.5));
  await all.change();
  all.clock.pass(10);
  const first = all.told();
  assert.ok(first > 0 && first <= 4, `${first} were told in one turn, at half a millisecond each`);
  await untilTold(all);
  await all.server.close();
});

for (const era of ['legacy', 'modern'] as const) {
  // `npm test` has each of the three once.
  const [legacy, modern] = era === 'legacy' ? [test, test.full] : [test.full, test];
  legacy(
    `R-44 a change during a broadcast to ${era} clients reaches every client, and coalesces with pending notifications`,
    async () => {
      const all = await crowd(era, 'resource');
      await all.change();
      all.clock.pass(10);
      const before = all.told();
      all.server.resourceUpdated('doc://1');
      all.server.resourceUpdated('doc://1');
      all.clock.pass(10);
      await untilTold(all);
      for (let turns = 0; all.told(2) < before; turns += 1) {
        assert.ok(turns < MANY, `${before} were told before the second change, and ${all.told(2)} again`);
        await turn();
      }
      await settled();
      assert.is(all.told(2), before, 'nobody else is told twice');
      assert.is(all.told(3), 0);
      await all.server.close();
    },
  );

  modern(
    `R-44 ${era} clients that leave during a broadcast take no other client's notification with them, and new clients receive nothing old`,
    async () => {
      const all = await crowd(era, 'list');
      await all.change();
      all.clock.pass(10);
      const leaving = all.listeners.filter((_, index) => index % 3 === 0);
      for (const { peer } of leaving) peer.vanish();
      const late = all.connect();
      const heard: string[] = [];
      late.onText((text) => void (CHANGED.test(text) && heard.push(text)));
      if (era === 'legacy') openLegacy(late, 'list');
      else openModern(late, 'list', '');
      const staying = all.listeners.filter((_, index) => index % 3 !== 0);
      for (let turns = 0; staying.some(({ told }) => told.length === 0); turns += 1) {
        assert.ok(turns < MANY, 'somebody was not told');
        await turn();
      }
      await settled();
      assert.ok(staying.every(({ told }) => told.length === 1));
      assert.equal(heard, []);
      await all.server.close();
    },
  );

  legacy(
    `R-44 a server that closes during a broadcast tells ${era} clients what is left before it lets them go`,
    async () => {
      const all = await crowd(era, 'list');
      // Lists that change first are told first: the server closes while most clients have yet to be told of the tools.
      all.server.resource('late://1', {}, () => 'late');
      all.server.prompt('late', {}, () => 'late');
      await all.change();
      all.clock.pass(10);
      assert.is(all.told(), 0);
      await all.server.close();
      assert.is(all.told(), MANY);
      assert.is(all.told(2), 0);
    },
  );
}

test('R-44 writes to many streams leave in the turn of their notification, in the order of the changes', async () => {
  const { server, clock } = stage();
  const responses: ServerResponse[] = [];
  const front = createNodeServer((request, response) => {
    if (request.method === 'GET') responses.push(response);
    server.node(request, response);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const address = front.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`;
  const count = times(64, { quick: 24 });
  const answers = [];
  for (let opened = 0; opened < count; opened += 1) {
    const session = await openSession(url);
    await (
      await session.post({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'doc://1' } })
    ).text();
    answers.push(await session.get());
  }
  const written = (): readonly number[] => responses.map(({ socket }) => socket?.bytesWritten ?? 0);
  const before = written();
  server.resourceUpdated('doc://1');
  flicker(server);
  clock.pass(10);
  const during = written().filter((bytes, index) => bytes > (before[index] ?? 0)).length;
  assert.ok(during >= count * 0.75, `${during} of ${count} were written to in the turn in which they were told`);
  for (const { events } of answers)
    assert.equal([short(await events.message()), short(await events.message())], ['doc://1', 'tools']);
  for (const answer of answers) answer.cut();
  await server.close();
  front.close();
});

test(`R-44 a server that closes ends the subscriptions of ${MANY} clients in slices`, async () => {
  const all = await crowd('modern', 'list');
  const ended: string[] = [];
  for (const { peer } of all.listeners) peer.onText((text) => void (text.includes('"result"') && ended.push(text)));
  const most = await mostInOneTurn(
    () => ended.length,
    () => all.server.close(),
  );
  assert.is(ended.length, MANY);
  assert.ok(most > 0 && most <= MANY / 2, `${most} ended in one turn`);
});

test(`R-44 a server that closes ends the requests of ${MANY} clients in slices`, async () => {
  const all = await crowd('legacy', 'list');
  all.server.tool('hold', {}, () => new Promise<string>(() => {}));
  const ended: string[] = [];
  for (const { peer } of all.listeners) {
    peer.onText((text) => void (text.includes('"id":7') && ended.push(text)));
    say(peer, { id: 7, method: 'tools/call', params: { name: 'hold', arguments: {} } });
  }
  await settled();
  const most = await mostInOneTurn(
    () => ended.length,
    () => {
      const closed = all.server.close();
      // The grace time is over.
      all.clock.pass(3_000);
      return closed;
    },
  );
  assert.is(ended.length, MANY);
  assert.ok(most > 0 && most <= MANY / 2, `${most} ended in one turn`);
});

test.full(
  `R-44 a server that closes ends ${MANY} legacy streams over HTTP in slices, and asks each client to reconnect`,
  async () => {
    const { server } = stage();
    const ask = (method: string, more: object): Promise<Response> =>
      server.fetch(new Request('http://localhost/mcp', { method, ...more }));
    const accept = 'application/json, text/event-stream';
    const clientInfo = { name: 'listener', version: '1.0.0' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
    const ended: string[] = [];
    for (let count = 0; count < MANY; count += 1) {
      const opened = await ask('POST', { headers: { accept, 'content-type': 'application/json' }, body });
      const session = opened.headers.get('mcp-session-id') ?? '';
      const stream = await ask('GET', { headers: { accept, 'mcp-session-id': session } });
      void stream.text().then((text) => ended.push(text));
    }
    const most = await mostInOneTurn(
      () => ended.length,
      () => server.close(),
    );
    await settled();
    assert.is(ended.length, MANY);
    assert.ok(ended.every((text) => text.includes('retry: 1000\n')));
    assert.ok(most > 0 && most <= MANY / 2, `${most} ended in one turn`);
  },
);

test.full(
  `R-44 the tasks of ${MANY} clients whose handlers end in one turn end in slices, each with its result`,
  async () => {
    const all = await crowd('legacy', 'task');
    const ended: string[] = [];
    for (const { peer } of all.listeners) {
      peer.onText((text) => {
        const [, taskId] = /"taskId":"([^"]+)"/.exec(text) ?? [];
        if (text.includes('"id":3') && taskId !== undefined)
          say(peer, { id: 4, method: 'tasks/result', params: { taskId } });
        if (text.includes('"id":4') && text.includes('"done"')) ended.push(text);
      });
      say(peer, { id: 3, method: 'tasks/list' });
    }
    const most = await mostInOneTurn(
      () => ended.length,
      async () => {
        await all.change();
        for (let turns = 0; ended.length < MANY && turns < MANY; turns += 1) await turn();
      },
    );
    assert.is(ended.length, MANY);
    assert.ok(most > 0 && most <= MANY / 2, `${most} ended in one turn`);
    await all.server.close();
  },
);

test(`R-44 a server that closes notifies ${MANY} sessions of a last change, and closes their connections, in slices`, async () => {
  const all = await crowd('legacy', 'list');
  const closed: string[] = [];
  for (const { peer } of all.listeners) void peer.closed.then((why) => closed.push(why));
  await all.change();
  let most = 0;
  const mostClosed = await mostInOneTurn(
    () => closed.length,
    async () => {
      most = await mostInOneTurn(
        () => all.told(),
        () => all.server.close(),
      );
    },
  );
  assert.is(all.told(), MANY);
  assert.is(closed.length, MANY);
  assert.ok(most > 0 && most <= MANY / 2, `${most} were notified in one turn`);
  assert.ok(mostClosed > 0 && mostClosed <= MANY / 2, `${mostClosed} were closed in one turn`);
});

test('items that are added in one turn are processed in order, in slices', async () => {
  // Time stands still: the number of steps ends a slice.
  const clock = Object.assign(new SimulatedClock(), { sliceSteps: times(256, { quick: 64 }) });
  const done: number[] = [];
  const queue = new SlicedQueue<number>(clock, (item) => void done.push(item));
  for (let item = 0; item < MANY; item += 1) queue.add(item);
  const first = done.length;
  assert.ok(first > 0 && first <= MANY / 2, `${first} were processed in one turn`);
  let empty = false;
  const emptied = queue.empty().then(() => {
    empty = true;
  });
  await turn();
  assert.ok(done.length < MANY && !empty);
  queue.add(MANY);
  await emptied;
  assert.equal(
    done,
    Array.from({ length: MANY + 1 }, (_, item) => item),
  );
  queue.add(-1);
  assert.is(done.at(-1), -1, 'an item that comes alone is processed at once');
  await turn();
  for (let item = 0; item < MANY; item += 1) queue.add(item);
  await turn();
  queue.add(MANY);
  queue.flush();
  assert.equal(
    done.slice(-MANY - 1),
    Array.from({ length: MANY + 1 }, (_, item) => item),
  );
  await queue.empty();
});

test('R-44 a server that closes ends although a resource changes all the time', async () => {
  const all = await crowd('legacy', 'resource');
  let over = false;
  const closing = all.server.close().then(() => {
    over = true;
  });
  let turns = 0;
  for (; !over && turns < MANY; turns += 1) {
    all.server.resourceUpdated('doc://1');
    all.clock.pass(10);
    await turn();
  }
  assert.ok(over, `it was still open after ${turns} turns`);
  await closing;
});

test('every client is notified of a subject that changes all the time, and it delays no other subject', () => {
  const told: string[] = [];
  const fanOut = new FanOut<string, string>((hearer, change) => void told.push(`${hearer} ${change}`));
  const hearers = new Map(['a', 'b', 'c', 'd'].map((name, index) => [name, index + 1]));
  let number = 10;
  fanOut.add('busy', hearers, 'busy 0', number);
  fanOut.add('calm', hearers, 'calm', number);
  for (let change = 1; change <= 12; change += 1) {
    fanOut.step();
    number += 1;
    fanOut.add('busy', hearers, `busy ${change}`, number);
  }
  while (fanOut.step());
  assert.equal(told.slice(0, 8), [
    'a busy 0',
    'b busy 1',
    'c busy 2',
    'd busy 3',
    'a calm',
    'b calm',
    'c calm',
    'd calm',
  ]);
  for (const hearer of hearers.keys())
    assert.is(told.filter((line) => line.startsWith(`${hearer} busy`)).at(-1), `${hearer} busy 12`);
  assert.ok(fanOut.done);
});

test('the pending changes of a listener are those that have not reached it', () => {
  const told: string[] = [];
  const fanOut = new FanOut<string, string>((hearer, change) => void told.push(`${hearer} ${change}`));
  const hearers = new Map([
    ['a', 1],
    ['b', 2],
    ['late', 9],
  ]);
  fanOut.add('x', hearers, 'x', 5);
  assert.equal(
    [fanOut.pendingFor('a'), fanOut.pendingFor('b'), fanOut.pendingFor('late'), fanOut.pendingFor('nobody')],
    [['x'], ['x'], [], []],
  );
  fanOut.step();
  assert.equal([fanOut.pendingFor('a'), fanOut.pendingFor('b')], [[], ['x']]);
  fanOut.add('x', hearers, 'x again', 6);
  assert.equal(
    [fanOut.pendingFor('a'), fanOut.pendingFor('b'), fanOut.pendingFor('late')],
    [['x again'], ['x again'], []],
  );
  while (fanOut.step());
  assert.equal(told, ['a x', 'b x again', 'a x again']);
});

test('if all subscribers of a change have left, the subscribers in their place are notified of the later change', () => {
  const told: string[] = [];
  const fanOut = new FanOut<string, string>((hearer, change) => void told.push(`${hearer} ${change}`));
  const first = new Map([['a', 1]]);
  fanOut.add('x', first, 'x', 2);
  first.clear();
  fanOut.add('x', new Map([['b', 3]]), 'x again', 4);
  while (fanOut.step());
  assert.equal(told, ['b x again']);
});
