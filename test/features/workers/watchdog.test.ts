/** The watchdog: a blocked loop is seen and named, its process ended and started again, and what blocked it twice is refused. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { OWN } from '../../../src/core/kernel/package-files.ts';
import { bounded, TooLong } from '../../../src/core/schema/bounded.ts';
import { describeStall, isOwnWork } from '../../../src/features/workers/blocked.ts';
import { installProbes } from '../../../src/features/workers/stall-probe.ts';
import { startWatchdog } from '../../../src/features/workers/watchdog.ts';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { assertFigure } from '../../harness/pace.ts';
import { atScale } from '../../harness/scale.ts';
import { elapse, until } from '../../harness/wait.ts';
import { Hosted } from './hosted.ts';

const test = suite('watchdog');
/** Long enough that a process which gets no processor for a while, as it starts, does not count as blocked. */
const hardMs = 3_000;
const softMs = 200;
const CHECKS = atScale({ quick: 1, full: 3, proof: 3 });

const folder = mkdtempSync(join(tmpdir(), 'troupe-watchdog-'));
test.after(() => rmSync(folder, { recursive: true }));

test('R-13: a handler that blocks the loop beyond the soft limit is logged, with its tool and where it is', async () => {
  const { server, logged: told } = loggedServer({ name: 'soft', watchdog: { softMs: 150 } });
  server.tool('block', {}, async () => {
    await Promise.resolve();
    spinHere(700);
    return 'over';
  });
  const client = await connect(server);
  // Its thread may take a while to begin to look.
  const found = (): string | undefined => told.find((line) => line.includes('by tool "block"'));
  for (let i = 0; i < 30 && !found(); i += 1) {
    await client.call('block');
    await elapse(200, 'its thread looks');
  }
  await server.close();
  assert.match(found() ?? '', /^warning: the event loop has been blocked for \d+ ms by tool "block"/);
  assert.match(found() ?? '', /spinHere.*watchdog\.test\.[jt]s/);
});

test('S-10: the watchdog asks nothing on top of a check that has a time limit, which its question could take away', async () => {
  const { server, logged } = loggedServer({ name: 'timed', watchdog: { softMs: 150 } });
  server.tool('block', {}, () => {
    spinHere(700);
    return 'over';
  });
  const client = await connect(server);
  await until(async () => {
    await client.call('block');
    return logged.some((line) => line.includes('by tool "block"'));
  }, 'its thread to look');
  let running = false;
  let asked = 0;
  const remove = installProbes(
    () => {
      if (running) asked += 1;
      return undefined;
    },
    () => {},
  );
  const forever = (): void => {
    running = true;
    for (;;);
  };
  // Each check computes for half a second.
  for (let run = 0; run < CHECKS; run += 1) {
    assert.throws(
      () => bounded(forever, 500),
      (error: unknown) => error instanceof TooLong,
    );
    running = false;
    await elapse(200, 'the watchdog sees the loop run');
  }
  remove();
  await server.close();
  assert.is(asked, 0);
});

test('one process has one watchdog, and the next begins when it has stopped', () => {
  const first = startWatchdog({ log: () => {} });
  assert.ok(first);
  assert.is(startWatchdog({ log: () => {} }), undefined);
  first.stop();
  const second = startWatchdog({ log: () => {} });
  assert.ok(second);
  second.stop();
});

for (const [what, frames, element, said, own] of [
  [
    'a tool',
    ['/home/ada/server.ts:8:3', `${OWN}core/a.js:1:1`, 'node:net:1:1'],
    'tool "spin"',
    'by tool "spin": no other',
    false,
  ],
  [
    'the author outside of a handler',
    ['/home/ada/server.ts:8:3', 'node:net:1:1'],
    undefined,
    'code outside of any handler',
    false,
  ],
  [
    'a package',
    ['/home/ada/node_modules/sharp/a.js:1:1', 'node:net:1:1'],
    undefined,
    'code outside of any handler',
    false,
  ],
  [
    'troupe',
    [`${OWN}core/a.js:1:1`, '/home/ada/node_modules/ajv/a.js:1:1'],
    undefined,
    /by troupe itself\n {4}… 1 frame of troupe, 1 of ajv; the first of troupe: at f \(.*core\/a.js:1:1\)$/,
    true,
  ],
] as const)
  test(`a stall by ${what} is described as such`, () => {
    const stack = frames.map((place) => `    at f (${place})`).join('\n');
    const culprit = { element, digest: undefined, actor: undefined, mail: undefined, stack };
    assert.match(describeStall({ at: 0, blockedMs: 300, culprit }), said);
    assert.is(isOwnWork(culprit), own);
  });

