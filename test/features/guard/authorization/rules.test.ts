/** Rules decide by caller, element and arguments: they reject, demand scopes, and hide; a rule that fails rejects (G-05). */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { z } from 'zod';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import {
  type AuditRecord,
  type AuthorizationCall,
  type AuthorizationRule,
  createServer,
  ErrorCode,
  type HttpOptions,
  type Server,
  type ServerOptions,
} from '../../../../src/index.ts';
import {
  connect,
  type ErrorResponse,
  SimulatedClock,
  settled,
  type TestClient,
} from '../../../../src/testing/testing.ts';
import { modern } from '../../../core/http/modern.ts';
import { serving } from '../../../core/http/session.ts';
import { ask } from '../../../core/http/support.ts';
import { suite } from '../../../harness/door.ts';
import { assertFigure } from '../../../harness/pace.ts';
import { errorResponse } from '../../../harness/results.ts';
import { atScale } from '../../../harness/scale.ts';

const test = suite('rules');

interface Ruled {
  readonly server: Server;
  readonly clock: SimulatedClock;
  readonly ran: string[];
  readonly lines: string[];
  connect(scopes?: readonly string[], principal?: string): Promise<TestClient>;
  close(): Promise<void>;
}

function ruled(options: Partial<ServerOptions> = {}): Ruled {
  const clock = new SimulatedClock();
  const ran: string[] = [];
  const lines: string[] = [];
  const log = (level: string, message: string): void => void lines.push(`${level}: ${message}`);
  const server = createServer({ name: 'ruled', version: '1.0.0', clock, log, ...options });
  server.tool('refund', { input: z.object({ amount: z.number() }), scopes: ['orders'] }, ({ amount }) => {
    ran.push(`refund ${amount}`);
    return 'refunded';
  });
  server.tool('look', {}, () => {
    ran.push('look');
    return 'seen';
  });
  server.resource('orders://{id}', { complete: { id: () => ['7'] } }, ({ uri }) => uri);
  server.prompt('review', { arguments: [{ name: 'id' }], complete: { id: () => ['7'] } }, () => 'review it');
  const open: TestClient[] = [];
  return {
    server,
    clock,
    ran,
    lines,
    async connect(scopes = [], principal = 'ada') {
      const client = await connect(server, { auth: { principal, scopes } });
      open.push(client);
      return client;
    },
    async close() {
      for (const client of open) await client.close();
      await server.close();
    },
  };
}

const call = (client: TestClient, name: string, args: JsonObject = {}): Promise<JsonObject> =>
  client.modern('tools/call', { name, arguments: args });

test('a rule decides by the arguments, and its scopes are demanded with those of the element', async () => {
  const { server, ran, connect: as, close } = ruled();
  const large: AuthorizationRule = ({ element, arguments: { amount } }) =>
    element.name !== 'refund' || Number(amount) < 100 || { scopes: ['orders:large'] };
  server.authorize(large).authorize(({ auth }) => auth?.principal !== 'eve' || { deny: 'eve is suspended' });
  const client = await as(['orders']);
  await call(client, 'refund', { amount: 5 });
  const { code, data } = await errorResponse(call(client, 'refund', { amount: 500 }));
  assert.is(code, ErrorCode.Forbidden);
  assert.equal(data, { scope: 'orders orders:large' });
  assert.equal((await errorResponse(call(await as(), 'refund', { amount: 500 }))).data, {
    scope: 'orders orders:large',
  });
  await call(await as(['orders', 'orders:large']), 'refund', { amount: 500 });
  assert.equal(ran, ['refund 5', 'refund 500']);
  const eve = await errorResponse(call(await as(['orders'], 'eve'), 'look'));
  assert.is(eve.code, ErrorCode.Forbidden);
  assert.not.match(eve.message, /suspended/);
  await close();
});

test('a reason is for the operator: once in ten seconds', async () => {
  const { server, lines, clock, connect: as, close } = ruled();
  server.authorize(() => ({ deny: 'the office is closed' }));
  const client = await as();
  for (let turn = 0; turn < 5; turn += 1) await errorResponse(call(client, 'look'));
  assert.is(lines.filter((line) => line.includes('the office is closed')).length, 1);
  await clock.advance(10_000);
  await errorResponse(call(client, 'look'));
  assert.is(lines.filter((line) => line.includes('the office is closed')).length, 2);
  await close();
});

