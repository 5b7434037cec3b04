/** Skills of upstreams through a gateway: entries and files with the addresses of the mount, verified by their digests. */
import type { Server, ServerOptions } from 'troupe';
import { connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import type { Tree } from '../../features/discovery/tree.ts';
import { officialHost, readAll, skillFile, skillTree } from '../../features/skills/support.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { until } from '../../harness/wait.ts';

const test = suite('skills of mounts');

interface Team {
  readonly server: Server;
  readonly tree: Tree;
}

/** A server with the skill `greeting`. */
async function team(name: string, words: string, options: Partial<ServerOptions> = {}): Promise<Team> {
  const { server } = loggedServer({ name, ...options });
  const tree = skillTree({ 'greeting/SKILL.md': skillFile('greeting', words), 'greeting/references/WORDS.md': words });
  await server.skills(tree.path, { watch: false });
  return { server, tree };
}

async function closeAll(...servers: readonly Server[]): Promise<void> {
  for (const server of servers) await server.close();
}

test('clients list the skills of all upstreams and read their files, each with the address of its mount', async () => {
  const [one, two] = [await team('one', 'Hello'), await team('two', 'Bonjour')];
  const { server: gateway } = loggedServer();
  await gateway.skills(skillTree({ 'own/SKILL.md': skillFile('own') }).path);
  for (const { server } of [one, two]) await gateway.mount(server);
  const client = await connect(gateway);
  const addresses = ['skill://one/greeting/SKILL.md', 'skill://own/SKILL.md', 'skill://two/greeting/SKILL.md'];
  assert.equal((await client.skills()).map(({ uri }) => uri).sort(), addresses);
  const skill = await client.skill('skill://two/greeting/SKILL.md');
  assert.is(skill.description, 'Bonjour');
  const words = await skill.read('references/WORDS.md');
  assert.equal([words.text, words.verified], ['Bonjour', true]);
  // Only the SKILL.md of a skill is in the list of resources.
  assert.equal((await client.resources()).map(({ uri }) => uri).sort(), addresses);
  await client.close();
  await closeAll(gateway, one.server, two.server);
});

test('the official client verifies every file, in both eras, and reads directories', async () => {
  const { server } = await team('one', 'Hello');
  const { server: gateway } = loggedServer();
  await gateway.mount('up', server);
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    const host = await officialHost(gateway, revision);
    assert.is(await readAll(host), 2);
    const { resources } = await host.skills.readDirectory('skill://up/greeting');
    assert.equal(
      resources.map(({ uri }) => uri),
      ['skill://up/greeting/SKILL.md', 'skill://up/greeting/references'],
    );
    await host.client.close();
  }
  await closeAll(gateway, server);
});

test('skills follow the lists of their upstream, and go with the mount', async () => {
  const { server } = await team('one', 'Hello');
  const { server: gateway } = loggedServer();
  const mount = await gateway.mount('up', server);
  const client = await connect(gateway);
  const names = async (): Promise<string[]> => (await client.skills({ fresh: true })).map(({ uri }) => uri);
  assert.equal(await names(), ['skill://up/greeting/SKILL.md']);
  await server.skills(skillTree({ 'parting/SKILL.md': skillFile('parting') }).path, { watch: false });
  await until(async () => (await names()).includes('skill://up/parting/SKILL.md'), 'the new skill');
  await mount.close();
  assert.equal(await names(), []);
  await client.close();
  await closeAll(gateway, server);
});

test('a rule of the mount hides its skills from a caller', async () => {
  const { server } = await team('one', 'Hello');
  const { server: gateway } = loggedServer();
  await gateway.mount('up', server, { allow: () => ({ hidden: true }) });
  const client = await connect(gateway);
  assert.equal(await client.skills(), []);
  await client.close();
  await closeAll(gateway, server);
});

test('without a prefix, an address belongs to the first mount', async () => {
  const [one, two] = [await team('one', 'Hello'), await team('two', 'Bonjour')];
  const { server: gateway } = loggedServer();
  for (const { server } of [one, two]) await gateway.mount(server, { prefix: false });
  const client = await connect(gateway);
  assert.equal(
    (await client.skills()).map(({ uri }) => uri),
    ['skill://greeting/SKILL.md'],
  );
  const skill = await client.skill('skill://greeting/SKILL.md');
  assert.is((await skill.read('references/WORDS.md')).text, 'Hello');
  await client.close();
  await closeAll(gateway, one.server, two.server);
});

test('a server that announces skills and does not list them offers everything else, with a line in the log', async () => {
  const { server: gateway, logged } = loggedServer();
  const { server } = await team('one', 'Hello');
  server.tool('add', {}, () => '3');
  server.use('skills/list', () => {
    throw new Error('broken');
  });
  await gateway.mount('up', server);
  const client = await connect(gateway);
  assert.equal(
    (await client.tools()).map(({ name }) => name),
    ['up_add'],
  );
  assert.equal(await client.skills(), []);
  assert.ok(
    logged.some((line) => line.includes('its skills are left out')),
    logged.join('\n'),
  );
  await client.close();
  await closeAll(gateway, server);
});
