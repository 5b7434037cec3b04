/** The benchmark in a few seconds, so that it does not rot: tiny numbers, and figures that nobody judges. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { hasPeers } from '../../../bench/contenders.ts';
import { judge } from '../../../bench/goals.ts';
import { before, merged, type Results, type Run } from '../../../bench/results.ts';
import { PARTS, type Part, ratio, type Series } from '../../../bench/series.ts';
import { compiled } from '../../harness/compiled.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { ofToday } from '../../harness/scale.ts';

fullOnly('runs parts of the benchmark');

const test = suite('the benchmark');
const root = fileURLToPath(new URL('../../..', import.meta.url));

function run(...args: readonly string[]): {
  readonly status: number | null;
  readonly out: string;
  readonly said: string;
} {
  const command = [compiled('bench/main.ts'), '--tiny', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' });
  return { status, out: stdout, said: stderr };
}

const TITLES: Readonly<Record<Part, string>> = {
  http: 'Echo over HTTP',
  stdio: 'Echo over stdio',
  sessions: 'Sessions',
  lists: '`tools/list` over HTTP',
  start: 'Cold start over stdio',
  streams: 'Progress events over HTTP',
  broadcast: 'A change told to every open stream',
  large: 'An argument of 10 MB over HTTP',
  durable: 'A store in a file, beside none',
  audit: 'An audit in the store, beside none',
  client: 'Clients',
  rules: 'Scopes and rules',
  guard: 'Guards',
  hop: 'A hop between nodes',
  gateway: 'Gateways',
  telemetry: 'Telemetry',
};
/** These parts take three quarters of the time: they start many processes or open many connections. The full run has two of them. */
const SLOW: readonly Part[] = [
  'start',
  'broadcast',
  'durable',
  'client',
  'rules',
  'guard',
  'hop',
  'gateway',
  'telemetry',
  'audit',
];
const QUICK = PARTS.filter((part) => !SLOW.includes(part));

test('its parts measure the floor and Troupe, whose answers are right', () => {
  const slow = ofToday(SLOW, 2);
  const parts = PARTS.filter((part) => QUICK.includes(part) || slow.includes(part));
  const { status, out, said } = run('--no-peers', ...parts.flatMap((part) => ['--only', part]));
  assert.is(status, 0, said);
  assert.is(said.match(/failed/)?.[0], undefined, said);
  const titles = Array.from(out.matchAll(/^### (.*)$/gm), ([, title]) => title);
  assert.equal(titles, ['The goals', ...parts.map((part) => TITLES[part])]);
  assert.ok(!/ failed \|/.test(out), out);
});

if (hasPeers())
  test('each peer answers in each way that it is compared in', () => {
    const { status, out, said } = run('--only', 'http');
    assert.is(status, 0, said);
    assert.is(said.match(/failed/)?.[0], undefined, said);
    for (const row of ['server 2.4 | modern', 'sdk 1.32 | session', 'fastmcp 4.20 | stateless', 'tmcp 1.20 | session'])
      assert.ok(out.includes(row), `${row} is not in ${out}`);
  });
else test.skip('each peer answers in each way that it is compared in', 'npm run bench installs them');

test('a part that it does not know is refused with those that it knows', () => {
  const { status, said } = run('--only', 'https');
  assert.is(status, 2);
  assert.is(
    said,
    '--only: expected one of http, stdio, sessions, lists, start, streams, broadcast, large, durable, audit, client, rules, guard, hop, gateway, telemetry, got https\n',
  );
});

const calls = (who: string, way: string, rounds: readonly (number | null)[]): Series => ({
  part: 'http',
  measure: 'calls',
  unit: '/s',
  who,
  way,
  size: 32,
  rounds,
});

test('shares are taken round by round, without those in which one failed', () => {
  const [slow, fast] = [calls('troupe', 'modern', [80, 400, null, 9]), calls('floor', 'modern', [100, 800, 5, 10])];
  assert.equal(ratio(slow, fast), { median: 0.8, least: 0.5, most: 0.9 });
});

test('a goal is met or missed by its share, and one without figures is not judged', () => {
  const judged = judge([calls('troupe', 'modern', [40]), calls('floor', 'modern', [100])]);
  assert.equal(judged, [
    {
      measure: 'modern tools/call over HTTP, 32 in flight',
      goal: '≥ 0.8 × the floor',
      measured: '0.4 (0.4 to 0.4)',
      met: false,
      missedBy: 0.5,
    },
  ]);
});

const machine = { cores: 2, cpu: 'one', gigabytes: 24, node: 'v20.20.2', platform: 'linux x64' };
const ran = (parts: readonly Part[], cpu: string): Run => ({
  ...{ parts, at: '2026-11-22T00:00:00.000Z', machine: { ...machine, cpu }, scale: 'full' },
  ...{ generator: 'wrk', load: 0, repeated: 0 },
});

test('the figures of a part that a run does not measure stay with the machine that measured them', () => {
  const start: Series = { ...calls('floor', 'script', [30]), part: 'start', measure: 'first answer', size: 20 };
  const earlier: Results = {
    runs: [ran(['http', 'start'], 'first')],
    series: [start, calls('floor', 'modern', [100])],
  };
  const { runs, series } = merged(earlier, {
    runs: [ran(['http'], 'second')],
    series: [calls('floor', 'modern', [200])],
  });
  assert.equal(
    runs.map(({ parts, machine: { cpu } }) => `${cpu}: ${parts.join()}`),
    ['first: start', 'second: http'],
  );
  assert.equal(series, [start, calls('floor', 'modern', [200])]);
});

test('the results that are kept name the Node of each start', () => {
  const starts = before()?.series.filter(({ part }) => part === 'start') ?? [];
  assert.ok(starts.length > 0);
  for (const { who, way, size } of starts) assert.ok(size >= 20, `${who}, ${way}: Node ${size}`);
});
