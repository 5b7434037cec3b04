/** Upstreams that hang, die, flap and list in bad faith: only the calls to them are affected, and their catalogue stays. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Mount, type MountOptions, type Server, sqlite } from 'troupe';
import { type Client, connect, ErrorResponse } from 'troupe/client';
import { SimulatedClock, settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { PlayedServer, type Script, text } from '../../client/played-server.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';

const test = suite('the upstreams of mounts');
const folder = mkdtempSync(join(tmpdir(), 'troupe-mounts-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const GONE = {
  type: 'gone',
  failure: { reason: 'closed', message: 'it broke', carriedOut: 'unknown' },
  final: false,
} as const;
const inputSchema = { type: 'object' };
const content = [{ type: 'text', text: 'right' }];

/** Lists these tools, and responds to each call. */
const offering =
  (...tools: readonly string[]): Script =>
  ({ id, method }) => [
    text({
      id,
      result: method === 'tools/list' ? { tools: tools.map((name) => ({ name, inputSchema })) } : { content },
    }),
  ];

function played(script: Script = offering('a')): PlayedServer {
  const upstream = new PlayedServer();
  upstream.script = script;
  upstream.initialized = { ...upstream.initialized, capabilities: { tools: { listChanged: true } } };
  return upstream;
}

const mounted = (server: Server, name: string, upstream: PlayedServer, options?: MountOptions): Promise<Mount> =>
  server.mount(name, { name, channel: () => upstream.channel() }, options);

async function namesOf(client: Client): Promise<string[]> {
  return (await client.tools({ fresh: true })).map(({ name }) => name).sort();
}

/** Advances the clock in steps until the work has ended. */
async function passing<T>(clock: SimulatedClock, work: Promise<T>): Promise<T> {
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  ended.catch(() => {});
  for (let step = 0; step < 1_000 && !done; step += 1) await clock.advance(250);
  return ended;
}

const failure = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

for (const [kind, ends] of [
  ['the same tools', () => ['a']],
  ['other tools each time', (count: number) => [`a${count}`]],
  ['an error', () => undefined],
] as const)
  test(`an upstream that announces a change at each listing, with ${kind}, is listed at a bounded pace`, async () => {
    const clock = new SimulatedClock();
    const host = createServer({ name: 'host', version: '1', clock, log: () => {} });
    let listings = 0;
    const restless = played(({ id, method }) => {
      if (method !== 'tools/list') return [];
      listings += 1;
      const changed = text({ method: 'notifications/tools/list_changed' });
      const tools = ends(listings)?.map((name) => ({ name, inputSchema }));
      const answer = tools ? { id, result: { tools } } : { id, error: { code: -32603, message: 'starting' } };
      return [changed, text(answer), changed];
    });
    await mounted(host, 'restless', restless, { firstListMs: 1 });
    const client = await passing(clock, connect(host, { clock }));
    for (let step = 0; step < 300; step += 1) await clock.advance(100);
    assert.ok(listings >= 4 && listings <= 27, `${listings} listings in 30 s`);
    const closed = Promise.all([client.close(), host.close()]);
    await passing(clock, closed);
  });

for (const at of ['open', 'initialize', 'tools/list'] as const)
  test(`U-09 an upstream hangs in ${at}: the server opens at once, the first list waits for firstListMs, and the calls of others do not wait`, async () => {
    const clock = new SimulatedClock();
    const log: string[] = [];
    const host = createServer({ name: 'host', version: '1', clock, log: (_, message) => log.push(message) });
    const hung = played();
    if (at === 'open') hung.hangs = true;
    else if (at === 'initialize') hung.silent = true;
    else hung.script = () => [];
    const fine = played();
    const mount = await mounted(host, 'hung', hung, { firstListMs: 2_000, listMs: 8_000, connectMs: 3_000 });
    await mounted(host, 'fine', fine);
    const start = clock.now();
    // A modern client would list the tools before its first call.
    const client = await connect(host, { clock, eras: 'legacy' });
    assert.is(clock.now(), start, 'no upstream delays the opening');
    assert.equal((await passing(clock, client.call('fine_a'))).content, content);
    assert.ok(clock.now() - start < 1_000, 'nor a call of a tool that another offers');
    const unknown = failure(client.call('hung_b'));
    const first = namesOf(client);
    await settled();
    assert.equal(await passing(clock, first), ['fine_a']);
    assert.is(clock.now() - start, 2_000, 'the first list waits no longer');
    assert.match(String(await unknown), 'Unknown tool');
    assert.equal(await namesOf(client), ['fine_a']);
    assert.is(clock.now() - start, 2_000, 'and later ones wait for nothing');
    assert.equal((await client.call('fine_a')).content, content);
    assert.match(mount.state, /^unknown/);
    const ready = failure(mount.ready());
    await passing(clock, ready);
    assert.ok((await ready) instanceof Error);
    assert.is(log.filter((line) => line.startsWith('mount "hung": its server could not be listed')).length, 1);
    // It returns: its elements are offered without a restart.
    hung.hangs = false;
    hung.silent = false;
    hung.script = offering('b');
    await passing(
      clock,
      mount.ready().catch(() => mount.refresh()),
    );
    assert.equal(await namesOf(client), ['fine_a', 'hung_b']);
    await passing(clock, Promise.all([client.close(), host.close()]));
    assert.is(hung.open, 0);
  });

