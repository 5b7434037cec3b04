/** `troupe top`: what it shows of a given model, as text. */
import * as assert from 'uvu/assert';
import { clipLine, countdown, lasting, padTo } from '../../src/cli/top/format.ts';
import { SORTS, type Sort, topView } from '../../src/cli/top/top-view.ts';
import type { TrafficView } from '../../src/inspector/traffic/traffic-messages.ts';
import { suite } from '../harness/door.ts';
import { FrameFeed, hello, shop } from '../inspector/model/frames.ts';

const test = suite('troupe top, the view');

/** A shop in which one call asks, one is under way, one has failed, and a delay runs. */
function busy(): FrameFeed {
  const feed = shop();
  const call = (id: number, name: string): number =>
    feed.wire('in', { jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
  const refund = call(1, 'refund');
  feed.wire(
    'out',
    { jsonrpc: '2.0', id: 7, method: 'elicitation/create', params: { message: 'Refund 20 €?' } },
    { about: refund },
  );
  call(2, 'add');
  feed.state('requests c1', 'admitting (2)');
  const failed = call(3, 'pay');
  feed.wire('out', { jsonrpc: '2.0', id: 3, error: { code: 1, message: 'no' } }, { about: failed, after: 1_200 });
  feed.record({
    type: 'timer',
    actor: 'order_1',
    id: 'x',
    event: 'after 30 s',
    delay: 30_000,
    due: feed.now + 30_000,
  });
  return feed;
}

function shown(
  feed: FrameFeed,
  { columns = 120, rows = 40, sort = 'tree' as Sort, offset = 0, after = 1_000 } = {},
): string {
  const options = { now: feed.now + after, columns, rows, sort, offset, status: 'live', keys: 'q quit' };
  return topView(feed.model, options)
    .map(({ text }) => text.trimEnd())
    .join('\n');
}

test('names the node of a fleet', () => {
  const feed = new FrameFeed();
  feed.model.take({ ...hello, node: 'pod-7/2' });
  assert.match(shown(feed), '◆ shop 1.0.0 · node pod-7/2 · pid 7 · live');
});

test('lists the nodes that share the store, this one first', () => {
  const feed = new FrameFeed();
  const node = { version: '1.0.0', leaving: false };
  const cluster = {
    ...{ state: 'owning', free: 3 },
    nodes: [
      { ...node, node: 'n1', address: '10.0.0.5:7400', cells: 511 },
      { ...node, node: 'n2', address: '10.0.0.6:7400', cells: 510, leaving: true },
    ],
  };
  feed.record({ type: 'created', actor: 'server', kind: 'server' });
  const look = { actor: 'server', kind: 'server', at: feed.now, seq: 99, state: 'running', mailbox: 0 } as const;
  feed.model.take({ type: 'look', look: { ...look, facts: { cluster }, waits: [], next: [] } });
  const [, , ...lines] = shown(feed).split('\n');
  assert.equal(lines.slice(0, 3), [
    '● node n1 · this node, owning · 511 cells · 10.0.0.5:7400 · 1.0.0',
    '○ node n2 · leaving · 510 cells · 10.0.0.6:7400 · 1.0.0',
    '3 cells without a node',
  ]);
});

test('shows event types, callbacks that fail, schedules that are late, and dead letters', () => {
  const feed = new FrameFeed();
  feed.model.take(hello);
  const date = feed.now + 1_000 + hello.epoch;
  const subscription = {
    ...{ id: 'w', actor: 'webhook/w', event: 'order.paid', principal: 'ada', host: 'example.com', state: 'failing' },
    ...{ behind: 3, failures: 2, category: 'http_5xx', nextAttempt: date + 5_000, dead: 0 },
  };
  const schedule = { state: 'waiting', dates: 'every 1 h', missed: 'once' };
  const traffic: TrafficView = {
    date,
    types: [
      {
        ...{ name: 'order.paid', description: '', topics: 1, head: 1_234, newestAt: date, retained: 1_000, bytes: 9 },
        ...{ perMinute: 12, streams: 2, webhooks: 40 },
      },
    ],
    subscriptions: { all: 40, suspended: 1, failing: 2, some: [subscription] },
    schedules: [
      { ...schedule, name: 'hourly', next: date + 61_000, last: { began: date, tookMs: 5, incident: 'k3' } },
      { ...schedule, name: 'nightly', next: date - 2_000 },
      { ...schedule, name: 'tidy', machine: 'room', event: 'tidy', state: 'each instance', instances: [] },
    ],
    deliveries: [],
    letters: [
      {
        ...{ kind: 'event', ref: 'event w 1', what: 'order.paid e1 to example.com of ada', error: 'http_4xx' },
        ...{ attempts: 1, at: date, incident: undefined },
      },
    ],
  };
  const options = { now: feed.now + 1_000, columns: 160, rows: 40, sort: 'tree', offset: 0, keys: '' } as const;
  const lines = topView(feed.model, { ...options, status: 'live', traffic }).slice(2, 8);
  assert.equal(
    lines.map(({ text, tone }) => `${tone}: ${text}`),
    [
      'plain: event order.paid · #1,234 · 12/min · 1,000 events kept · 2 streams · 40 webhooks',
      'bad: 40 webhook subscriptions · 1 suspended · 2 failing · next attempt in 0:05 at example.com (http_5xx)',
      'bad: schedule hourly · next in 1:01 · every 1 h · last run failed (incident k3)',
      'bad: schedule nightly · late by 2.0 s · every 1 h',
      'plain: schedule tidy of each room · each instance · every 1 h',
      'bad: 1 dead letter · newest: event order.paid e1 to example.com of ada: http_4xx',
    ],
  );
});

test('counts the scripts, and those that wait', () => {
  const feed = shop();
  for (const [actor, state] of [
    ['run_1', 'waiting for approval'],
    ['run_2', 'computing'],
  ] as const) {
    feed.record({ type: 'created', actor, kind: 'run' });
    feed.state(actor, state);
  }
  assert.match(shown(feed).split('\n')[1] ?? '', /0 tasks {2}2 scripts \(1 waiting\)/);
});

test('shows clients and actors, what each waits for and until when, and request durations', () => {
  assert.is(
    shown(busy()),
    `◆ shop 1.0.0 · pid 7 · live                                                                      sorted by tree · q quit
1 session  2 requests  0 questions  1 handle  0 tasks  1.7 requests/s  p50 1.2 s  p99 1.2 s

actor                                         state                     age     left  waits for
clients
  claude                                      ready                    0:02
    tools/call refund                         open                     0:02           Refund 20 €? · the user of claude
    tools/call add                            open                     0:02           its result
handles · order
  handle order_1                              cart                     0:02     0:28  after 30 s

method                                           count   failed      p50      p99  slowest
tools/call pay                                       1        1    1.2 s    1.2 s    1.2 s`,
  );
});

test('sorts by deadline, age or name as a flat list', () => {
  const names = (sort: Sort): string[] =>
    shown(busy(), { sort })
      .split('\n')
      .slice(4, 8)
      .map((line) => line.slice(0, 20).trim());
  assert.equal(names('deadline'), ['handle order_1', 'claude', 'tools/call refund', 'tools/call add']);
  assert.equal(names('age'), ['claude', 'handle order_1', 'tools/call refund', 'tools/call add']);
  assert.equal(names('name'), ['claude', 'handle order_1', 'tools/call add', 'tools/call refund']);
  assert.equal(SORTS, ['tree', 'deadline', 'age', 'name']);
});

test('the output fits the terminal, and omitted rows are counted', () => {
  const feed = busy();
  for (let id = 10; id < 60; id += 1)
    feed.wire('in', { jsonrpc: '2.0', id, method: 'tools/call', params: { name: `tool ${id} 日本語` } });
  for (const [columns, rows] of [
    [110, 20],
    [60, 12],
    [30, 10],
    [200, 50],
  ] as const) {
    const lines = shown(feed, { columns, rows }).split('\n');
    assert.ok(lines.length <= rows, `${lines.length} lines of ${rows}`);
    for (const line of lines) assert.ok([...line].length <= columns, line);
  }
  assert.match(shown(feed, { rows: 20 }), /… and \d+ more/);
  const first = shown(feed, { rows: 20 }).split('\n')[4];
  assert.is.not(shown(feed, { rows: 20, offset: 3 }).split('\n')[4], first);
});

test('control characters in a name are replaced', () => {
  const feed = shop();
  feed.wire('in', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: '\u001b[2J\u202eevil\n' } });
  const text = topView(feed.model, { now: 0, columns: 80, rows: 30, sort: 'tree', offset: 0, status: '', keys: '' });
  for (const line of text) assert.not.match(line.text, /[\p{Cc}\p{Cf}]/u);
  assert.match(text.map((line) => line.text).join('\n'), 'tools/call ·[2J·evil·');
});

