/** Code mode as a whole: mounted tools, the real sandbox, and the ways in which a run waits. */
import { createServer, type ServerOptions } from 'troupe';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { HANG_MS } from '../../harness/wait.ts';
import { ASKABLE, asked, resultIn, runModern } from './support.ts';

const test = suite('code mode');
const READS = { readOnlyHint: true } as const;

/** A gateway in front of a shop, of which it trusts what the tools say of themselves. */
function gateway(options: Partial<ServerOptions> = {}) {
  const refunded: unknown[] = [];
  const shop = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
  shop.tool(
    'orders',
    { annotations: READS, input: { type: 'object', properties: { page: { type: 'number' } } } },
    ({ page = 1 }: { page?: number }) => ({ orders: [page * 10, page * 10 + 1], next: page < 3 ? page + 1 : null }),
  );
  shop.tool('refund', { input: { type: 'object', properties: { order: { type: 'number' } } } }, (args: object) => {
    refunded.push(args);
    return 'refunded';
  });
  const server = createServer({ name: 'gateway', version: '1.0.0', log: () => {}, ...options });
  server.mount('shop', shop, { expose: 'code', trust: true });
  return { server, refunded };
}

test('a script pages through a mounted tool and returns what it has computed', async () => {
  const { server } = gateway();
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const code = `
    const all = [];
    for (let page = 1; page; ) {
      const { orders, next } = await shop.orders({ page });
      all.push(...orders);
      page = next;
    }
    return { count: all.length, last: all.at(-1) };`;
  assert.equal(resultIn(await runModern(client, { code })), { count: 6, last: 31 });
  await server.close();
});

test('the user approves each call that may change something, and may approve those that follow in the run', async () => {
  const { server, refunded } = gateway();
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const args = {
    code: 'const done = []; for (const order of [1, 2, 3]) done.push(await shop.refund({ order })); return done;',
  };
  const { keys, messages, state } = asked(await runModern(client, args));
  assert.match(messages[0] ?? '', /order/);
  assert.equal(refunded, []);
  const answer: JsonObject = { action: 'accept', content: { decision: 'approve', remember: true } };
  const inputResponses = { [keys[0] ?? '']: answer };
  const result = await runModern(client, args, { requestState: state, inputResponses });
  assert.equal(resultIn(result), ['refunded', 'refunded', 'refunded']);
  assert.is(refunded.length, 3);
  // The next run asks again.
  asked(await runModern(client, args));
  await server.close();
});

test('a call that the user denies throws, and nothing is changed', async () => {
  const { server, refunded } = gateway();
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const args = {
    code: 'try { await shop.refund({ order: 1 }); } catch ({ code, carriedOut }) { return [code, carriedOut]; }',
  };
  const { keys, state } = asked(await runModern(client, args));
  const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { decision: 'deny' } } };
  assert.equal(resultIn(await runModern(client, args, { requestState: state, inputResponses })), ['denied', false]);
  assert.equal(refunded, []);
  await server.close();
});

test('with effects "deny" a call that may change something fails, and with "allow" it runs', async () => {
  for (const [effects, outcome] of [
    ['deny', ['denied', false]],
    ['allow', 'refunded'],
  ] as const) {
    const { server } = gateway({ code: { effects } });
    const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
    const code =
      'try { return await shop.refund({ order: 1 }); } catch ({ code, carriedOut }) { return [code, carriedOut]; }';
    assert.equal(resultIn(await runModern(client, { code })), outcome);
    await server.close();
  }
});

test('an error of a script has its line, and a script that computes too long is stopped', async () => {
  const { server } = gateway({ code: { sliceMs: 100 } });
  const client = await connect(server, { auth: { principal: 'ada' }, deadlineMs: HANG_MS });
  const thrown = textOf(await runModern(client, { code: 'const a = 1;\nundefined.b;' }, {}, ASKABLE));
  assert.match(thrown, /TypeError: .*\(line 2/);
  const endless = textOf(await runModern(client, { code: 'while (true);' }));
  assert.match(endless, /The script was stopped: /);
  await server.close();
});
