/** What becomes of a store whose disk is full, fails or is slow, whose thread dies, and whose process is killed. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { Offered } from '../../../bench/offering.ts';
import { StoreError } from '../../../src/core/store/store.ts';
import { sqlite } from '../../../src/features/sqlite/sqlite.ts';
import { suite, timeLimit } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { atScale } from '../../harness/scale.ts';
import { elapse, until } from '../../harness/wait.ts';
import { acknowledged, Disk, faultIn, folder, full, host, type Program, program, random, shim } from './support.ts';

timeLimit(600_000);
const test = suite('a store and its disk');
const place = folder();
const built = shim(place.path);
test.after(place.remove);

/** A program behind a disk that can be made to fail. */
async function behind(
  library: string,
  run: (program: Program, disk: Disk, path: string) => Promise<void>,
): Promise<void> {
  const [at, aside] = [folder(), folder()];
  const disk = new Disk(aside.path);
  const env = { LD_PRELOAD: library, SHIM_WATCH: at.path, SHIM_CONTROL: disk.path };
  const writer = program(['obey', at.path, '0', '2000'], env);
  try {
    assert.is(await writer.line(), 'open');
    await run(writer, disk, at.path);
    // Whatever happened, what was acknowledged is there, and nothing is half there.
    writer.process.kill('SIGKILL');
    await writer.ended;
    assert.is(faultIn(join(at.path, 'store.db'), acknowledged(at.path)), undefined);
  } finally {
    writer.process.kill('SIGKILL');
    at.remove();
    aside.remove();
  }
}

async function told(program: Program, line: string): Promise<string> {
  program.say(line);
  return await program.line();
}

/** What it has said on stderr, once it has said anything. */
async function reported(program: Program): Promise<string> {
  await until(() => program.errors() !== '', 'an error');
  return program.errors();
}

/** Says `write` until that is the answer. @returns how many times, and how long it took */
async function answers(program: Program, answer: RegExp, line = 'write'): Promise<{ times: number; ms: number }> {
  const started = performance.now();
  let times = 0;
  await until(
    async () => {
      times += 1;
      return answer.test(await told(program, line));
    },
    () => `${String(answer)} to ${line}: ${program.errors()}`,
  );
  return { times, ms: performance.now() - started };
}

if ('why' in built) {
  for (const id of ['R-18', 'R-19', 'R-20']) test.skip(`${id}: a bad disk`, built.why);
} else {
  const { library } = built;

  test('R-18: a full disk refuses what is written, not what is read, and takes more once there is room', () =>
    behind(library, async (writer, disk) => {
      for (let n = 0; n < 5; n += 1) assert.match(await told(writer, 'write'), /^kept/);
      disk.set({ isFull: true });
      for (let n = 0; n < 20; n += 1) assert.is(await told(writer, 'write'), 'full');
      assert.is(await told(writer, 'read'), 'read 2');
      disk.set({});
      const { ms } = await answers(writer, /^kept/);
      assertFigure(ms, 5_000, 'the first write after there is room');
      assert.is(writer.process.exitCode, null);
      assert.is(writer.errors(), '');
    }));

  test('R-19: a batch whose sync failed once is never acknowledged, and the next is, by another thread', () =>
    behind(library, async (writer, disk) => {
      assert.is(await told(writer, 'write'), 'kept 1');
      disk.set({ failing: 1 });
      assert.is(await told(writer, 'write'), 'failed');
      // Its thread ends, which is reported, and the next one opens the file.
      await answers(writer, /^undefined$/, 'impairment');
      assert.is(await told(writer, 'write'), 'kept 3');
      assert.match(await reported(writer), /the store reopens the file in 100 ms/);
      assert.is(await told(writer, 'read'), 'read 1');
    }));

  test.full('R-19: a disk whose syncs fail for ever acknowledges nothing, and is read', () =>
    behind(library, async (writer, disk, path) => {
      assert.is(await told(writer, 'write'), 'kept 1');
      assert.is(await told(writer, 'impairment'), 'undefined');
      disk.set({ failing: -1 });
      for (let n = 0; n < 10; n += 1) assert.is(await told(writer, 'write'), 'failed');
      assert.is(await told(writer, 'read'), 'read 1');
      assert.match(writer.errors(), /is read-only after 5 failures in a minute/);
      assert.is(await told(writer, 'impairment'), 'read-only');
      assert.equal(acknowledged(path), [1]);
      disk.set({});
    }),
  );

  for (const slowMs of full ? [20, 200] : [20]) {
    test(`R-20: syncs that take ${slowMs} ms make acknowledgements late, and the main loop not`, async () => {
      const [at, aside] = [folder(), folder()];
      const disk = new Disk(aside.path);
      disk.set({ slowMs });
      const env = { LD_PRELOAD: library, SHIM_WATCH: at.path, SHIM_CONTROL: disk.path };
      const offering = program(
        ['offer', at.path, '10000', atScale({ quick: '300', full: '1500', proof: '10000' })],
        env,
      );
      assert.is(await offering.line(), 'open');
      const line = await offering.line();
      await offering.ended;
      const { offered, refused, loops, blocked, starved, ackP99 }: Offered = JSON.parse(line);
      const late = loops.map((each) => each.toFixed(1)).join(', ');
      process.stdout.write(
        `R-20: a sync takes ${slowMs} ms: ${offered} offered, ack p99 ${ackP99.toFixed(0)} ms, loop p99 ${late} ms\n`,
      );
      assert.ok(ackP99 >= slowMs, line);
      // The less a thread runs, the less exact is what is left of its time.
      assert.ok(blocked <= 0.1 + starved, line);
      // Where other programs have the processors, a loop is late too, and a thread cannot follow: there is nothing to learn.
      if (starved <= 0.03) assert.ok(Math.min(...loops) <= 10 && refused === 0, line);
      at.remove();
      aside.remove();
    });
  }
}

