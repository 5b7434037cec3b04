/** A stdio agent that stays for a day, in the calls that it makes: two crashes and one deploy with a new machine version, and it notices nothing. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { fullOnly, suite, timeLimit } from '../harness/door.ts';
import { atScale } from '../harness/scale.ts';
import { isBuilt } from './cli.ts';
import { type Answer, Talker, textOf } from './talker.ts';

fullOnly('makes 2,400 calls of one process; the quick test of `troupe run` is run.test.ts');

timeLimit(600_000);
const all = suite('a long-lived agent');
function test(title: string, body: () => Promise<void> | void): void {
  if (!isBuilt) all.skip(title, 'dist is not built: npm run build');
  else if (process.platform === 'win32') all.skip(title, 'the signals of this file are those of POSIX');
  else all(title, body);
}

/** One call a second, for a day. */
const CALLS = atScale({ quick: 2_400, full: 2_400, proof: 86_400 });
const IN_FLIGHT = 16;
const HANDLES = 8;

const COUNTER = fileURLToPath(new URL('../fixtures/supervised/counter.mjs', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'troupe-long-lived-'));
all.after(() => rmSync(root, { recursive: true, force: true }));

/** What a result has for programs. */
const structured = ({ result }: Answer): Readonly<Record<string, unknown>> => Object(result?.structuredContent ?? {});

test('R-01: through two kills and a deploy that migrates its handles, each call is answered once, and nothing is lost or done twice', async () => {
  writeFileSync(join(root, 'version'), '1');
  const agent = new Talker(['run', '--data', join(root, 'data'), COUNTER, '--', root]);
  const opened = await agent.ask('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'long-lived', version: '1.0.0' },
  });
  assert.is(opened.error, undefined);
  agent.tell('notifications/initialized');
  await agent.ask('tools/list');
  await agent.ask('resources/subscribe', { uri: 'notes://one' });
  const handles = await Promise.all(
    Array.from({ length: HANDLES }, async (_, index) => {
      const created = await agent.call('count_create', { idempotencyKey: `create-handle-${index}` });
      return String(structured(created).handle);
    }),
  );
  const sums = handles.map(() => 0);
  const noted = new Set<number>();
  const unknown: string[] = [];
  const pids = new Set<string>();
  const versions: string[] = [];

  const pid = async (): Promise<string> => {
    const serving = textOf(await agent.call('pid'));
    pids.add(serving);
    return serving;
  };
  const one = async (index: number): Promise<void> => {
    const which = index % HANDLES;
    const handle = handles[which] ?? '';
    switch (index % 6) {
      case 0:
        assert.equal((await agent.ask('ping')).result, {});
        return;
      case 1:
        assert.is(textOf(await agent.call('double', { n: index })), String(2 * index));
        return;
      case 2:
      case 3: {
        sums[which] = (sums[which] ?? 0) + index;
        const added = await agent.call('count_add', { handle, n: index, idempotencyKey: `add-${index}-to-${handle}` });
        textOf(added);
        return;
      }
      case 4: {
        const { result, error } = await agent.call('note', { n: index });
        if (result) noted.add(index);
        // What nobody can know is said, and left to the agent: it is not done twice.
        else unknown.push(error?.message ?? '');
        return;
      }
      default: {
        await pid();
        versions.push(textOf(await agent.call('version')));
        assert.ok((await agent.ask('resources/read', { uri: 'notes://one' })).result);
      }
    }
  };
  /** Does something to the process that serves, and waits until another does. */
  const renewed = async (how: (pid: number) => void): Promise<void> => {
    const before = await pid();
    how(Number(before));
    while ((await pid()) === before) await agent.ask('ping');
  };
  const kill = (): Promise<void> => renewed((serving) => process.kill(serving, 'SIGKILL'));
  const deploy = (): Promise<void> => {
    writeFileSync(join(root, 'version'), '2');
    return renewed(() => agent.process.kill('SIGHUP'));
  };
  const events = new Map([
    [Math.floor(CALLS * 0.25), kill],
    [Math.floor(CALLS * 0.5), deploy],
    [Math.floor(CALLS * 0.75), kill],
  ]);
  /** One after the other, while the calls go on. */
  let happened = Promise.resolve();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < CALLS) {
      const index = next++;
      const event = events.get(index);
      if (event) happened = happened.then(event);
      await one(index);
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  await happened;
  const seconds = (performance.now() - began) / 1_000;

  assert.equal(agent.strays, []);
  assert.is(pids.size, 4);
  assert.is(versions[0], '1');
  assert.is(versions.at(-1), '2');
  for (const [index, handle] of handles.entries()) {
    const { view, status } = structured(await agent.call('count_get', { handle }));
    assert.equal({ view, status }, { view: { sum: sums[index] }, status: 'active' });
  }
  const lines = readFileSync(join(root, 'noted'), 'utf8').trim().split('\n').map(Number);
  assert.is(new Set(lines).size, lines.length);
  for (const index of noted) assert.ok(lines.includes(index));
  assert.ok(unknown.length <= 2 * IN_FLIGHT, unknown.join('\n'));
  for (const why of unknown) assert.match(why, /not known|restarted/);
  assert.is(agent.err.split('restarting').length, 3);
  assert.is(agent.err.split('a new worker has loaded').length, 2);
  assert.is(await agent.end(), 0);
  process.stdout.write(
    `\n    ${CALLS} calls in ${seconds.toFixed(1)} s, ${unknown.length} of them told that nobody knows what they came to\n`,
  );
});
