/** Machines while a program is edited: its instances stay with the server that serves, and go on in what their machine has become. */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { ReloadHost } from '../../../src/cli/reload/reload-host.ts';
import { Endpoints } from '../../../src/cli/serving/endpoints.ts';
import { createServer, type JsonObject, type MachineRegistration, memory, type Server } from '../../../src/index.ts';
import { SimulatedClock, settled, TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('machines under reload');

type Definition = Parameters<MachineRegistration['register']>[0];

const counting = createMachine({
  context: { count: 1 },
  initial: 'counting',
  states: { counting: { on: { stop: 'stopped' } }, stopped: { type: 'final' } },
});
const running = createMachine({
  context: { counts: [0] },
  initial: 'running',
  states: { running: { on: { stop: 'stopped', pause: {} } }, stopped: { type: 'final' } },
});
const FIRST: Definition = { name: 'counter', machine: counting, events: { stop: true } };

interface Bench {
  readonly clock: SimulatedClock;
  readonly client: TestClient;
  /** Loads the program again, with what it registers now. What is in memory leaves it, to go on in its new machine. */
  load(register: (program: Server) => void): Promise<Server>;
  tools(): Promise<readonly string[]>;
}

async function onBench(run: (bench: Bench) => Promise<void>): Promise<void> {
  const clock = new SimulatedClock();
  const options = { name: 'edited', version: '1.0.0', clock, log: () => {} };
  const endpoints = new Endpoints('dev', { values: {}, lists: {}, positionals: [], rest: [] });
  const host = new ReloadHost(options, endpoints, async () => {});
  const { transport, connect } = memory();
  await host.open([transport]);
  const client = new TestClient(connect({ principal: 'ada' }));
  await run({
    clock,
    client,
    async load(register) {
      const program = createServer(options);
      register(program);
      host.adopt(program);
      await settled();
      return program;
    },
    async tools() {
      const { tools } = await client.modern('tools/list');
      return Array.isArray(tools) ? tools.map((tool) => Object(tool).name) : [];
    },
  });
}

async function dataOf(client: TestClient, tool: string, args: JsonObject = {}): Promise<JsonObject> {
  const { structuredContent, isError, content } = await client.call(tool, args);
  assert.not.ok(isError, JSON.stringify(content));
  return Object(structuredContent);
}

test('a machine comes along with a reload, and so do its instances', () =>
  onBench(async ({ client, load, tools }) => {
    await load((program) => void program.machines.register(FIRST));
    assert.equal(await tools(), ['counter_create', 'counter_stop', 'counter_get', 'counter_list', 'counter_end']);
    const { handle } = await dataOf(client, 'counter_create');
    await load((program) => {
      program.tool('other', {}, () => 'there');
      program.machines.register({ ...FIRST, description: 'Counts' });
    });
    assert.is((await tools()).length, 6);
    assert.is((await dataOf(client, 'counter_get', { handle: String(handle) })).state, 'counting');
    assert.is((await dataOf(client, 'counter_stop', { handle: String(handle) })).status, 'done');
  }));

test('an instance of the earlier machine finishes on it if nothing migrates it', () =>
  onBench(async ({ client, load, clock }) => {
    await load((program) => void program.machines.register(FIRST));
    const { handle } = await dataOf(client, 'counter_create');
    await load((program) => void program.machines.register({ ...FIRST, machine: running }));
    // It leaves memory, and comes back by what the server knows of its version.
    await clock.advance(120_000);
    assert.is((await dataOf(client, 'counter_get', { handle: String(handle) })).state, 'counting');
    assert.is((await dataOf(client, 'counter_create')).state, 'running');
    assert.is((await dataOf(client, 'counter_stop', { handle: String(handle) })).status, 'done');
  }));

test('an instance of the earlier machine is migrated if its author defines how', () =>
  onBench(async ({ client, load }) => {
    await load((program) => void program.machines.register(FIRST));
    const { handle } = await dataOf(client, 'counter_create');
    await load(
      (program) =>
        void program.machines.register({
          ...FIRST,
          machine: running,
          view: ({ context }: { readonly context: unknown }) => context,
          migrate: ({ context }) => ({ value: 'running', context: { counts: [Object(context).count] } }),
        }),
    );
    const now = await dataOf(client, 'counter_get', { handle: String(handle) });
    assert.equal([now.state, now.view], ['running', { counts: [1] }]);
  }));

test('a name goes from a machine to a tool and back', () =>
  onBench(async ({ client, load, tools }) => {
    await load((program) => void program.machines.register(FIRST));
    await load((program) => void program.tool('counter_get', {}, () => 'a tool'));
    assert.equal(await tools(), ['counter_get']);
    assert.equal((await client.call('counter_get')).content, [{ type: 'text', text: 'a tool' }]);
    await load((program) => void program.machines.register(FIRST));
    assert.is((await tools()).length, 5);
  }));

test('a machine that the program registers later is followed', () =>
  onBench(async ({ load, tools }) => {
    const program = await load(() => {});
    program.machines.register(FIRST);
    await settled();
    assert.is((await tools()).length, 5);
    program.machines.remove('counter');
    await settled();
    assert.equal(await tools(), []);
  }));

test('a schedule of a server comes along with a reload: with its new handler, with other dates, or not at all', () =>
  onBench(async ({ load, clock }) => {
    const ran: string[] = [];
    const each = (everyMs: number, name: string) => (program: Server) =>
      void program.schedule('beat', { everyMs }, () => void ran.push(name));
    await load(each(60_000, 'first'));
    await clock.advance(90_000);
    await load(each(60_000, 'second'));
    await clock.advance(30_000);
    assert.equal(ran, ['first', 'second']);
    await load(each(3_600_000, 'third'));
    await clock.advance(600_000);
    assert.is(ran.length, 2);
    await clock.advance(3_600_000);
    assert.equal(ran, ['first', 'second', 'third']);
    await load(() => {});
    await clock.advance(7_200_000);
    assert.is(ran.length, 3);
  }));
