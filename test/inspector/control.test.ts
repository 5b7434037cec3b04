/** A viewer acts on a server, where it may: each act is a record, and the cause of what follows. */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { createServer } from '../../src/index.ts';
import type { TraceRecord } from '../../src/inspector/frames.ts';
import { openInspector, readRecording } from '../../src/inspector/inspector.ts';
import { connect } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { inSession } from '../harness/memory.ts';
import { until } from '../harness/wait.ts';

const test = suite('inspector: control');

/** Only its place says that it is a secret. */
const CARD = 'zq7wxk3v9';

async function controlled() {
  const server = createServer({ name: 'controlled', version: '1.0.0' });
  server.tool('echo', { input: { type: 'object' } }, (args) => JSON.stringify(args));
  server.tool('fail', {}, () => {
    throw new Error('it was to fail');
  });
  server.machine(
    'lamp',
    createMachine({
      initial: 'off',
      states: {
        off: { on: { flip: 'on' } },
        on: { on: { flip: 'off', smash: '.broken' }, initial: 'whole', states: { whole: {}, broken: {} } },
      },
    }),
    { description: 'A lamp', events: { flip: true } },
  );
  server.machine(
    'card',
    createMachine({
      meta: { redact: ['card'] },
      context: { card: CARD },
      on: {
        pay: {
          guard: () => {
            throw new Error(`password=${CARD}`);
          },
        },
      },
    }),
    { description: 'A card', events: { pay: true }, view: ({ context }) => ({ ...context }) },
  );
  const inspector = await openInspector(server, { control: true });
  const { origin, hash } = new URL(inspector.url);
  const headers = { authorization: `Bearer ${hash.slice(1)}`, 'content-type': 'application/json' };
  const stream = await fetch(`${origin}/api/stream?viewer=v`, { headers });
  const control = async (order: object | string): Promise<[number, string]> => {
    const body = typeof order === 'string' ? order : JSON.stringify(order);
    const response = await fetch(`${origin}/api/control`, { method: 'POST', headers, body });
    return [response.status, await response.text()];
  };
  const records = async (): Promise<TraceRecord[]> => {
    const { frames } = readRecording(await (await fetch(`${origin}/api/recording`, { headers })).text());
    return frames.flatMap((frame) => (frame.type === 'records' ? frame.records : []));
  };
  const whatIf = async (actor: string, event: object): Promise<string> => {
    const body = JSON.stringify({ actor, event });
    return (await fetch(`${origin}/api/what-if`, { method: 'POST', headers, body })).text();
  };
  const close = async (): Promise<void> => {
    await stream.body?.cancel();
    await server.close();
  };
  return { server, control, records, whatIf, close };
}

/** Whether one record leads back to another. */
function isBecause(
  records: readonly TraceRecord[],
  late: TraceRecord | undefined,
  early: TraceRecord | undefined,
): boolean {
  const bySeq = new Map(records.map((record) => [record.seq, record]));
  for (let at = late; at; at = bySeq.get(at.cause)) if (at === early) return true;
  return false;
}

test('S-34 a tool is called as by any client, and the call is recorded as what it was', async () => {
  const { control, records, close } = await controlled();
  const [status, said] = await control({ action: 'call', tool: 'echo', arguments: { a: 1 } });
  assert.is(status, 200);
  assert.match(said, /^"echo" answered: .*\{\\"a\\":1\}/);
  assert.match((await control({ action: 'call', tool: 'fail', arguments: {} }))[1], /^"fail" failed: .*it was to fail/);
  assert.match((await control({ action: 'call', tool: 'none', arguments: {} }))[1], /^"none" was rejected: /);
  const all = await records();
  const calls = all.filter((record) => record.type === 'control');
  assert.equal(calls.length, 3);
  assert.equal(calls[0]?.type === 'control' && calls[0].data, { tool: 'echo', arguments: { a: 1 } });
  const answers = all.filter((record) => record.type === 'wire' && record.direction === 'out');
  assert.ok(isBecause(all, answers[0], calls[0]));
  await close();
});