const MOUNTS = times(20, { quick: 6 });

test(`U-09 ${MOUNTS} mounts of which all hang offer their stored catalogue as soon as the server listens`, async () => {
  const path = join(folder, 'hanging.db');
  const upstreams = Array.from({ length: MOUNTS }, (_, index) => played(offering(`t${index}`)));
  const opened = async (): Promise<{ host: Server; clock: SimulatedClock; mounts: readonly Mount[] }> => {
    const clock = new SimulatedClock();
    const host = createServer({ name: 'host', version: '1', clock, log: () => {}, store: sqlite(path) });
    const mounts = await Promise.all(upstreams.map((upstream, index) => mounted(host, `m${index}`, upstream)));
    return { host, clock, mounts };
  };
  const first = await opened();
  await Promise.all(first.mounts.map((mount) => mount.ready()));
  await passing(first.clock, first.host.close());
  for (const upstream of upstreams) upstream.hangs = true;
  const { host, clock, mounts } = await opened();
  const start = clock.now();
  const client = await connect(host, { clock });
  assert.is((await namesOf(client)).length, MOUNTS);
  // The list waits for no time at all, and for no upstream.
  assert.is(clock.now(), start);
  for (const { state } of mounts) assert.is(state, 'offering.renewing');
  await passing(clock, Promise.all([client.close(), host.close()]));
  // The catalogue of another target is not offered, although the mount has the same name.
  const other = new SimulatedClock();
  const changed = createServer({ name: 'host', version: '1', clock: other, log: () => {}, store: sqlite(path) });
  const another = played();
  another.hangs = true;
  await changed.mount('m0', { name: 'another', channel: () => another.channel() });
  // The store opens in its own time.
  await changed.deadLetters();
  const late = await connect(changed, { clock: other });
  assert.equal(await passing(other, namesOf(late)), []);
  await passing(other, Promise.all([late.close(), changed.close()]));
});

test('U-09 without a durable store, a file keeps the catalogue, for this user only and for this target only', async () => {
  const catalogueFile = join(folder, 'catalogues', 'm.json');
  const listed = async (name: string, upstream: PlayedServer, log: string[] = []): Promise<string[]> => {
    const clock = new SimulatedClock();
    const host = createServer({ name: 'host', version: '1', clock, log: (_, message) => log.push(message) });
    await mounted(host, name, upstream, { catalogueFile, firstListMs: 500 });
    const client = await connect(host, { clock });
    const names = await passing(clock, namesOf(client));
    await passing(clock, Promise.all([client.close(), host.close()]));
    return names;
  };
  const hung = (): PlayedServer => Object.assign(played(), { hangs: true });
  assert.equal(await listed('m', hung()), []);
  assert.equal(await listed('m', played(offering('kept'))), ['m_kept']);
  if (process.platform !== 'win32') assert.is(statSync(catalogueFile).mode & 0o777, 0o600);
  assert.equal(await listed('m', hung()), ['m_kept']);
  assert.equal(await listed('other', hung()), []);
  writeFileSync(catalogueFile, '{"damaged');
  const log: string[] = [];
  assert.equal(await listed('m', hung(), log), []);
  assert.ok(log.some((line) => line.startsWith('mount "m": the stored catalogue cannot be read')));
  assert.equal(await listed('m', played(offering('again'))), ['m_again']);
  assert.equal(await listed('m', hung()), ['m_again']);
});

test('a catalogue that cannot be renewed is offered for staleMs, and then withdrawn', async () => {
  const clock = new SimulatedClock();
  const host = createServer({ name: 'host', version: '1', clock, log: () => {} });
  const upstream = played();
  const mount = await mounted(host, 'm', upstream, { staleMs: 240_000, required: true });
  assert.equal(host.readiness().reasons.includes('no catalogue'), true);
  const client = await connect(host, { clock });
  await mount.ready();
  assert.equal(host.readiness(), { ready: true, reasons: [] });
  assert.equal([await namesOf(client), mount.state], [['m_a'], 'offering.current']);
  upstream.hangs = true;
  upstream.current?.send(GONE);
  for (let step = 0; step < 100 && mount.state !== 'offering.stale'; step += 1) await clock.advance(1_000);
  assert.equal([await namesOf(client), mount.state], [['m_a'], 'offering.stale']);
  // A call says that the upstream cannot be reached, and nothing was carried out.
  const call = client.call('m_a');
  assert.is((await passing(clock, call)).isError, true);
  for (let step = 0; step < 2_000 && mount.state.startsWith('offering'); step += 1) await clock.advance(1_000);
  assert.equal([await namesOf(client), mount.state], [[], 'unknown.waiting']);
  assert.equal(host.readiness(), { ready: false, reasons: ['no catalogue'] });
  upstream.hangs = false;
  for (let step = 0; step < 2_000 && mount.state !== 'offering.current'; step += 1) await clock.advance(1_000);
  assert.equal([await namesOf(client), mount.state], [['m_a'], 'offering.current']);
  await passing(clock, Promise.all([client.close(), host.close()]));
});

