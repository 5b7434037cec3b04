/** The primary dies and its standby is promoted: nothing acknowledged is lost, no node is fenced, and clients are served again at once. */
import * as assert from 'uvu/assert';
import { cellIn } from '../../../src/core/protocol/cell.ts';
import { call } from '../../core/http/modern.ts';
import { type Answer, ask, initialize, openSession, type Session } from '../../core/http/support.ts';
import { conclusive, fullOnly, timeLimit } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { type Postgres, postgresSuite, startPostgres } from '../../harness/postgres.ts';
import { atScale } from '../../harness/scale.ts';
import { elapse } from '../../harness/wait.ts';
import { Crowd, outages } from './crowd.ts';
import { ClusterStage } from './stage.ts';

fullOnly('starts two databases; the quick tests of nodes are outages.test.ts and continuity.test.ts');

const test = postgresSuite('promotion');
const PROMOTIONS = atScale({ quick: 1, full: 1, proof: 5 });
/** Clients of each era. */
const CLIENTS = 4;
/** Milliseconds in which a node that takes another one for dead would have it fenced: a lease, and a beat. */
const VERDICT_MS = 2_500;
/** Longer than a node waits for the answer to its beat. */
const SILENCE_MS = 6_000;
/** The goal, after the new primary accepts writes. */
const BACK_MS = 1_000;

timeLimit(180_000 + PROMOTIONS * 60_000);

const VISITOR = { headers: { authorization: 'visitor' } };

let stage: ClusterStage;
/** The primary. */
let primary: Postgres;
let crowd: Crowd;
let session: Session;
/** The handle of a ledger without entries. */
let ledger: string;

test.before(async () => {
  primary = await startPostgres({ fsync: false });
  stage = await ClusterStage.open({ postgres: primary });
  session = await openSession(stage.url, '2025-11-25', VISITOR.headers);
  const created = await (await call(stage.url, 'ledger_create', {}, VISITOR)).text();
  ledger = /"handle":"([^"]+)"/.exec(created)?.[1] ?? '';
  crowd = new Crowd(stage.url, CLIENTS);
  await crowd.start();
});
test.after(async () => {
  await crowd.stop();
  await stage.close();
});

let calls = 0;
/** Calls that change something, by the era of their client. */
const CHANGES = {
  modern: () => call(stage.url, 'ledger_create', {}, VISITOR),
  legacy() {
    calls += 1;
    return session.call(calls, 'ledger_create');
  },
};

/** Its status, `Retry-After` and error code. */
async function outcomeOf(answer: Answer): Promise<readonly [number, string | undefined, string | undefined]> {
  const [, code] = /"code":(-?\d+)/.exec(await answer.text()) ?? [];
  return [answer.status, answer.headers['retry-after'], code];
}

/** Resolves when calls that change something are rejected. Meanwhile calls that only read what is in memory are served. */
async function rejected(): Promise<void> {
  for (const change of Object.values(CHANGES)) {
    let outcome = await outcomeOf(await change());
    while (outcome[0] !== 503 && outcome[2] !== '-32603') outcome = await outcomeOf(await change());
  }
  const opening = await ask(stage.url, { body: initialize('2025-11-25'), ...VISITOR });
  assert.equal((await outcomeOf(opening)).slice(0, 2), [503, '1']);
  assert.match(await (await call(stage.url, 'echo', { text: 'here' }, VISITOR)).text(), /here/);
  await read();
}

/** Reads the ledger, which loads it into the memory of its owner. */
async function read(): Promise<void> {
  const found = await (await call(stage.url, 'ledger_get', { handle: ledger }, VISITOR)).text();
  assert.match(found, /"structuredContent":.*"entries":\[\]/, found);
}

/** The former primary ends, and nodes notice it at once. */
async function killed(former: Postgres, standby: Postgres): Promise<void> {
  await former.kill('SIGKILL');
  const began = performance.now();
  await rejected();
  await stage.failOver(standby);
  process.stdout.write(`D-03: promoted ${(performance.now() - began).toFixed(0)} ms after the kill\n`);
}

/** The machine of the former primary is gone: what was sent to it gets no answer, and connections to it do not end. */
async function gone(former: Postgres, standby: Postgres): Promise<void> {
  for (const { cable } of stage.nodes) cable.cut();
  await former.kill('SIGKILL');
  await elapse(SILENCE_MS, 'the silence of the machine');
  await stage.failOver(standby, 'divert');
}

/** @returns the milliseconds from the promotion until each client is served, in order */
async function failOver(fault: typeof killed): Promise<readonly number[]> {
  const former = primary;
  const standby = await former.standby();
  await stage.settled();
  await stage.atRest(cellIn(ledger.replace(/^.*\//, '')) ?? -1);
  const before = await stage.state();
  await read();
  await fault(former, standby);
  primary = standby;
  const times = await outages(crowd.clients, () => {});
  await elapse(VERDICT_MS, 'a node is taken for dead');
  const after = await stage.state();
  assert.equal([[...after.alive].sort(), after.fenced], [[...before.alive].sort(), before.fenced]);
  conclusive(() => assert.equal(crowd.violations.found, []));
  await former.stop();
  return times;
}

test(`D-03: after each of ${PROMOTIONS} promotions of a standby clients of both eras are served, nothing acknowledged is lost or doubled, and no node is fenced`, async () => {
  const all: number[] = [];
  for (let round = 0; round < PROMOTIONS; round += 1) all.push(...(await failOver(killed)));
  assertFigure(Math.max(...all), BACK_MS, `D-03, the slowest of ${all.length} clients after a promotion`);
});

test('D-03: nodes follow a promotion although their connections to the former primary hang, and none is fenced', async () => {
  assertFigure(Math.max(...(await failOver(gone))), BACK_MS, 'D-03, the slowest client after a machine was gone');
});
