/** Asking a modern client: its request ends with what is asked, and goes on where it stopped when the client comes back. */
import * as assert from 'uvu/assert';
import * as z from 'zod';
import { META } from '../../../src/core/protocol/meta.ts';
import { ErrorCode } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { accept, Modern, stage } from './support.ts';

const test = suite('asking a modern client');

const NAME = { message: 'Who?', schema: z.object({ name: z.string() }) };
const SIZE = { message: 'Which size?', schema: z.object({ size: z.enum(['S', 'L']) }) };

test('code before the question runs once, and the handler continues with the typed answer', async () => {
  const { server } = stage();
  let before = 0;
  server.tool('greet', {}, async (_, ctx) => {
    before += 1;
    const answer = await ctx.elicit(NAME);
    return answer.status === 'accepted' ? `Hello, ${answer.content.name}!` : answer.status;
  });
  const client = await Modern.of(server);
  const { inputRequests, requestState } = await client.ask('greet');
  assert.equal(Object.keys(inputRequests), ['elicit']);
  assert.is(inputRequests.elicit?.method, 'elicitation/create');
  assert.equal(inputRequests.elicit?.params.requestedSchema, {
    type: 'object',
    properties: { name: { type: 'string' } },
    required: ['name'],
  });
  const result = await client.retry('greet', requestState, { elicit: accept({ name: 'Ada' }) });
  assert.is(textOf(result), 'Hello, Ada!');
  assert.is(before, 1);
  await server.close();
});

test('a question may be declined or cancelled, which is no error', async () => {
  const { server } = stage();
  server.tool('greet', {}, async (_, ctx) => (await ctx.elicit(NAME)).status);
  const client = await Modern.of(server);
  for (const [action, status] of [
    ['decline', 'declined'],
    ['cancel', 'cancelled'],
  ] as const) {
    const { requestState } = await client.ask('greet');
    assert.is(textOf(await client.retry('greet', requestState, { elicit: { action } })), status);
  }
  await server.close();
});

test('questions that a handler asks together go out together, under their names', async () => {
  const { server } = stage();
  server.tool('all', {}, async (_, ctx) => {
    const [{ who, dirs }, said] = await Promise.all([
      ctx.ask({ who: { elicit: NAME }, dirs: { roots: true } }),
      ctx.sample({ messages: [{ role: 'user', content: { type: 'text', text: 'Say hi' } }], maxTokens: 5 }),
    ]);
    return `${who.status} ${dirs.map(({ uri }) => uri).join()} ${JSON.stringify(said.content)}`;
  });
  const client = await Modern.of(server);
  const { inputRequests, requestState } = await client.ask('all');
  assert.equal(Object.keys(inputRequests).sort(), ['dirs', 'sample', 'who']);
  const result = await client.retry('all', requestState, {
    who: accept({ name: 'Ada' }),
    dirs: { roots: [{ uri: 'file:///a' }] },
    sample: { role: 'assistant', content: { type: 'text', text: 'hi' }, model: 'm' },
  });
  assert.is(textOf(result), 'accepted file:///a {"type":"text","text":"hi"}');
  await server.close();
});

test('an unanswered question is asked again, and unknown answers are ignored', async () => {
  const { server } = stage();
  server.tool('both', {}, async (_, ctx) => {
    const { name, size } = await ctx.ask({ name: { elicit: NAME }, size: { elicit: SIZE } });
    return `${name.status} ${size.status}`;
  });
  const client = await Modern.of(server);
  const first = await client.ask('both');
  const second = await client.ask('both', {
    requestState: first.requestState,
    inputResponses: { name: accept({ name: 'Ada' }), nobody: accept({ a: 1 }) },
  });
  assert.equal(Object.keys(second.inputRequests), ['size']);
  assert.is.not(second.requestState, first.requestState);
  assert.is(
    textOf(await client.retry('both', second.requestState, { size: accept({ size: 'S' }) })),
    'accepted accepted',
  );
  await server.close();
});

