/** The stdio transport in real processes: it ends with its client, keeps stdout clean, and takes no memory for a client that does not read. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { Fixture, nodeCommand } from './support.ts';

const test = suite('stdio process');
const posix = process.platform !== 'win32';

/** A test of what only POSIX systems have. */
function posixTest(
  title: string,
  body: () => Promise<void>,
  add: (title: string, body: () => Promise<void>) => void = test,
): void {
  if (posix) add(title, body);
  else test.skip(title, 'signals and orphans are POSIX matters');
}

const clean = { code: 0, signal: null };

test('end of input: answers what is in flight and exits, though a tool left a timer', async () => {
  const child = new Fixture('leftover.ts').read();
  child.write('one\ntwo\n');
  child.process.stdin?.end();
  assert.equal(await child.exited, clean);
  await child.quiet;
  assert.is(child.out, 'late one\nlate two\n');
  assert.match(child.err, /asked to close: stdin ended\nclosed: server closed/);
});

test.full('end of input: lives through the grace time, though nothing but an unanswered request is left', async () => {
  const child = new Fixture('stuck.ts', 'pipe', (script) => [...nodeCommand(script), '150']).read();
  child.write('never answered\n');
  child.process.stdin?.end();
  assert.equal(await child.exited, clean);
  await child.quiet;
  assert.match(child.err, /asked to close: stdin ended\nclosed: server closed/);
});

test.full('a client that reads late still gets every answer before the exit', async () => {
  const child = new Fixture('echo.ts');
  const text = `${'x'.repeat(99_999)}\n`.repeat(20);
  child.write(text);
  await child.said('slow');
  child.process.stdin?.end();
  child.read();
  assert.equal(await child.exited, clean);
  await child.quiet;
  assert.is(child.out, text);
});

posixTest('every answer passes a pipe of the shell before the exit', async () => {
  const child = new Fixture('echo.ts', 'pipe', (script) => [
    'sh',
    '-c',
    '"$@" | cat',
    'sh',
    ...nodeCommand(script),
  ]).read();
  const text = 'y'.repeat(999);
  for (let line = 0; line < 5_000; line += 1) child.write(`${text}\n`);
  child.process.stdin?.end();
  await child.quiet;
  assert.is(child.out.length, 5_000_000);
});

test('exits though its client never reads what was sent', async () => {
  const child = new Fixture('echo.ts', 'pipe', (script) => [...nodeCommand(script), '200']);
  child.write(`${'x'.repeat(999_999)}\n`);
  await child.said('slow');
  // Paused, it cannot see the end of its input; the signal stands for whatever tells it to go.
  child.process.kill('SIGTERM');
  const { code } = await child.exited;
  if (posix) {
    assert.is(code, 0);
    await child.quiet;
    assert.match(child.err, /the client read nothing for 200 ms while closing/);
  }
});

test.full('a client that has closed its end of stdout is gone: no crash', async () => {
  const child = new Fixture('echo.ts');
  await child.said('open');
  child.process.stdout?.destroy();
  child.write('hello\n');
  assert.equal(await child.exited, clean);
  await child.quiet;
  assert.match(child.err, /closed: client disconnected\nasked to close: client disconnected/);
});

test('a client that has closed stdout and stderr is gone: no crash', async () => {
  const child = new Fixture('chatty.ts');
  await child.said('open');
  child.process.stdout?.destroy();
  child.process.stderr?.destroy();
  child.write('hello\n');
  assert.equal(await child.exited, clean);
});

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  posixTest(
    `${signal} answers what is in flight and exits`,
    async () => {
      const child = new Fixture('leftover.ts').read();
      await child.said('open');
      child.write('one\ntwo\nthree\n');
      await child.said('got three');
      child.process.kill(signal);
      assert.equal(await child.exited, clean);
      await child.quiet;
      assert.is(child.out, 'late one\nlate two\nlate three\n');
      assert.match(child.err, `asked to close: ${signal}`);
    },
    signal === 'SIGTERM' ? test : test.full,
  );
}

