/** Approvals that handlers ask for (`ctx.approve`), what they learn of an approval (`ctx.approval`), and what has changed since the last. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import {
  type ApprovalRequest,
  type CallApproval,
  type Context,
  createServer,
  NotApproved,
  type Server,
  sqlite,
} from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { until } from '../../harness/wait.ts';
import { EXTENSION, idOf, keysOf, Modern } from '../tasks/support.ts';
import {
  ASKABLE,
  answer,
  answered,
  as,
  CALL,
  faultOf,
  INPUT,
  metaOf,
  OPS,
  outcomes,
  pendingId,
  questionOf,
  refund,
  type Shop,
  shop,
  textIn,
  theOnly,
} from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-handler-approvals-'));
const test = suite('approvals of handlers');
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** A shop whose tool `pay` asks for an approval in its handler. */
function paying(
  request: (args: { order: string; amount: number }) => ApprovalRequest,
): Shop & { readonly log: string[] } {
  const made = shop(undefined);
  const log: string[] = [];
  made.server.tool('pay', { input: INPUT }, async (args, ctx) => {
    const { order, amount } = args as { order: string; amount: number };
    log.push('looked');
    const { approvers } = await ctx.approve(request({ order, amount }));
    log.push(`paid ${amount}`);
    return `paid, approved by ${approvers.join()}`;
  });
  return Object.assign(made, { log });
}

const TITLED = ({ order, amount }: { order: string; amount: number }): ApprovalRequest => ({
  title: `Pay for ${order}`,
  show: { total: amount + 5 },
});

function pay(client: TestClient, args: JsonObject = CALL, capabilities: JsonObject = {}, more: JsonObject = {}) {
  return client.modern(
    'tools/call',
    { name: 'pay', arguments: args, ...more },
    { [META.clientCapabilities]: capabilities },
  );
}

async function payAnswered(client: TestClient, reply: JsonObject): Promise<JsonObject> {
  const { key, state } = questionOf(await pay(client, CALL, ASKABLE));
  return pay(client, CALL, ASKABLE, { requestState: state, inputResponses: { [key]: reply } });
}

test('ctx.approve asks the caller in the form of the client, and the handler continues once with its approval', async () => {
  const made = paying(TITLED);
  const client = await as(made.server);
  const { message } = questionOf(await pay(client, CALL, ASKABLE));
  assert.match(message, /^Pay for 17\n/);
  assert.match(message, /Its handler asks for:\n\{\n {2}"total": 125\n\}\n\nArguments:/);
  await made.server.approvals.decide((await theOnly(made.server)).id, {
    approver: { principal: 'ada' },
    decision: 'deny',
  });
  await made.clock.advance(600_001);
  assert.is(textIn(await payAnswered(client, answer('approve'))), 'paid, approved by ada');
  assert.equal(made.log, ['looked', 'looked', 'paid 120']);
  assert.equal(outcomes(made).slice(-4), ['asked', 'approved', 'used', 'done']);
  await made.server.close();
});

test('a denied ctx.approve throws what the model reads, and the same call asks nothing for ten minutes', async () => {
  const made = paying(TITLED);
  const client = await as(made.server);
  const denied = await payAnswered(client, answer('deny', { reason: 'no' }));
  assert.match(textIn(denied), /The call of "pay" ended before "Pay for 17", which was not carried out: it was denied/);
  assert.is(metaOf(denied).state, 'denied');
  assert.match(textIn(await pay(client, CALL, ASKABLE)), /it was denied/);
  assert.equal(made.log, ['looked', 'looked']);
  // A denial is no fault of the handler.
  assert.not.match(made.told.join('\n'), /incident/);
  await made.server.close();
});

test('a call that cannot wait for somebody else says so, and the next call with the same arguments continues, once', async () => {
  const made = paying((args) => ({ ...TITLED(args), by: { scope: 'ops' } }));
  const client = await as(made.server);
  const first = await pay(client);
  const id = pendingId(first);
  assert.match(
    textIn(first),
    /Not carried out yet: "Pay for 17" in this call of "pay" needs the approval of somebody with/,
  );
  assert.is(pendingId(await pay(client)), id);
  await made.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.is.not(pendingId(await pay(client, { order: '17', amount: 121 })), id);
  assert.is(textIn(await pay(client)), 'paid, approved by olga');
  assert.is.not(pendingId(await pay(client)), id);
  assert.equal(
    made.log.filter((line) => line.startsWith('paid')),
    ['paid 120'],
  );
  await made.server.close();
});

