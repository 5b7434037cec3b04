/** Errors of unknown names say under which name a mount offers the tool or prompt. */
import { createServer, type MountOptions, type Server } from 'troupe';
import { connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';

const test = suite('hints about names of mounts');

function upstream(): Server {
  const server = createServer({ name: 'up', version: '1.0.0', log() {} });
  server.tool('get-sum', {}, () => '3');
  server.tool('search', {}, () => 'found');
  server.prompt('greet', {}, () => 'Hello');
  return server;
}

/** The error of a call of a tool, or of a prompt. */
async function errorOf(mounts: Readonly<Record<string, MountOptions>>, name: string, prompt = false): Promise<string> {
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {} });
  const servers = Object.keys(mounts).map(() => upstream());
  for (const [index, [mount, options]] of Object.entries(mounts).entries())
    await gateway.mount(mount, servers[index] ?? upstream(), options);
  const client = await connect(gateway);
  const outcome = await (prompt ? client.prompt(name) : client.call(name)).then(
    (result) => JSON.stringify(result),
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  await client.close();
  for (const server of [gateway, ...servers]) await server.close();
  return outcome;
}

for (const [what, mounts, name, expected] of [
  ['a name of the upstream', { everything: {} }, 'get-sum', 'Unknown tool: get-sum (did you mean everything_get-sum?)'],
  ['a name of two upstreams', { a: {}, b: {} }, 'get-sum', '(did you mean a_get-sum or b_get-sum?)'],
  ['a renamed tool with the prefix', { a: { rename: { search: 'find' } } }, 'a_find', '(did you mean find?)'],
  ['the earlier name of a renamed tool', { a: { rename: { search: 'find' } } }, 'a_search', '(did you mean find?)'],
  ['a tool that is left out', { a: { except: ['get-sum'] } }, 'get-sum', 'Unknown tool: get-sum (code'],
  ['a tool with a rule', { a: { allow: () => ({ hidden: true as const }) } }, 'get-sum', 'Unknown tool: get-sum (code'],
  ['a tool that needs a scope', { a: { scopes: ['sum'] } }, 'get-sum', 'Unknown tool: get-sum (code'],
  ['a name of no upstream', { a: {} }, 'get-product', 'Unknown tool: get-product (code'],
] as const)
  test(`the error of ${what}`, async () => {
    const error = await errorOf(mounts, name);
    assert.ok(error.includes(expected), error);
  });

test('a rule of the server that hides a tool hides it from errors, too', async () => {
  const [gateway, server] = [createServer({ name: 'gateway', version: '1.0.0', log() {} }), upstream()];
  gateway.authorize(({ element }) => element.name !== 'a_get-sum' || { hidden: true });
  await gateway.mount('a', server);
  const client = await connect(gateway);
  const errors = await Promise.all(
    ['get-sum', 'search'].map((name) => client.call(name).catch((error: unknown) => String(error))),
  );
  assert.not.match(String(errors[0]), 'a_get-sum');
  await client.close();
  for (const each of [gateway, server]) await each.close();
});

test('the error of a prompt has its name, too', async () => {
  assert.match(await errorOf({ a: {} }, 'greet', true), 'Unknown prompt: greet (did you mean a_greet?)');
});