test('a request from before the observation is known from its table', () => {
  const feed = shop();
  feed.state('requests c1', 'admitting (1)');
  const slow = { id: 4, operation: { method: 'tools/call', name: 'slow' }, deadline: feed.now + 61_000 };
  const look = {
    actor: 'requests c1',
    kind: 'requests',
    at: feed.now,
    seq: feed.seq,
    state: 'admitting (1)',
    mailbox: 0,
  } as const;
  feed.frame({ type: 'look', look: { ...look, facts: { 'in flight': [slow] }, waits: [], next: [] } });
  assert.match(shown(feed), /^1 session {2}1 request /m);
  assert.match(shown(feed), /^ {4}tools\/call slow +open +1:00 {2}its result$/m);
});

const LOOK = { at: 0, seq: 1, mailbox: 0, waits: [], next: [] } as const;

test('a client of 2026-07-28 appears under the name in its last request, with its requests', () => {
  const feed = shop();
  feed.record({ type: 'created', actor: 'requests c2', kind: 'requests', connection: 'c2' });
  feed.state('requests c2', 'admitting (1)');
  assert.match(shown(feed), /^ {2}a client +no session /m);
  const call = (id: number, name: string, client: string, connection = 'c2'): number => {
    const _meta = { 'io.modelcontextprotocol/clientInfo': { name: client, version: '1.0.0' } };
    const message = { jsonrpc: '2.0', id, method: 'tools/call', params: { name, _meta } };
    return feed.wire('in', message, { connection });
  };
  call(1, 'add', 'modern');
  assert.match(shown(feed), /^1 session {2}1 client without a session /m);
  assert.match(
    shown(feed),
    /^ {2}modern 1\.0\.0 +no session .*\n {4}tools\/call add \(modern 1\.0\.0\) +open .* its result$/m,
  );
  feed.record({ type: 'gone', actor: 'requests c2', why: 'closed' });
  assert.not.match(shown(feed), /without a session|no session/);

  // Over HTTP they share a connection; one without requests is nobody.
  feed.record({ type: 'created', actor: 'requests c3', kind: 'requests', connection: 'c3' });
  feed.state('requests c3', 'admitting (0)');
  const look = { ...LOOK, actor: 'requests c3', kind: 'requests', state: 'admitting (0)' } as const;
  feed.frame({ type: 'look', look: { ...look, facts: { 'in flight': [], shared: true } } });
  assert.not.match(shown(feed), 'no session');
  for (const [id, client] of ['one', 'two', 'three', 'four'].entries()) {
    const about = call(id, 'add', client, 'c3');
    feed.wire('out', { jsonrpc: '2.0', id, result: {} }, { about, connection: 'c3' });
  }
  assert.match(shown(feed), /4 clients without a session/);
  assert.match(shown(feed), /^ {2}four 1\.0\.0, three 1\.0\.0, two 1\.0\.0, … +no session /m);
  assert.not.match(shown(feed, { after: 70_000 }), 'without a session');
});

