/** Shutdown of real processes that serve stdio: every way in which a client leaves, and what tools may have left behind. */
import * as assert from 'uvu/assert';
import { isToolResult } from '../../../src/core/protocol/result-shape.ts';
import { ErrorCode, type JsonObject } from '../../../src/index.ts';
import { ErrorResponse, type TestClient } from '../../../src/testing/testing.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { SELF } from '../fuzz/messages.ts';
import { spawnServer } from './child.ts';

fullOnly('stops programs; the quick test of a shutdown is the one of the server');

const test = suite('shutdown of a process');
const posix = process.platform !== 'win32';
const clean = { code: 0, signal: null };

function posixTest(title: string, body: () => Promise<void>): void {
  if (posix) test(title, body);
  else test.skip(title, 'signals are a POSIX matter');
}

/** Asks until it is refused: a signal takes its time. */
async function refused(client: TestClient): Promise<ErrorResponse> {
  for (;;) {
    const tried = await client.modern('tools/list').catch((error: unknown) => error);
    if (tried instanceof ErrorResponse) return tried;
    if (tried instanceof Error) throw tried;
  }
}

async function allArrive(answers: readonly Promise<JsonObject>[]): Promise<void> {
  for (const result of await Promise.all(answers)) {
    const [block] = isToolResult(result) ? result.content : [];
    assert.is(block?.type === 'text' && block.text.length, 200_000);
  }
}

test('end of input: a request in flight gets its answer, then it exits, though a tool left a timer', async () => {
  const { fixture, client } = spawnServer('server.ts');
  await client.initialize('2025-06-18');
  await client.call('leave');
  const answer = client.call('late');
  await fixture.said('late runs');
  await client.close();
  assert.equal((await answer).content, [{ type: 'text', text: 'late' }]);
  assert.equal(await fixture.exited, clean);
});

test('end of input: what outlasts the grace time is aborted, answered with -31003, and it exits', async () => {
  const { fixture, client } = spawnServer('server.ts', '200');
  const answer = errorResponse(client.modern('tools/call', { name: 'hang' }));
  await fixture.said('hang runs');
  await client.close();
  assert.is((await answer).code, ErrorCode.ShuttingDown);
  assert.equal(await fixture.exited, clean);
  assert.match(fixture.err, 'hang aborted: AbortError: the client ended its input');
});

test('end of input: a hundred large answers at once all arrive, though no pipe can take them', async () => {
  const { fixture, client } = spawnServer('server.ts');
  const answers = Array.from({ length: 100 }, () => client.modern('tools/call', { name: 'big' }));
  await client.close();
  await allArrive(answers);
  assert.equal(await fixture.exited, clean);
});

posixTest('SIGTERM drains: it answers what is in flight, refuses what is new, and exits', async () => {
  const { fixture, client } = spawnServer('server.ts', '60000');
  const answer = client.modern('tools/call', { name: 'late' });
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: 'h', method: 'tools/call', params: { name: 'hang', _meta: SELF } }));
  await fixture.said('late runs');
  await fixture.said('hang runs');
  fixture.process.kill('SIGTERM');
  assert.is((await refused(client)).code, ErrorCode.ShuttingDown);
  assert.equal((await answer).content, [{ type: 'text', text: 'late' }]);
  client.notify('notifications/cancelled', { requestId: 'h' });
  assert.equal(await fixture.exited, clean);
});

posixTest('SIGTERM: a hundred large answers at once all arrive, though no pipe can take them', async () => {
  const { fixture, client } = spawnServer('server.ts');
  const answers = Array.from({ length: 100 }, () => client.modern('tools/call', { name: 'big' }));
  await fixture.until(() => fixture.err.split('big runs').length === 101);
  fixture.process.kill('SIGTERM');
  await allArrive(answers);
  assert.equal(await fixture.exited, clean);
});

posixTest('a second SIGTERM exits at once, whatever is in flight', async () => {
  const { fixture, client } = spawnServer('server.ts', '60000');
  await client.initialize('2025-06-18');
  const answer = client.call('hang').catch((error: unknown) => String(error));
  await fixture.said('hang runs');
  fixture.process.kill('SIGTERM');
  await refused(client);
  fixture.process.kill('SIGTERM');
  assert.equal(await fixture.exited, { code: 143, signal: null });
  assert.match(String(await answer), 'the process is gone');
});

for (const ends of ['stdout', 'stdout and stderr']) {
  test(`a client that closes its end of ${ends} is gone: what is in flight is aborted, and it exits without a crash`, async () => {
    const { fixture, client } = spawnServer('server.ts');
    await client.initialize('2025-06-18');
    client.call('hang').catch(() => {});
    await fixture.said('hang runs');
    fixture.process.stdout?.destroy();
    if (ends !== 'stdout') fixture.process.stderr?.destroy();
    // It finds out when it writes.
    client.call('echo', { text: 'anybody there?' }).catch(() => {});
    assert.equal(await fixture.exited, clean);
    if (ends === 'stdout') assert.match(fixture.err, 'hang aborted: AbortError: client disconnected');
    assert.not.match(fixture.err, /EPIPE|Unhandled|incident/);
  });
}

for (const when of ['listens first', 'listens last']) {
  test(`stdin that ends while the server still registers is answered and ends it (it ${when})`, async () => {
    const { fixture, client } = spawnServer('slow-start.ts', when);
    const initialized = client.initialize('2025-06-18');
    const listed = client.send('tools/list');
    await fixture.said('registers one');
    await client.close();
    assert.is((await initialized).protocolVersion, '2025-06-18');
    const { tools } = await listed;
    if (when === 'listens last') assert.is(Array.isArray(tools) && tools.length, 3);
    assert.equal(await fixture.exited, clean);
    assert.not.match(fixture.err, /incident|Error/);
  });
}

for (const tool of ['flood', 'flood_at_once']) {
  test(`20,000 log messages to a client that does not read take no memory, and what it must have arrives (${tool})`, async () => {
    const { fixture, client, weights } = spawnServer('server.ts');
    await client.initialize('2025-06-18');
    await fixture.until(() => weights.length > 3);
    const before = weights.at(-1) ?? 0;
    fixture.process.stdout?.pause();
    const flooded = client.call(tool);
    const echoes = Array.from({ length: 50 }, (_, n) => client.call('echo', { text: `echo ${n}` }));
    await fixture.said('flooded');
    const since = weights.length;
    await fixture.until(() => weights.length > since + 5);
    const grown = (weights.at(-1) ?? 0) - before;
    // 100 MB were said. One waits in the stream, five in the emitter; the rest is what the saying itself allocates.
    assert.ok(grown < 50_000_000, `grew by ${grown} bytes`);
    fixture.process.stdout?.resume();
    assert.equal((await flooded).content, [{ type: 'text', text: 'flooded' }]);
    for (const [n, { content }] of (await Promise.all(echoes)).entries())
      assert.equal(content, [{ type: 'text', text: `echo ${n}` }]);
    const logged = client.notifications.map(({ params }) => params.data);
    const note = /^(\d+) notifications were dropped because the client reads too slowly$/;
    const dropped = logged.flatMap((data) => note.exec(String(data))?.[1] ?? []);
    assert.is(dropped.length, 1);
    assert.is(logged.length - 1 + Number(dropped[0]), 20_000);
    assert.ok(Number(dropped[0]) > 10_000);
    await client.close();
    assert.equal(await fixture.exited, clean);
  });
}
