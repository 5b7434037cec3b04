/** Runs of scripts in memory: inner calls pass the gates, in parallel, and the questions of tools reach the client in both eras. */
import * as assert from 'uvu/assert';
import { image } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { asked, pass, pausedIn, resultIn, runModern, workshop } from './support.ts';

const test = suite('runs of scripts');

test('a script gets the results of its calls, and its result is that of the tool', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const result = await runModern(client, { code: 'const a = await t.read({ n: 2 }); return a.double + 1;' });
  assert.is(textOf(result), '{"result":5,"calls":["t.read ×1"]}');
});

test('calls that a script makes together run together, and are delivered in one order', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const code =
    'const all = await Promise.all([1, 2, 3].map((n) => t.read({ n }))); return all.map(({ double }) => double);';
  assert.equal(resultIn(await runModern(client, { code })), [2, 4, 6]);
});

test('a tool that fails throws into the script, which can catch it', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const code = 'try { await t.fail(); } catch (error) { return [error.name, error.tool]; }';
  assert.equal(resultIn(await runModern(client, { code })), ['ToolError', 't.fail']);
});

test('an error that a script does not catch names what was carried out', async () => {
  const { server, written } = workshop();
  const client = await connect(server);
  const result = await runModern(client, { code: 'await t.write({ n: 1 }); await t.fail();' });
  assert.is(result.isError, true);
  assert.match(textOf(result), /Carried out before it ended, so do not repeat it: t\.write\./);
  assert.equal(written, [1]);
});

test('an unknown function is an error with near names, and invalid arguments are one with the declaration', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const unknown = await runModern(client, { code: 'return t.reed({});' });
  assert.match(textOf(unknown), /there is no function t\.reed\. Did you mean t\.read\?/);
  const wrong = await runModern(client, { code: 'return t.read({ n: "x" });' });
  assert.match(textOf(wrong), /Invalid arguments for tool "read"[\s\S]*t\.read\(args: …\)/);
});

test('rules see the run and the number of a call', async () => {
  const { server } = workshop();
  const seen: unknown[] = [];
  server.authorize(({ element }, { via }) => {
    if (element.name === 'read') seen.push(via?.call, via?.tool, typeof via?.run);
    return element.name !== 'write' || { deny: 'not in scripts' };
  });
  const client = await connect(server);
  const result = await runModern(client, {
    code: 'await t.read({}); try { await t.write({}); } catch (error) { return error.carriedOut; }',
  });
  assert.is(resultIn(result), false);
  assert.equal(seen, [1, 'run_code', 'string']);
});

test('the question of a tool reaches a client of 2026-07-28, and the script continues with the answer', async () => {
  const { server } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  const args = { code: 'const a = await t.who(); const b = await t.who(); return [a.name, b.name];' };
  const first = asked(await runModern(client, args));
  assert.equal(first.messages, ['Who?']);
  const answer = (key: string, name: string) => ({ [key]: { action: 'accept', content: { name } } });
  const second = asked(
    await runModern(client, args, { requestState: first.state, inputResponses: answer(first.keys[0] ?? '', 'Ada') }),
  );
  const last = await runModern(client, args, {
    requestState: second.state,
    inputResponses: answer(second.keys[0] ?? '', 'Bob'),
  });
  assert.equal(resultIn(last), ['Ada', 'Bob']);
});

test('the questions of calls that wait together are asked together', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const args = {
    code: 'const all = await Promise.all([t.who(), t.who(), t.who()]); return all.map(({ name }) => name);',
  };
  const { keys, state } = asked(await runModern(client, args));
  assert.is(keys.length, 3);
  const inputResponses = Object.fromEntries(
    keys.map((key, index) => [key, { action: 'accept', content: { name: `n${index}` } }]),
  );
  assert.equal(resultIn(await runModern(client, args, { requestState: state, inputResponses })), ['n0', 'n1', 'n2']);
});

test('the question of a tool reaches the client of a session over its stream', async () => {
  const { server } = workshop();
  const client = await inSession(server, '2025-06-18', { elicitation: {} });
  const running = client.send('tools/call', { name: 'run_code', arguments: { code: 'return (await t.who()).name;' } });
  const question = await client.next((message) => isObjectInTest(message) && message.method === 'elicitation/create');
  assert.ok(isObjectInTest(question));
  client.raw(
    JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: { name: 'Ada' } } }),
  );
  assert.is(resultIn(await running), 'Ada');
});

test('a script asks its user itself', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const args = { code: 'try { return await ask("Which?"); } catch (error) { return error.code; }' };
  const { keys, state, messages } = asked(await runModern(client, args));
  assert.equal(messages, ['Which?']);
  const declined = { [keys[0] ?? '']: { action: 'decline' } };
  assert.is(resultIn(await runModern(client, args, { requestState: state, inputResponses: declined })), 'declined');
});