test('hibernating handles are counted, and some are named', () => {
  const feed = shop();
  const some = ['handle/order/one', 'handle/order/two'];
  const facts = { hibernating: { count: 1_234, some } };
  feed.frame({ type: 'look', look: { ...LOOK, actor: 'server', kind: 'server', state: 'running', facts } });
  assert.match(shown(feed), /1,235 handles \(1,234 hibernating\)/);
  assert.match(
    shown(feed),
    /^hibernating handles\n {2}handle order\/one +hibernating\n {2}handle order\/two +hibernating\n {2}… and 1232 more +hibernating$/m,
  );
  assert.match(shown(feed, { sort: 'name' }), /^handle order\/one +hibernating$/m);
  const sessions = { 'hibernating sessions': { count: 2, some: ['session/ab12cd34'] } };
  feed.frame({
    type: 'look',
    look: { ...LOOK, actor: 'server', kind: 'server', state: 'running', facts: sessions, at: 1, seq: feed.seq },
  });
  assert.match(shown(feed), /^3 sessions \(2 hibernating\)/m);
  assert.match(
    shown(feed),
    /^hibernating sessions\n {2}session ab12cd34 +hibernating\n {2}… and 1 more +hibernating$/m,
  );
});

test('omitted records and unhandled events are reported', () => {
  const feed = shop();
  feed.step('order_1', 'fly', [], ['cart']);
  feed.frame({ type: 'gap', from: 100, to: 300, at: feed.now, records: 1_200, exchanges: 40, why: 'flood' });
  assert.match(shown(feed), '1 unhandled event · 40 exchanges not shown (sampled)');
  assert.match(shown(feed, { after: 910 }), '40.0 requests/s');
});