test('an approval of a handler is bound to what it shows', async () => {
  let total = 100;
  const made = paying(() => ({ title: 'Pay', show: { total }, by: { scope: 'ops' } }));
  const client = await as(made.server);
  const id = pendingId(await pay(client));
  await made.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  total = 1_000;
  assert.is.not(pendingId(await pay(client)), id);
  total = 100;
  assert.is(textIn(await pay(client)), 'paid, approved by olga');
  await made.server.close();
});

test('a keyed call that waits in its handler is not stored as an outcome', async () => {
  const made = paying((args) => ({ ...TITLED(args), by: { scope: 'ops' } }));
  const client = await as(made.server);
  const keyed = (): Promise<JsonObject> =>
    client.modern('tools/call', { name: 'pay', arguments: CALL }, { [META.idempotencyKey]: 'k' });
  const id = pendingId(await keyed());
  await made.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.is(textIn(await keyed()), 'paid, approved by olga');
  await made.server.close();
});

test('a handler that catches NotApproved and returns a result has that result', async () => {
  const made = shop(undefined);
  made.server.tool('pay', { input: INPUT }, async (_, ctx) => {
    try {
      await ctx.approve({ title: 'Pay' });
      return 'paid';
    } catch (error) {
      if (!(error instanceof NotApproved)) throw error;
      return 'put aside';
    }
  });
  assert.is(textIn(await payAnswered(await as(made.server), answer('deny'))), 'put aside');
  await made.server.close();
});

test('two parts of a handler are approved one after the other, also with one title', async () => {
  const made = shop(undefined);
  made.server.tool('pay', { input: INPUT }, async (_, ctx) => {
    const one = await ctx.approve({ title: 'Pay', show: { rate: 1 } });
    const two = await ctx.approve({ title: 'Pay', show: { rate: 2 } });
    return one.id === two.id ? 'one approval' : 'paid twice';
  });
  const client = await as(made.server);
  const first = questionOf(await pay(client, CALL, ASKABLE));
  const second = questionOf(
    await pay(client, CALL, ASKABLE, {
      requestState: first.state,
      inputResponses: { [first.key]: answer('approve') },
    }),
  );
  assert.match(second.message, /"rate": 2/);
  // What differs from the part that was approved before.
  assert.match(second.message, /- rate: 1 → 2/);
  const result = await pay(client, CALL, ASKABLE, {
    requestState: second.state,
    inputResponses: { [second.key]: answer('approve') },
  });
  assert.is(textIn(result), 'paid twice');
  await made.server.close();
});

test('a task waits in its handler for somebody else', async () => {
  const made = shop(undefined);
  made.server.tool('wipe', { task: 'required' }, async (_, ctx) => {
    const { approvers, reason } = await ctx.approve({ title: 'Wipe', by: { scope: 'ops' } });
    return `wiped: ${approvers.join()}, ${reason}`;
  });
  const client = new Modern(await as(made.server));
  const id = idOf(await client.call('wipe'));
  await settled();
  await made.clock.advance(3_000_000);
  assert.is(await client.status(id), 'working');
  const decision = { approver: OPS, decision: 'approve', reason: 'checked' } as const;
  await made.server.approvals.decide((await theOnly(made.server)).id, decision);
  await settled();
  assert.is(await client.said(id), 'wiped: olga, checked');
  await made.server.close();
});

/** Requests that are none, and places without people. */
const INVALID: readonly (readonly [string, unknown, RegExp])[] = [
  ['no title', {}, /ctx\.approve: title: expected a string/],
  ['a preview', { title: 'x', preview: 'look' }, /preview: no such option/],
];

