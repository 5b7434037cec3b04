/** `troupe listen`: lines and objects, the place in a file, commands for events, and refusals. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createServer, http } from '../../src/index.ts';
import { suite } from '../harness/door.ts';
import { until } from '../harness/wait.ts';
import { Running, troupe } from './in-process.ts';

const test = suite('troupe listen');
const folder = mkdtempSync(join(tmpdir(), 'troupe-listen-'));
const transport = http({ port: 0 });
const server = createServer({ name: 'noting', version: '1.0.0', log: () => {} });
const note = server.event('note', {
  description: 'A note was taken.',
  payload: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  input: { type: 'object', properties: { n: { type: 'number' } } },
});
test.before(() => server.listen(transport));
test.after(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

async function streams(count: number): Promise<void> {
  await until(() => server.metrics().includes(`troupe_event_streams ${count}`));
}

test('prints a line for each event that fits its arguments, until Ctrl-C', async () => {
  const command = new Running(['listen', transport.url, 'note', 'n=2'], { raw: true });
  await streams(1);
  await note.emit({ n: 1 }, { id: 'a' });
  await note.emit({ n: 2 }, { id: 'b\u007e', at: 0 });
  await command.until(() => command.out.includes('\n'), 'a line');
  command.signal('SIGINT');
  assert.equal([(await command.ended()).code, command.out], [130, '1970-01-01T00:00:00.000Z note b~ {"n":2}\n']);
  await streams(0);
});

test('--since continues where the run before has ended, and --exec gets each event and decides whether it comes again', async () => {
  const since = join(folder, 'place');
  const got = join(folder, 'got');
  const listen = (...args: string[]) =>
    new Running(['listen', transport.url, 'note', '--since', since, '--json', ...args], { raw: true });
  const first = listen();
  await streams(1);
  await note.emit({ n: 1 }, { id: 'one' });
  await until(() => existsSync(since));
  first.signal('SIGINT');
  await first.ended();
  await note.emit({ n: 2 }, { id: 'two' });
  const failing = listen('--exec', 'exit 3');
  assert.is((await failing.ended()).code, 1);
  assert.match(failing.err, '--exec failed with code 3 for the event two');
  const working = listen('--exec', `cat >> ${got}`);
  await until(() => existsSync(got) && readFileSync(got, 'utf8').endsWith('\n'));
  assert.is(JSON.parse(readFileSync(got, 'utf8')).id, 'two');
  working.signal('SIGINT');
  await working.ended();
  assert.is(JSON.parse(working.out.split('\n')[0] ?? '').data.n, 2);
});

test('lists the types without EVENT, and rejects what it cannot listen to', async () => {
  assert.equal(await troupe(['listen', transport.url]), { code: 0, out: 'note  A note was taken.\n', err: '' });
  for (const [args, code, words] of [
    [[transport.url, 'nte'], 2, 'unknown event nte (did you mean note?)'],
    [[transport.url, 'note', 'm=1'], 2, '. The event is note('],
    [[transport.url, 'note', '--via', 'hook'], 2, '--via: expected stream or poll, got hook'],
    [[transport.url, '--exec', 'true'], 2, '--since and --exec need EVENT'],
    [['http://127.0.0.1:9/mcp', 'note'], 3, '127.0.0.1'],
  ] as const) {
    const ran = await troupe(['listen', ...args]);
    assert.is(ran.code, code);
    assert.match(ran.err, words);
  }
});
