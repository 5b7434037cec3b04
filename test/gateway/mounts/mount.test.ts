/** A mounted server: its names, its results as it sent them, its catalogue, its changes, and its end. */
import { createServer, type ServerOptions } from 'troupe';
import { type Client, connect, ErrorResponse } from 'troupe/client';
import { SimulatedClock, settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { MemoryChannel } from '../../../src/client/channels/memory-channel.ts';
import { openInMemory } from '../../../src/client/in-memory.ts';
import { suite } from '../../harness/door.ts';
import { untilPassed } from '../../harness/wait.ts';

const test = suite('mounts');

const quiet: NonNullable<ServerOptions['log']> = () => {};
const server = (name: string, options: Partial<ServerOptions> = {}) =>
  createServer({ name, version: '1.0.0', log: quiet, ...options });

/** A server with one element of each kind. */
function shop() {
  const created = server('shop');
  created.tool(
    'price',
    {
      description: 'The price of an item.',
      input: { type: 'object', properties: { item: { type: 'string', maxLength: 9 } }, required: ['item'] },
      annotations: { readOnlyHint: true },
    },
    ({ item }) => ({
      content: [
        { type: 'text', text: `${item}: 3` },
        { type: 'resource_link', uri: 'shop://items/tea', name: 'tea' },
      ],
      structuredContent: { price: 3, uri: 'shop://items/tea' },
      _meta: { 'example.com/from': 'shop' },
    }),
  );
  created.resource('shop://terms', { mimeType: 'text/plain' }, () => 'the terms');
  created.resource(
    'shop://items/{id}',
    { mimeType: 'text/plain', complete: { id: (value) => ['tea', 'milk'].filter((id) => id.startsWith(value)) } },
    ({ variables: { id } }) => `item ${id}`,
  );
  created.prompt(
    'order',
    { arguments: [{ name: 'item', required: true }], complete: { item: () => ['tea'] } },
    ({ item }) => `Order ${item}.`,
  );
  return created;
}

const names = (list: readonly { readonly name: string }[]): string[] => list.map(({ name }) => name);
const errorOf = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error('expected an error');
};

for (const eras of ['legacy', 'modern'] as const)
  test(`a ${eras} client lists, calls, reads, gets and completes what a mount offers`, async () => {
    const upstream = shop();
    const host = server('host');
    host.tool('own', () => 'mine');
    const mount = await host.mount('shop', upstream);
    const client = await connect(host, { eras });
    assert.is(mount.state, 'offering.current');
    const [, tool] = await client.tools();
    assert.equal(tool, {
      name: 'shop_price',
      description: 'The price of an item.',
      inputSchema: { type: 'object', properties: { item: { type: 'string', maxLength: 9 } }, required: ['item'] },
      annotations: { readOnlyHint: true },
    });
    const result = await client.call('shop_price', { item: 'tea' });
    assert.equal(result.content, [
      { type: 'text', text: 'tea: 3' },
      { type: 'resource_link', uri: 'shop+shop://items/tea', name: 'tea' },
    ]);
    assert.equal(result.structuredContent, { price: 3, uri: 'shop://items/tea' });
    assert.is(result._meta?.['example.com/from'], 'shop');
    // The upstream checks the arguments, and says what is wrong.
    const refused = await client.call('shop_price', { item: 'much too long' });
    assert.ok(refused.isError);
    assert.equal(names(await client.resources()), ['shop://terms']);
    assert.is((await client.resources())[0]?.uri, 'shop+shop://terms');
    assert.equal(
      (await client.templates()).map(({ uriTemplate }) => uriTemplate),
      ['shop+shop://items/{id}'],
    );
    for (const [uri, text] of [
      ['shop+shop://terms', 'the terms'],
      ['shop+shop://items/tea', 'item tea'],
    ] as const) {
      const { contents } = await client.read(uri);
      assert.equal(contents, [{ uri, mimeType: 'text/plain', text }]);
    }
    assert.equal(names(await client.prompts()), ['shop_order']);
    const { messages } = await client.prompt('shop_order', { item: 'tea' });
    assert.equal(messages[0]?.content, { type: 'text', text: 'Order tea.' });
    assert.equal((await client.complete({ prompt: 'shop_order' }, { name: 'item', value: '' })).values, ['tea']);
    const completed = await client.complete({ resource: 'shop+shop://items/{id}' }, { name: 'id', value: 'm' });
    assert.equal(completed.values, ['milk']);
    assert.is((await client.call('own')).isError, undefined);
    await client.close();
    await host.close();
    assert.is(mount.state, 'closed');
    await upstream.close();
  });

