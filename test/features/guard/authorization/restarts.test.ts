/** After a restart a task still needs its scopes, and a call that runs again still has its caller (G-04). */
import * as assert from 'uvu/assert';
import { META } from '../../../../src/core/protocol/meta.ts';
import { type Auth, createServer, ErrorCode, type Server } from '../../../../src/index.ts';
import { connect, ErrorResponse, SimulatedClock, settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { Disk } from '../../tasks/durable/support.ts';
import { EXTENSION, idOf } from '../../tasks/support.ts';

const test = suite('rules after a restart');

test('G-04: a stored task needs the scopes of its call, and its handler has the same caller when it runs again', async () => {
  const disk = new Disk();
  const clock = new SimulatedClock();
  const seen: (Auth | undefined)[] = [];
  const open = (): Server => {
    const server = createServer({ name: 'shop', version: '1.0.0', clock, store: disk.life(), log() {} });
    server.tool('work', { task: 'required', rerun: true, scopes: ['orders'] }, (_, { auth }) => {
      seen.push(auth);
      return seen.length === 1 ? new Promise<string>(() => {}) : 'worked';
    });
    server.authorize(({ element }) => element.name !== 'work' || { scopes: ['tasks'] });
    return server;
  };
  const capabilities = { [META.clientCapabilities]: EXTENSION };
  const SCOPES = ['orders', 'tasks'];
  const first = open();
  const ada = await connect(first, { auth: { principal: 'ada', scopes: SCOPES } });
  const taskId = idOf(await ada.modern('tools/call', { name: 'work', arguments: {} }, capabilities));
  await settled();
  assert.is(seen.length, 1);
  // The first process is abandoned as it is: the second reads what it has stored.
  const second = open();
  const poor = await connect(second, { auth: { principal: 'ada', scopes: ['orders'] } });
  const refused = await poor.modern('tasks/get', { taskId }, capabilities).catch((error: unknown) => error);
  assert.instance(refused, ErrorResponse);
  assert.is(refused instanceof ErrorResponse && refused.code, ErrorCode.Forbidden);
  assert.equal(refused instanceof ErrorResponse && refused.data, { scope: 'orders tasks' });
  const rich = await connect(second, { auth: { principal: 'ada', scopes: SCOPES } });
  await settled();
  assert.is((await rich.modern('tasks/get', { taskId }, capabilities)).status, 'completed');
  assert.equal(
    seen.map((auth) => auth && [auth.principal, auth.scopes]),
    [
      ['ada', SCOPES],
      ['ada', SCOPES],
    ],
  );
});
