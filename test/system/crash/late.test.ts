/** What a handler throws when it has answered already: logged with its name, and nothing else stops. In real processes. */
import * as assert from 'uvu/assert';
import { Fixture, nodeCommand } from '../../core/transports/support.ts';
import { suite } from '../../harness/door.ts';
import { spawnServer } from '../shutdown/child.ts';

const test = suite('late exceptions');

test('a process that serves stdio outlives whatever its tools left behind, and names them on stderr', async () => {
  const { fixture, client } = spawnServer('late.ts');
  await client.initialize('2025-06-18');
  const tools = (await client.send('tools/list')).tools as { name: string }[];
  assert.is(tools.length, 16);
  for (const { name } of tools) {
    assert.match(JSON.stringify((await client.call(name)).content), name.replace(/_.*/, ''));
    // Node 20 and 22 do not know whose a bare microtask was (docs/rough-edges.md).
    const said = name.startsWith('microtask')
      ? 'thrown from a microtask'
      : `tool "${name}", in code that it does not await`;
    await fixture.said(said);
    assert.equal(await client.send('ping'), {});
  }
  await client.send('resources/read', { uri: 'late://1' });
  await fixture.said('resource "late://1", in code that it does not await: Error: thrown from a timer');
  await client.send('prompts/get', { name: 'late' });
  await fixture.said('prompt "late", in code that it does not await: Error: thrown from a promise');
  for (const what of ['a timer', 'an immediate', 'a tick', 'a promise', 'deep down', 'an emitter', 'a microtask'])
    assert.ok(fixture.err.includes(`thrown from ${what}`), what);
  assert.is(fixture.err.split('incident ').length - 1, 18);
  assert.not.match(client.messages.map(({ text }) => text).join(), /thrown|incident/);
  await client.close();
  assert.equal(await fixture.exited, { code: 0, signal: null });
});

const embedded = (who: string): Fixture =>
  new Fixture('../hard/embedded.ts', 'pipe', (script) => [...nodeCommand(script), who]).read();

test.full('a host process also survives a late error of a tool', async () => {
  const child = embedded('tool');
  assert.equal(await child.exited, { code: 0, signal: null });
  await child.quiet;
  assert.is(child.out, 'lived on\n');
  assert.match(child.err, /incident [\w-]+ in tool "late", in code that it does not await: Error: thrown by the tool/);
});

test.full('inside of another process, what is not ours ends it, as it would without us', async () => {
  const child = embedded('somebody');
  assert.equal(await child.exited, { code: 1, signal: null });
  await child.quiet;
  assert.is(child.out, '');
  assert.match(child.err, 'thrown by somebody else');
});

test.full('a process whose stderr has no reader any more continues, and does not log that it cannot log', async () => {
  const child = new Fixture('../hard/unheard.ts').read();
  child.process.stderr?.destroy();
  child.write('go\n');
  await child.until(() => child.out.includes('exceptions: '));
  assert.is(child.out, 'exceptions: 1\n');
  assert.equal(await child.exited, { code: 0, signal: null });
});