test('a rule receives the call, the element and the request', async () => {
  const { server, connect: as, close } = ruled();
  const calls: AuthorizationCall[] = [];
  const seen: unknown[] = [];
  server.authorize((each, ctx) => {
    calls.push(each);
    seen.push([
      ctx.principal,
      ctx.auth?.scopes,
      ctx.client.era,
      ctx.session,
      ctx.signal.aborted,
      ctx.meta['example/id'],
    ]);
    return true;
  });
  const client = await as(['orders']);
  await client.modern('tools/call', { name: 'refund', arguments: { amount: 5 } }, { 'example/id': 7 });
  await client.modern('resources/read', { uri: 'orders://7' });
  await client.modern('prompts/get', { name: 'review', arguments: { id: '7' } });
  assert.equal(
    calls.map(({ method, element: { kind, name, scopes }, arguments: args, uri, principal }) => [
      ...[method, kind, name, scopes, { ...args }, uri, principal],
    ]),
    [
      ['tools/call', 'tool', 'refund', ['orders'], { amount: 5 }, undefined, 'ada'],
      ['resources/read', 'template', 'orders://{id}', [], { id: '7' }, 'orders://7', 'ada'],
      ['prompts/get', 'prompt', 'review', [], { id: '7' }, undefined, 'ada'],
    ],
  );
  assert.equal(seen[0], ['ada', ['orders'], 'modern', undefined, false, 7]);
  assert.match(JSON.stringify(calls[0]?.element.definition), /"name":"refund"/);
  await close();
});

const WRONG: readonly (readonly [string, AuthorizationRule])[] = [
  [
    'throws',
    () => {
      throw new Error('the secret path');
    },
  ],
  ['rejects', () => Promise.reject(new Error('the secret path'))],
  ['returns nothing', () => undefined as never],
  ['returns a text', () => 'yes' as never],
  ['returns the number 1', () => 1 as never],
  ['resolves with nothing', () => Promise.resolve(undefined as never)],
  ['demands scopes in one text', () => ({ scopes: 'a b' }) as never],
  ['never decides', () => new Promise(() => {})],
];
for (const [title, rule] of WRONG)
  test(`G-05: a rule that ${title} rejects the request, with an incident`, async () => {
    const { server, ran, lines, clock, connect: as, close } = ruled();
    server.authorize(rule);
    const client = await as(['orders']);
    const failing = errorResponse(call(client, 'look'));
    const listing = client.modern('tools/list');
    await settled();
    await clock.advance(1_000);
    const { code, message, data } = await failing;
    assert.is(code, ErrorCode.Forbidden);
    assert.not.match(message, /secret/);
    assert.is(data, undefined);
    assert.equal(ran, []);
    assert.match(lines.join('\n'), /an authorization rule/);
    // The operator learns which rule failed, and by what it returned, but none of its values.
    if (title !== 'never decides')
      assert.match(lines.join('\n'), 'an authorization rule (server.authorize, tool "look")');
    if (title === 'demands scopes in one text') assert.match(lines.join('\n'), /got \{ scopes: string \}$/m);
    if (title === 'returns nothing')
      assert.match(lines.join('\n'), /got nothing: each way through the rule must return/);
    // A list shows what is there; what a rule has failed to decide about is not.
    const { tools } = await listing;
    assert.equal(
      tools,
      title.startsWith('returns') || title.startsWith('demands') || title.startsWith('resolves') ? tools : [],
    );
    await close();
  });

const hides: AuthorizationRule = ({ element }) => !/refund|orders|review/.test(element.name) || { hidden: true };