for (const [title, request, words] of INVALID)
  test(`ctx.approve with ${title} is rejected in words`, async () => {
    const made = shop(undefined);
    made.server.tool('pay', { input: INPUT }, async (_, ctx) => {
      await ctx.approve(request as ApprovalRequest);
      return 'paid';
    });
    assert.match(textIn(await pay(await as(made.server), CALL, ASKABLE)), words);
    assert.equal(await made.server.approvals.list({ state: 'all' }), []);
    await made.server.close();
  });

test('a resource and a prompt cannot ask for an approval', async () => {
  const { server } = shop(undefined, { errors: 'message' });
  server.resource('app://a', async (_, ctx) => (await ctx.approve({ title: 'Read' })).id);
  const client = await as(server);
  const { message } = await errorResponse(client.modern('resources/read', { uri: 'app://a' }));
  assert.match(message, /ctx\.approve: only the handler of a tool can ask for an approval, got resources\/read/);
  await server.close();
});

test('an anonymous caller whose client cannot be asked is refused in the handler', async () => {
  const made = paying(TITLED);
  assert.match(textIn(await pay(await connect(made.server))), /ended before "Pay for 17".*has not signed in/);
  await made.server.close();
});

test('a rule that rejects the call while its handler waits stops it', async () => {
  const made = paying(TITLED);
  const client = await as(made.server);
  let isOpen = true;
  made.server.authorize(() => isOpen);
  const { key, state } = questionOf(await pay(client, CALL, ASKABLE));
  isOpen = false;
  const retry = pay(client, CALL, ASKABLE, { requestState: state, inputResponses: { [key]: answer('approve') } });
  const refused = await retry.then(
    (result) => result.isError,
    () => true,
  );
  assert.is(refused, true);
  assert.equal(made.log, ['looked']);
  await made.server.close();
});

/** A server in a file, whose task asks twice, with a step between, and stops where the test says. */
function asking(path: string, ran: string[], stopped: (where: string) => Promise<void> | undefined): Server {
  const server = createServer({ name: 'shop', version: '1.0.0', store: sqlite(path), log: () => {} });
  server.tool('move', { task: 'required', rerun: true }, async (_, ctx: Context) => {
    await ctx.approve({ title: 'Lock', by: { scope: 'ops' } });
    await stopped('after the first approval');
    await ctx.step('lock', () => void ran.push('locked'));
    await stopped('after the step');
    await ctx.approve({ title: 'Move', by: { scope: 'ops' } });
    ran.push('moved');
    return 'moved';
  });
  return server;
}

/** Where the first process ends, and whether the next one continues. */
const STOPS: readonly (readonly [string, boolean])[] = [
  ['after the first approval', false],
  ['after the step', true],
];

for (const [where, continues] of STOPS)
  (continues ? test.full : test)(
    `R-56: a handler whose process ends ${where} ${continues ? 'continues with its first approval' : 'is not run again with it'}`,
    async () => {
      const path = join(folder, `${where.replaceAll(' ', '-')}.db`);
      const ran: string[] = [];
      let arrived = false;
      const first = asking(path, ran, (at) => {
        if (at !== where) return undefined;
        arrived = true;
        return new Promise(() => {});
      });
      const client = await as(first);
      const taskId = idOf(
        await client.modern('tools/call', { name: 'move', arguments: {} }, { [META.clientCapabilities]: EXTENSION }),
      );
      await until(async () => (await first.approvals.list()).length === 1);
      await first.approvals.decide((await theOnly(first)).id, { approver: OPS, decision: 'approve' });
      await until(async () => arrived);
      await first.close();
      const second = asking(path, ran, () => undefined);
      const later = await as(second);
      const look = (): Promise<JsonObject> =>
        later.modern('tasks/get', { taskId }, { [META.clientCapabilities]: EXTENSION });
      if (continues) {
        await until(async () => (await second.approvals.list()).length === 1);
        await second.approvals.decide((await theOnly(second)).id, { approver: OPS, decision: 'approve' });
      }
      await until(async () => (await look()).status !== 'working');
      const { result } = await look();
      const text = textIn(isObjectInTest(result) ? result : {});
      if (continues) assert.is(text, 'moved');
      else assert.match(text, /it is not known whether it was carried out/);
      assert.equal(ran, continues ? ['locked', 'moved'] : []);
      await second.close();
    },
  );

