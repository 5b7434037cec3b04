/** What queues has a bound, and beyond it a client is told at once, by the name of the bound; what was taken is served. */
import * as assert from 'uvu/assert';
import { createServer, DEFAULT_LIMITS, ErrorCode, http } from '../../../src/index.ts';
import { connect, SimulatedClock } from '../../../src/testing/testing.ts';
import { moduleUrl } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { errorResponse } from '../../harness/results.ts';
import { times } from '../../harness/scale.ts';
import { call } from '../http/modern.ts';

const test = suite('bounds');
const LIMIT = times(1_000, { quick: 60 });
const MESSAGES = 10 * LIMIT;

test(`R-10: of ${MESSAGES} requests to a table with room for ${LIMIT}, those beyond it are refused at once and the others are served`, async () => {
  const server = createServer({
    name: 'bounds',
    version: '1.0.0',
    clock: new SimulatedClock(),
    limits: { maxInFlight: LIMIT, maxRunning: 2 * LIMIT },
  });
  const finish: (() => void)[] = [];
  server.tool('wait', {}, () => new Promise<string>((resolve) => void finish.push(() => resolve('served'))));
  server.tool('light', {}, () => 'here');
  const crowd = await connect(server, { deadlineMs: 60_000 });
  const bystander = await connect(server);
  const outcomes = { served: 0, refused: 0, other: 0 };
  const calls = Array.from({ length: MESSAGES }, () =>
    crowd.call('wait').then(
      () => {
        outcomes.served += 1;
      },
      (error: unknown) => {
        const overloaded = error instanceof Error && 'code' in error && error.code === ErrorCode.Overloaded;
        outcomes[overloaded && /which is the limit.*maxInFlight/.test(error.message) ? 'refused' : 'other'] += 1;
      },
    ),
  );
  // Refused before anything is answered: nothing waits for the thousand that run.
  for (let turn = 0; turn < 50 && outcomes.refused < MESSAGES - LIMIT; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  assert.equal(outcomes, { served: 0, refused: MESSAGES - LIMIT, other: 0 });
  assert.is(finish.length, LIMIT);
  await bystander.call('light');
  for (const done of finish) done();
  await Promise.all(calls);
  assert.equal(outcomes, { served: LIMIT, refused: MESSAGES - LIMIT, other: 0 });
  await server.close();
});

test('R-10: over HTTP the refusal is 429, and says when to come again', async () => {
  const server = createServer({ name: 'bounds', version: '1.0.0', log: () => {}, limits: { maxStatelessInFlight: 5 } });
  const finish: (() => void)[] = [];
  server.tool('wait', {}, () => new Promise<string>((resolve) => void finish.push(() => resolve('served'))));
  const transport = http({ port: 0 });
  await server.listen(transport);
  const taken = Array.from({ length: 5 }, () => call(transport.url, 'wait'));
  while (finish.length < 5) await new Promise((resolve) => setImmediate(resolve));
  const began = performance.now();
  const refused = await call(transport.url, 'wait');
  const took = performance.now() - began;
  assert.is(refused.status, 429);
  assert.match(String(refused.headers['retry-after']), /^\d+$/);
  assert.match(await refused.text(), /-31001.*maxStatelessInFlight/);
  assertFigure(took, 500, 'the refusal');
  for (const done of finish) done();
  for (const answer of await Promise.all(taken)) assert.match(await answer.text(), /served/);
  await server.close();
});

test('each bound is an option, a whole number, and refused by name when it is none', async () => {
  for (const name of Object.keys(DEFAULT_LIMITS))
    assert.throws(
      () => createServer({ name: 'x', version: '1.0.0', limits: { [name]: 0 } }),
      new RegExp(
        `limits\\.${name}: expected .* from 1 to .*, got number 0|limits\\.${name}: expected a whole number of at least 1, got number 0`,
      ),
    );
});

test('a tool that runs in a thread is refused by the bound of its pool', async () => {
  const server = createServer({ name: 'x', version: '1.0.0', limits: { cpuThreads: 1, maxCpuQueue: 1 } });
  server.tool('heavy', { cpu: new URL(moduleUrl('test/fixtures/supervision/heavy.ts')), timeoutMs: 300 });
  const client = await connect(server);
  const codes = await Promise.all(
    Array.from({ length: 3 }, async () => (await errorResponse(client.call('heavy', { what: 'spin' }))).code),
  );
  assert.is(codes.filter((code) => code === ErrorCode.Overloaded).length, 1);
  await server.close();
});
