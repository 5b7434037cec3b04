/** The sessions benchmark: 10,000 idle ones in one process (`--sessions N` for another number). Fails where they weigh too much, or do not go. */
import { parseArgs } from 'node:util';
import { host, type Weight } from './hosting.ts';
import type { Measured } from './measured.ts';

/** The most that an idle session may weigh in the heap, in bytes. */
const GOAL = 8 * 1024;
/** A smaller number says little of one session: what the process does beside weighs more. */
const JUDGED = 1_000;
const CATALOGUES = [10, 200];
const TIMES = ['first', 'all', 'last'] as const;

const { values } = parseArgs({ options: { sessions: { type: 'string', default: '10000' } } });
const sessions = Number(values.sessions);
if (!Number.isSafeInteger(sessions) || sessions < 1 || sessions > 100_000) {
  process.stderr.write(`--sessions: expected a whole number from 1 to 100000, got ${values.sessions}\n`);
  process.exit(2);
}
const out = (line: string): void => void process.stdout.write(`${line}\n`);
const whole = (value: number): string => Math.round(value).toLocaleString('en');
const megabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1);

out(`${whole(sessions)} idle sessions over HTTP in one process, node ${process.version}`);
for (const tools of CATALOGUES) {
  const hosted = await host(sessions, tools);
  const { before, opened, idle, called, after, opening, longest, alone, waking, among, left } = hosted;
  const each = (weight: Weight, figure: keyof Weight = 'heap'): number => (weight[figure] - before[figure]) / sessions;
  const call = ({ perSecond, p50, p99 }: Measured): string =>
    `${whole(perSecond)}/s, p50 ${p50.toFixed(3)} ms, p99 ${p99.toFixed(3)} ms`;
  const course = (figure: keyof Weight): string =>
    [before, opened, idle, called, after].map((weight) => megabytes(weight[figure])).join(', ');
  const rows = [
    ['heap for each idle session', `${whole(each(idle))} bytes`],
    ['resident memory for each idle session', `${whole(each(idle, 'rss'))} bytes`],
    ['heap for each that was just opened; just called', `${whole(each(opened))}; ${whole(each(called))} bytes`],
    [
      'opening one: the first 100, all, the last 100',
      `${TIMES.map((which) => opening[which].toFixed(3)).join(', ')} ms`,
    ],
    [
      'the longest call with one session; while all go to rest',
      `${longest.still.toFixed(1)}; ${longest.resting.toFixed(1)} ms`,
    ],
    ['a call, 1 in flight, one session there', call(alone[1])],
    ['a call, 1 in flight, among all', call(among[1])],
    ['a call, 32 in flight, one session there', call(alone[32])],
    ['a call, 32 in flight, the first in each after its rest', call(waking)],
    ['a call, 32 in flight, among all', call(among[32])],
    ['sessions left after DELETE of all', whole(left)],
    ['heap with one, all opened, all idle, all called, all ended', `${course('heap')} MB`],
    ['resident memory, likewise', `${course('rss')} MB`],
  ];
  out(`\n| with ${tools} tools | |\n|---|---|`);
  for (const row of rows) out(`| ${row.join(' | ')} |`);
  const faults = [
    sessions >= JUDGED && each(idle) > GOAL
      ? `${whole(each(idle))} bytes of heap for each session, expected at most ${whole(GOAL)}`
      : '',
    left > 0 ? `${whole(left)} sessions answer after DELETE, expected none` : '',
  ].filter((fault) => fault !== '');
  for (const fault of faults) out(`\nbelow the goal: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}
if (sessions < JUDGED) out(`\nMemory is not judged below ${whole(JUDGED)} sessions.`);