test('G-05: a hidden element has the answer of a name that is not registered, in every operation', async () => {
  const { server, ran, connect: as, close } = ruled();
  server.authorize(hides);
  const client = await as(['orders']);
  const session = await as(['orders']);
  await session.initialize('2025-11-25');
  const same = async (send: (client: string) => Promise<unknown>, hidden: string, unknown: string) => {
    const [first, second] = [await errorResponse(send(hidden)), await errorResponse(send(unknown))];
    const text = (error: ErrorResponse, name: string) =>
      JSON.stringify([error.code, error.message, error.data]).replaceAll(name, 'NAME');
    assert.is(text(first, hidden), text(second, unknown));
    assert.not.equal(first.code, ErrorCode.Forbidden);
  };
  const each: readonly (readonly [method: string, (name: string) => JsonObject, hidden: string, unknown: string])[] = [
    ['tools/call', (name) => ({ name, arguments: { amount: 1 } }), 'refund', 'made_up'],
    ['prompts/get', (name) => ({ name }), 'review', 'made_up'],
    ['resources/read', (uri) => ({ uri }), 'orders://7', 'unknown://7'],
    [
      'completion/complete',
      (name) => ({ ref: { type: 'ref/prompt', name }, argument: { name: 'id', value: '' } }),
      'review',
      'made_up',
    ],
    [
      'completion/complete',
      (uri) => ({ ref: { type: 'ref/resource', uri }, argument: { name: 'id', value: '' } }),
      'orders://{id}',
      'unknown://{id}',
    ],
  ];
  for (const [method, params, hidden, unknown] of each) {
    await same((name) => client.modern(method, params(name)), hidden, unknown);
    await same((name) => session.send(method, params(name)), hidden, unknown);
  }
  await same((uri) => session.send('resources/subscribe', { uri }), 'orders://7', 'unknown://7');
  assert.equal((await client.modern('tools/list')).tools, (await session.send('tools/list')).tools);
  const { tools } = await session.send('tools/list');
  assert.not.match(JSON.stringify(tools), /refund/);
  assert.equal((await session.send('resources/templates/list')).resourceTemplates, []);
  assert.equal((await session.send('prompts/list')).prompts, []);
  assert.equal(ran, []);
  await close();
});

test('G-05: over HTTP a hidden name and an unknown name have the same status, headers and body', () =>
  serving(
    async ({ url }) => {
      const answer = async (name: string) => {
        const { status, headers, text } = await ask(url, modern('tools/call', { params: { name, arguments: {} } }));
        const { date: _, 'content-length': __, ...rest } = headers;
        return JSON.stringify([status, rest, await text()]).replaceAll(name, 'NAME');
      };
      assert.is(await answer('echo'), await answer('made_up'));
    },
    {},
    (server) => void server.authorize(({ element }) => element.name !== 'echo' || { hidden: true }),
  ));

test('G-05: a hidden name takes as long as an unknown one', async () => {
  const { server, connect: as, close } = ruled();
  server.authorize(hides);
  const client = await as();
  const rounds = atScale({ quick: 50, full: 200, proof: 2_000 });
  const times: Record<'refund' | 'made_up', number[]> = { refund: [], made_up: [] };
  for (let round = 0; round < rounds; round += 1)
    for (const name of ['refund', 'made_up'] as const) {
      const before = performance.now();
      await errorResponse(call(client, name));
      times[name].push(performance.now() - before);
    }
  const median = (all: number[]): number => all.sort((a, b) => a - b)[all.length >> 1] ?? 0;
  const apart = Math.abs(median(times.refund) - median(times.made_up));
  assertFigure(apart, 1, 'between the medians');
  await close();
});

test('G-04: a rule that decides later holds the response back, also where it would be a stream', () => {
  const decisions: ((decision: boolean) => void)[] = [];
  const auth: HttpOptions['auth'] = {
    authenticate: () => ({ auth: { principal: 'ada', scopes: [], claims: {} } }),
    challenge: (scopes) => [`Bearer scope="${scopes.join(' ')}"`],
    documents: new Map(),
  };
  return serving(
    async ({ url, held }) => {
      const asking = modern('tools/call', { params: { name: 'held', arguments: { key: 'a' } } });
      const denied = ask(url, asking);
      while (decisions.length < 1) await settled();
      decisions[0]?.(false);
      const answer = await denied;
      assert.is(answer.status, 403, 'the status is decided before the first byte of a stream');
      assert.is(answer.headers['content-type'], 'application/json');
      const allowed = ask(url, asking);
      while (decisions.length < 2) await settled();
      decisions[1]?.(true);
      // The stream has begun although its handler has sent nothing.
      const stream = await allowed;
      assert.is(stream.status, 200);
      assert.match(stream.headers['content-type'] ?? '', /^text\/event-stream/);
      (await held('a')).finish();
      assert.match(await stream.text(), /done/);
    },
    { auth, response: 'sse' },
    (server) => {
      server.authorize(() => new Promise<boolean>((decide) => void decisions.push(decide)));
    },
  );
});

test('a call that its client cancels while a rule decides is not run', async () => {
  const { server, ran, connect: as, close } = ruled();
  const decisions: ((decision: boolean) => void)[] = [];
  server.authorize(() => new Promise<boolean>((decide) => void decisions.push(decide)));
  const client = await as();
  await client.initialize('2025-11-25');
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'look' } }));
  await settled();
  client.notify('notifications/cancelled', { requestId: 'x' });
  await settled();
  decisions[0]?.(true);
  await settled();
  assert.equal(ran, []);
  const again = client.call('look');
  await settled();
  decisions[1]?.(true);
  assert.equal((await again).content, [{ type: 'text', text: 'seen' }]);
  await close();
});

