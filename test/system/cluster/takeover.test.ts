/** Nodes that are killed, paused, cut off from the database or blocked: another node takes over, and clients lose nothing. */
import * as assert from 'uvu/assert';
import { conclusive, fullOnly, timeLimit } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { postgresSuite } from '../../harness/postgres.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';
import { type LedgerClient, LegacyClient, ModernClient } from './clients.ts';
import { Crowd, outages } from './crowd.ts';
import { ClusterStage, type StageNode } from './stage.ts';

fullOnly('kills nodes; the quick tests of nodes are outages.test.ts and continuity.test.ts');

const test = postgresSuite('takeover');
const KILLS = atScale({ quick: 1, full: 1, proof: 100 });
const PAUSES = atScale({ quick: 0, full: 1, proof: 20 });
const LEASE_MS = 2_000;
/** Clients of each era. */
const CLIENTS = atScale({ quick: 4, full: 4, proof: 8 });
/** The goals for a takeover after a kill, and for one after a pause or a cut, which begins at the end of the lease. */
const GOALS = { killP99Ms: 250, killMs: 500, leaseMs: LEASE_MS + 500 };

timeLimit(120_000 + KILLS * 20_000);

let stage: ClusterStage;
let crowd: Crowd;

test.before(async () => {
  stage = await ClusterStage.open();
  crowd = new Crowd(stage.url, CLIENTS);
  await crowd.start();
});
test.after(async () => {
  await crowd.stop();
  await stage.close();
});

/** The node that owns most ledgers: one that has just started gets its share slowly. */
async function victim(): Promise<StageNode> {
  const { owners } = await stage.state();
  const counted = stage.nodes.map((node) => ({
    node,
    clients: crowd.clients.filter(({ cell }) => owners[cell] === node.linkPort).length,
  }));
  const [most] = counted.sort((one, other) => other.clients - one.clients);
  if (!most) throw new Error('there is no node');
  return most.node;
}

/** The clients whose ledgers this node owns. */
async function clientsOf(node: StageNode): Promise<readonly LedgerClient[]> {
  const { owners } = await stage.state();
  return crowd.clients.filter(({ cell }) => owners[cell] === node.linkPort);
}

/** Resolves when the database has fenced so many nodes. */
async function fencings(count: number): Promise<void> {
  await until(async () => (await stage.state()).fenced.length >= count, `${count} nodes to be fenced`);
}