test('an answer that does not fit is asked for again, with the reason; the third time the question has failed', async () => {
  const { server } = stage();
  server.tool('size', {}, async (_, ctx) => {
    const answer = await ctx.elicit(SIZE);
    return answer.status === 'accepted' ? answer.content.size : answer.status;
  });
  const client = await Modern.of(server);
  let { requestState } = await client.ask('size');
  const wrong = { elicit: accept({ size: 'XXL' }) };
  const again = await client.ask('size', { requestState, inputResponses: wrong });
  assert.match(
    String(again.inputRequests.elicit?.params.message),
    /^Which size\?\n\nThe last answer does not fit: size: /,
  );
  assert.is(textOf(await client.retry('size', again.requestState, { elicit: accept({ size: 'L' }) })), 'L');

  ({ requestState } = await client.ask('size'));
  ({ requestState } = await client.ask('size', { requestState, inputResponses: wrong }));
  ({ requestState } = await client.ask('size', { requestState, inputResponses: wrong }));
  const failed = await client.retry('size', requestState, wrong);
  assert.is(failed.isError, true);
  assert.match(textOf(failed), /3 answers were invalid/);
  await server.close();
});

test('one question after the other, each in a round of its own', async () => {
  const { server } = stage();
  server.tool('twice', {}, async (_, ctx) => {
    const first = await ctx.elicit(NAME);
    const second = await ctx.elicit(NAME);
    return [first, second].map((each) => (each.status === 'accepted' ? each.content.name : each.status)).join(' and ');
  });
  const client = await Modern.of(server);
  const first = await client.ask('twice');
  const second = await client.ask('twice', {
    requestState: first.requestState,
    inputResponses: { elicit: accept({ name: 'Ada' }) },
  });
  assert.equal(Object.keys(second.inputRequests), ['elicit-2']);
  const result = await client.retry('twice', second.requestState, { 'elicit-2': accept({ name: 'Bob' }) });
  assert.is(textOf(result), 'Ada and Bob');
  await server.close();
});

test('a client that knows what will be asked may answer at once', async () => {
  const { server } = stage();
  server.tool('greet', {}, async (_, ctx) => {
    const { name } = await ctx.ask({ name: { elicit: NAME } });
    return name.status === 'accepted' ? name.content.name : name.status;
  });
  const client = await Modern.of(server);
  const inputResponses = { name: accept({ name: 'Ada' }), other: accept({}) };
  assert.is(textOf(await client.send({ name: 'greet', inputResponses })), 'Ada');
  await client.ask('greet', { inputResponses: { other: accept({ name: 'Ada' }) } });
  // What does not fit is asked for, as if nothing had come.
  await client.ask('greet', { inputResponses: { name: accept({ name: 1 }) } });
  await server.close();
});

test('prompts and resources ask too', async () => {
  const { server } = stage();
  server.prompt('plan', {}, async (_, ctx) => `Plan for ${(await ctx.elicit(NAME)).status}`);
  server.resource('doc://it', {}, async (_, ctx) => `read by ${(await ctx.elicit(NAME)).status}`);
  const client = await Modern.of(server);
  const { requestState } = await client.ask('plan', {}, 'prompts/get');
  const answers = { inputResponses: { elicit: { action: 'decline' } } };
  const plan = await client.send({ name: 'plan', requestState, ...answers }, 'prompts/get');
  assert.match(JSON.stringify(plan.messages), 'Plan for declined');
  const read = await client.send({ uri: 'doc://it' }, 'resources/read');
  assert.is(read.resultType, 'input_required');
  const whole = await client.send(
    { uri: 'doc://it', requestState: String(read.requestState), ...answers },
    'resources/read',
  );
  assert.match(JSON.stringify(whole.contents), 'read by declined');
  await server.close();
});