test('the rules decide again about a request that a middleware has changed', async () => {
  const { server, ran, connect: as, close } = ruled();
  server.authorize(({ arguments: { amount }, uri }) => {
    if (uri === 'orders://9') return { hidden: true };
    return amount !== 500 || { scopes: ['orders:large'] };
  });
  server.use('tools/call', (each, _ctx, next) =>
    next({ ...each, params: { ...each.params, arguments: { amount: 500 } } }),
  );
  server.use('resources/read', (each, _ctx, next) => next({ ...each, params: { uri: 'orders://9' } }));
  const client = await as(['orders']);
  assert.equal((await errorResponse(call(client, 'refund', { amount: 5 }))).data, { scope: 'orders orders:large' });
  assert.match((await errorResponse(client.modern('resources/read', { uri: 'orders://7' }))).message, /not found/);
  assert.equal(ran, []);
  await close();
});

test('G-05: a middleware that changes the arguments it has received, in place, gets past no rule', async () => {
  const { server, ran, connect: as, close } = ruled();
  server.authorize(({ arguments: { amount } }) => amount !== 500 || { deny: 'large' });
  server.use('tools/call', (each, _ctx, next) => {
    if (each.params.arguments.amount === 5) Object.assign(each.params.arguments, { amount: 500 });
    return next();
  });
  const client = await as(['orders']);
  await call(client, 'refund', { amount: 4 });
  assert.is((await errorResponse(call(client, 'refund', { amount: 5 }))).code, ErrorCode.Forbidden);
  assert.equal(ran, ['refund 4']);
  await close();
});

test('S-92: a rule sees the arguments of a completion: the resolved ones and the one being completed, also after a middleware', async () => {
  const { server, connect: as, close } = ruled();
  const completed: string[] = [];
  const complete = (value: string, { tenant = '' }: Readonly<Record<string, string>>): string[] => {
    completed.push(`${tenant} ${value}`);
    return [];
  };
  server.prompt(
    'bill',
    { input: z.object({ tenant: z.string(), id: z.string() }), complete: { tenant: complete, id: complete } },
    () => '',
  );
  server.resource('bills://{tenant}/{id}', { complete: { tenant: complete, id: complete } }, () => '');
  server.authorize(
    ({ element, arguments: { tenant } }) =>
      !/bill/.test(element.name) || tenant !== 'foreign' || { deny: 'another tenant' },
  );
  server.use('completion/complete', (each, _ctx, next) => {
    if (each.params.argument.value === 'in place') Object.assign(each.params.resolved, { tenant: 'foreign' });
    if (each.params.argument.value !== 'changed') return next();
    return next({ ...each, params: { ...each.params, resolved: { tenant: 'foreign' } } });
  });
  const client = await as();
  for (const ref of [
    { type: 'ref/prompt', name: 'bill' },
    { type: 'ref/resource', uri: 'bills://{tenant}/{id}' },
  ]) {
    const ask = (name: string, value: string, tenant?: string): Promise<JsonObject> =>
      client.modern('completion/complete', {
        ref,
        argument: { name, value },
        ...(tenant === undefined ? {} : { context: { arguments: { tenant } } }),
      });
    await ask('id', '1', 'own');
    await ask('tenant', 'own');
    for (const asked of [
      () => ask('id', '1', 'foreign'),
      () => ask('tenant', 'foreign'),
      () => ask('tenant', 'foreign', 'own'),
      () => ask('id', 'in place', 'own'),
      () => ask('id', 'changed', 'own'),
    ])
      assert.is((await errorResponse(asked())).code, ErrorCode.Forbidden);
  }
  assert.equal(completed, ['own 1', ' own', 'own 1', ' own']);
  await close();
});

test('G-05: another spelling of a URI gets past no rule', async () => {
  const { server, connect: as, close } = ruled();
  const read: unknown[] = [];
  server.resource('files://{path}', ({ variables }) => {
    read.push(variables.path);
    return '';
  });
  server.authorize(({ uri, arguments: { path } }) => uri !== 'orders://9' && path !== 'a/b');
  const client = await as();
  const denied = ['orders://9', 'orders://%39', 'files://a%2Fb', 'files://a%2fb', 'files://%61%2f%62'];
  for (const uri of denied)
    assert.is((await errorResponse(client.modern('resources/read', { uri }))).code, ErrorCode.Forbidden, uri);
  await client.modern('resources/read', { uri: 'orders://%3' }).catch(() => {});
  await client.modern('resources/read', { uri: 'files://a%2Fc' });
  assert.equal(read, ['a/c']);
  await close();
});