test('S-29 S-30 the answer of a controlled call and the reason against an event have no secret', async () => {
  const { server, control, records, whatIf, close } = await controlled();
  const client = await connect(server);
  const { structuredContent } = await client.call('card_create');
  const { handle } = Object(structuredContent);
  assert.match(JSON.stringify(await client.call('card_get', { handle })), CARD);
  const [status, said] = await control({ action: 'call', tool: 'card_get', arguments: { handle } });
  assert.is(status, 200);
  assert.match(said, /«redacted»/);
  const card = (await records()).find((record) => record.type === 'created' && record.kind === 'handle');
  const found = await whatIf(card?.type === 'created' ? card.actor : '', { type: 'pay' });
  assert.match(found, /threw: password=«redacted»/);
  for (const text of [said, found]) assert.not.ok(text.includes(CARD), text);
  await client.close();
  await close();
});

test.full('a call whose arguments are too deep to be sent is refused, and nothing waits for its answer', async () => {
  const { control, close } = await controlled();
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  const text = `{"action":"call","tool":"echo","arguments":{"deep":${deep}}}`;
  // One more than may wait.
  const answers = await Promise.all(Array.from({ length: 65 }, () => control(text)));
  for (const [status, said] of answers) assert.match(`${status} ${said}`, /^400 .*nested too deeply/);
  assert.match((await control({ action: 'call', tool: 'echo' }))[1], /answered/);
  await close();
});

test('S-34 an action without a viewer is in the log of the operator, without secrets', async () => {
  const logged: string[] = [];
  const server = createServer({ name: 'logged', version: '1.0.0', log: (_, message) => void logged.push(message) });
  server.tool('echo', { input: { type: 'object' } }, (args) => JSON.stringify(args));
  const inspector = await openInspector(server, { control: true });
  const { origin, hash } = new URL(inspector.url);
  const headers = { authorization: `Bearer ${hash.slice(1)}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ action: 'call', tool: 'echo', arguments: { password: CARD } });
  assert.is((await fetch(`${origin}/api/control`, { method: 'POST', headers, body })).status, 200);
  assert.equal(
    logged.filter((line) => line.startsWith('inspector: ')),
    ['inspector: call {"tool":"echo","arguments":{"password":"«redacted»"}}'],
  );
  await server.close();
});

test('S-34 an event is sent to a statechart, by its type only', async () => {
  const { server, control, records, close } = await controlled();
  const client = await connect(server);
  await client.call('lamp_create');
  const found = (await records()).find((record) => record.type === 'created' && record.kind === 'handle');
  assert.ok(found?.type === 'created');
  const { actor } = found;
  assert.equal(await control({ action: 'send', actor, event: { type: 'flip' } }), [200, `sent "flip" to ${actor}`]);
  const [status, why] = await control({ action: 'send', actor, event: { type: 'xstate.stop' } });
  assert.is(status, 400);
  assert.match(why, /XState sends its own events/);
  let all = await records();
  const flip = () => all.find((record) => record.type === 'step' && record.actor === actor && record.event === 'flip');
  await until(async () => {
    all = await records();
    return flip() !== undefined;
  }, 'the step');
  const step = flip();
  assert.ok(step?.type === 'step' && step.handled);
  assert.equal(step.active, ['on.whole']);
  assert.ok(
    isBecause(
      all,
      step,
      all.find((record) => record.type === 'control'),
    ),
  );
  const [none, words] = await control({ action: 'send', actor: 'executor/tools', event: { type: 'flip' } });
  assert.is(none, 409);
  assert.match(words, /has no statechart that accepts events/);
  await client.close();
  await close();
});

test('S-34 a connection is closed, with its session', async () => {
  const { server, control, records, close } = await controlled();
  const client = await inSession(server);
  const session = (await records()).find((record) => record.type === 'created' && record.kind === 'session');
  assert.ok(session?.type === 'created' && session.connection !== undefined);
  assert.is((await control({ action: 'close', connection: session.connection }))[0], 200);
  assert.match(await client.closed, /closed in the inspector/);
  assert.is((await control({ action: 'close', connection: session.connection }))[0], 404);
  await close();
});