test('loads nothing of mounts in a server that mounts nothing, and offers nothing of a closed mount', async () => {
  const upstream = shop();
  const host = server('host');
  const mount = await host.mount('shop', upstream, { prefix: 'x.', except: ['nothing*'], rename: { price: 'cost' } });
  const client = await connect(host);
  assert.equal(names(await client.tools()), ['cost']);
  await mount.close();
  await mount.close();
  assert.equal([await client.tools({ fresh: true }), await client.resources({ fresh: true })], [[], []]);
  const error = await errorOf(client.read('shop+shop://terms'));
  assert.ok(error instanceof ErrorResponse);
  await host.mount('shop', upstream);
  await client.close();
  await host.close();
  await upstream.close();
});

test('passes changes of the upstream on, once for a burst, and none if nothing differs', async () => {
  const clock = new SimulatedClock();
  const upstream = server('shop', { clock });
  upstream.tool('a', () => 'a');
  const host = server('host', { clock });
  const mount = await host.mount('shop', upstream);
  const [client, changed] = await watching(host);
  assert.equal(names(await client.tools()), ['shop_a']);
  for (const name of ['b', 'c', 'd']) upstream.tool(name, () => name);
  await untilPassed(clock, () => changed.count > 0, 100);
  assert.equal(names(await client.tools({ fresh: true })), ['shop_a', 'shop_b', 'shop_c', 'shop_d']);
  upstream.tools.announce();
  await mount.refresh();
  await clock.advance(10_000);
  assert.is(changed.count, 1);
  await closeAll(clock, client, host, upstream);
});

for (const eras of ['legacy', 'modern'] as const)
  for (const prefix of [undefined, false] as const)
    test(`a ${eras} upstream has one subscription for all who watch a resource${prefix === false ? ', with the same URIs' : ''}`, async () => {
      const clock = new SimulatedClock();
      const upstream = server('shop', { clock });
      upstream.resource('shop://stock', () => '1');
      upstream.resource('shop://other', () => '1');
      const watched: string[] = [];
      upstream.use(async (call, _, next) => {
        if (call.method === 'resources/subscribe' || call.method === 'resources/unsubscribe')
          watched.push(`${call.method} ${call.params.uri}`);
        if (call.method === 'subscriptions/listen') watched.push(`listen ${call.params.filter.resources?.join(' ')}`);
        return next();
      });
      const host = server('host', { clock });
      await host.mount('shop', upstream, { eras, ...(prefix === undefined ? {} : { prefix }) });
      const at = prefix === false ? '' : 'shop+';
      const clients = [await connect(host, { eras: 'legacy' }), await connect(host, { eras: 'modern' })];
      const seen: string[] = [];
      const ends = clients.map((client, index) => {
        const changes = client.changes({ resources: [`${at}shop://stock`] });
        void (async () => {
          for await (const change of changes) if (change.type === 'resource') seen.push(`${index} ${change.uri}`);
        })();
        return changes;
      });
      await clock.advance(1_000);
      assert.equal(
        watched.filter((line) => !line.endsWith('undefined')),
        [`${eras === 'legacy' ? 'resources/subscribe' : 'listen'} shop://stock`],
      );
      upstream.resourceUpdated('shop://stock');
      upstream.resourceUpdated('shop://other');
      await clock.advance(1_000);
      assert.equal(seen.sort(), [`0 ${at}shop://stock`, `1 ${at}shop://stock`]);
      for (const each of ends) each.end();
      await clock.advance(1_000);
      upstream.resourceUpdated('shop://stock');
      await clock.advance(1_000);
      assert.is(seen.length, 2);
      if (eras === 'legacy') assert.is(watched.at(-1), 'resources/unsubscribe shop://stock');
      await closeAll(clock, ...clients, host, upstream);
    });

