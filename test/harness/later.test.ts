/** A process that `laterBy` puts an hour ahead reads each date so, and measures durations as always. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { suite } from './door.ts';
import { laterBy } from './later.ts';

const test = suite('a later clock');
const HOUR_MS = 3_600_000;
/** Each way to read the date. The last one is 0 unless a given date stays as it is. */
const DATES = `JSON.stringify([
  Date.now(), new Date().getTime(), Date.parse(Date()), performance.timeOrigin + performance.now(),
  new Date(5).getTime() === 5 && new Date() instanceof Date ? Date.now() : 0,
])`;

test('a process, its thread and its child are an hour ahead by every date, and a given date stays', async () => {
  const child = `import('node:child_process').then(({ execFileSync }) => console.log(execFileSync(process.execPath, ['-p', ${JSON.stringify(DATES)}], { encoding: 'utf8' })));`;
  const thread = `import { Worker } from 'node:worker_threads'; new Worker(new URL(${JSON.stringify(`data:text/javascript,${encodeURIComponent(`console.log(${DATES})`)}`)}));`;
  const own = `console.log(${DATES});`;
  const began = Date.now();
  const ran = spawn(process.execPath, ['--input-type=module', '-e', `${thread} ${own} ${child}`], {
    env: { ...process.env, ...laterBy(HOUR_MS) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = (await text(ran.stdout)).trim().split(/\n+/);
  const ended = Date.now();
  assert.is(lines.length, 3, lines.join('\n'));
  for (const line of lines)
    for (const date of JSON.parse(line)) {
      // The text of a date has no milliseconds.
      assert.ok(date >= began + HOUR_MS - 1_000 && date <= ended + HOUR_MS + 1, `${date} in ${line}`);
    }
});
