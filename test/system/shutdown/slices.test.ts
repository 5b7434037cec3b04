/** What a server that stops ends in slices: working tasks, suspended requests, and connections over sockets. Turns are counted, not times. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import { createServer, type Limits, type MemoryPeer, memory, type Server, socket } from '../../../src/index.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { mostInOneTurn, turn } from '../../core/emitters/support.ts';
import { RecordingHost } from '../../core/transports/support.ts';
import { suite } from '../../harness/door.ts';

const test = suite('stopping in slices');
const MANY = 600;
/** A descriptor at each end: many systems allow 1,024 of them. */
const CONNECTIONS = 300;

const folder = mkdtempSync(join(tmpdir(), 'troupe-slices-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

interface Stage {
  readonly server: Server;
  readonly peer: MemoryPeer;
  call(id: number, name: string): void;
}

/** A server with one modern client, which may have everything at once. */
async function stage(offer: (server: Server) => void): Promise<Stage> {
  const limits: Partial<Limits> = { maxInFlight: 2 * MANY, maxParkedPerPrincipal: MANY, maxTasksPerPrincipal: MANY };
  const server = createServer({
    name: 'stopping',
    version: '1.0.0',
    clock: new SimulatedClock(),
    limits,
    log: () => {},
  });
  offer(server);
  const { transport, connect: join } = memory();
  await server.listen(transport);
  const peer = join();
  const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const _meta = { [META.protocolVersion]: '2026-07-28', [META.clientCapabilities]: capabilities };
  const call = (id: number, name: string): void =>
    peer.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {}, _meta } }));
  return { server, peer, call };
}

/** Calls a tool many times, and waits for as many responses. */
async function callMany({ peer, call }: Stage, name: string, expected: string): Promise<void> {
  const answers: string[] = [];
  peer.onText((text) => void answers.push(text));
  for (let id = 1; id <= MANY; id += 1) call(id, name);
  for (let turns = 0; answers.length < MANY; turns += 1) {
    assert.ok(turns < 100 * MANY, `${answers.length} responses`);
    await turn();
  }
  assert.ok(answers.every((text) => text.includes(expected)));
}

test(`R-44 a server that stops cancels ${MANY} working tasks in slices`, async () => {
  let aborted = 0;
  const here = await stage((server) =>
    server.tool('work', { task: 'required' }, (_, ctx) => {
      return new Promise<string>((resolve) => {
        ctx.signal.addEventListener('abort', () => {
          aborted += 1;
          resolve('aborted');
        });
      });
    }),
  );
  await callMany(here, 'work', '"taskId"');
  const most = await mostInOneTurn(
    () => aborted,
    () => here.server.close(),
  );
  assert.is(aborted, MANY);
  assert.ok(most > 0 && most <= MANY / 2, `${most} were cancelled in one turn`);
});

test(`R-44 a server that stops ends ${MANY} requests that wait for their client in slices`, async () => {
  let ended = 0;
  const here = await stage((server) =>
    server.tool('ask', {}, async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        ended += 1;
      });
      return (await ctx.elicit({ message: 'Who?', schema: { type: 'object', properties: {} } })).status;
    }),
  );
  await callMany(here, 'ask', '"input_required"');
  const most = await mostInOneTurn(
    () => ended,
    () => here.server.close(),
  );
  assert.is(ended, MANY);
  assert.ok(most > 0 && most <= MANY / 2, `${most} were ended in one turn`);
});

test(`R-44 a socket transport that closes ends ${CONNECTIONS} connections in slices`, async () => {
  const host = new RecordingHost();
  const path = process.platform === 'win32' ? `\\\\.\\pipe\\troupe-slices-${process.pid}` : join(folder, 'slices.sock');
  const transport = socket(path, { maxConnections: CONNECTIONS });
  await transport.open(host);
  const sockets: Socket[] = [];
  const count = (what: string): number => host.heard.filter((line) => line.startsWith(what)).length;
  for (let opened = 0; opened < CONNECTIONS; opened += 1) {
    const client = connect({ path, allowHalfOpen: true });
    sockets.push(client.on('error', () => {}).resume());
  }
  for (let turns = 0; count('opened') < CONNECTIONS; turns += 1) {
    assert.ok(turns < 1_000_000, `${count('opened')} connections`);
    await turn();
  }
  let over = false;
  const closing = transport.close().then(() => {
    over = true;
  });
  await settled();
  // The rest waits for a turn of the host's clock, which this test has not ended yet.
  const first = count('closed');
  assert.ok(first > 0 && first < CONNECTIONS, `${first} were closed in one turn`);
  for (const client of sockets) client.end();
  while (!over) {
    host.clock.turn();
    await turn();
  }
  await closing;
  assert.is(count('closed'), CONNECTIONS);
});