test('S-76 a tool that an operator has disabled stays so when its upstream drops it and adds it again', async () => {
  const clock = new SimulatedClock();
  const upstream = server('shop', { clock });
  upstream.tool('refund', () => 'refunded');
  upstream.tool('price', () => '3');
  const host = server('host', { clock });
  const mount = await host.mount('shop', upstream);
  const client = await connect(host, { eras: 'modern' });
  host.tools.disable('shop_refund');
  const offered = async (): Promise<string[]> => {
    await mount.refresh();
    return names(await client.tools({ fresh: true }));
  };
  assert.equal(await offered(), ['shop_price']);
  upstream.tools.remove('refund');
  assert.equal(await offered(), ['shop_price']);
  upstream.tool('refund', () => 'refunded');
  assert.equal(await offered(), ['shop_price']);
  const error = await errorOf(client.call('shop_refund'));
  assert.is(error instanceof ErrorResponse && error.code, -32602);
  host.tools.enable('shop_refund');
  assert.equal(await offered(), ['shop_price', 'shop_refund']);
  await closeAll(clock, client, host, upstream);
});

test('a client that watches a resource receives a change that a legacy upstream reports only on the connection of its call', async () => {
  const clock = new SimulatedClock();
  // One server for each connection, as a program over stdio is.
  const made: ReturnType<typeof server>[] = [];
  const host = server('host', { clock });
  const target = {
    name: 'notes',
    channel: () => {
      const upstream = server('notes', { clock });
      upstream.resource('notes://1', () => '1');
      upstream.tool('write', () => {
        upstream.resourceUpdated('notes://1');
        return 'written';
      });
      made.push(upstream);
      return new MemoryChannel({ clock, connect: () => openInMemory(upstream) });
    },
  };
  await host.mount('notes', target, { eras: 'legacy' });
  const client = await connect(host, { eras: 'legacy', elicit: () => 'decline' });
  const seen: string[] = [];
  const changes = client.changes({ resources: ['notes+notes://1'] });
  void (async () => {
    for await (const change of changes) if (change.type === 'resource') seen.push(change.uri);
  })();
  await clock.advance(1_000);
  assert.equal(seen, []);
  await client.call('notes_write');
  await clock.advance(1_000);
  assert.equal([seen, made.length], [['notes+notes://1'], 2]);
  await closeAll(clock, client, host, ...made);
});

test('a change of the lists that a legacy upstream reports only on the connection of a call reaches every client', async () => {
  const clock = new SimulatedClock();
  const upstream = server('shop', { clock });
  upstream.tool('enroll', () => {
    upstream.tool('members', () => '1');
    return 'enrolled';
  });
  let opened = 0;
  const target = {
    name: 'shop',
    channel: () => {
      const channel = new MemoryChannel({ clock, connect: () => openInMemory(upstream) });
      opened += 1;
      if (opened > 1) return channel;
      // The connection of the catalogue learns nothing.
      const open = channel.open.bind(channel);
      channel.open = (host) =>
        open({
          address: host.address,
          send: (mail) => {
            if (mail.type !== 'text' || !mail.text.includes('list_changed')) host.send(mail);
          },
        });
      return channel;
    },
  };
  const host = server('host', { clock });
  await host.mount('shop', target, { eras: 'legacy' });
  const caller = await connect(host, { eras: 'legacy', elicit: () => 'decline' });
  const [other, changed] = await watching(host);
  assert.equal(names(await other.tools()), ['shop_enroll']);
  await caller.call('shop_enroll');
  await untilPassed(clock, () => changed.count > 0, 100);
  assert.equal(names(await other.tools({ fresh: true })), ['shop_enroll', 'shop_members']);
  assert.is(opened, 2);
  await closeAll(clock, caller, other, host, upstream);
});

test('S-73 of two mounts with one name, the one that was mounted first has it; the other gets it when the first goes', async () => {
  const log: string[] = [];
  const [one, other] = [server('one'), server('other')];
  one.tool('a', () => 'one');
  one.tool('own', () => 'one');
  other.tool('a', () => 'other');
  other.tool('b', () => 'b');
  const host = server('host', { log: (_, message) => log.push(message) });
  host.tool('own', () => 'host');
  const first = await host.mount('one', one, { prefix: false });
  const second = await host.mount('other', other, { prefix: false });
  // The second one is listed first.
  await second.ready();
  await first.ready();
  const client = await connect(host);
  const textOf = async (name: string): Promise<string> => JSON.stringify((await client.call(name)).content);
  assert.equal(names(await client.tools()).sort(), ['a', 'b', 'own']);
  assert.match(await textOf('a'), /"one"/);
  assert.match(await textOf('own'), /"host"/);
  assert.ok(log.some((line) => line.includes('tool "own" is left out: it is already registered (by code)')));
  assert.is(
    log.filter((line) => line.includes('tool "a" is left out: it is already registered (by mount one)')).length,
    1,
  );
  await first.close();
  assert.equal(names(await client.tools({ fresh: true })).sort(), ['a', 'b', 'own']);
  assert.match(await textOf('a'), /"other"/);
  await client.close();
  await Promise.all([host, one, other].map((each) => each.close()));
});

