/** Views that wait for changes: `troupe_watch` returns a resource as soon as it differs, and nothing runs until then. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { createServer, type Limits, memory, type Server } from '../../../src/index.ts';
import { connect, SimulatedClock, settled, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { orderMachine } from '../machines/shop.ts';
import { namesOf, PAGE, refusalOf, WITH_VIEWS } from './support.ts';

const test = suite('troupe_watch');

interface Bench {
  readonly clock: SimulatedClock;
  readonly server: Server;
  /** The resource `team://board`. */
  readonly board: { cards: number };
  as(principal: string): TestClient;
}

async function onBench(limits: Partial<Limits> = {}): Promise<Bench> {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'team', version: '1.0.0', clock, limits, log: () => {} });
  const board = { cards: 1 };
  server.app('board', { html: PAGE });
  server.resource('team://board', { mimeType: 'application/json' }, () => JSON.stringify(board));
  const { transport, connect: open } = memory();
  await server.listen(transport);
  return { clock, server, board, as: (principal) => new TestClient(open({ principal })) };
}

/** A call, and what came of it so far. */
function watch(
  client: TestClient,
  args: JsonObject,
): { readonly result: Promise<JsonObject>; seen: JsonObject | undefined } {
  const params = { name: 'troupe_watch', arguments: args };
  const call: { result: Promise<JsonObject>; seen: JsonObject | undefined } = {
    seen: undefined,
    result: client.modern('tools/call', params).then((result) => {
      call.seen = result;
      return result;
    }),
  };
  // A call that a test leaves open is rejected when its server closes.
  call.result.catch(() => {});
  return call;
}

const structured = (result: JsonObject | undefined): JsonObject => Object(result?.structuredContent);
const textOf = (result: JsonObject | undefined): string => JSON.stringify(result?.content);

async function versionOf(client: TestClient, uri: string): Promise<string> {
  return String(structured(await watch(client, { uri }).result).version);
}

test('is listed for views only, and not at all by a server without apps', async () => {
  const { server, as } = await onBench();
  assert.equal(await namesOf(as('ada'), 'tools/list', WITH_VIEWS), ['troupe_watch']);
  assert.equal(await namesOf(as('ada'), 'tools/list', {}), []);
  await server.close();
  const plain = createServer({ name: 'plain', version: '1.0.0' });
  plain.tool('a', () => '');
  assert.equal(await namesOf(await connect(plain), 'tools/list', WITH_VIEWS), ['a']);
  await plain.close();
});

test('returns a resource at once without a version, and as soon as it differs from one', async () => {
  const { clock, server, board, as } = await onBench();
  const client = as('ada');
  const first = structured(await watch(client, { uri: 'team://board' }).result);
  assert.equal({ ...first, version: '' }, { changed: true, cards: 1, version: '' });
  const waiting = watch(client, { uri: 'team://board', version: String(first.version) });
  await clock.advance(5_000);
  assert.is(waiting.seen, undefined);
  // A report without a difference wakes no view.
  server.resourceUpdated('team://board');
  await clock.advance(1_000);
  assert.is(waiting.seen, undefined);
  board.cards = 2;
  server.resourceUpdated('team://board');
  await clock.advance(20);
  const second = structured(waiting.seen);
  assert.equal({ ...second, version: '' }, { changed: true, cards: 2, version: '' });
  assert.is.not(second.version, first.version);
  // A view that has an older version gets the resource at once.
  assert.is(structured(await watch(client, { uri: 'team://board', version: String(first.version) }).result).cards, 2);
  await server.close();
});

test('a resource whose members have the names of the result is its value, as one that is no object', async () => {
  const { server, as } = await onBench();
  const client = as('ada');
  for (const value of [{ changed: false, cards: 1 }, { version: 'mine' }, { value: 1 }, [1, 2], 7, null]) {
    const uri = `team://${JSON.stringify(value).length}`;
    server.resource(uri, { mimeType: 'application/json' }, () => JSON.stringify(value));
    const { version, ...rest } = structured(await watch(client, { uri }).result);
    assert.equal(rest, { changed: true, value });
    assert.type(version, 'string');
    server.resources.remove(uri);
  }
  await server.close();
});

