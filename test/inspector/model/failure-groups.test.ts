/** The list of failures: equal failures of one tool are one group. */
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import { failuresOf, LIVE } from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { call, type FrameFeed, shop } from './frames.ts';

const test = suite('model: failures');

const failed = (id: number, text: string): Plain => ({
  ...{ jsonrpc: '2.0', id },
  result: { isError: true, content: [{ type: 'text', text }] },
});
const refused = (id: number, message: string): Plain => ({ jsonrpc: '2.0', id, error: { code: -32603, message } });

const lines = ({ model }: FrameFeed, seq = LIVE): readonly string[] =>
  failuresOf(model, seq).map(({ what, error, count }) => `${count} ${what}: ${error}`);

test('calls of one tool with one error are one row, with the first, the last and the newest', () => {
  const shopping = shop();
  const text = 'The printer is out of paper.';
  for (const id of [1, 2, 3]) {
    shopping.wire('in', call(id, 'print'));
    shopping.wire('out', failed(id, text));
  }
  const before = shopping.seq;
  shopping.wire('in', call(4, 'print'));
  shopping.wire('out', failed(4, 'The printer is on fire.'));
  assert.equal(lines(shopping), ['1 tools/call print: The printer is on fire.', `3 tools/call print: ${text}`]);
  const [group] = failuresOf(shopping.model, before);
  assert.equal([group?.count, group?.newest.exchange?.id], [3, '3']);
  assert.ok((group?.lastAt ?? 0) > (group?.firstAt ?? 0));
  assert.equal(lines(shopping, before - 2), [`2 tools/call print: ${text}`], 'at an earlier record there are fewer');
});

test('a call that waits for its approval is no failure, and one that was not approved is one', () => {
  const shopping = shop();
  const held = (id: number, approval: Plain): Plain => ({
    ...{ jsonrpc: '2.0', id },
    result: { isError: true, content: [{ type: 'text', text: 'held' }], _meta: { [META.approval]: approval } },
  });
  shopping.wire('in', call(1, 'refund'));
  shopping.wire('out', held(1, { id: 'a1', state: 'pending', waits: 'Somebody must approve this.' }));
  assert.is(shopping.model.exchanges.all.last?.status, 'asked');
  assert.equal(lines(shopping), []);
  shopping.wire('in', call(2, 'refund'));
  shopping.wire('out', held(2, { id: 'a1', state: 'denied' }));
  assert.equal(lines(shopping), ['1 tools/call refund: held']);
});

test('errors that differ only in the id of the incident are one row', () => {
  const shopping = shop();
  for (const [id, incident] of [
    [1, 'a1b2'],
    [2, 'c3d4'],
  ] as const) {
    shopping.wire('in', call(id, 'boom'));
    shopping.wire('out', refused(id, `Internal error (incident ${incident}; the server's log has the details)`));
  }
  assert.equal(lines(shopping), [
    "2 tools/call boom: Internal error (incident c3d4; the server's log has the details)",
  ]);
});

test('an error with several lines keeps them, without the frames of its stack', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'pay'));
  const error =
    'ToolError: Declined:\n- the card has expired\n    at pay (/home/ada/server.ts:3:9)\n    … 8 frames of troupe';
  shopping.record({ type: 'failed', actor: 'executor/tools', element: 'tool "pay"', error, incident: 'x7' }, asked);
  shopping.wire('out', failed(1, 'Declined'));
  assert.equal(lines(shopping), ['1 tools/call pay: Declined:\n- the card has expired']);
});

test('a crash and an event that no state handles are failures of their actors', () => {
  const shopping = shop();
  shopping.step('order_1', 'dim', [], ['cart']);
  shopping.record({ type: 'crashed', actor: 'order_1', mail: 'send pay', error: 'no card', quarantined: false });
  assert.equal(lines(shopping), ['1 order_1: no card', '1 order_1: did not handle dim in cart']);
});

test('the error that a handler threw is in place of the masked one', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'boom'));
  const error = 'Error: no card\n    at pay (/home/ada/server.ts:3:9)';
  shopping.record({ type: 'failed', actor: 'executor tools', element: 'tool "boom"', error, incident: 'a1' }, asked);
  shopping.wire('out', refused(1, "Internal error (incident a1; the server's log has the details)"));
  assert.equal(lines(shopping), ['1 tools/call boom: no card']);
});