test('texts are truncated by their width on the screen, and times are short', () => {
  assert.equal(
    [clipLine('日本語', 5), clipLine('日本語', 6), padTo('日本', 6), clipLine('abcdef', 4)],
    ['日本…', '日本語', '日本  ', 'abc…'],
  );
  assert.equal([0, 41_000, 3_723_000, 183_600_000].map(countdown), ['0:00', '0:41', '1:02:03', '2 d 3 h']);
  assert.equal([0.42, 12.4, 1_234, 61_000].map(lasting), ['0.4 ms', '12 ms', '1.2 s', '1:01']);
});

test('clients that share a connection and use the same id are all shown, also if their requests began earlier', () => {
  const feed = shop();
  const table = 'requests/c3';
  feed.record({ type: 'created', actor: table, kind: 'requests', connection: 'c3' });
  feed.state(table, 'admitting (4)');
  const held = (client: string, method: string, deadline?: number) => ({
    id: 1,
    operation: method === 'tools/call' ? { method, name: 'slow' } : { method },
    client: `${client} 1`,
    exchange: `exchange of ${client}`,
    ...(deadline === undefined ? {} : { deadline }),
  });
  const wire = (client: string, method: string): number => {
    const _meta = { 'io.modelcontextprotocol/clientInfo': { name: client, version: '1' } };
    const params = method === 'tools/call' ? { name: 'slow', _meta } : { _meta };
    return feed.wire('in', { jsonrpc: '2.0', id: 1, method, params }, { connection: 'c3' });
  };
  wire('new caller', 'tools/call');
  wire('new listener', 'subscriptions/listen');
  const due = feed.now + 61_000;
  const calls = [held('old caller', 'tools/call', due), held('new caller', 'tools/call', due)];
  const listens = [held('old listener', 'subscriptions/listen'), held('new listener', 'subscriptions/listen')];
  const look = { ...LOOK, actor: table, kind: 'requests', state: 'admitting (4)', seq: feed.seq } as const;
  feed.frame({ type: 'look', look: { ...look, facts: { 'in flight': [...calls, ...listens], shared: true } } });
  const text = shown(feed);
  assert.match(text, /^1 session {2}4 clients without a session {2}4 requests /m);
  for (const who of ['old', 'new']) {
    assert.match(text, new RegExp(`^ {4}tools/call slow \\(${who} caller 1\\) +open .*1:00 {2}its result$`, 'm'));
    const listens = text.split('\n').filter((line) => line.includes(`subscriptions/listen (${who} listener 1)`));
    assert.is(listens.length, 1);
    assert.not.match(listens[0] ?? '', '1:00');
  }
});