test('returns that nothing changed when the time is over', async () => {
  const { clock, server, as } = await onBench();
  const client = as('ada');
  const version = await versionOf(client, 'team://board');
  const short = watch(client, { uri: 'team://board', version, waitMs: 1_000 });
  const long = watch(client, { uri: 'team://board', version });
  await clock.advance(999);
  assert.is(short.seen, undefined);
  await clock.advance(1);
  assert.equal(structured(short.seen), { changed: false, version });
  await clock.advance(23_999);
  assert.is(long.seen, undefined);
  await clock.advance(1);
  assert.equal(structured(long.seen), { changed: false, version });
  const { isError } = await watch(client, { uri: 'team://board', version, waitMs: 25_001 }).result;
  assert.is(isError, true);
  await server.close();
});

test('S-66: a resource of another principal does not exist, and its changes wake only views of its owner', async () => {
  const { clock, server, as } = await onBench();
  server.machine('order', orderMachine, {
    input: z.object({ customer: z.string() }),
    events: { add_item: z.object({ sku: z.string(), quantity: z.number() }), pay: true },
  });
  const [ada, bob] = [as('ada'), as('bob')];
  const { structuredContent } = await ada.call('order_create', { customer: 'Ada' });
  const { handle } = Object(structuredContent);
  const uri = `troupe://order/${handle}`;
  const foreign = watch(bob, { uri, version: 1 });
  const unknown = watch(bob, { uri: 'troupe://order/nothing', version: 1 });
  await clock.advance(10);
  assert.is(foreign.seen?.isError, true);
  assert.equal(foreign.seen?.content, unknown.seen?.content);
  const own = watch(ada, { uri, version: 1 });
  await clock.advance(10);
  assert.is(own.seen, undefined);
  await ada.call('order_add_item', { handle, sku: 'tea', quantity: 1 });
  await clock.advance(20);
  const { changed, version, accepts } = structured(own.seen);
  assert.equal({ changed, version, accepts }, { changed: true, version: 2, accepts: ['add_item', 'pay'] });
  await server.close();
});

test('S-66: a resource that a rule hides is an unknown one, and one without its scopes is not watched', async () => {
  const { server, as } = await onBench();
  server.resource('team://secret', { allow: () => ({ hidden: true }) }, () => 'secret');
  server.resource('team://guarded', { scopes: ['team:read'] }, () => 'guarded');
  const client = as('ada');
  const hidden = await watch(client, { uri: 'team://secret' }).result;
  const unknown = await watch(client, { uri: 'team://nothing' }).result;
  assert.is(hidden.isError, true);
  assert.equal(hidden, unknown);
  const refused = await refusalOf(watch(client, { uri: 'team://guarded' }).result);
  assert.match(refused, /team:read/);
  await server.close();
});

test('S-69: waits in a bounded number of calls for each principal, and a cancelled call makes room at once', async () => {
  const { clock, server, as } = await onBench({ maxWatches: 2 });
  const client = as('ada');
  const uri = 'team://board';
  const version = await versionOf(client, uri);
  const calls = [1, 2, 3].map(() => watch(client, { uri, version }));
  await clock.advance(10);
  assert.is(calls[2]?.seen?.isError, true);
  assert.match(textOf(calls[2]?.seen), /limits\.maxWatches/);
  const others = watch(as('bob'), { uri, version });
  await settled();
  assert.is(others.seen, undefined);
  const id = client.messages.flatMap(({ direction, parsed }) => {
    const { id: own, params } = Object(parsed);
    return direction === 'in' && Object(Object(params).arguments).version === version ? [own] : [];
  })[0];
  client.notify('notifications/cancelled', { requestId: id });
  await settled();
  const next = watch(client, { uri, version });
  await settled();
  assert.is(next.seen, undefined);
  await server.close();
  assert.equal(structured(next.seen), { changed: false, version });
});

test('S-69: a server that stops ends every wait, and does not wait for them', async () => {
  const { clock, server, as } = await onBench();
  const client = as('ada');
  const version = await versionOf(client, 'team://board');
  const waiting = watch(client, { uri: 'team://board', version });
  await clock.advance(10);
  const before = clock.now();
  await server.close();
  assert.equal(structured(waiting.seen), { changed: false, version });
  assert.is(clock.now(), before);
});