test('a client that declares too little gets a result that says what is missing, and is asked nothing', async () => {
  const { server, told } = stage();
  server.tool('form', {}, async (_, ctx) => (await ctx.elicit(NAME)).status);
  server.tool('page', {}, async (_, ctx) => (await ctx.elicitUrl({ message: 'Go', url: 'https://a.example' })).status);
  server.tool('tools', {}, async (_, ctx) =>
    JSON.stringify(
      await ctx.sample({ messages: [{ role: 'user', content: { type: 'text', text: 'x' } }], maxTokens: 1, tools: [] }),
    ),
  );
  server.tool('roots', {}, async (_, ctx) => (await ctx.roots()).length);
  server.tool('half', {}, async (_, ctx) => Object.keys(await ctx.ask({ a: { roots: true }, b: { elicit: NAME } })));
  server.prompt('plan', {}, async (_, ctx) => (await ctx.elicit(NAME)).status);
  const poor = await Modern.of(server, { roots: {}, elicitation: { url: {} }, sampling: {} });
  for (const [name, missing] of [
    ['form', 'elicitation.form'],
    ['tools', 'sampling.tools'],
    ['half', 'elicitation.form'],
  ] as const) {
    const result = await poor.send({ name });
    assert.is(result.isError, true, name);
    assert.match(textOf(result), missing);
  }
  const formOnly = await Modern.of(server, { elicitation: {} });
  assert.match(textOf(await formOnly.send({ name: 'page' })), 'elicitation.url');
  assert.match(textOf(await formOnly.send({ name: 'roots' })), 'roots');
  const error = await errorResponse(poor.send({ name: 'plan' }, 'prompts/get'));
  assert.is(error.code, ErrorCode.MissingRequiredClientCapability);
  assert.equal(told, []);
  await server.close();
});

test('progress and logs go to the request that carries the handler now, and so does its cancellation', async () => {
  const { server } = stage();
  let why: unknown;
  server.tool('work', {}, async (_, ctx) => {
    await ctx.elicit(NAME);
    ctx.progress(1, 2, 'half');
    ctx.log.info('half');
    await new Promise<void>((resolve) => {
      ctx.signal.addEventListener('abort', () => {
        why = ctx.signal.reason;
        resolve();
      });
    });
  });
  const client = await Modern.of(server);
  const { requestState } = await client.ask('work');
  const before = client.client.messages.length;
  const retried = client.send(
    { name: 'work', requestState, inputResponses: { elicit: accept({ name: 'Ada' }) } },
    'tools/call',
    { progressToken: 'second', [META.logLevel]: 'info' },
  );
  retried.catch(() => {});
  const progress = await client.client.notification('notifications/progress');
  assert.is(progress.progressToken, 'second');
  await client.client.notification('notifications/message');
  const sent = client.client.messages[before]?.parsed;
  const id = typeof sent === 'object' && sent !== null && 'id' in sent ? sent.id : undefined;
  client.client.notify('notifications/cancelled', { requestId: id ?? 0, reason: 'enough' });
  await settled();
  assert.match(String(why), 'enough');
  await server.close();
});

test('a handler that does not wait for its answer has its result kept for the client that comes back', async () => {
  const { server } = stage();
  let finish = (): void => {};
  server.tool('race', {}, async (_, ctx) => {
    const done = new Promise<string>((resolve) => {
      finish = () => resolve('done without you');
    });
    return Promise.race([done, ctx.elicit(NAME).then(({ status }) => status)]);
  });
  const client = await Modern.of(server);
  const { requestState } = await client.ask('race');
  finish();
  await settled();
  assert.is(textOf(await client.retry('race', requestState, {})), 'done without you');
  await server.close();
});

test('a call that waits for its client holds up neither the requests in flight nor the close of the server', async () => {
  const { server, clock, told } = stage({ limits: { maxInFlight: 1 } });
  let ended: unknown;
  server.tool('greet', {}, async (_, ctx) => {
    try {
      return (await ctx.elicit(NAME)).status;
    } catch (error) {
      ended = error;
      throw error;
    }
  });
  const client = await Modern.of(server);
  await client.ask('greet');
  await client.ask('greet');
  const closed = server.close();
  await clock.advance(0);
  await closed;
  await settled();
  assert.match(String(ended), 'the server was closed');
  assert.equal(told, []);
});