const FLAPS = times(1_000, { quick: 60 });

test(`U-10 an upstream flaps ${FLAPS} times: it is listed and reported a bounded number of times, and comes back by itself`, async () => {
  const clock = new SimulatedClock();
  const log: string[] = [];
  const host = createServer({ name: 'host', version: '1', clock, log: (_, message) => log.push(message) });
  const upstream = played();
  const mount = await mounted(host, 'm', upstream);
  await mounted(host, 'fine', played());
  const client = await connect(host, { clock });
  const timers = clock.timers;
  upstream.flaps = true;
  upstream.current?.send(GONE);
  for (let minute = 0; upstream.opened < FLAPS; minute += 1) {
    assert.ok(minute < 3 * FLAPS, `${upstream.opened} connections`);
    clock.pass(60_000);
    await settled();
    if (minute % 20 === 0) assert.equal((await client.call('fine_a')).content, content);
  }
  assert.ok(clock.timers <= timers + 4, `${clock.timers} timers, ${timers} before`);
  assert.ok(log.length < 20, `${log.length} messages: ${log.slice(0, 5).join('\n')}`);
  assert.ok(upstream.open <= 1);
  upstream.flaps = false;
  for (let step = 0; step < 200 && mount.state !== 'offering.current'; step += 1) await clock.advance(1_000);
  assert.equal([await namesOf(client), mount.state], [['fine_a', 'm_a'], 'offering.current']);
  await passing(clock, Promise.all([client.close(), host.close()]));
});

for (const [what, result, option] of [
  ['a cursor without end', ({ name }) => ({ tools: [], nextCursor: `${name}x` }), 'maxListPages'],
  ['the same cursor', () => ({ tools: [], nextCursor: 'x' }), 'came twice'],
  [
    'too many tools',
    () => ({ tools: Array.from({ length: 51 }, (_, n) => ({ name: `t${n}`, inputSchema })) }),
    'maxListed',
  ],
  [
    'too long definitions',
    () => ({ tools: [{ name: 't', description: 'x'.repeat(5_000), inputSchema }] }),
    'maxListBytes',
  ],
  ['no list', () => ({ tools: {} }), 'array'],
] satisfies readonly (readonly [string, (message: { readonly name: string }) => object, string])[])
  test(`U-11 an upstream lists ${what}: its catalogue stays as it was, and the operator learns why`, async () => {
    const clock = new SimulatedClock();
    const log: string[] = [];
    const host = createServer({ name: 'host', version: '1', clock, log: (_, message) => log.push(message) });
    const upstream = played();
    const mount = await mounted(host, 'm', upstream, { maxListPages: 5, maxListed: 50, maxListBytes: 4_000 });
    const client = await connect(host, { clock });
    await mount.ready();
    upstream.script = (message) => [text({ id: message.id, result: result(message) })];
    assert.match(String(await failure(mount.refresh())), new RegExp(option));
    assert.equal([await namesOf(client), mount.state], [['m_a'], 'offering.stale']);
    assert.ok(log.some((line) => line.includes(option)));
    await passing(clock, Promise.all([client.close(), host.close()]));
  });

test('U-11 definitions with hostile names and shapes are mapped or left out, and the others stay', async () => {
  const clock = new SimulatedClock();
  const host = createServer({ name: 'host', version: '1', clock, log: () => {} });
  const tools = [
    { name: '__proto__', inputSchema },
    { name: 'constructor', inputSchema },
    { name: 'a b\u202e', inputSchema },
    { name: 'x'.repeat(200), inputSchema },
    { name: 7, inputSchema },
    'no object',
    { name: 'fine', inputSchema, description: 'vis\u200bible' },
  ];
  const upstream = played(({ id, method, name }) => [
    text({ id, result: method === 'tools/list' ? { tools } : { content: [{ type: 'text', text: name }] } }),
  ]);
  await mounted(host, 'm', upstream);
  const client = await connect(host, { clock });
  const listed = await client.tools();
  assert.is(listed.length, 5);
  for (const { name } of listed) assert.match(name, /^m_[\w.-]{1,62}$/);
  assert.is(listed.at(-1)?.description, 'visible');
  // The call of a mapped name reaches the name upstream.
  const long = listed.find(({ name }) => name.startsWith('m_xxx'));
  assert.equal((await client.call(long?.name ?? '')).content, [{ type: 'text', text: 'x'.repeat(200) }]);
  assert.ok((await failure(client.call('m_nothing'))) instanceof ErrorResponse);
  await passing(clock, Promise.all([client.close(), host.close()]));
});