for (const late of [0, 1, 2])
  test(`the tools of mounts are listed in the order of the mounts and of their lists, if mount ${late} answers last and adds a tool`, async () => {
    const clock = new SimulatedClock();
    const host = server('host', { clock });
    const upstreams = ['a', 'b', 'c'].map((name) => server(name, { clock }));
    const answers: (() => void)[] = [];
    for (const [index, upstream] of upstreams.entries()) {
      upstream.tool('one', () => '1');
      upstream.tool('two', () => '2');
      const channel = () => {
        const opened = new MemoryChannel({ clock, connect: () => openInMemory(upstream) });
        const open = opened.open.bind(opened);
        if (index === late) opened.open = (to) => void answers.push(() => open(to));
        return opened;
      };
      await host.mount(upstream.info.name, { name: upstream.info.name, channel }, { firstListMs: 10 });
    }
    const client = await connect(host, { clock, eras: 'legacy' });
    for (let step = 0; step < 4; step += 1) await clock.advance(10);
    // The program's own come first, also those of later.
    host.tool('own', () => 'mine');
    const others = [0, 1, 2]
      .filter((index) => index !== late)
      .flatMap((index) => ['one', 'two'].map((tool) => `${'abc'[index]}_${tool}`));
    assert.equal(names(await client.tools({ fresh: true })), ['own', ...others]);
    for (const answer of answers) answer();
    for (let step = 0; step < 4; step += 1) await clock.advance(10);
    upstreams[late]?.tool('three', () => '3');
    for (let step = 0; step < 20; step += 1) await clock.advance(250);
    const all = ['a', 'b', 'c'].flatMap((name, index) =>
      ['one', 'two', ...(index === late ? ['three'] : [])].map((tool) => `${name}_${tool}`),
    );
    assert.equal(names(await client.tools({ fresh: true })), ['own', ...all]);
    await closeAll(clock, client, host, ...upstreams);
  });

test('S-73 the program gets each name at any time, also one that a mount has listed before', async () => {
  const log: string[] = [];
  const upstream = server('upstream');
  upstream.tool('late', () => 'upstream');
  upstream.tool('other', () => 'upstream');
  upstream.prompt('late', () => 'upstream');
  upstream.resource('shop://late', {}, () => 'upstream');
  const host = server('host', { log: (_, message) => log.push(message) });
  const mount = await host.mount('shop', upstream, { prefix: false });
  await mount.ready();
  const client = await connect(host);
  assert.equal(names(await client.tools()).sort(), ['late', 'other']);
  host.tool('late', () => 'host');
  host.prompt('late', () => 'host');
  host.resource('shop://late', {}, () => 'host');
  for (let round = 0; round < 2; round += 1) {
    assert.equal(names(await client.tools({ fresh: true })).sort(), ['late', 'other']);
    assert.match(JSON.stringify(await client.call('late')), /"host"/);
    assert.match(JSON.stringify(await client.prompt('late')), /"host"/);
    assert.match(JSON.stringify(await client.read('shop://late')), /"host"/);
    assert.match(JSON.stringify(await client.call('other')), /"upstream"/);
    // The mount lists again, and leaves the names to the program.
    await mount.refresh();
  }
  assert.ok(log.some((line) => line.includes('tool "late" is left out: it is already registered (by code)')));
  assert.throws(() => host.tool('late', () => 'again'), /already registered \(by code\)/);
  await client.close();
  await Promise.all([host, upstream].map((each) => each.close()));
});

test('a list with elements of mounts is fresh for no time, and private unless the lists of all upstreams are public', async () => {
  const hintsOf = async (client: Client): Promise<unknown> => {
    const { ttlMs, cacheScope } = Object(await client.request('tools/list'));
    return { ttlMs, cacheScope };
  };
  const [open, guarded, old] = [shop(), shop(), shop()];
  guarded.authorize(({ element }) => element.name !== 'nothing');
  const host = server('host', { listTtlMs: 60_000 });
  host.tool('own', () => 'own');
  const client = await connect(host, { eras: 'modern' });
  assert.equal(await hintsOf(client), { ttlMs: 60_000, cacheScope: 'public' });
  await (await host.mount('open', open, { eras: 'modern' })).ready();
  assert.equal(await hintsOf(client), { ttlMs: 0, cacheScope: 'public' });
  for (const [name, target, eras] of [
    ['guarded', guarded, 'modern'],
    ['old', old, 'legacy'],
  ] as const) {
    const mount = await host.mount(name, target, { eras });
    await mount.ready();
    assert.equal(await hintsOf(client), { ttlMs: 0, cacheScope: 'private' }, name);
    await mount.close();
    assert.equal(await hintsOf(client), { ttlMs: 0, cacheScope: 'public' }, name);
  }
  await client.close();
  await Promise.all([host, open, guarded, old].map((each) => each.close()));
});