test('a process that is killed at any moment loses nothing that was acknowledged, and leaves no lock', async () => {
  const numbers = random(3);
  for (let round = 0; round < atScale({ quick: 1, full: 4, proof: 30 }); round += 1) {
    const at = folder();
    const writer = program(['write', at.path, '1000000', '500']);
    assert.is(await writer.line(), 'open');
    const writes = 1 + Math.floor(numbers() * 300);
    await until(() => acknowledged(at.path).length >= writes, 'the acknowledged writes');
    writer.process.kill('SIGKILL');
    await writer.ended;
    assert.ok(readdirSync(at.path).includes('store.db.lock'));
    const acks = acknowledged(at.path);
    assert.ok(acks.length > 0);
    assert.is(faultIn(join(at.path, 'store.db'), acks), undefined);
    at.remove();
  }
});

/** Whether this process has a file open. Only Linux says so. */
function hasOpen(path: string): boolean {
  if (process.platform !== 'linux') return true;
  return readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      // It was closed in between.
      return false;
    }
  });
}

test.full(
  'a store that waits until another process closes its file does not report that process as crashed',
  async () => {
    const at = folder();
    const first = program(['obey', at.path]);
    assert.is(await first.line(), 'open');
    const second = sqlite(join(at.path, 'store.db'), { lockMs: 20_000 });
    const waiting = host();
    const opening = second.open(waiting);
    await until(() => hasOpen(join(at.path, 'store.db')), 'the second store to have the file open');
    await elapse(100, 'it waits for the lock');
    assert.is(await told(first, 'close'), 'closed');
    await first.ended;
    await opening;
    assert.equal(waiting.lines, []);
    await second.close();
    at.remove();
  },
);

test('a file has one owner, which is named to others; other users cannot read its files', async () => {
  const at = folder();
  const first = program(['obey', at.path]);
  assert.is(await first.line(), 'open');
  assert.is(await told(first, 'write'), 'kept 1');
  for (const name of readdirSync(at.path).filter((name) => name.startsWith('store.db')))
    assert.is(statSync(join(at.path, name)).mode & 0o777, 0o600, name);
  assert.match(readFileSync(join(at.path, 'store.db.lock'), 'utf8'), new RegExp(`^pid ${first.process.pid}\\b`));
  const second = sqlite(join(at.path, 'store.db'), { lockMs: 100 });
  const refused = await second.open(host()).catch((error: unknown) => error);
  assert.ok(refused instanceof StoreError);
  assert.is(refused.fault, 'locked');
  assert.match(refused.message, new RegExp(`another process has the store open \\(pid ${first.process.pid},`));
  assert.is(await told(first, 'write'), 'kept 2');
  assert.is(await told(first, 'close'), 'closed');
  await first.ended;
  assert.equal(readdirSync(at.path).sort(), ['acks', 'store.db', 'store.db-mark']);
  at.remove();
});