/** Where the process of an approved task ends, and whether the next one continues it. */
for (const [where, continues] of [
  ['before its first step', false],
  ['after a step', true],
] as const)
  (continues ? test : test.full)(
    `R-56: an approved task whose process ends ${where} ${continues ? 'continues with its approval' : 'is not run again'}`,
    async () => {
      const path = join(folder, `task-${where.replaceAll(' ', '-')}.db`);
      const ran: string[] = [];
      let arrived = false;
      const opened = (stops: boolean): Server => {
        const server = createServer({ name: 'shop', version: '1.0.0', store: sqlite(path), log: () => {} });
        server.tool('move', { task: 'required', approve: { by: { scope: 'ops' } } }, async (_, { step, approval }) => {
          if (continues) await step('lock', () => void ran.push('locked'));
          if (stops) {
            arrived = true;
            await new Promise(() => {});
          }
          ran.push(`moved, approved by ${approval?.approvers.join()}`);
          return 'moved';
        });
        return server;
      };
      const first = opened(true);
      const client = await as(first);
      const taskId = idOf(
        await client.modern('tools/call', { name: 'move', arguments: {} }, { [META.clientCapabilities]: EXTENSION }),
      );
      await until(async () => (await first.approvals.list()).length === 1);
      await first.approvals.decide((await theOnly(first)).id, { approver: OPS, decision: 'approve' });
      await until(async () => arrived);
      await first.close();
      const second = opened(false);
      const later = await as(second);
      const look = (): Promise<JsonObject> =>
        later.modern('tasks/get', { taskId }, { [META.clientCapabilities]: EXTENSION });
      await until(async () => (await look()).status !== 'working');
      const { result } = await look();
      const text = textIn(isObjectInTest(result) ? result : {});
      if (continues) assert.is(text, 'moved');
      else assert.match(text, /it is not known whether it was carried out/);
      assert.equal(ran, continues ? ['locked', 'moved, approved by olga'] : []);
      const [approval] = await second.approvals.list({ state: 'all' });
      assert.is(approval?.state, continues ? 'done' : 'unknown');
      await second.close();
    },
  );

test('ctx.approval has the approval of a call, and is undefined for a call that needed none', async () => {
  const made = shop(undefined);
  const seen: (CallApproval | undefined)[] = [];
  made.server.tool('pay', { input: INPUT, approve: { by: ['caller', { scope: 'ops' }] } }, (_, { approval }) => {
    seen.push(approval);
    return 'paid';
  });
  made.server.tool('look', (_, { approval }) => {
    seen.push(approval);
    return 'looked';
  });
  const client = await as(made.server);
  const id = pendingId(await pay(client));
  await made.server.approvals.decide(id, { approver: { principal: 'ada' }, decision: 'approve' });
  await made.server.approvals.decide(id, { approver: OPS, decision: 'approve', reason: 'checked' });
  await pay(client);
  await client.modern('tools/call', { name: 'look', arguments: {} });
  assert.equal(seen, [{ id, approvers: ['ada', 'olga'], reason: 'checked' }, undefined]);
  await made.server.close();
});

test('ctx.approval of a call that a remembered approval has approved names it', async () => {
  const made = shop(undefined);
  const seen: (CallApproval | undefined)[] = [];
  const approve = { by: 'caller', remember: { for: 60_000 } } as const;
  made.server.tool('pay', { input: INPUT, approve }, (_, { approval }) => {
    seen.push(approval);
    return 'paid';
  });
  const client = await as(made.server);
  await payAnswered(client, answer('approve', { remember: true }));
  await pay(client, CALL, ASKABLE);
  const [grant] = await made.server.approvals.grants();
  assert.equal(
    seen.map((each) => [each?.approvers, each?.grant]),
    [
      [['ada'], undefined],
      [[], grant?.id],
    ],
  );
  await made.server.close();
});

