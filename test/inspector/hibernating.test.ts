/** Handles and sessions that left memory, and clients without a session: known to a viewer whenever it connects. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { createServer, type Server, sqlite } from '../../src/index.ts';
import { readRecording, record } from '../../src/inspector/inspector.ts';
import {
  actorTree,
  flatten,
  hibernatingOf,
  hibernatingSessionsOf,
  LIVE,
  Model,
} from '../../src/inspector/model/index.ts';
import { connect } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('inspector: hibernating');
const folder = mkdtempSync(join(tmpdir(), 'troupe-hibernating-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const door = createMachine({ id: 'door', initial: 'shut', states: { shut: { on: { open: 'open' } }, open: {} } });

function serve(): Server {
  const server = createServer({
    name: 'doors',
    version: '1.0.0',
    store: sqlite(join(folder, 'doors.db')),
    http: { allowedHosts: ['doors.example'] },
    log: () => {},
  });
  server.machine('door', door, { events: { open: true } });
  return server;
}

/** Records a server for a moment, and reads the recording. */
async function recorded(server: Server, name: string): Promise<Model> {
  const file = join(folder, name);
  await (await record(server, file)).close();
  const model = new Model();
  for (const frame of readRecording(readFileSync(file, 'utf8')).frames) model.take(frame);
  return model;
}

test('a viewer of a new process sees the handles and sessions that only the store has', async () => {
  const first = serve();
  const client = await connect(first);
  await client.modern('tools/list');
  const handles: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { structuredContent } = await client.modern('tools/call', { name: 'door_create', arguments: {} });
    handles.push(String(Object(structuredContent).handle));
  }
  // An instance that has ended waits for nothing.
  const last = await client.modern('tools/call', { name: 'door_create', arguments: {} });
  const { handle } = Object(last.structuredContent);
  await client.modern('tools/call', { name: 'door_end', arguments: { handle } });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'claude', version: '1' } };
  const opened = await first.fetch(
    new Request('http://doors.example/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    }),
  );
  assert.ok(opened.headers.get('mcp-session-id'), await opened.text());
  await opened.text().catch(() => '');
  await client.close();
  await first.close();
  const second = serve();
  await connect(second);
  const model = await recorded(second, 'second.json');
  const { count, some } = hibernatingOf(model);
  assert.is(count, 3);
  const [latest] = some;
  assert.is(latest, `handle/door/${handles.at(-1)?.slice(0, 8)}`);
  const sessions = hibernatingSessionsOf(model);
  assert.is(sessions.count, 1);
  assert.match(sessions.some[0] ?? '', /^session\/[\w-]{2}\.[\w-]{8}$/);
  const group = actorTree(model, LIVE).find(({ label }) => label === 'hibernating');
  assert.equal(
    group?.children.map(({ kind, asleep, state }) => `${kind} ${asleep} ${state}`),
    ['handle true hibernating', 'handle true hibernating', 'handle true hibernating', 'session true hibernating'],
  );
  await second.close();
});

test('a client without a session keeps its name while it sends nothing', async () => {
  const server = createServer({ name: 'idle', version: '1.0.0' });
  server.tool('wait', {}, () => 'done');
  const goose = await connect(server);
  await goose.modern('tools/list', {}, { 'io.modelcontextprotocol/clientInfo': { name: 'goose', version: '1.4.0' } });
  const model = await recorded(server, 'idle.json');
  const names = flatten(actorTree(model, LIVE)).map(({ label }) => label);
  assert.ok(names.includes('goose 1.4.0'), names.join(', '));
  await server.close();
});
