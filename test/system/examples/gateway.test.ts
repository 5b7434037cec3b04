/** `examples/gateway` runs as it is, offline: three servers of this repository behind one command. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';

fullOnly('starts a gateway with three servers; the quick tests of `troupe gateway` are those of test/gateway');

const test = suite('examples/gateway');
const root = fileURLToPath(new URL('../../../', import.meta.url));
const state = mkdtempSync(join(tmpdir(), 'troupe-gateway-'));
test.after(() => rmSync(state, { recursive: true, force: true }));
const LOCK = `${root}examples/gateway/mcp.lock.json`;

for (const eras of ['legacy', 'modern'] as const)
  test(`a ${eras} client calls tools of three servers, is asked by one of them, and finds the tools of another`, async () => {
    const lock = readFileSync(LOCK, 'utf8');
    const asked: string[] = [];
    const client = await connect(
      {
        command: process.execPath,
        args: ['dist/lib/cli/main.js', 'gateway', 'examples/gateway/mcp.json'],
        cwd: root,
        env: { XDG_STATE_HOME: state },
      },
      {
        eras,
        // The gateway serves when it has listed its servers for the first time.
        probeMs: 60_000,
        elicit({ message }) {
          asked.push(message);
          return message.includes('address') ? { email: 'ada@example.com' } : { sure: true };
        },
      },
    );
    const names = (await client.tools()).map(({ name }) => name);
    assert.ok(names.includes('shop_order_create') && names.includes('find_tools') && names.includes('call_tool'));
    assert.equal(
      names.filter((name) => /refund|everything/.test(name)),
      ['refund'],
    );
    assert.match(textOf(await client.call('refund', { order: 'o-1' })), 'Paid 42 back for order o-1');
    assert.equal(asked, ['[desk] Pay 42 back for order o-1?', '[desk] Payment p-o-1 is on its way. Your address?']);
    const order = await client.call('shop_order_create', { customer: 'Ada' });
    assert.is(order.isError ?? false, false);
    assert.match(textOf(await client.call('find_tools', { query: 'simple text' })), /^everything_test_simple_text\(/m);
    const text = await client.call('call_tool', { name: 'everything_test_simple_text' });
    assert.match(textOf(text), /simple text/i);
    await client.close();
    assert.is(readFileSync(LOCK, 'utf8'), lock, 'the definitions are those that were approved');
  });