/** Resolves when a node says that it serves nothing. */
async function unready(node: StageNode): Promise<void> {
  // The node learns of its last beat later than the database, which counts from then.
  const notReady = async () => (await fetch(node.url.replace('/mcp', '/readyz'))).status === 503;
  await until(notReady, 'the node to say that its lease is over');
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function report(id: string, sorted: readonly number[]): void {
  const shown = [0.5, 0.99, 1].map((share) => percentile(sorted, share).toFixed(0)).join(' / ');
  process.stdout.write(`${id}: ${sorted.length} takeovers, p50 / p99 / max: ${shown} ms\n`);
}

test('a wait for nodes that do not come ends, with the living nodes, the owners of all cells and the logs', async () => {
  const { alive } = await stage.state();
  const error = await stage.settled(alive.length + 1, 0).catch((error: Error) => error);
  assert.instance(error, Error);
  for (const part of [...alive, ...stage.nodes.flatMap(({ linkPort }) => [`${linkPort}: `, `link port ${linkPort}, `])])
    assert.ok(String(error).includes(part), `${part} is not in ${String(error)}`);
});

test(`D-01: after each of ${KILLS} kills another node serves before the lease ends, and nothing acknowledged is lost or doubled`, async () => {
  const before = (await stage.state()).fenced.length;
  const all: number[] = [];
  for (let round = 0; round < KILLS; round += 1) {
    const node = await victim();
    const clients = await clientsOf(node);
    const kill = async (): Promise<void> => {
      await node.kill();
      await stage.extendLease(node);
    };
    all.push(...(await outages(clients, kill)));
    conclusive(() => assert.equal(crowd.violations.found, []));
    await node.start();
    await stage.settled();
  }
  all.sort((a, b) => a - b);
  report('D-01', all);
  assertFigure(percentile(all, 0.99), GOALS.killP99Ms, 'D-01, p99');
  assertFigure(percentile(all, 1), GOALS.killMs, 'D-01, maximum');
  // A machine that is so busy that a node does not beat for a lease has that one fenced, too.
  assert.ok((await stage.state()).fenced.length - before >= KILLS);
  conclusive(() => assert.equal(crowd.violations.found, []));
});

if (SCALE !== 'quick') {
  test(`D-02: a paused node is taken over after its lease, and tells its clients nothing when it runs on (${PAUSES} rounds)`, async () => {
    const all: number[] = [];
    for (let round = 0; round < PAUSES; round += 1) {
      const node = await victim();
      const clients = await clientsOf(node);
      await stage.onlyFences(node, 'silence');
      const { fenced } = await stage.state();
      // A stream of a session that this node owns, at the port of the node.
      const session = await ownSession(node);
      const stream = await session.count();
      await stream.first;
      const pauseNode = (): void => {
        node.signal('SIGSTOP');
        stage.balancer.takeOut(node.port);
      };
      all.push(...(await outages(clients, pauseNode)));
      await fencings(fenced.length + 1);
      const heard = stream.text();
      node.signal('SIGCONT');
      await stream.ended;
      assert.equal(await unstored(stream.text().slice(heard.length)), []);
      stage.balancer.putBack(node.port);
      await stage.settled();
      assert.is((await stage.state()).fenced.length, fenced.length + 1);
    }
    all.sort((a, b) => a - b);
    report('D-02', all);
    assertFigure(percentile(all, 1), GOALS.leaseMs, 'D-02, maximum');
    conclusive(() => assert.equal(crowd.violations.found, []));
  });

  test('D-04: a node that is cut off from its database acknowledges nothing, and another node takes over', async () => {
    const node = await victim();
    const clients = await clientsOf(node);
    await stage.onlyFences(node, 'silence');
    const { fenced } = await stage.state();
    const all = await outages(clients, () => {
      node.cable.cut();
      stage.balancer.takeOut(node.port);
    });
    await fencings(fenced.length + 1);
    await unready(node);
    report('D-04', all);
    assertFigure(percentile(all, 1), GOALS.leaseMs, 'D-04, maximum');
    node.cable.heal();
    stage.balancer.putBack(node.port);
    await stage.settled();
    assert.is((await stage.state()).fenced.length, fenced.length + 1);
    conclusive(() => assert.equal(crowd.violations.found, []));
  });

  test('D-14: a loop that is blocked for 1.5 s costs nothing but time, and one that is blocked for 12 s its cells', async () => {
    const node = await victim();
    await stage.onlyFences(node, 'loop');
    const { fenced } = await stage.state();
    for (let round = 0; round < 3; round += 1) {
      await block(node, 1_500);
      await Promise.all(crowd.clients.map((client) => crowd.served(client)));
    }
    assert.is((await stage.state()).fenced.length, fenced.length);
    const clients = await clientsOf(node);
    const occupy = (): Promise<void> => {
      stage.balancer.takeOut(node.port);
      return block(node, 12_000);
    };
    report('D-14', await outages(clients, occupy));
    await fencings(fenced.length + 1);
    stage.balancer.putBack(node.port);
    await stage.settled();
    assert.is((await stage.state()).fenced.length, fenced.length + 1);
    conclusive(() => assert.equal(crowd.violations.found, []));
  });
}

/** Occupies the event loop of a node. */
async function block(node: StageNode, ms: number): Promise<void> {
  const client = new ModernClient(node.url, 'blocker', crowd.violations);
  await client.run('block', { ms });
}

/**
 * The events of a stream that the database does not have: its next owner does not know them. Events that were stored
 * before the pause may arrive after it.
 */
async function unstored(text: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const [event = '', stream = '', seq = '', data = ''] of text.matchAll(/^id: (.+)_(\d+)\ndata: (.*)$/gm)) {
    const rows = await stage.query(`SELECT data FROM troupe.event WHERE stream = '${stream}' AND seq = ${seq}`);
    if (rows[0]?.data !== data) missing.push(event);
  }
  return missing;
}

interface Counting {
  /** Resolves with its first bytes. */
  readonly first: Promise<void>;
  /** Resolves when the node has closed it. */
  readonly ended: Promise<void>;
  /** All that it has sent so far. */
  text(): string;
}

/** A session whose cell this node owns, at the node's own port. */
async function ownSession(node: StageNode): Promise<{ count(): Promise<Counting> }> {
  for (let attempt = 0; ; attempt += 1) {
    const client = new LegacyClient(node.url, `own${node.port}-${attempt}`, crowd.violations);
    await client.open();
    const { owners } = await stage.state();
    if (owners[client.sessionCell] === node.linkPort) return { count: () => counting(client) };
  }
}

async function counting(client: LegacyClient): Promise<Counting> {
  const response = await client.stream('count', { to: 10_000, ms: 10 });
  const reader = response.body?.getReader();
  if (!reader) throw new Error('the response has no body');
  let text = '';
  const decoder = new TextDecoder();
  let began = (): void => {};
  const first = new Promise<void>((resolve) => {
    began = resolve;
  });
  const read = async (): Promise<void> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      began();
    }
  };
  // A connection that breaks has ended, too.
  return { first, ended: read().catch(() => {}), text: () => text };
}
