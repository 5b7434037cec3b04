/** Machines of a second copy of XState: one of Troupe's version runs, one of another version is rejected when it is registered. */
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createServer, fromSteps } from 'troupe';
import { connect } from 'troupe/testing';
import * as assert from 'uvu/assert';
import type * as xstate from 'xstate';
import { suite } from '../../harness/door.ts';

const test = suite('a second copy of XState');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'troupe-xstate-')));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const installed = fileURLToPath(new URL('../../../node_modules/xstate', import.meta.url));
const manifest: { readonly version: string } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
const [major = '', minor = ''] = manifest.version.split('.');

/** Installs XState once more, with that version in its `package.json`. */
function install(version: string): string {
  const copy = join(folder, version, 'node_modules/xstate');
  cpSync(installed, copy, { recursive: true, dereference: true });
  writeFileSync(
    join(copy, 'package.json'),
    readFileSync(join(copy, 'package.json'), 'utf8').replace(manifest.version, version),
  );
  writeFileSync(join(folder, version, 'copy.mjs'), "export * from 'xstate';\n");
  return copy;
}

async function machineOf(version: string): Promise<xstate.AnyStateMachine> {
  const { setup, assign, fromPromise }: typeof xstate = await import(
    pathToFileURL(join(folder, version, 'copy.mjs')).href
  );
  const child = setup({}).createMachine({ initial: 'a', states: { a: { after: { 1: 'b' } }, b: { type: 'final' } } });
  return setup({
    types: { context: {} as { n: number } },
    actors: { child, once: fromPromise(async () => 1), steps: fromSteps(async () => 2) },
  }).createMachine({
    context: { n: 0 },
    initial: 'child',
    on: { add: { actions: assign({ n: ({ context }) => context.n + 10 }) } },
    states: {
      child: { invoke: { src: 'child', onDone: 'once' } },
      once: {
        invoke: {
          src: 'once',
          onDone: { target: 'steps', actions: assign({ n: ({ context, event }) => context.n + event.output }) },
        },
      },
      steps: {
        invoke: {
          src: 'steps',
          onDone: { target: 'end', actions: assign({ n: ({ context, event }) => context.n + event.output }) },
        },
      },
      end: { type: 'final' },
    },
    output: ({ context }) => ({ n: context.n }),
  });
}

test('a machine of a copy with the same version runs as a tool, and behind a handle', async () => {
  const { version } = manifest;
  install(version);
  const machine = await machineOf(version);
  const server = createServer({ name: 'copies', version: '1.0.0' });
  server.tool('run', { machine });
  server.machine('job', machine, { events: { add: true } });
  const client = await connect(server);
  const ran = await client.call('run', {});
  assert.equal(ran.structuredContent, { n: 3 });
  const created = await client.call('job_create', {});
  assert.is(created.isError, undefined);
  await client.close();
  await server.close();
});

test('a machine of a copy with another version is rejected with both versions, both folders and what to do', async () => {
  const version = `${major}.${Number(minor) - 1}.0`;
  const copy = install(version);
  const machine = await machineOf(version);
  const server = createServer({ name: 'copies', version: '1.0.0' });
  const message =
    `expected a machine of xstate ${major}.${minor} (${installed}), got one of xstate ${version} (${copy}). ` +
    `Install one copy for both: "npm install xstate@${manifest.version}", then "npm ls xstate" lists a single version`;
  for (const register of [
    () => server.tool('run', { machine }),
    () => server.machine('job', machine, { events: { add: true } }),
  ])
    assert.throws(register, (error: Error) => error.message.endsWith(message) || assert.is(error.message, message));
  await server.close();
});

test('a machine of a copy that is bundled into another file is rejected, because its version is unknown', async () => {
  const version = `${major}.${minor}.999`;
  install(version);
  const machine = await machineOf(version);
  const bundled = { ...machine, transition: () => undefined, provide: () => bundled };
  const server = createServer({ name: 'copies', version: '1.0.0' });
  assert.throws(
    () => Reflect.apply(server.machine, server, ['job', bundled, { events: { add: true } }]),
    /got one of a copy that is bundled into another file.*Leave xstate and troupe external when you bundle a program/,
  );
  await server.close();
});
