/** Webhooks of a server: what is verified is stored, answered, handled and attempted again; everything else is rejected without a reason. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { ReloadHost } from '../../../src/cli/reload/reload-host.ts';
import { Endpoints } from '../../../src/cli/serving/endpoints.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { HookOptions } from '../../../src/features/hooks/define-hook.ts';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import { createServer, DefinitionError, StoreError } from '../../../src/index.ts';
import { Redactor } from '../../../src/inspector/redaction/redact.ts';
import { EventTraffic } from '../../../src/inspector/traffic/event-traffic.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { github, slack, stripe } from '../../../src/webhooks.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { byGithub, hmacOf, PATH, receiver, SECRET } from './support.ts';

const test = suite('webhooks');
const BODY = '{"ref":"refs/heads/main","n":12345678901234567890}';

test('a delivery that is genuine is answered with 200, and its handler gets its body as it came', async () => {
  const { send, handled, hook, server } = await receiver();
  const answer = await send(BODY);
  assert.is(answer.status, 200);
  assert.is(await answer.text(), '');
  await until(() => handled.length === 1);
  const [first] = handled;
  if (!first) return assert.unreachable();
  const { delivery, attempt } = first;
  assert.is(delivery.id, '72d3162e-cc78-11e3-81ab-4c9367dc0958');
  assert.is(delivery.type, 'push');
  assert.is(delivery.path, PATH);
  assert.match(delivery.key, /^[\w-]{43}$/);
  assert.is(Buffer.from(delivery.raw).toString(), BODY);
  assert.equal(delivery.body, JSON.parse(BODY));
  assert.is(attempt.attempt, 1);
  await until(async () => (await hook.deliveries({ state: 'done' })).length === 1);
  const [record] = await hook.deliveries();
  assert.is(record?.bytes, BODY.length);
  assert.is(record?.error, undefined);
  assert.is(String(await hook.body(record?.ref ?? '')), BODY);
  await server.close();
});

test('S-140: a delivery that is not genuine gets 401 without a reason, and reaches no handler, no store and no log', async () => {
  const { send, handled, hook, logged, server } = await receiver();
  const wrong = [byGithub('other'), byGithub(BODY, {}, 'another secret'), { 'content-type': 'application/json' }, {}];
  for (const headers of wrong) {
    const answer = await send(BODY, headers);
    assert.is(answer.status, 401);
    assert.is(await answer.text(), '');
    assert.is(answer.headers.get('www-authenticate'), 'Signature');
  }
  assert.is(handled.length, 0);
  assert.equal(await hook.deliveries(), []);
  assert.equal(logged, []);
  await server.close();
});

test('S-142: of equal deliveries one is handled: in turn, at the same moment, and under another id that the sender has not signed', async () => {
  const { send, handled, server, clock } = await receiver();
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(BODY)));
  answers.push(await send(BODY), await send(BODY, byGithub(BODY, { 'x-github-delivery': 'another' })));
  assert.equal([...new Set(answers.map(({ status }) => status))], [200]);
  await clock.advance(1);
  assert.is(handled.length, 1);
  await send('{"another":"body"}');
  await clock.advance(1);
  assert.is(handled.length, 2);
  await server.close();
});

test('a delivery is a repeat for 72 hours', async () => {
  const claims: number[] = [];
  const store = new (class extends TestStore {
    override ask(query: Parameters<TestStore['ask']>[0]): ReturnType<TestStore['ask']> {
      if (query.type === 'claim') claims.push(query.reply.expires);
      return super.ask(query);
    }
  })();
  const { send, clock, server } = await receiver({}, { store, keys: ['k'.repeat(32)] });
  await send(BODY);
  assert.equal(claims, [clock.date() + 72 * 3_600_000]);
  await server.close();
});

test('the answer does not wait for the handler', async () => {
  let end = (): void => {};
  const slow = await receiver({
    to: () =>
      new Promise<void>((resolve) => {
        end = resolve;
      }),
  });
  assert.is((await slow.send(BODY)).status, 200);
  await until(async () => (await slow.hook.deliveries())[0]?.state === 'running');
  end();
  await until(async () => (await slow.hook.deliveries())[0]?.state === 'done');
  await slow.server.close();
});

test('R-65: a handler that fails is attempted again, later each time, until the delivery is a dead letter', async () => {
  const received = await receiver({ attempts: 4, retryMs: 1_000 });
  const { send, handled, hook, clock, logged, server } = received;
  received.work = () => {
    throw new Error('the shop is closed');
  };
  await send(BODY);
  await clock.advance(0);
  const attempts = (): readonly number[] => handled.map(({ attempt }) => attempt.attempt);
  assert.equal(attempts(), [1]);
  const [waiting] = await hook.deliveries();
  assert.is(waiting?.state, 'waiting');
  assert.is(waiting?.error, 'the shop is closed');
  await clock.advance(999);
  assert.equal(attempts(), [1]);
  await clock.advance(1);
  assert.equal(attempts(), [1, 2]);
  await clock.advance(2_000);
  await clock.advance(4_000);
  assert.equal(attempts(), [1, 2, 3, 4]);
  await clock.advance(3_600_000);
  assert.is(handled.length, 4);
  assert.equal(new Set(handled.map(({ delivery }) => delivery.key)).size, 1);
  const [dead] = await hook.deliveries();
  assert.is(dead?.state, 'dead');
  assert.is(dead?.attempt, 4);
  assert.match(
    logged.at(-1) ?? '',
    /^error: incident .*webhook \/hooks\/github, delivery .*, which is a dead letter now/,
  );
  assert.match(logged[0] ?? '', /delivery .*: attempt 1 failed, and the next one follows in 1 s: the shop is closed/);
  await server.close();
});

test('a dead letter is sent again by a person, or by its sender, and then has another key', async () => {
  const received = await receiver({ attempts: 1 });
  const { send, handled, hook, clock, server } = received;
  received.work = () => assert.unreachable('broken');
  await send(BODY);
  await clock.advance(0);
  const [dead] = await hook.deliveries({ state: 'dead' });
  received.work = () => undefined;
  const ref = await hook.again(dead?.ref ?? '');
  await clock.advance(0);
  assert.is(handled.length, 2);
  assert.equal(handled[1]?.delivery.body, handled[0]?.delivery.body);
  assert.is.not(handled[1]?.delivery.key, handled[0]?.delivery.key);
  const [done] = await hook.deliveries({ state: 'done' });
  assert.is(done?.ref, ref);
  assert.is(done?.resent, dead?.ref);
  // Its sender now finds the one that is done.
  await send(BODY);
  await clock.advance(0);
  assert.is(handled.length, 2);
  received.work = () => assert.unreachable('broken');
  await send('{"n":2}');
  await clock.advance(0);
  received.work = () => undefined;
  await send('{"n":2}');
  await clock.advance(0);
  assert.is(handled.length, 4);
  assert.is(await hook.again('AAAAAAAAAAAAAAAAAAAAAAAA'), undefined);
  assert.is(await hook.again('nonsense'), undefined);
  assert.is(await hook.again('../../x'), undefined);
  await server.close();
});

test('a handler that hangs ends with its deadline, and learns that', async () => {
  const received = await receiver({ timeoutMs: 5_000, attempts: 2, retryMs: 1_000 });
  const { send, handled, hook, clock, server } = received;
  received.work = () => new Promise(() => {});
  await send(BODY);
  await clock.advance(4_999);
  assert.is(handled[0]?.attempt.signal.aborted, false);
  await clock.advance(1);
  assert.is(handled[0]?.attempt.signal.aborted, true);
  assert.match((await hook.deliveries())[0]?.error ?? '', /has not returned within 5 s/);
  await clock.advance(1_000);
  assert.is(handled.length, 2);
  const closed = server.close();
  await clock.advance(3_000);
  await closed;
});

test('no more handlers of a webhook run at a time than it allows, in the order of arrival', async () => {
  const ends: (() => void)[] = [];
  const received = await receiver({ concurrency: 2 });
  const { send, handled, clock, server } = received;
  received.work = () => new Promise<void>((resolve) => ends.push(resolve));
  for (let n = 1; n <= 5; n += 1) await send(`{"n":${n}}`);
  await settled();
  assert.equal(
    handled.map(({ delivery }) => delivery.body),
    [{ n: 1 }, { n: 2 }],
  );
  for (let n = 0; n < 5; n += 1) {
    ends.shift()?.();
    await clock.advance(0);
  }
  assert.equal(
    handled.map(({ delivery }) => delivery.body),
    [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }, { n: 5 }],
  );
  await server.close();
});

test('a body is JSON, a form, a text or bytes by its media type', async () => {
  const { send, handled, clock, server } = await receiver();
  const bytes = Buffer.from([0, 255, 254]);
  for (const [type, body, expected] of [
    ['application/json; charset=utf-8', '{"a":1}', { a: 1 }],
    ['application/cloudevents+json', '[1]', [1]],
    ['APPLICATION/JSON', '"text"', 'text'],
    ['application/json', '\uFEFF{"bom":true}', { bom: true }],
    ['application/json', '{"half":"\\ud83d"}', { half: '\ud83d' }],
    ['application/x-www-form-urlencoded', 'a=1&b=%C3%A9&a=2', { a: '1', b: 'é' }],
    ['application/x-www-form-urlencoded', `payload=${encodeURIComponent('{"ref":"main"}')}`, { ref: 'main' }],
    ['text/plain', 'hello', 'hello'],
    ['application/octet-stream', bytes, undefined],
    ['', '{"a":2}', { a: 2 }],
    ['application/octet-stream', '', undefined],
  ] as const) {
    assert.is((await send(body, byGithub(body, { 'content-type': type }))).status, 200, type);
    await clock.advance(0);
    assert.equal(handled.at(-1)?.delivery.body, expected, type);
    assert.equal(Buffer.from(handled.at(-1)?.delivery.raw ?? ''), Buffer.from(body), type);
  }
  assert.is(handled.length, 11);
  await server.close();
});

test('a genuine body that is not what its media type says gets 400 with the reason', async () => {
  const { send, handled, server } = await receiver();
  for (const [body, expected] of [
    ['{"a":', /expected JSON/],
    ['', /expected JSON/],
    [Buffer.from('{"a":"\xff"}', 'latin1'), /expected UTF-8/],
    [Buffer.from('{"a":1}', 'utf16le'), /expected JSON/],
    ['{"__proto__":{"admin":true}}', /"__proto__"/],
    ['['.repeat(100_000) + ']'.repeat(100_000), /levels of nesting|expected JSON/],
  ] as const) {
    const answer = await send(body);
    assert.is(answer.status, 400);
    assert.match(await answer.text(), expected);
  }
  assert.is(handled.length, 0);
  await server.close();
});

test('S-143: a webhook takes POST only, at its path only, up to its longest body, and nothing compressed', async () => {
  const { send, handled, server, clock } = await receiver({ maxBytes: 20 });
  const status = async (body: string, headers = byGithub(body), path = PATH): Promise<number> =>
    (await send(body, headers, path)).status;
  assert.is(await status(`"${'x'.repeat(18)}"`), 200);
  assert.is(await status(`"${'x'.repeat(19)}"`), 413);
  assert.is(await status('{}', byGithub('{}', { 'content-encoding': 'gzip' })), 415);
  assert.is(await status('[1]', byGithub('[1]'), `${PATH}/?from=a`), 200);
  for (const path of ['/hooks', `${PATH}/x`, `${PATH}x`, '/HOOKS/GITHUB', '//hooks/github'])
    assert.is.not(await status('[2]', byGithub('[2]'), path), 200, path);
  const got = await server.fetch(new Request(`http://hooks.example.com${PATH}`));
  assert.is(got.status, 405);
  assert.is(got.headers.get('allow'), 'POST');
  await clock.advance(0);
  assert.is(handled.length, 2);
  await server.close();
});

test('S-143: a question by GET gets the reply of the verifier, and is never a delivery', async () => {
  const asked: string[] = [];
  const { server, handled, clock } = await receiver({
    verify: ({ method, query, body, only }) => {
      asked.push(`${method} ${query} ${body.length}`);
      const all = new URLSearchParams(query);
      if (method === 'GET' && all.get('token') === 'hush-hush') return { reply: all.get('challenge') ?? '' };
      // A verifier that does not look at the method.
      return only('x-token') === 'hush-hush' ? { type: 'push' } : undefined;
    },
  });
  const get = (query: string, init: RequestInit = {}): Promise<Response> =>
    server.fetch(new Request(`http://hooks.example.com${PATH}?${query}`, init));
  const answer = await get('token=hush-hush&challenge=<b>1');
  assert.equal([answer.status, await answer.text()], [200, '<b>1']);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/);
  for (const init of [{}, { headers: { 'x-token': 'hush-hush' } }, { method: 'HEAD' }, { method: 'PUT', body: '{}' }]) {
    const rejected = await get('token=no', init);
    assert.equal([rejected.status, rejected.headers.get('allow')], [405, 'POST']);
  }
  assert.equal(asked, ['GET token=hush-hush&challenge=%3Cb%3E1 0', 'GET token=no 0', 'GET token=no 0']);
  await clock.advance(0);
  assert.is(handled.length, 0);
  await server.close();
});

test('S-143: an address has a rate of its own at each webhook, before anything is read', async () => {
  const { send, server, clock, logged } = await receiver({ rate: { perSecond: 1, burst: 2 } });
  const statuses = async (): Promise<readonly number[]> => [
    (await send(BODY, {})).status,
    (await send(BODY)).status,
    (await send(BODY)).status,
  ];
  assert.equal(await statuses(), [401, 200, 429]);
  const late = await send(BODY);
  assert.is(late.headers.get('retry-after'), '1');
  await clock.advance(1_000);
  assert.is((await send(BODY)).status, 200);
  assert.equal(logged, []);
  await server.close();
});

test('Slack gets its challenge, as a text that no browser runs, and no handler runs for it', async () => {
  const { server, clock, handled, hook } = await receiver({ verify: slack({ secret: SECRET }) });
  const body = '{"type":"url_verification","challenge":"<script>3eZ"}';
  const seconds = String(Math.floor(clock.date() / 1_000));
  const ask = (signature: string): Promise<Response> =>
    server.fetch(
      new Request(`http://localhost${PATH}`, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json',
          'x-slack-request-timestamp': seconds,
          'x-slack-signature': `v0=${signature}`,
        },
      }),
    );
  const answer = await ask(hmacOf(SECRET, `v0:${seconds}:${body}`));
  assert.is(answer.status, 200);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/);
  assert.is(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.is(await answer.text(), '<script>3eZ');
  assert.is((await ask(hmacOf('another', 'x'))).status, 401);
  await clock.advance(0);
  assert.equal([handled, await hook.deliveries()], [[], []]);
  await server.close();
});

test('a webhook whose events have ids takes each id once, whatever else the body has', async () => {
  const { server, clock, handled } = await receiver({ verify: stripe({ secret: SECRET }) });
  const deliver = (body: string): Promise<Response> => {
    const seconds = Math.floor(clock.date() / 1_000);
    const signature = `t=${seconds},v1=${hmacOf(SECRET, `${seconds}.${body}`)}`;
    const headers = { 'content-type': 'application/json', 'stripe-signature': signature };
    return server.fetch(new Request(`http://localhost${PATH}`, { method: 'POST', body, headers }));
  };
  await deliver('{"id":"evt_1","type":"invoice.paid","pending_webhooks":2}');
  await clock.advance(60_000);
  await deliver('{"id":"evt_1","type":"invoice.paid","pending_webhooks":1}');
  await deliver('{"id":"evt_2","type":"invoice.paid"}');
  await clock.advance(0);
  assert.equal(
    handled.map(({ delivery }) => delivery.id),
    ['evt_1', 'evt_2'],
  );
  await server.close();
});

test('a verifier of a program may be slow or throw: the request is rejected, and the log says why', async () => {
  const failing: readonly (readonly [HookOptions['verify'], RegExp])[] = [
    [() => Promise.reject(new Error('no database')), /failed, and its request is rejected: no database/],
    [() => new Promise<never>(() => {}), /has not decided within 5000 ms/],
  ];
  for (const [verify, why] of failing) {
    const { send, clock, logged, server } = await receiver({ verify });
    const answer = send(BODY);
    await clock.advance(5_000);
    assert.is((await answer).status, 401);
    assert.match(logged[0] ?? '', why);
    await server.close();
  }
  for (const proof of [true, 'yes', null, 1, []]) {
    // Only an object is a proof: a program in JavaScript may return anything.
    const { send, server } = await receiver({ verify: (() => proof) as unknown as HookOptions['verify'] });
    assert.is((await send(BODY)).status, 401, String(proof));
    await server.close();
  }
});

test('R-64: a delivery that the store does not take gets 503, and its sender sends it again', async () => {
  let fails = true;
  const store = new (class extends TestStore {
    override write(...given: Parameters<TestStore['write']>): Promise<void> {
      return fails ? Promise.reject(new StoreError('busy', 'too much')) : super.write(...given);
    }
  })();
  const { send, handled, logged, server, clock } = await receiver({}, { store, keys: ['k'.repeat(32)] });
  const answer = await send(BODY);
  assert.is(answer.status, 503);
  assert.is(answer.headers.get('retry-after'), '5');
  assert.match(logged[0] ?? '', /could not be stored, and its sender must send it again: too much/);
  fails = false;
  assert.is((await send(BODY)).status, 200);
  await clock.advance(0);
  assert.is(handled.length, 1);
  await server.close();
});

test('a webhook with a wrong path or option is rejected when it is registered', () => {
  const server = createServer({ name: 'a', version: '1.0.0' });
  const options: HookOptions = { verify: github({ secret: SECRET }), to: () => {} };
  for (const path of ['hooks', '/', '/mcp', '/hooks/', '/a b', '/hooks?x=1', '/readyz', '//x'])
    assert.throws(
      () => server.webhook(path, options),
      (error: unknown) => error instanceof DefinitionError,
      path,
    );
  server.webhook(PATH, options);
  assert.throws(() => server.webhook(PATH, options), /webhook "\/hooks\/github": there is a webhook with this path/);
});

test('the inspector lists deliveries, shows a body without its secrets, and sends one again', async () => {
  const received = await receiver({ attempts: 1 });
  const { server, clock } = received;
  received.work = () => assert.unreachable('the shop is closed');
  await received.send('{"n":1,"password":"hunter2"}');
  await clock.advance(0);
  const traffic = new EventTraffic({ server, inside: server[INTERNALS], redactor: new Redactor() });
  const { deliveries } = await traffic.view();
  const [dead] = deliveries;
  assert.equal([deliveries.length, dead?.state, dead?.error], [1, 'dead', 'the shop is closed']);
  assert.not.match(JSON.stringify(deliveries), /hunter2/);
  const { body } = await traffic.content(`webhook ${dead?.ref}`);
  assert.match(JSON.stringify(body), /"n":1/);
  assert.not.match(JSON.stringify(body), /hunter2/);
  received.work = () => undefined;
  assert.match(await traffic.again(`webhook ${dead?.ref}`), /^sent again as /);
  await clock.advance(0);
  assert.is((await traffic.view()).deliveries[0]?.state, 'done');
  await traffic.again('webhook AAAAAAAAAAAAAAAAAAAAAAAA').then(
    () => assert.unreachable(),
    (error: unknown) => assert.match(String(error), /not stored any more/),
  );
  await server.close();
});

test('a handler that returns a target sends its event to the instance of that key, once for each delivery', async () => {
  const pushed = setup({
    types: { context: {} as { pushes: number }, events: {} as { type: 'push' } },
  }).createMachine({
    context: { pushes: 0 },
    on: { push: { actions: assign({ pushes: ({ context }) => context.pushes + 1 }) } },
  });
  const inner = memoryStore();
  const open = (dies: boolean) => {
    // The process ends after the event, and before it has stored that the handler has returned.
    const store = new (class extends TestStore {
      override write(writes: Parameters<TestStore['write']>[0]): Promise<void> {
        const ends = dies && writes.some((write) => write.type === 'actor' && write.actor.status.startsWith('done'));
        return ends ? new Promise(() => {}) : super.write(writes);
      }
    })(inner);
    return receiver(
      { to: ({ body }) => ({ machine: 'build', key: String(body), event: { type: 'push' } }), attempts: 2 },
      { store, keys: ['k'.repeat(32)] },
      new SimulatedClock(),
      (server) => {
        server.machine('build', pushed, {
          key: { argument: 'repository' },
          events: { push: true },
          roles: { of: () => 'reader', reader: { events: [] } },
          view: ({ context }) => context,
          keep: true,
        });
      },
    );
  };
  const first = await open(true);
  await first.send('"troupe"');
  await first.clock.advance(10);
  assert.is((await first.hook.deliveries())[0]?.state, 'done');
  const next = await open(false);
  await next.clock.advance(10);
  const [record] = await next.hook.deliveries();
  assert.equal([record?.state, record?.attempt], ['done', 2]);
  const view = await next.server.send('build', 'troupe', { type: 'push' });
  assert.match(JSON.stringify(view), /"pushes":2/);
  await next.server.close();
});

test('under troupe dev, the webhooks of the latest load of a program are served', async () => {
  let server = createServer({ name: 'mine', version: '1' });
  const endpoints = new Endpoints('dev', { values: {}, lists: {}, positionals: [], rest: [] });
  const host = new ReloadHost({ name: 'mine', version: '1', log: () => {} }, endpoints, async (own) => {
    server = own;
  });
  const load = (path: string, work: () => void): void => {
    const program = createServer({ name: 'mine', version: '1' });
    program.webhook(path, { verify: github({ secret: SECRET }), to: work });
    host.adopt(program);
  };
  const statusAt = async (path: string, body: string): Promise<number> =>
    (
      await server.fetch(
        new Request(`http://localhost${path}`, { method: 'POST', body, headers: { ...byGithub(body) } }),
      )
    ).status;
  let handled = '';
  load('/hooks/a', () => {
    handled += 'a';
  });
  assert.is(await statusAt('/hooks/a', '[1]'), 200);
  await until(() => handled === 'a');
  load('/hooks/b', () => {
    handled += 'b';
  });
  assert.is.not(await statusAt('/hooks/a', '[2]'), 200);
  assert.is(await statusAt('/hooks/b', '[2]'), 200);
  await until(() => handled === 'ab');
  await server.close();
});
