/** The catalogue of an inspector: everything that a server offers, read from its registries, bounded and without secrets. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { INTERNALS } from '../../src/features/server/internals.ts';
import { createServer } from '../../src/index.ts';
import type { CatalogueElement, Frame, Plain, ServerCatalogue } from '../../src/inspector/frames.ts';
import { openInspector, readRecording, record } from '../../src/inspector/inspector.ts';
import { framesOf, Model } from '../../src/inspector/model/index.ts';
import { suite } from '../harness/door.ts';

const test = suite('inspector: catalogue');

async function shown(server: ReturnType<typeof createServer>) {
  const inspector = await openInspector(server);
  const { origin, hash } = new URL(inspector.url);
  const headers = { authorization: `Bearer ${hash.slice(1)}` };
  const get = (path: string) => fetch(`${origin}${path}`, { headers });
  const text = async () => (await get('/api/catalogue')).text();
  const catalogue = async (): Promise<ServerCatalogue> => JSON.parse(await text()).catalogue;
  return { get, text, catalogue, close: () => server.close() };
}

const cataloguesIn = (frames: readonly Frame[]): readonly ServerCatalogue[] =>
  frames.flatMap((frame) => (frame.type === 'catalogue' ? [frame.catalogue] : []));

const lamp = createMachine({ initial: 'off', states: { off: { on: { flip: 'on' } }, on: { on: { flip: 'off' } } } });

test('lists tools, resources, templates, prompts and machines, with definitions, and opens no session', async () => {
  const server = createServer({
    name: 'shown',
    version: '1.2.3',
    title: 'Shown',
    instructions: 'Be kind.',
    limits: { maxInFlight: 7 },
  });
  let connections = 0;
  server.inspect((entry) => {
    if (entry.type === 'created' && entry.connection !== undefined) connections += 1;
  });
  server.tool(
    'add',
    {
      title: 'Add',
      annotations: { readOnlyHint: true },
      input: { type: 'object', properties: { a: { type: 'number' } } },
    },
    () => 1,
  );
  server.tool('hidden', {}, () => 'x').tools.disable('hidden');
  server.resource('notes://all', { name: 'all', mimeType: 'text/plain' }, () => 'x');
  server.resource('notes://{id}', { name: 'one', complete: { id: () => ['1'] } }, () => 'x');
  server.prompt('review', { arguments: [{ name: 'code', required: true }], complete: { code: () => [] } }, () => 'x');
  server.machine('lamp', lamp, { description: 'A lamp', events: { flip: true }, ttlMs: 60_000 });
  const { catalogue, close } = await shown(server);
  const found = await catalogue();
  assert.equal(found.server, { name: 'shown', version: '1.2.3', title: 'Shown' });
  assert.is(found.instructions, 'Be kind.');
  assert.is(Object(found.limits).maxInFlight, 7);
  assert.ok(Object(found.capabilities).completions && Object(found.capabilities).resources.subscribe);
  assert.is(found.revisions[0], '2026-07-28');
  const byName = (name: string): CatalogueElement | undefined => found.tools.find((tool) => tool.name === name);
  assert.equal(byName('add'), {
    name: 'add',
    source: 'code',
    definition: {
      name: 'add',
      title: 'Add',
      inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
      annotations: { readOnlyHint: true },
    },
  });
  assert.is(byName('hidden')?.enabled, false);
  assert.is(byName('lamp_flip')?.machine, 'lamp');
  assert.equal(found.resources.map(({ name }) => name).slice(0, 1), ['notes://all']);
  assert.equal(found.templates.find(({ name }) => name === 'notes://{id}')?.completes, ['id']);
  assert.equal(found.prompts[0]?.completes, ['code']);
  assert.equal(found.machines, [{ name: 'lamp', description: 'A lamp', ttlMs: 60_000, events: ['flip'] }]);
  assert.is(connections, 0);
  await close();
});

test('a machine with keys shows what has an instance, and the events of each role', async () => {
  const server = createServer({ name: 'rooms', version: '1.0.0' });
  server.machine('room', lamp, {
    ...{ key: { argument: 'room' }, events: { flip: true } },
    roles: { of: () => 'guest', host: { events: '*' }, guest: { events: ['flip'], view: () => ({}) } },
  });
  const { catalogue, close } = await shown(server);
  assert.equal((await catalogue()).machines, [
    {
      ...{ name: 'room', events: ['flip'], key: 'argument room' },
      roles: [
        { name: 'host', events: ['*'], ownView: false },
        { name: 'guest', events: ['flip'], ownView: true },
      ],
    },
  ]);
  await server.send('room', 'north', { type: 'flip' });
  const { inspection } = server[INTERNALS];
  const [address = ''] = inspection.living(new Set(['handle']), 1);
  const { key, roles } = inspection.live(address)?.facts?.() ?? {};
  assert.equal([key, roles], ['north', { host: '*', guest: 'flip' }]);
  await close();
});

test('is sent again only after a change', async () => {
  const server = createServer({ name: 'changing', version: '1.0.0' });
  server.tool('one', {}, () => 'x');
  const { get, catalogue, close } = await shown(server);
  const { version } = await catalogue();
  assert.is((await get(`/api/catalogue?version=${version}`)).status, 204);
  server.tool('two', {}, () => 'x');
  const next = await get(`/api/catalogue?version=${version}`);
  assert.is(next.status, 200);
  assert.match(await next.text(), /"name":"two"/);
  await close();
});

test('S-29 hides the default of a secret parameter and secrets in texts, not the parameter', async () => {
  const server = createServer({
    name: 'secret',
    version: '1.0.0',
    instructions: 'Use Bearer abcdefghijklmnop0123456789.',
  });
  server.tool(
    'login',
    {
      description: 'password=zq7wxk3v9zq7',
      input: {
        type: 'object',
        properties: {
          password: { type: 'string', minLength: 8, default: 'zq7wxk3v9zq7' },
          api_key: { type: 'string' },
        },
        required: ['password'],
      },
    },
    () => 'x',
  );
  const { text, catalogue, close } = await shown(server);
  assert.not.match(await text(), /zq7wxk3v9|abcdefghijklmnop/);
  const schema = Object((await catalogue()).tools[0]?.definition).inputSchema;
  assert.equal(schema.properties, {
    password: { type: 'string', minLength: 8, default: '«redacted»' },
    api_key: { type: 'string' },
  });
  assert.equal(schema.required, ['password']);
  await close();
});

test('cuts a long schema, and the definitions of more tools than fit', async () => {
  const server = createServer({ name: 'large', version: '1.0.0' });
  const many = (count: number, length: number): Record<string, JsonObject> =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`property_${at}`, { type: 'string', description: 'x'.repeat(length) }]),
    );
  server.tool('huge', { input: { type: 'object', properties: many(400, 500) } }, () => 'x');
  for (let at = 0; at < 1_000; at += 1)
    server.tool(
      `tool_${at}`,
      { description: `Number ${at}`, input: { type: 'object', properties: many(12, 450) } },
      () => 'x',
    );
  const { text, catalogue, close } = await shown(server);
  assert.ok((await text()).length < 5_500_000);
  const { tools } = await catalogue();
  assert.is(tools.length, 1_001);
  assert.is(tools[0]?.cut, true);
  assert.ok(JSON.stringify(tools[0]).length < 80_000);
  assert.is(tools[1]?.cut, undefined);
  assert.equal(tools.at(-1), {
    name: 'tool_999',
    source: 'code',
    definition: { description: 'Number 999' },
    cut: true,
  });
  await close();
});

test('is a part of recordings, again after a change, and of what a page exports', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-catalogue-'));
  const server = createServer({ name: 'recorded', version: '1.0.0' });
  server.tool('one', {}, () => 'x');
  const { get, close } = await shown(server);
  const recorder = await record(server, join(folder, 'run.json'));
  server.tool('two', {}, () => 'x');
  const whole = readRecording(await (await get('/api/recording')).text()).frames;
  assert.is(whole[0]?.type, 'hello');
  assert.equal(
    cataloguesIn(whole).map(({ tools }) => tools.length),
    [2],
  );
  await recorder.close();
  const written = readRecording(readFileSync(join(folder, 'run.json'), 'utf8')).frames;
  assert.equal(
    cataloguesIn(written).map(({ tools }) => tools.length),
    [1, 2],
  );
  const model = new Model();
  for (const frame of written) model.take(frame);
  assert.equal(
    cataloguesIn(framesOf(model)).map(({ tools }) => tools.length),
    [2],
  );
  const page = await (await get('/api/export')).text();
  assert.ok(page.includes('"type":"catalogue"'));
  await close();
  rmSync(folder, { recursive: true });
});

test('texts of any content arrive as they are, as data', async () => {
  const server = createServer({ name: 'markup', version: '1.0.0' });
  const text = '<img src=x onerror=alert(1)></script>\u2028';
  const properties: Record<string, Plain> = { [text]: { type: 'string' } };
  server.tool('markup', { title: text, description: text, input: { type: 'object', properties } }, () => 'x');
  const { catalogue, get, close } = await shown(server);
  const [tool] = (await catalogue()).tools;
  assert.is(Object(tool?.definition).title, text);
  const response = await get('/api/catalogue');
  assert.is(response.headers.get('content-type'), 'application/json');
  await response.text();
  await close();
});