test('scopes, rules and limits of a mount restrict its elements, and nothing else', async () => {
  const upstream = shop();
  let refunds = 0;
  upstream.tool('refund', () => {
    refunds += 1;
    return 'done';
  });
  const host = server('host');
  await host.mount('scoped', upstream, { scopes: ['shop'] });
  await host.mount('ruled', upstream, {
    allow: ({ element, arguments: { item } }) => element.kind !== 'tool' || item !== 'tea',
  });
  await host.mount('limited', upstream, { only: ['re*'], limits: { perMinute: 2 } });
  const client = await connect(host);
  assert.equal(names(await client.tools()).sort(), [
    'limited_refund',
    'ruled_price',
    'ruled_refund',
    'scoped_price',
    'scoped_refund',
  ]);
  for (const work of [
    client.call('scoped_price', { item: 'tea' }),
    client.read('scoped+shop://terms'),
    client.read('scoped+shop://unlisted'),
    client.prompt('scoped_order', { item: 'tea' }),
    client.call('ruled_price', { item: 'tea' }),
  ]) {
    const error = await errorOf(work);
    assert.is(error instanceof ErrorResponse && error.code, -31004);
  }
  assert.is((await client.call('ruled_price', { item: 'x' })).isError, undefined);
  assert.is((await client.read('ruled+shop://terms')).contents.length, 1);
  const results = [];
  for (let call = 0; call < 3; call += 1) results.push((await client.call('limited_refund')).isError);
  assert.equal([results, refunds], [[undefined, undefined, true], 2]);
  await client.close();
  await host.close();
  await upstream.close();
});

test('S-73 annotations of an upstream permit repeats only with trust: true; validate: true checks arguments before it gets them', async () => {
  const upstream = shop();
  let calls = 0;
  upstream.use('tools/call', (_, __, next) => {
    calls += 1;
    return next();
  });
  const host = server('host');
  await host.mount('claims', upstream);
  await host.mount('trusted', upstream, { trust: true, validate: true });
  let repeatable: readonly string[] = [];
  await host.listen({
    name: 'probe',
    open(opened) {
      repeatable = opened.repeatableTools();
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  });
  assert.equal(repeatable, ['trusted_price']);
  const client = await connect(host);
  assert.is((await client.call('trusted_price', { item: 'much too long' })).isError, true);
  assert.is(calls, 0);
  assert.is((await client.call('claims_price', { item: 'much too long' })).isError, true);
  assert.is(calls, 1);
  await client.close();
  await host.close();
  await upstream.close();
});

test('rejects an invalid or taken name and invalid options, also if the program does not wait for the mount', async () => {
  const upstream = shop();
  const host = server('host');
  await host.mount('shop', upstream);
  for (const [work, message] of [
    [host.mount('Shop', upstream), /mount string "Shop": a name has/],
    [host.mount('shop', upstream), /taken by another mount/],
    [
      host.mount('a2', upstream, Object.assign({ prefix: false as const }, { nolimits: 1 })),
      /nolimits: no such option/,
    ],
  ] as const)
    assert.match(String(await errorOf(work)), message);
  void host.mount('B', upstream);
  assert.match(String(await errorOf(connect(host))), /mount string "B"/);
  await host.close();
  await upstream.close();
});

/** A client that counts the changes of tools. */
async function watching(host: ReturnType<typeof server>): Promise<[Client, { count: number }]> {
  const client = await connect(host);
  const changed = { count: 0 };
  const hear = async (): Promise<void> => {
    for await (const { type } of client.changes({ tools: true })) if (type === 'tools') changed.count += 1;
  };
  void hear();
  await settled();
  return [client, changed];
}

async function closeAll(clock: SimulatedClock, ...all: readonly { close(): Promise<unknown> }[]): Promise<void> {
  for (const each of all) {
    const closed = each.close();
    await clock.advance(60_000);
    await closed;
  }
}