test('a script that sleeps for long is paused, and its caller gets the result later', async () => {
  const { server, clock } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  const paused = runModern(client, { code: 'await sleep(60000); return "slept";' });
  await settled();
  await pass(clock, 20_000);
  const run = pausedIn(await paused);
  const other = await connect(server, { auth: { principal: 'eve' } });
  const unknown = textOf(await runModern(other, { resume: run }));
  assert.is(unknown.replace(run, 'x'), textOf(await runModern(client, { resume: 'x' })));
  const waiting = runModern(client, { resume: run });
  await settled();
  await pass(clock, 15_000);
  await pass(clock, 5_000);
  assert.is(pausedIn(await waiting), run);
  await pass(clock, 20_000);
  assert.is(resultIn(await runModern(client, { resume: run })), 'slept');
});

test('a client that cancels ends the run and its calls', async () => {
  const { server } = workshop();
  let aborted = false;
  let begun = (): void => {};
  const running = new Promise<void>((resolve) => {
    begun = resolve;
  });
  server.tool('long', async (_, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      aborted = true;
    });
    begun();
    await new Promise(() => {});
  });
  const client = await inSession(server, '2025-06-18');
  const params = { name: 'run_code', arguments: { code: 'await t.long();' } };
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: 77, method: 'tools/call', params }));
  await running;
  client.notify('notifications/cancelled', { requestId: 77 });
  await settled();
  assert.is(aborted, true);
});

test('a script that waits for nothing ends with an error', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const result = await runModern(client, { code: 'await new Promise(() => {});' });
  assert.match(textOf(result), /waits for something that no call will settle/);
});

test('a run whose script the engine has lost continues from its journal', async () => {
  const { server, engine, written } = workshop();
  engine.forgets = true;
  const client = await connect(server);
  const code =
    'let sum = 0; for (let n = 1; n < 4; n += 1) { await t.write({ n }); sum += (await t.read({ n })).double; } return sum;';
  assert.is(resultIn(await runModern(client, { code })), 12);
  assert.equal(written, [1, 2, 3]);
  assert.ok(engine.begun > 3);
});

test('a script that takes another way when it runs again ends, and nothing more is done', async () => {
  const { server, engine, written } = workshop();
  engine.forgets = true;
  const client = await connect(server);
  const code =
    'globalThis.flips = (globalThis.flips ?? 0) + 1; await t.read({ n: globalThis.flips }); await t.write({ n: 1 });';
  const result = await runModern(client, { code });
  assert.match(textOf(result), /another way after call 0/);
  assert.equal(written, []);
});

test('calls beyond those in flight wait for their turn, and too many calls end the run', async () => {
  const { server } = workshop({ limits: { codeCallsInFlight: 2, codeCalls: 5 } });
  const client = await connect(server);
  const code = (count: number): string =>
    `const all = await Promise.all(Array.from({ length: ${count} }, (_, n) => t.read({ n }))); return all.length;`;
  assert.is(resultIn(await runModern(client, { code: code(5) })), 5);
  assert.match(textOf(await runModern(client, { code: code(6) })), /more than 5 calls/);
});

test('a result that is too long is cut, with its shape', async () => {
  const { server } = workshop({ limits: { codeResultLength: 200 } });
  const client = await connect(server);
  const text = textOf(
    await runModern(client, { code: 'return { rows: Array.from({ length: 50 }, (_, id) => ({ id })) };' }),
  );
  assert.match(text, /Its shape is \{ rows: 50 × \{ id: number \} \}/);
});

test('the audit has each call of a script', async () => {
  const { server, audit } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  await runModern(client, { code: 'await t.read({}); await t.write({ n: 3 });' });
  assert.equal(
    audit.map(({ event, element }) => `${event} ${element}`),
    ['read tool read', 'call tool write', 'call tool run_code'],
  );
});

test('a script sees that there is an image, and returns it', async () => {
  for (const forgets of [false, true]) {
    const { server, engine } = workshop();
    engine.forgets = forgets;
    server.tool('shot', { annotations: { readOnlyHint: true } }, () => image('aGVsbG8=', 'image/png'));
    const client = await connect(server);
    const code = 'const shot = await t.shot(); await t.read({}); return { shot, seen: shot.bytes };';
    const result = await runModern(client, { code });
    const seen = { type: 'image', mimeType: 'image/png', bytes: 6, handle: 'block-1-1' };
    assert.equal(resultIn(result), { shot: seen, seen: 6 });
    assert.equal(Array.isArray(result.content) ? result.content[1] : undefined, {
      ...{ type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
    });
    const none = await runModern(client, { code: 'return (await t.shot()).bytes;' });
    assert.is(Array.isArray(none.content) ? none.content.length : 0, 1);
  }
});