test('a stall shows the frames of the author, and counts the others', () => {
  const stack = `    at f (/home/ada/server.ts:8:3)\n${`    at g (${OWN}core/a.js:1:1)\n`.repeat(30)}    at node:net:1:1`;
  const culprit = { element: 'tool "spin"', digest: undefined, actor: undefined, mail: undefined, stack };
  const [, ...lines] = describeStall({ at: 0, blockedMs: 300, culprit }).split('\n');
  assert.equal(lines, ['    at f (/home/ada/server.ts:8:3)', '    … 30 frames of troupe, 1 of node']);
});

test('R-13: beyond the hard limit the process is ended; the bystanders are served again, and the third call is refused', async () => {
  const hosted = await Hosted.open({ config: { watchdog: { softMs, hardMs, record: join(folder, 'loop') } } });
  try {
    for (const time of [1, 2]) {
      const began = performance.now();
      const call = hosted.call('block', { ms: 600_000 }).catch((error: unknown) => String(error));
      await until(() => hosted.endings.length >= time, `end ${time} of the process`);
      const { signal = null, at = 0 } = hosted.endings[time - 1] ?? {};
      assert.is(signal, 'SIGKILL');
      assertFigure(at - began, hardMs + 1_000, 'ended');
      await call;
      const again = await hosted.served();
      assertFigure(again, 3_000, 'served again after it had ended');
    }
    await hosted.said(/blocked for \d+ ms by tool "block"[\s\S]*spin[\s\S]*the watchdog kills the process \(SIGKILL\)/);
    assert.match(await hosted.call('block', { ms: 600_000 }), /-32603.*blocked the server.*2 times.*incident/);
    // Another call of the same tool is no such call.
    assert.match(await hosted.call('block', { ms: 1 }), /over/);
    const letters = await hosted.call('letters');
    assert.match(letters, /tool .*block.*it blocked the event loop.*spin/);
    const [, incident = ''] = /incident (?:\\")?([\w-]{10})/.exec(await hosted.call('block', { ms: 600_000 })) ?? [];
    assert.match(await hosted.call('release', { name: incident }), /true/);
    assert.is(hosted.endings.length, 2);
  } finally {
    await hosted.stop();
  }
});

test('R-14: a machine that goes round for ever is refused when it is registered', () => {
  const server = createServer({ name: 'x', version: '1.0.0' });
  const machine = createMachine({ initial: 'a', states: { a: { always: 'b' }, b: { always: 'a' } } });
  assert.throws(
    () => server.tool('round', { machine: machine as never }),
    /tool "round": machine: the eventless transitions of .*a.*b.* form an endless loop: add a guard to one of them/,
  );
});

test.full(
  'R-14: a chart that never settles, and a regular expression that never ends, end the process the same way',
  async () => {
    const hosted = await Hosted.open({ config: { watchdog: { softMs, hardMs, record: join(folder, 'cycle') } } });
    try {
      for (const [at, tool] of ['cycle', 'backtrack'].entries()) {
        const call = hosted.call(tool).catch((error: unknown) => String(error));
        await until(() => hosted.endings.length > at, `the end of the process by ${tool}`);
        await call;
        await hosted.served();
        assert.match(hosted.err, new RegExp(`blocked for \\d+ ms by tool "${tool}"`));
      }
    } finally {
      await hosted.stop();
    }
  },
);

/** Blocks the event loop at next to no cost, and returns to JavaScript often: a debugger can ask there. */
function spinHere(ms: number): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let blocked = 0; blocked < ms; blocked += 10) Atomics.wait(cell, 0, 0, 10);
}
