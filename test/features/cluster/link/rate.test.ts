/** Limits of a principal hold across nodes: caps exactly, the rate within a tenth. */
import * as assert from 'uvu/assert';
import type { LinkNews, NodeEntry } from '../../../../src/core/http/other-nodes.ts';
import { RequestRate } from '../../../../src/core/http/request-rate.ts';
import { TokenBuckets } from '../../../../src/core/kernel/token-bucket.ts';
import { newsIn, newsText } from '../../../../src/features/cluster/link/link-text.ts';
import { defineMachine } from '../../../../src/index.ts';
import { SimulatedClock } from '../../../../src/testing/testing.ts';
import { call } from '../../../core/http/modern.ts';
import { ask, initialize } from '../../../core/http/support.ts';
import { suite } from '../../../harness/door.ts';
import { orderMachine, orderOptions } from '../../machines/shop.ts';
import { staticNodes } from './static-nodes.ts';

const test = suite('limits across nodes');

const RATE = { perSecond: 100, burst: 20 };

/** The loads of three nodes; the first one owns every key. News arrive after some milliseconds. */
function loads(clock: SimulatedClock, delayMs: number, cut: () => boolean = () => false): readonly RequestRate[] {
  const all: RequestRate[] = [];
  for (const index of [0, 1, 2]) {
    const tell = (to: string, news: LinkNews): void => {
      const [arrived = news] = newsIn(`[${newsText(news)}]`) ?? [];
      if (arrived.news !== 'spent' && arrived.news !== 'left') throw new Error('expected a report');
      if (!cut()) clock.after(delayMs, () => all[Number(to)]?.rated(String(index), arrived));
    };
    const nodes: NodeEntry = {
      link: { tell, forward: () => ({ resume() {}, cancel() {} }) },
      waitMs: 0,
      others: 2,
      cellOf: () => 0,
      placeOf: () => (index === 0 ? { at: 'here' } : { at: 'peer', peer: { node: '0' } }),
      enter: () => () => {},
      settle: () => Promise.reject(new Error('not asked')),
      serve: () => 0,
    };
    const load = new RequestRate(RATE);
    load.share(nodes, 0, clock);
    all.push(load);
  }
  return all;
}

test('D-19: three nodes admit one rate together within a tenth over 10 s, however the requests are spread', async () => {
  for (const spread of [[0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1, 1, 2], [0, 1, 2], [2]]) {
    const clock = new SimulatedClock();
    const nodes = loads(clock, 2);
    let admitted = 0;
    let asked = 0;
    // A second before, in which all bursts are used up.
    for (let ms = 0; ms < 11_000; ms += 1) {
      if (ms === 1_000) admitted = 0;
      clock.pass(1);
      for (const node of spread) {
        asked += 1;
        if (nodes[node]?.tooOften('principal ada', clock.now()) === undefined) admitted += 1;
      }
    }
    assert.ok(asked > 10_000);
    assert.ok(admitted >= 900 && admitted <= 1_100, `${admitted} of 1000 with ${spread}`);
  }
});

test('D-19: principals with the names of members of objects share their rate, too', async () => {
  for (const name of ['__proto__', 'constructor']) {
    const clock = new SimulatedClock();
    const nodes = loads(clock, 2);
    let admitted = 0;
    for (let ms = 0; ms < 3_000; ms += 1) {
      if (ms === 1_000) admitted = 0;
      clock.pass(1);
      for (const node of nodes) if (node.tooOften(name, clock.now()) === undefined) admitted += 1;
    }
    assert.ok(admitted >= 160 && admitted <= 240, `${admitted} of 200 of ${name}`);
  }
});

test('D-19: below the rate nothing is rejected, and a node that reaches no other admits its rate by itself', async () => {
  const clock = new SimulatedClock();
  const nodes = loads(clock, 2);
  for (let ms = 0; ms < 3_000; ms += 1) {
    clock.pass(1);
    // 90 a second in all.
    if (ms % 33 === 0)
      for (const node of nodes) assert.is(node.tooOften('principal ada', clock.now()), undefined, `at ${ms} ms`);
  }
  const alone = new SimulatedClock();
  const [, apart] = loads(alone, 2, () => true);
  let admitted = 0;
  for (let ms = 0; ms < 2_000; ms += 1) {
    alone.pass(1);
    if (apart?.tooOften('principal ada', alone.now()) === undefined) admitted += 1;
  }
  assert.ok(admitted >= 200 && admitted <= 220, `${admitted}`);
  // Without a cluster nothing is counted for others.
  const own = new TokenBuckets(RATE);
  assert.is(own.of('x', 0).spend(0, 25), -5);
  own.of('x', 0).lower(0, -10);
  assert.is(own.of('x', 0).wait(0), 110);
});

test('D-19: the caps of a principal hold at L and L + 1, whichever nodes its requests enter by', async () => {
  const authenticate = ({ header }: { header(name: string): string | undefined }): string =>
    header('x-user') ?? 'anonymous';
  const { nodes, cells } = await staticNodes(
    ['node-a', 'node-b', 'node-c'],
    ({ machines }) => void machines.register(defineMachine({ name: 'order', machine: orderMachine, ...orderOptions })),
    {
      http: { authenticate, rate: { perSecond: 1_000, burst: 1_000 } },
      server: { limits: { maxSessionsPerPrincipal: 4, maxHandlesPerPrincipal: 4 } },
    },
  );
  const headers = { 'x-user': cells.principalOf('node-b') };
  const opened: number[] = [];
  const created: boolean[] = [];
  for (let number = 0; number < 6; number += 1) {
    // Nine of ten at one node would do; here each in turn.
    const { url } = nodes[number % 3] ?? { url: '' };
    const session = await ask(url, { headers, body: initialize('2025-11-25', number) });
    opened.push(session.status);
    await session.text();
    const handle = await call(url, 'order_create', { customer: 'Ada' }, { headers });
    created.push(/"handle":/.test(await handle.text()));
  }
  assert.equal(opened.filter((status) => status === 200).length, 4, `${opened}`);
  assert.equal(created, [true, true, true, true, false, false]);
  for (const node of nodes) await node.close();
});
