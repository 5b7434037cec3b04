/** Callbacks that mean harm: what they cannot reach, how long they can hold a delivery, and that the others get theirs meanwhile. */
import * as assert from 'uvu/assert';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { CallbackFailed, CallbackSender } from '../../../../src/features/events/delivery/callback-sender.ts';
import { connect } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { loggedServer } from '../../../harness/memory.ts';
import { type RawServer, type Responder, rawServer, response } from '../../../harness/raw-server.ts';
import { inTime, until } from '../../../harness/wait.ts';
import { idsOf, receiver, subscription } from './support.ts';

const test = suite('hostile callbacks');
const opened: RawServer[] = [];
test.after(async () => {
  for (const server of opened) await server.close();
});

async function open(respond: Responder): Promise<RawServer> {
  const server = await rawServer(respond);
  opened.push(server);
  return server;
}

/** Sends a POST. @param allowed origins that may be private @returns the status, or the category of the failure */
async function posted(target: string, allowed: readonly string[], timeoutMs = 30_000, reads = false): Promise<string> {
  const sender = new CallbackSender({ clock: systemClock, allowed: new Set(allowed), timeoutMs, perOrigin: 4 });
  const outcome = await inTime(
    sender.post(new URL(target), { 'webhook-id': 'e1' }, '{}', reads).then(
      ({ status }) => String(status),
      (error: unknown) => (error instanceof CallbackFailed ? error.category : String(error)),
    ),
    'the POST to settle',
  );
  sender.close();
  return outcome;
}

test('S-134: a redirect leads nowhere, whatever its status and its target', async () => {
  const inside = await open(() => response(200));
  for (const status of [301, 302, 303, 307, 308])
    for (const location of [inside.url, 'http://169.254.169.254/latest/meta-data/', 'file:///etc/passwd', '//[::1]/']) {
      const outside = await open(() => response(status, { location }));
      assert.is(await posted(outside.url, [outside.url, inside.url]), String(status), location);
    }
  assert.equal(inside.requests, []);
});

test('S-134: an address of IPv4 in a form of IPv6 is not reached: mapped, translated, compatible, tunnelled', async () => {
  const { port } = new URL((await open(() => response(200))).url);
  for (const host of [
    ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:0:127.0.0.1]', '[::127.0.0.1]', '[::1]', '[::]'],
    ...['[64:ff9b::7f00:1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[2001:0:7f00:1::]', '[fe80::1]'],
    ...['[::ffff:169.254.169.254]', '[fd00:ec2::254]', '169.254.169.254', '0.0.0.0', '127.1', '2130706433'],
  ])
    assert.is(await posted(`https://${host}:${port}/`, []), 'connection_refused', host);
  for (const server of opened) assert.not.ok(server.url.endsWith(`:${port}`) && server.requests.length > 0);
});

/** Writes a text, a byte at a time. */
const slowly =
  (text: string): Responder =>
  (_, socket) => {
    let at = 0;
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer);
      else socket.write(text[at++ % text.length] ?? '');
    }, 20);
    return undefined;
  };

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

test('S-134: a callback that is slow, or breaks off, ends with the time of its POST', async () => {
  const reset =
    (text: string): Responder =>
    (_, socket) => {
      socket.write(text, () => setImmediate(() => socket.resetAndDestroy()));
      return undefined;
    };
  const table: readonly (readonly [string, Responder, string, string])[] = [
    // Title, answer, outcome of a delivery, outcome of a challenge, whose body is read.
    ['a head of one byte at a time', slowly(`HTTP/1.1 200 OK\r\nx-a: ${'b'.repeat(2_000)}`), 'timeout', 'timeout'],
    [
      'a body of one byte at a time',
      (request, socket) => {
        socket.write(CHUNKED);
        return slowly('1\r\na\r\n')(request, socket);
      },
      '200',
      'timeout',
    ],
    ['a reset in the head', reset('HTTP/1.1 200 OK\r\nx-a: b'), 'connection_refused', 'connection_refused'],
    ['a reset in the body', reset(`${CHUNKED}3\r\nab`), '200', 'connection_refused'],
    [
      'one 100 Continue that nothing has asked for',
      () => Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'), response(204)]),
      '204',
      '204',
    ],
    [
      '100 Continue without end',
      (_, socket) => {
        socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100));
        return undefined;
      },
      'http_5xx',
      'http_5xx',
    ],
    ['two responses', () => Buffer.concat([response(204), response(500)]), '204', '204'],
    [
      'a length and chunks',
      () => 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'http_5xx',
      'http_5xx',
    ],
  ];
  for (const [title, respond, outcome, challenged] of table) {
    const { url } = await open(respond);
    const within = (expected: string): number => (expected === 'timeout' ? 300 : 30_000);
    assert.is(await posted(url, [url], within(outcome)), outcome, title);
    assert.is(await posted(url, [url], within(challenged), true), challenged, `${title}, in a challenge`);
  }
});

test('S-134: receivers that hang, redirect, fail or reset delay no other one', async () => {
  const good = await receiver();
  const bad = await Promise.all([
    // Each echoes its challenge first.
    receiver(({ body }) => (body.type === 'verification' ? 200 : undefined)),
    receiver(({ body }) => (body.type === 'verification' ? 200 : 302)),
    receiver(({ body }) => (body.type === 'verification' ? 200 : 500)),
    receiver(({ body }, answer) => {
      if (body.type === 'verification') return 200;
      answer.destroy();
      return undefined;
    }),
  ]);
  const all = [...bad, good];
  const { server } = loggedServer({ events: { callbacks: { allow: all.map(({ origin }) => origin) } } });
  const note = server.event('note', { description: 'd', payload: { type: 'object', properties: {} } });
  for (const { url } of all)
    await (await connect(server, { auth: { principal: url } })).modern('events/subscribe', subscription(url));
  const ids = Array.from({ length: 30 }, (_, n) => `e${n}`);
  for (const id of ids) await note.emit({}, { id });
  await until(
    () => good.posts.length === ids.length,
    () => `30 events, got ${idsOf(good).join()}`,
  );
  assert.equal(idsOf(good), ids);
  // Each of the others still has the first one in front of it.
  for (const { posts } of bad) assert.ok(posts.every(({ id }) => id === 'e0'));
  const closing = server.close();
  for (const each of all) await each.close();
  await closing;
});