posixTest('a second signal exits at once with 128 plus its number', async () => {
  for (const [first, second, code] of [
    ['SIGTERM', 'SIGTERM', 143],
    ['SIGTERM', 'SIGINT', 130],
  ] as const) {
    const child = new Fixture('stuck.ts').read();
    await child.said('open');
    child.write('never answered\n');
    await child.said('got never answered');
    child.process.kill(first);
    await child.said('asked to close');
    child.process.kill(second);
    assert.equal(await child.exited, { code, signal: null });
  }
});

for (const [title, line] of [
  ['a parent that was killed ends it, though stdin stays open', 'hello'],
  ['a parent that was killed ends it, though the client reads nothing and stdin is paused', 'x'.repeat(999_999)],
] as const) {
  posixTest(
    title,
    async () => {
      // A third process holds the other end of stdin, so that no end of input tells of the death.
      const holder = spawn(process.execPath, ['-e', 'process.stdin.pipe(process.stdout)'], {
        stdio: ['pipe', 'pipe', 'ignore'],
      });
      const middle = new Fixture('middle.ts', [holder.stdout, 'pipe', 'pipe']);
      await middle.said('open');
      holder.stdin.write(`${line}\n`);
      if (line === 'hello') await middle.read().until(() => middle.out === 'hello\n');
      else await middle.said('slow');
      middle.process.kill('SIGKILL');
      await middle.said('closed: server closed');
      middle.process.stdout?.resume();
      await middle.quiet;
      assert.match(middle.err, /asked to close: parent process exited/);
      holder.stdin.end();
      await once(holder, 'exit');
    },
    line === 'hello' ? test : test.full,
  );
}

test('S-28: nothing but messages is on stdout, whatever a tool writes there', async () => {
  const child = new Fixture('chatty.ts').read();
  child.write('answer me\n');
  await child.until(() => child.out.includes('\n'));
  child.process.stdin?.end();
  assert.equal(await child.exited, clean);
  await child.quiet;
  assert.is(child.out, 'answer me\n');
  for (const from of ['console.log', 'console.info', 'console.table', 'process.stdout.write', 'a worker', 'a timer']) {
    assert.ok(child.err.includes(from), `stderr has what came from ${from}`);
  }
});

test.full('with `exit: false` the process ends by itself, and has its stdout back', async () => {
  const child = new Fixture('restore.ts').read();
  child.write('one\n');
  child.process.stdin?.end();
  assert.equal(await child.exited, clean);
  await child.quiet;
  assert.is(child.out, 'one\nstdout is mine again\n');
});

test.full('a client that never reads costs no memory, and loses nothing when it reads at last', async () => {
  const child = new Fixture('weigh.ts', ['pipe', 'pipe', 'pipe', 'ipc']);
  const weights: { rss: number; lines: number }[] = [];
  child.process.on('message', (weight: { rss: number; lines: number }) => {
    weights.push(weight);
    child.wake();
  });
  await child.until(() => weights.length > 3);
  const rssBefore = weights.at(-1)?.rss ?? 0;
  const line = `${'z'.repeat(1_023)}\n`;
  const total = times(64, { quick: 32 }) * 1_024;
  for (let count = 0; count < total; count += 64) child.write(line.repeat(64));
  await child.said('slow');
  // Twenty looks later it still has not read on: the rest waits on our side.
  const since = weights.length;
  await child.until(() => weights.length > since + 20);
  const stuck = weights.at(-1);
  assert.is(stuck?.lines, weights.at(-15)?.lines);
  assert.ok(stuck && stuck.lines < 4_096, `read ${stuck?.lines} of ${total} lines`);
  assert.ok(stuck.rss - rssBefore < 24_000_000, `grew by ${stuck.rss - rssBefore} bytes`);
  let received = 0;
  child.process.stdout?.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  child.process.stdin?.end();
  assert.equal(await child.exited, clean);
  await child.quiet;
  assert.is(received, total * line.length);
});
