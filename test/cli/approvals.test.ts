/** `troupe approvals`: the list, the text of one, decisions through the inspector of a running server, and its usage errors. */
import * as assert from 'uvu/assert';
import { type OpenInspector, openInspector } from '../../src/inspector/inspector.ts';
import {
  as,
  BY_OPS,
  CALL,
  outcomes,
  pendingId,
  refund,
  type Shop,
  shop,
  textIn,
} from '../features/approvals/support.ts';
import { suite } from '../harness/door.ts';
import { type Ran, troupe } from './in-process.ts';

const test = suite('troupe approvals');

interface Waiting {
  readonly made: Shop;
  readonly inspector: OpenInspector;
  readonly id: string;
  run(...args: readonly string[]): Promise<Ran>;
  again(): Promise<string>;
  close(): Promise<void>;
}

/** A shop with a refund of Ada's that waits, and an inspector. */
async function waiting(policy = BY_OPS, control = true): Promise<Waiting> {
  const made = shop(policy);
  const client = await as(made.server);
  const id = pendingId(await refund(client));
  const inspector = await openInspector(made.server, { control });
  return {
    ...{ made, inspector, id },
    run: (...args) => troupe(['approvals', ...args, '--server', inspector.url]),
    again: async () => textIn(await refund(client)),
    close: () => made.server.close(),
  };
}

test('lists what waits, shows all of it, and approves it: the call runs once', async () => {
  const { made, id, run, again, close } = await waiting();
  const list = await run();
  assert.is(list.code, 0, list.err);
  assert.match(list.out, id);
  assert.match(list.out, 'Refund: ada calls refund, until ');
  assert.match(list.out, 'Needs 1 × somebody with the scope ops');
  assert.match((await run('show', id.slice(0, 8))).out, '"order": "17"');
  const approved = await run('approve', id, '--as', 'olga', '--reason', 'paid twice');
  assert.is(approved.out, `${id} is approved\n`, approved.err);
  assert.is(await again(), 'refunded');
  assert.equal(made.ran, [CALL]);
  assert.equal(outcomes(made), ['asked', 'approved', 'used', 'done']);
  const decision = made.audit.find(({ outcome }) => outcome === 'approved');
  assert.equal([decision?.approver, decision?.via], ['olga', 'inspector']);
  assert.is((await run()).out, 'Nothing waits for people.\n');
  await close();
});

test('a denial has its reason, and one person counts once', async () => {
  const { id, run, again, close } = await waiting({ ...BY_OPS, quorum: 2 });
  await run('approve', id, '--as', 'olga');
  const twice = await run('approve', id, '--as', 'olga');
  assert.equal([twice.code, twice.out], [1, '']);
  assert.match(twice.err, 'this person has approved already');
  assert.is((await run('deny', id, '--as', 'otto', '--reason', 'ask Eve')).out, `${id} is denied\n`);
  assert.match(await again(), 'ask Eve');
  await close();
});

test('the caller cannot decide in their own name where somebody else must', async () => {
  const { id, run, close } = await waiting();
  const refused = await run('approve', id, '--as', 'ada');
  assert.is(refused.code, 1);
  assert.match(refused.err, 'this person may not decide');
  await close();
});

test('remembers an approval where the policy permits it, lists it and revokes it', async () => {
  const { made, id, run, again, close } = await waiting({ ...BY_OPS, remember: { for: 3_600_000, match: ['order'] } });
  assert.is((await run('approve', id, '--as', 'olga', '--remember')).code, 0);
  assert.is(await again(), 'refunded');
  assert.is(await again(), 'refunded');
  const [grant] = await made.server.approvals.grants();
  assert.match((await run()).out, `Remembered:\n${grant?.id}  refund of ada`);
  assert.is((await run('revoke', String(grant?.id), '--as', 'olga')).out, `revoked ${grant?.id}\n`);
  assert.match(await again(), 'Not carried out yet');
  await close();
});

test('an inspector without control decides nothing, and says so', async () => {
  const { made, id, run, close } = await waiting(BY_OPS, false);
  const refused = await run('approve', id);
  assert.is(refused.code, 1);
  assert.match(refused.err, 'no control');
  assert.is((await made.server.approvals.get(id))?.state, 'asked');
  await close();
});

const WRONG: readonly (readonly [readonly string[], number, string])[] = [
  [['decide'], 2, 'expected list, show, approve, deny, revoke, got decide'],
  [['approve'], 2, 'expected one ID, got none'],
  [['list', 'x'], 2, 'expected nothing more, got x'],
  [['deny', 'x', '--remember'], 2, '--remember: expected with approve'],
  [['approve', 'x'], 1, 'nothing that waits has the ID x'],
];

test('a wrong command line decides nothing, and says what was expected', async () => {
  const { run, close } = await waiting();
  for (const [args, code, expected] of WRONG) {
    const { code: ended, err } = await run(...args);
    assert.is(ended, code, err);
    assert.match(err, expected);
  }
  await close();
});
