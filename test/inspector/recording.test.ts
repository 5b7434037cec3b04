/** A recording is one JSON document, and its lines are readable whatever became of its process. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { INTERNALS } from '../../src/features/server/internals.ts';
import { createServer } from '../../src/index.ts';
import type { Frame, TraceRecord } from '../../src/inspector/frames.ts';
import { exportPage } from '../../src/inspector/http/export-page.ts';
import { openInspector, readRecording, record } from '../../src/inspector/inspector.ts';
import { actorTree, exchangeWaits, flatten, Model, waitsOf } from '../../src/inspector/model/index.ts';
import { connect, SimulatedClock } from '../../src/testing/testing.ts';
import { startable } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { inSession } from '../harness/memory.ts';
import { elapse } from '../harness/wait.ts';

const test = suite('inspector: recording');
const folder = mkdtempSync(join(tmpdir(), 'troupe-recording-'));
const file = (name: string): string => join(folder, name);
test.after(() => rmSync(folder, { recursive: true }));

const made = () => {
  const logged: string[] = [];
  const server = createServer({ name: 'recorded', version: '1.0.0', log: (_, message) => void logged.push(message) });
  server.tool('echo', { input: { type: 'object' } }, (args) => JSON.stringify(args));
  return { server, logged };
};

const recordsOf = (frames: readonly Frame[]): TraceRecord[] =>
  frames.flatMap((frame) => (frame.type === 'records' ? frame.records : []));

test('S-33 a recording is for its owner only, has no secret, and is a document when it is closed', async () => {
  const { server } = made();
  writeFileSync(file('whole.json'), '{"format":"troupe-recording","version":1,"frames":[]}', { mode: 0o644 });
  await record(server, file('whole.json'));
  const client = await inSession(server);
  await client.call('echo', { password: 'hunter2-zq7', text: 'seen' });
  await server.close();
  assert.is(statSync(file('whole.json')).mode & 0o777, 0o600);
  const text = readFileSync(file('whole.json'), 'utf8');
  assert.not.ok(text.includes('hunter2-zq7'));
  assert.ok(text.includes('seen'));
  const { format, version, frames } = readRecording(text);
  assert.equal([format, version, frames[0]?.type], ['troupe-recording', 1, 'hello']);
  assert.equal(JSON.parse(text), { format, version, frames });
  const records = recordsOf(frames);
  assert.ok(records.some((each) => each.type === 'step' && 'context' in each && each.actor.startsWith('session/')));
  assert.ok(records.some((each) => each.type === 'state' && each.actor === 'server' && each.state === 'draining'));
  assert.ok(frames.some((frame) => frame.type === 'chart'));
});

test('S-33 a killed process leaves a readable recording, which the next process continues', async () => {
  const child = spawn(process.execPath, [startable('test/inspector/recorded-child.ts'), file('killed.json')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const text = readFileSync(file('killed.json'), 'utf8');
  assert.throws(() => JSON.parse(text));
  const before = readRecording(text).frames;
  assert.ok(recordsOf(before).filter(({ type }) => type === 'wire').length >= 6);
  // Cut in the middle of a line.
  const cut = readRecording(text.slice(0, -20)).frames;
  assert.equal(cut, before.slice(0, -1));
  writeFileSync(file('killed.json'), text.slice(0, -20));
  const { server } = made();
  const recorder = await record(server, file('killed.json'), { append: true });
  await recorder.close();
  const whole: { frames: Frame[] } = JSON.parse(readFileSync(file('killed.json'), 'utf8'));
  assert.equal(whole.frames.slice(0, cut.length), cut);
  assert.is(whole.frames[cut.length]?.type, 'hello');
  // And once more, after one that ended well.
  await (await record(server, file('killed.json'), { append: true })).close();
  const { frames } = readRecording(readFileSync(file('killed.json'), 'utf8'));
  assert.is(frames.filter(({ type }) => type === 'hello').length, 3);
  await server.close();
});

test('a recording lists each call once, with its addressee and its deadline, whenever the call began', async () => {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'recorded', version: '1.0.0', log: () => {}, clock });
  let release = (_: string): void => {};
  const held = new Promise<string>((resolve) => {
    release = resolve;
  });
  const schema = { type: 'object', properties: { sure: { type: 'boolean' } } } as const;
  server.tool('count', {}, () => held);
  server.tool('refund', {}, async (_, ctx) => {
    await ctx.elicit({ message: 'Pay 42 € back?', schema });
    return held;
  });
  server.tool('charge', {}, async (_, ctx) => {
    await ctx.elicit({ message: 'Charge 42 €?', schema });
    return 'charged';
  });
  await record(server, file('early.json'));
  const claude = await inSession(server);
  const goose = await connect(server);
  const meta = {
    'io.modelcontextprotocol/clientInfo': { name: 'goose', version: '1.4.0' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  };
  const open: Promise<unknown>[] = [
    claude.send('tools/call', { name: 'count' }),
    goose.modern('tools/call', { name: 'count' }, meta),
  ];
  await goose.modern('tools/call', { name: 'charge' }, meta);
  const { requestState = '', inputRequests } = await goose.modern('tools/call', { name: 'refund' }, meta);
  await record(server, file('late.json'));
  const inputResponses = Object.fromEntries(
    Object.keys(Object(inputRequests)).map((id) => [id, { action: 'accept', content: { sure: true } }]),
  );
  open.push(goose.modern('tools/call', { name: 'refund', requestState, inputResponses }, meta));
  await clock.advance(1_100);
  const { seq } = server[INTERNALS].inspection;
  release('12');
  await Promise.all(open);
  await server.close();
  for (const name of ['early', 'late']) {
    const model = new Model();
    for (const frame of readRecording(readFileSync(file(`${name}.json`), 'utf8')).frames) model.take(frame);
    const calls = flatten(actorTree(model, seq)).filter(({ label, gone }) => label.startsWith('tools/call') && !gone);
    const listed = calls.map(({ label, exchange, unseen, actor = '' }) => {
      const waits = unseen ? [unseen] : exchange ? exchangeWaits(model, exchange, seq) : waitsOf(model, actor, seq);
      return `${label} ${waits?.[0]?.until === undefined ? 'for ever' : 'until'}`;
    });
    assert.equal(
      listed.sort(),
      ['tools/call charge until', 'tools/call count until', 'tools/call count until', 'tools/call refund until'],
      name,
    );
    const question = [...model.actors.values()].find(({ label }) => label === 'Charge 42 €?');
    const [wait] = waitsOf(model, question?.address ?? '', seq) ?? [];
    assert.is(wait?.whom, 'the user of goose 1.4.0', name);
    assert.ok(Number(wait?.until) > 60_000, name);
  }
});

test('a recording has a longest length, and says that it ended', async () => {
  const { server, logged } = made();
  await record(server, file('short.json'), { maxBytes: 20_000 });
  const client = await connect(server);
  for (let count = 0; count < 20; count += 1) {
    await client.call('echo', { text: 'x'.repeat(1_000) });
    await elapse(5, 'the recording is written in pieces');
  }
  await server.close();
  const text = readFileSync(file('short.json'), 'utf8');
  assert.ok(text.length <= 20_000, String(text.length));
  readRecording(text);
  assert.ok(logged.some((line) => /stopped at its limit/.test(line)));
});

test('S-33 a file that is no recording is left as it is, and so is a pipe', async () => {
  const precious = file('precious.ts');
  writeFileSync(precious, 'export const precious = 1;\n');
  const modeOf = (path: string): number => statSync(path).mode;
  const pipe = file('pipe');
  const others = [precious];
  if (process.platform !== 'win32') {
    execFileSync('mkfifo', ['-m', '644', pipe]);
    others.push(pipe);
  }
  const modes = others.map(modeOf);
  for (const path of others)
    for (const append of [false, true]) {
      const server = createServer({ name: 'recorded', version: '1.0.0', log: () => {} });
      const refused = await record(server, path, { append }).then(
        () => 'recorded',
        (error: Error) => error.message,
      );
      assert.match(refused, /expected a new file or a recording to replace, got .*Choose another/);
      await server.close();
    }
  assert.is(readFileSync(precious, 'utf8'), 'export const precious = 1;\n');
  assert.equal(others.map(modeOf), modes);
  // What a process has left that was killed at its first line is replaced.
  writeFileSync(file('begun.json'), '{"format":"tro');
  const server = createServer({ name: 'recorded', version: '1.0.0', log: () => {} });
  await (await record(server, file('begun.json'), { append: true })).close();
  assert.is(readRecording(readFileSync(file('begun.json'), 'utf8')).frames[0]?.type, 'hello');
  await server.close();
});

test('a file that is no recording is rejected, with its kind', () => {
  assert.throws(() => readRecording('{"a":1}'), /expected a recording of troupe, got other JSON/);
  assert.throws(
    () => readRecording('{"format":"troupe-recording","version":99,"frames":[]}'),
    /expected a recording of version 1, got version 99/,
  );
  assert.throws(() => readRecording('hello'), /got other text/);
});

test('a recording of a server without a viewer can be downloaded', async () => {
  const { server } = made();
  const inspector = await openInspector(server);
  const { origin, hash } = new URL(inspector.url);
  const response = await fetch(`${origin}/api/recording`, { headers: { authorization: `Bearer ${hash.slice(1)}` } });
  assert.match(response.headers.get('content-disposition') ?? '', /filename="troupe-recorded\.json"/);
  const { frames } = readRecording(await response.text());
  assert.ok(frames[0]?.type === 'hello' && !frames[0].live);
  assert.ok(recordsOf(frames).some((each) => each.type === 'created' && each.actor === 'server'));
  await server.close();
});

test('S-33 nothing of a recording ends the block that it stands in', () => {
  const recording = JSON.stringify({ text: '</script><script>alert(1)</script><!--\u2028\u2029"TROUPE-RECORDING"$&' });
  const page = exportPage('<script type="application/json">"TROUPE-RECORDING"</script>', recording);
  const inner = page.slice('<script type="application/json">'.length, -'</script>'.length);
  assert.not.match(inner, /[<\u2028\u2029]/);
  assert.equal(JSON.parse(inner), JSON.parse(recording));
  assert.throws(() => exportPage('<html>', recording), /rebuild the page/);
});