/** The arguments of a second call, after one of `{ order: '17', amount: 120 }` was approved, and what people read of the difference. */
const DIFFERENCES: readonly (readonly [string, JsonObject, RegExp])[] = [
  [
    'the same arguments',
    CALL,
    /\nNothing differs from the last call of this tool by the same caller that was approved/,
  ],
  ['another amount', { order: '17', amount: 12_000 }, /\nDifferences from [^\n]+:\n- amount: 120 → 12000\n/],
  ['a member more', { ...CALL, note: 'x' }, /:\n- note: absent → "x"\n/],
  ['hidden characters', { order: '1\u202e7', amount: 120 }, /:\n- order: "17" → "1\\u202e7"\n/],
  ['a long value', { order: 'x'.repeat(500), amount: 120 }, /:\n- order: "17" → a longer value\n/],
  [
    'more members than are shown',
    { ...CALL, ...Object.fromEntries(Array.from({ length: 30 }, (_, place) => [`m${place}`, place])) },
    /- m26: absent → 26\n- and 10 more\n/,
  ],
];

for (const [title, args, words] of DIFFERENCES)
  test(`people see what has changed since the last approved call: ${title}`, async () => {
    const made = shop({ by: 'caller' });
    const client = await as(made.server);
    await answered(client, answer('approve'));
    assert.match(questionOf(await refund(client, args, ASKABLE)).message, words);
    await made.server.close();
  });

test('people see that the definition has changed since the last approved call, and nothing of the calls of others', async () => {
  const made = shop(undefined);
  const registered = made.server.tools.register({
    name: 'pay',
    description: 'Pays.',
    approve: true,
    handler: () => 'ok',
  });
  const client = await as(made.server);
  const { key, state } = questionOf(await pay(client, {}, ASKABLE));
  await pay(client, {}, ASKABLE, { requestState: state, inputResponses: { [key]: answer('approve') } });
  registered.remove();
  made.server.tools.register({ name: 'pay', description: 'Pays twice.', approve: true, handler: () => 'ok' });
  const { message } = questionOf(await pay(client, {}, ASKABLE));
  assert.match(message, /- the definition of the tool: description has changed/);
  assert.not.match(questionOf(await pay(await as(made.server, 'bob'), {}, ASKABLE)).message, /iffer/);
  await made.server.close();
});

test('people compare only what the operator lets them see', async () => {
  const redact = (args: JsonObject): JsonObject => ({ ...args, order: '…' });
  const made = shop({ by: 'caller' }, { audit: { redact, to: () => {} } });
  const client = await as(made.server);
  await answered(client, answer('approve'));
  const { message } = questionOf(await refund(client, { order: 'secret', amount: 1 }, ASKABLE));
  assert.not.match(message, /secret|"17"/);
  assert.match(message, /- amount: 120 → 1\n/);
  await made.server.close();
});

test('a call that is denied is not what the next one is compared with', async () => {
  const made = shop({ by: 'caller' });
  const client = await as(made.server);
  await answered(client, answer('deny'));
  assert.not.match(questionOf(await refund(client, { order: '17', amount: 1 }, ASKABLE)).message, /iffer/);
  assert.is(await faultOf(made.server.approvals.decide('x', { approver: OPS, decision: 'approve' })), 'unknown');
  await made.server.close();
});

test('a session waits in a handler, and a task of a client that is asked continues', async () => {
  const made = shop(undefined);
  made.server.tool(
    'wipe',
    { task: 'required' },
    async (_, ctx) => `wiped ${(await ctx.approve({ title: 'Wipe' })).approvers}`,
  );
  const client = await connect(made.server, { auth: { principal: 'ada' }, elicit: () => ({ decision: 'approve' }) });
  made.server.tool('sell', async (_, ctx) => `sold by ${(await ctx.approve({ title: 'Sell' })).approvers}`);
  await client.initialize();
  assert.is(textIn(await client.call('sell')), 'sold by ada');
  const modern = new Modern(await as(made.server));
  const id = idOf(await modern.call('wipe'));
  await settled();
  const waiting = await modern.get(id);
  await modern.update(id, { [keysOf(waiting)[0] ?? '']: answer('approve') });
  await settled();
  assert.is(await modern.said(id), 'wiped ada');
  await made.server.close();
});