test('allow of an element decides about that element only, and rules come before the limits of its schema', async () => {
  const { server, connect: as, close } = ruled();
  server.tool(
    'secret',
    { allow: ({ auth }) => auth?.scopes.includes('staff') === true || { hidden: true } },
    () => 'psst',
  );
  server.tool('strict', { input: z.object({ a: z.number() }), allow: () => false }, () => 'never');
  const [staff, other] = [await as(['staff']), await as()];
  assert.is((await errorResponse(call(other, 'secret'))).code, ErrorCode.InvalidParams);
  assert.equal((await call(staff, 'secret')).isError, undefined);
  assert.is((await errorResponse(call(other, 'strict', { a: 'no number' }))).code, ErrorCode.Forbidden);
  const names = async (client: TestClient) => (await client.tools()).map(({ name }) => name);
  assert.equal(await names(staff), ['refund', 'look', 'secret', 'strict']);
  assert.equal(await names(other), ['refund', 'look', 'strict']);
  await close();
});

test('G-04: the answers of a model need the scopes of the call that they continue', async () => {
  const { server, ran, connect: as, close } = ruled({ askThroughModel: true });
  server.tool('pizza', { scopes: ['orders'] }, async (_, ctx) => {
    for (const message of ['Which size?', 'Which topping?'])
      ran.push((await ctx.elicit({ message, schema: { type: 'object', properties: {} } })).status);
    return 'ordered';
  });
  const [full, less, other] = [await as(['orders']), await as([]), await as([], 'eve')];
  const answer = (client: TestClient, asked: JsonObject): Promise<JsonObject> => {
    const [, id = '', key = ''] = /"id":"([^"]+)","answers":\{"([^"]+)/.exec(textOf(asked)) ?? [];
    return call(client, 'troupe_answer', { id, answers: { [key]: { action: 'decline' } } });
  };
  const textOf = ({ content }: JsonObject): string => JSON.stringify(content).replaceAll('\\"', '"');
  let asked = await call(full, 'pizza');
  for (let question = 0; question < 2; question += 1) {
    assert.equal((await errorResponse(answer(less, asked))).data, { scope: 'orders' });
    // To another principal the id is unknown.
    assert.match(textOf(await answer(other, asked)), /No call waits/);
    assert.is(ran.length, question);
    asked = await answer(full, asked);
  }
  assert.equal(ran, ['declined', 'declined']);
  await close();
});

test('an event may have the name of a member that every object has', async () => {
  const { server, connect: as, close } = ruled();
  const machine = createMachine({ initial: 'a', states: { a: { on: { toString: 'b' } }, b: {} } });
  server.machine('lamp', machine, { events: { toString: true }, limits: JSON.parse('{}') });
  const client = await as();
  const { structuredContent } = await call(client, 'lamp_create');
  const { handle } = JSON.parse(JSON.stringify(structuredContent));
  assert.match(JSON.stringify(await call(client, 'lamp_toString', { handle })), 'lamp');
  await close();
});

test('a rule that is no function is rejected', () => {
  const { server } = ruled();
  assert.throws(() => server.authorize('no' as never), /server\.authorize: expected a function/);
});

test('each denial is counted once by its cause, and recorded in the audit with the scopes', async () => {
  const records: AuditRecord[] = [];
  const { server, connect: as, close } = ruled({ audit: { to: (record) => void records.push(record) } });
  server.authorize(({ element }) => element.name !== 'look' || { deny: 'closed on Sundays' });
  server.authorize(({ element }) => element.name !== 'review' || { hidden: true });
  const client = await as(['other']);
  await errorResponse(call(client, 'refund', { amount: 1 }));
  await errorResponse(call(client, 'look'));
  await errorResponse(client.modern('prompts/get', { name: 'review' }));
  await settled();
  assert.equal(
    records
      .filter(({ event }) => event === 'denied')
      .map(({ element, rule, scopesHad, scopesNeeded }) => [element, rule, scopesHad, scopesNeeded]),
    [
      ['tool refund', 'scope', ['other'], ['orders']],
      ['tool look', 'closed on Sundays', ['other'], []],
      ['prompt review', 'hidden', ['other'], []],
    ],
  );
  const counted = server.metrics();
  for (const why of ['scope', 'rule', 'hidden']) assert.match(counted, new RegExp(`troupe_denied.*"${why}".* 1\\b`));
  await close();
});
