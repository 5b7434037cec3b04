/**
 * `troupe dev`: the program changes, the client's session continues, and each changed list is announced once. It reloads plain
 * JavaScript in this process, over a socket. Processes show stdio, signals, TypeScript and its loader.
 */
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import * as assert from 'uvu/assert';
import { TROUPE as SOURCES, Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { SCALE } from '../harness/scale.ts';
import { elapse, until } from '../harness/wait.ts';
import type { Agent } from './agent.ts';
import { Cli, isBuilt, TROUPE } from './cli.ts';
import { Running } from './in-process.ts';

const test = suite('troupe dev');
const XSTATE = import.meta.resolve('xstate');

const TOOLS = 'notifications/tools/list_changed';
const PROMPTS = 'notifications/prompts/list_changed';

const SERVER = 'server.mjs';
const WORD = 'lib/word.mjs';

/** A program with a tool that answers a word of another module, and a prompt. */
function program(more: string, { name = 'program', troupe = TROUPE, extension = 'ts' } = {}): string {
  return `import { createServer, stdio } from '${troupe}';
import { word } from './lib/word.${extension}';
${extension === 'ts' ? "console.log('loading');" : ''}
const server = createServer({ name: '${name}', version: '2.0.0' });
server.tool('say', {}, () => word);
server.prompt('greet', {}, () => 'hello');
${more}
`;
}

/** Calls the tool `say` over HTTP. */
async function sayOver(url: string): Promise<string> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'say',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'say', arguments: {}, _meta: meta },
    }),
  });
  return /"text":"([^"]*)"/.exec(await response.text())?.[1] ?? '';
}

const word = (text: string, extension = 'ts') =>
  `export const word${extension === 'ts' ? ': string' : ''} = '${text}';\n`;
/** In plain JavaScript, with the copy of the package that this process uses. */
const plain = (more: string, name?: string) => program(more, { name, troupe: SOURCES, extension: 'mjs' });
const plainWord = (text: string) => word(text, 'mjs');
const plainTool = (name: string, answer = name): string =>
  `export const ${name} = () => '${answer}';\n${name}.schema = { type: 'object' };\n`;
const LISTENS = 'await server.listen(stdio());';
const EXPORTS = 'export default server;';

interface Stage {
  readonly tree: Tree;
  readonly cli: Agent;
  /** The stderr of the command. */
  readonly command: Agent;
  /** Writes a file, and resolves when the program was loaded again, or failed to. */
  change(name: string, text: string, outcome?: string): Promise<void>;
  /** Resolves when the client was told this since the last look. Fails if it was told something else, too. */
  told(...expected: readonly string[]): Promise<void>;
  /** Resolves when all that is under way has come. @returns what the client was told since the last look */
  settled(): Promise<readonly string[]>;
  end(): Promise<void>;
}

const PACKAGE = { 'package.json': '{ "name": "my-package", "type": "module" }' };

/** In a process, over stdio. */
async function open(files: Readonly<Record<string, string>>, target: string): Promise<Stage> {
  const tree = new Tree({ ...PACKAGE, ...files });
  const cli = new Cli(['dev', target], { cwd: tree.path });
  await cli.initialize();
  return staged(tree, cli, cli, async () => assert.is(await cli.end(), 0));
}

/** In this process, over a socket. */
async function here(files: Readonly<Record<string, string>>, target: string): Promise<Stage> {
  const tree = new Tree({ ...PACKAGE, ...files });
  const path = tree.at('dev.sock');
  // The messages of both are on the stderr of the later one.
  const cli = new Running(['attach', path]);
  const command = new Running(['dev', target, '--socket', path, '--no-inspect'], { cwd: tree.path });
  await command.said('connect clients with');
  await command.until(() => /loaded in|nothing to serve yet/.test(command.err), 'the first load');
  await cli.initialize();
  return staged(tree, cli, command, async () => {
    assert.is(await cli.end(), 0);
    command.signal('SIGTERM');
    assert.is(await command.exit, 0);
  });
}

function staged(tree: Tree, cli: Agent, command: Agent, end: () => Promise<void>): Stage {
  let seen = 0;
  const settled = async (): Promise<readonly string[]> => {
    await elapse(30, 'no more changes come');
    // One exchange later, nothing that was under way is left.
    await cli.request('ping');
    const fresh = cli.notifications.slice(seen);
    seen += fresh.length;
    return fresh;
  };
  return {
    tree,
    cli,
    command,
    end,
    async change(name, text, outcome = 'loaded in') {
      const before = command.err.split(outcome).length;
      tree.write(name, text);
      await command.said(outcome, before);
    },
    async told(...expected) {
      await cli.until(() => cli.notifications.length >= seen + expected.length, `the notifications ${expected}`);
      assert.equal([...(await settled())].sort(), [...expected].sort());
    },
    settled,
  };
}

test.full('a TypeScript program that listens itself is reloaded when one of its modules changes', async () => {
  const { cli, change, told, end } = await open(
    { 'server.ts': program(LISTENS), 'lib/word.ts': word('one') },
    'server.ts',
  );
  assert.is(await cli.call('say'), 'one');
  await change('lib/word.ts', word('two'));
  assert.is(await cli.call('say'), 'two');
  // Nothing looks different, so whoever waits for the reload hears of all that is offered.
  await told(PROMPTS, TOOLS);
  await end();
  assert.ok(cli.lines.every((line) => line.startsWith('{"jsonrpc":"2.0"')));
});

for (const [title, add, listens] of [
  ['that listens itself', test, LISTENS],
  ['that exports a server', test.full, EXPORTS],
] as const)
  add(`a program ${title} is reloaded when one of its modules changes`, async () => {
    const { cli, change, told, end } = await here({ [SERVER]: plain(listens), [WORD]: plainWord('one') }, SERVER);
    assert.is(await cli.call('say'), 'one');
    await told();

    await change(SERVER, plain(`server.tool('more', {}, () => 'more');\n${listens}`));
    await told(TOOLS);
    assert.equal(await cli.list('tools'), ['say', 'more']);

    await change(WORD, plainWord('two'));
    assert.is(await cli.call('say'), 'two');
    await told(PROMPTS, TOOLS);

    await change(SERVER, plain(listens));
    await told(TOOLS);
    assert.equal(await cli.list('tools'), ['say']);
    await end();
  });

test('a failed load prints the reason and keeps the previous version; the next load replaces it', async () => {
  const { cli, command, change, told, end } = await here(
    { [SERVER]: plain(LISTENS), [WORD]: plainWord('one') },
    SERVER,
  );
  await change(WORD, 'export const word = ;', 'still serving');
  assert.match(command.err, /cannot load .*: SyntaxError: .*word\.mjs:1/);
  assert.match(command.err, /still serving the previous version: 1 tool, 0 resources, 1 prompt/);
  assert.is(await cli.call('say'), 'one');
  await change(WORD, `export const word = '';\nthrow new Error('no database');`, 'no database');
  assert.is(await cli.call('say'), 'one');
  await told();
  await change(WORD, plainWord('two'));
  assert.is(await cli.call('say'), 'two');
  await end();
});

test.full(
  'a failed load of TypeScript prints the reason and keeps the previous version; the next load replaces it',
  async () => {
    const { cli, change, told } = await open(
      { 'server.ts': program(LISTENS), 'lib/word.ts': word('one') },
      'server.ts',
    );
    await change('lib/word.ts', 'export const word: = 1;', 'still serving');
    assert.match(cli.err, /cannot load .*: .*word\.ts:1:19: ERROR: Unexpected "="/s);
    assert.match(cli.err, /still serving the previous version: 1 tool, 0 resources, 1 prompt/);
    assert.is(await cli.call('say'), 'one');
    await change('lib/word.ts', `export const word = '';\nthrow new Error('no database');`, 'no database');
    assert.is(await cli.call('say'), 'one');
    await told();
    await change('lib/word.ts', word('two'));
    assert.is(await cli.call('say'), 'two');
    await cli.end();
  },
);

test.full('a program that ends the process while it loads is named', async () => {
  const { cli, change } = await open({ 'server.ts': program(LISTENS), 'lib/word.ts': word('one') }, 'server.ts');
  await change('lib/word.ts', `process.exit(3);\n${word('two')}`, 'ended the process with code 3 while it loaded');
  assert.is(await cli.exit, 3);
});

test('the next load replaces a load that never ends', async () => {
  const { tree, cli, change, end } = await here({ [SERVER]: plain(LISTENS), [WORD]: plainWord('one') }, SERVER);
  const hangs = `import { writeFileSync } from 'node:fs';
export const word = 'hanging';
writeFileSync(new URL('../hangs', import.meta.url), '');
await new Promise(() => {});`;
  await change(WORD, hangs, 'changed: ');
  await until(() => existsSync(tree.at('hangs')), 'the load that never ends');
  assert.is(await cli.call('say'), 'one');
  await change(WORD, plainWord('two'));
  assert.is(await cli.call('say'), 'two');
  await end();
});

test('a missing module triggers a reload when it appears', async () => {
  const { cli, change, end } = await here({ [SERVER]: plain(EXPORTS), [WORD]: plainWord('one') }, SERVER);
  await change(
    SERVER,
    `import { extra } from './extra.mjs';\n${plain(`server.tool('extra', {}, () => extra);\n${EXPORTS}`)}`,
    'still serving',
  );
  await change(`extra.mjs`, `export const extra = 'found';`);
  assert.is(await cli.call('extra'), 'found');
  await end();
});

test('a program that fails at first is served after its repair, in the same session', async () => {
  const { cli, command, change, end } = await here(
    { [SERVER]: 'export const x = ;', [WORD]: plainWord('one') },
    SERVER,
  );
  assert.match(command.err, /nothing to serve yet: waiting for a change/);
  assert.equal(await cli.list('tools'), []);
  await change(SERVER, plain(LISTENS));
  assert.is(await cli.call('say'), 'one');
  await end();
});

test('changes at run time reach the clients, from the last load only', async () => {
  const more = (text: string) =>
    `server.resource('app://x', {}, () => 'x');
server.tool('grow', {}, () => { server.tool('${text}', {}, () => '${text}'); server.tools.disable('say'); server.resourceUpdated('app://x'); return 'grown'; });
${LISTENS}`;
  const { cli, change, told, settled, end } = await here(
    { [SERVER]: plain(more('first')), [WORD]: plainWord('one') },
    SERVER,
  );
  await cli.request('resources/subscribe', { uri: 'app://x' });
  assert.is(await cli.call('grow'), 'grown');
  await told('notifications/resources/updated', TOOLS);
  assert.equal(await cli.list('tools'), ['grow', 'first']);
  await change(SERVER, plain(more('second')));
  assert.equal(await cli.list('tools'), ['say', 'grow']);
  await cli.call('grow');
  await settled();
  assert.equal(await cli.list('tools'), ['grow', 'second']);
  await end();
});

test('skills are reloaded with their files, without the program, and with the program', async () => {
  const RESOURCES = 'notifications/resources/list_changed';
  const skill = (description: string) => `---\nname: pdf\ndescription: ${description}\n---\n`;
  const offers = `await server.skills(new URL('skills', import.meta.url).pathname);\n${LISTENS}`;
  const { cli, change, told, settled, tree, end } = await here(
    { [SERVER]: plain(offers), [WORD]: plainWord('one'), 'skills/pdf/SKILL.md': skill('One') },
    SERVER,
  );
  const described = async (): Promise<readonly unknown[]> => {
    const { skills } = await cli.request('skills/list');
    return Object(skills).map(({ frontmatter }: { readonly frontmatter: object }) => Object(frontmatter).description);
  };
  assert.equal(await described(), ['One']);
  /** A scan may find the file while it is written: the last change counts. */
  const becomes = async (description: string): Promise<void> => {
    for (;;) {
      const { length } = cli.notifications;
      const [first] = await described();
      if (first === description) return;
      await cli.notified(length + 1);
    }
  };
  tree.write('skills/pdf/SKILL.md', skill('Two'));
  await becomes('Two');
  await settled();
  // The program is loaded afresh: its folder takes the place of the one before, and no list shows a difference.
  await change(WORD, plainWord('two'));
  assert.equal(await described(), ['Two']);
  await told(PROMPTS, RESOURCES, TOOLS);
  await change(SERVER, plain(LISTENS));
  assert.equal(await described(), []);
  await change(SERVER, plain(offers));
  assert.equal(await described(), ['Two']);
  tree.write('skills/pdf/SKILL.md', skill('Three'));
  await becomes('Three');
  await end();
});

test('the rules of the program decide, and a reload replaces them', async () => {
  const hides = `server.authorize(({ element }) => element.name !== 'say' || { hidden: true });\n${LISTENS}`;
  const later = `server.tool('close', {}, () => { server.authorize(() => ({ hidden: true })); return 'closed'; });\n${LISTENS}`;
  const { cli, change, end } = await here({ [SERVER]: plain(hides), [WORD]: plainWord('one') }, SERVER);
  assert.equal(await cli.list('tools'), []);
  await change(SERVER, plain(later));
  assert.equal(await cli.list('tools'), ['say', 'close']);
  assert.is(await cli.call('close'), 'closed');
  assert.equal(await cli.list('prompts'), []);
  await end();
});

/** What a program may register beside elements: the code with a word in it, and the answer of a client's look at it. */
const REGISTRATIONS: readonly {
  readonly what: string;
  readonly code: (word: string) => string;
  readonly look: (cli: Agent) => Promise<unknown>;
  readonly answer: (word: string) => unknown;
}[] = [
  {
    what: 'middleware',
    code: (mark) =>
      `server.use(async (call, ctx, next) => { const result = await next(); return call.method === 'tools/call' && call.params.name === 'all' ? { content: [{ type: 'text', text: '${mark} ' + result.content[0].text }] } : result; });`,
    look: async (cli) => (await cli.call('all'))?.split(' ')[0],
    answer: (mark) => mark,
  },
  {
    what: 'middleware of a method',
    code: (mark) =>
      `server.tool('all', () => 'x'); server.use('prompts/get', async (call, ctx, next) => ({ ...(await next()), description: '${mark}' }));`,
    look: async (cli) => (await cli.request('prompts/get', { name: 'greet' })).description,
    answer: (mark) => mark,
  },
  {
    what: 'a rule',
    code: (mark) => `for (const name of ['one', 'two']) server.tool('ruled-' + name, () => name);
server.authorize(({ element }) => !element.name.startsWith('ruled-') || element.name === 'ruled-${mark}' || { hidden: true });`,
    look: async (cli) => (await cli.list('tools')).filter((name) => name.startsWith('ruled-')),
    answer: (mark) => [`ruled-${mark}`],
  },
  {
    what: 'the rule of an element',
    code: (mark) => `server.tool('allowed', { allow: () => '${mark}' === 'one' || { hidden: true } }, () => 'x');`,
    look: async (cli) => (await cli.list('tools')).includes('allowed'),
    answer: (mark) => mark === 'one',
  },
  {
    what: 'limits of a tool',
    code: (mark) =>
      `server.tool('limited', { limits: { perDay: '${mark}' === 'one' ? 1 : 9, cost: () => 9 } }, () => 'ran');`,
    look: (cli) => cli.call('limited').then((text) => text === 'ran'),
    answer: (mark) => mark === 'two',
  },
  {
    what: 'a completer',
    code: (mark) =>
      `server.resource('thing://{name}', { complete: { name: () => ['${mark}'] } }, ({ uri }) => String(uri));`,
    look: async (cli) => {
      const ref = { type: 'ref/resource', uri: 'thing://{name}' };
      const { completion } = await cli.request('completion/complete', { ref, argument: { name: 'name', value: '' } });
      return completion;
    },
    answer: (mark) => ({ values: [mark], total: 1, hasMore: false }),
  },
  {
    what: 'a disabled element',
    code: (mark) =>
      `for (const name of ['one', 'two']) server.tool('able-' + name, () => name);\nserver.tools.disable('able-${mark}');`,
    look: async (cli) => (await cli.list('tools')).filter((name) => name.startsWith('able-')),
    answer: (mark) => [mark === 'one' ? 'able-two' : 'able-one'],
  },
];

test('registrations of a program beside its elements apply, and a reload replaces them', async () => {
  const text = (mark: string): string => plain([...REGISTRATIONS.map(({ code }) => code(mark)), LISTENS].join('\n'));
  const { cli, change, end } = await here({ [SERVER]: text('one'), [WORD]: plainWord('x') }, SERVER);
  for (const mark of ['one', 'two']) {
    if (mark === 'two') await change(SERVER, text(mark));
    for (const { what, look, answer } of REGISTRATIONS) assert.equal(await look(cli), answer(mark), `${what}, ${mark}`);
  }
  await end();
});

test('middleware that a program adds while it serves applies to later requests', async () => {
  const more = `server.tool('wrap', {}, () => { server.use('prompts/get', () => ({ description: 'wrapped', messages: [] })); return 'done'; });`;
  const { cli, end } = await here({ [SERVER]: plain(`${more}\n${LISTENS}`), [WORD]: plainWord('x') }, SERVER);
  assert.is(await cli.call('wrap'), 'done');
  assert.is((await cli.request('prompts/get', { name: 'greet' })).description, 'wrapped');
  await end();
});

test('name and instructions of the first load apply, and stderr reports changes', async () => {
  const { change, command, end } = await here({ [SERVER]: plain(LISTENS), [WORD]: plainWord('one') }, SERVER);
  await change(SERVER, plain(LISTENS, 'renamed'));
  assert.match(command.err, /changed server options apply after a restart of troupe dev: name/);
  await end();
});

test('stderr reports changed options of http(), whose address remains until a restart', async () => {
  const listens = (path: string): string =>
    plain(`const { http } = await import('${SOURCES}');\nawait server.listen(http({ port: 0, path: '${path}' }));`);
  const { change, command, end } = await here({ [SERVER]: listens('/a'), [WORD]: plainWord('one') }, SERVER);
  await change(SERVER, listens('/a'));
  assert.not.match(command.err, /apply after a restart/);
  await change(SERVER, listens('/b'));
  assert.match(command.err, 'changed server options apply after a restart of troupe dev: http({ path })');
  await end();
});

test.full('a server that is closed by its program closes', async () => {
  const text = program(
    `server.tool('stop', {}, () => { setTimeout(() => server.close('enough'), 10); return 'stopping'; });\n${LISTENS}`,
    { extension: 'mjs' },
  );
  const { cli } = await open({ [SERVER]: text, [WORD]: plainWord('one') }, SERVER);
  assert.is(await cli.call('stop'), 'stopping');
  assert.is(await cli.exit, 0);
});

for (const [title, add, start, troupe] of [
  ['modules in a directory are added, changed and removed', test, here, SOURCES],
  ['modules in a directory are added, changed and removed over stdio', test.full, open, TROUPE],
] as const)
  add(title, async () => {
    const { tree, cli, change, told, command, end } = await start(
      {
        'tools/a.mjs': plainTool('a', 'one'),
        'tools/say.mjs': `import { word } from '../lib/word.mjs';\nexport const say = () => word;\nsay.schema = { type: 'object' };`,
        'tools/prompts.mjs': `import { definePrompt } from '${troupe}';\nexport default definePrompt({ name: 'greet', handler: () => 'hello' });`,
        'lib/word.mjs': plainWord('one'),
      },
      'tools',
    );
    assert.equal(await cli.list('tools'), ['a', 'say']);
    await change('tools/deep/er/b.mjs', plainTool('b'));
    await command.until(() => command.err.includes('3 tools'), 'the new module');
    assert.equal(await cli.list('tools'), ['a', 'say', 'b']);
    await told(TOOLS);

    await change('lib/word.mjs', plainWord('two'));
    assert.is(await cli.call('say'), 'two');
    await told(PROMPTS, TOOLS);

    await change('tools/a.mjs', 'export const a = ;');
    // The log of a server goes to the stderr of its process.
    if (start === open) assert.match(command.err, /tools\/a\.mjs: .*; its previous version is still registered/);
    assert.is(await cli.call('a'), 'one');
    await told();

    tree.remove('tools/a.mjs');
    await command.until(
      () => command.err.includes('loaded in') && /2 tools, 0 resources, 1 prompt\n$/.test(command.err),
      'the removal',
    );
    await told(TOOLS);
    assert.equal(await cli.list('tools'), ['say', 'b']);
    await end();
  });

test('modules that a program discovers are reloaded with it', async () => {
  const text = plain(`await server.discover(['./tools'], { from: import.meta.url });\n${LISTENS}`);
  const { cli, change, end } = await here(
    { [SERVER]: text, [WORD]: plainWord('one'), 'tools/a.mjs': plainTool('a', 'one') },
    SERVER,
  );
  assert.is(await cli.call('a'), 'one');
  await change('tools/a.mjs', plainTool('a', 'two'));
  assert.is(await cli.call('a'), 'two');
  await change('tools/b.mjs', plainTool('b'));
  assert.equal(await cli.list('tools'), ['say', 'a', 'b']);
  await end();
});

test.full('plain JavaScript is reloaded, too', async () => {
  const text = `import { createServer, stdio } from '${TROUPE}';
import { word } from './word.mjs';
const server = createServer({ name: 'plain', version: '1.0.0' });
server.tool('say', {}, () => word);
await server.listen(stdio());`;
  const { cli, change } = await open({ 'server.mjs': text, 'word.mjs': `export const word = 'one';` }, 'server.mjs');
  await change('word.mjs', `export const word = 'two';`);
  assert.is(await cli.call('say'), 'two');
  await cli.end();
});

test('a reload names the changed file, and the counts include machines', async () => {
  const machine = `import { createMachine } from '${XSTATE}';
server.machine('lamp', createMachine({ id: 'lamp', initial: 'off', states: { off: { on: { toggle: 'on' } }, on: {} } }), { events: { toggle: true } });`;
  const { change, command, end } = await here(
    { [SERVER]: plain(`${machine}\n${EXPORTS}`), [WORD]: plainWord('one') },
    SERVER,
  );
  await command.said('loaded in');
  assert.match(command.err, /loaded in \d+ ms: \d+ tools, \d+ resources?, 1 prompt, 1 machine\n/);
  await change(WORD, plainWord('two'));
  assert.match(command.err, `troupe dev: changed: ${WORD}\n`);
  await change(SERVER, 'const broken = ;', 'cannot load');
  assert.match(command.err, `troupe dev: changed: ${SERVER}\n`);
  await end();
});

test('--http serves instead of stdio, and a reload changes the tools behind the same URL', async () => {
  const tree = new Tree({
    'package.json': '{ "type": "module" }',
    [SERVER]: plain(LISTENS),
    [WORD]: plainWord('one'),
  });
  const cli = new Running(['dev', SERVER, '--http', '0', '--no-inspect'], { cwd: tree.path });
  await cli.said('loaded in');
  const url = /at (http:\S+);/.exec(cli.err)?.[1] ?? '';
  assert.is(await sayOver(url), 'one');
  tree.write(WORD, plainWord('two'));
  await cli.said('loaded in', 2);
  assert.is(await sayOver(url), 'two');
  assert.is(cli.err.split('connect clients with').length, 2, cli.err);
  assert.equal(cli.lines, []);
  cli.signal('SIGTERM');
  assert.is(await cli.exit, 0);
});

test.full('a program that imports another copy of the package is reloaded', async () => {
  if (!isBuilt) return;
  const foreign = (more: string): string => program(more, { extension: 'mjs' });
  const { cli, change, told, end } = await here({ [SERVER]: foreign(LISTENS), [WORD]: plainWord('one') }, SERVER);
  assert.is(await cli.call('say'), 'one');
  await change(SERVER, foreign(`server.tool('more', {}, () => 'more');\n${LISTENS}`));
  await told(TOOLS);
  assert.equal(await cli.list('tools'), ['say', 'more']);
  await end();
});

if (!isBuilt) test.skip('the built command', 'dist is not built: npm run build');
else {
  test('an endless loop is named with its tool and line, and Ctrl-C ends the process in the middle of it', async () => {
    const cell = 'const cell = new Int32Array(new SharedArrayBuffer(4));';
    // The quick run saves the processor time of the loop.
    const body = SCALE === 'quick' ? ' Atomics.wait(cell, 0, 0, 10)' : '';
    const spins = `${cell}
server.tool('spin', {}, () => {
  for (;;)${body};
});
server.listen(stdio());`;
    const text = program(spins, { extension: 'mjs' });
    const tree = new Tree({ [SERVER]: text, [WORD]: plainWord('one') });
    const cli = new Cli(['dev', SERVER, '--no-inspect'], { cwd: tree.path });
    await cli.initialize();
    void cli.call('spin').catch(() => {});
    await cli.said('Ctrl-C or SIGTERM ends the process at once');
    assert.match(cli.err, /blocked for \d+ ms by tool "spin"/);
    const line = text.split('\n').findIndex((each) => each.includes('for (;;)')) + 1;
    assert.match(cli.err, new RegExp(`server\\.mjs:${line}:`));
    // Before it, a busy machine may block the loop for too long.
    assert.not.match(cli.err.slice(cli.err.indexOf('by tool "spin"')), 'outside of any handler');
    cli.process.kill('SIGINT');
    await cli.exit;
    assert.is(cli.process.signalCode, 'SIGINT');
  });

  /** Blocks the thread for a time, at next to no cost. */
  const blocks = (ms: number): string =>
    `const cell = new Int32Array(new SharedArrayBuffer(4));
for (let blocked = 0; blocked < ${ms}; blocked += 10) Atomics.wait(cell, 0, 0, 10);`;
  const exported = 'export default server;';
  const endless = program(`${blocks(600_000)}\n${exported}`, { extension: 'mjs' });
  const endlessLine = endless.split('\n').findIndex((each) => each.includes('Atomics.wait')) + 1;

  // One of each kind of process that serves: the one of `dev`, a worker, and one that serves alone.
  for (const [command, what, ends, codes, add] of [
    ['dev SERVER --no-inspect', 'a save', (_: Cli, tree: Tree) => tree.write(SERVER, endless), [143], test],
    ['dev SERVER --no-inspect', 'the end of stdin', (cli: Cli) => cli.end(), [143], test.full],
    ['run SERVER', 'the end of stdin', (cli: Cli) => cli.end(), [1], test.full],
    ['run SERVER --no-supervisor', 'the end of stdin', (cli: Cli) => cli.end(), [143], test.full],
    ['run SERVER', 'a second signal', (cli: Cli) => [1, 2].map(() => cli.process.kill('SIGTERM')), [1, 143], test.full],
    ['serve SERVER --http 0', 'a signal', (cli: Cli) => cli.process.kill('SIGTERM'), [143], test.full],
  ] as const)
    add(`a module that never ends under troupe ${command} is named with its line, and ${what} ends it`, async () => {
      const tree = new Tree({ [SERVER]: endless, [WORD]: plainWord('one') });
      const cli = new Cli(command.replace('SERVER', SERVER).split(' '), { cwd: tree.path });
      await cli.said('while the program loads');
      await cli.said(`server.mjs:${endlessLine}:`);
      if (what === 'a save') await cli.said(`if you save ${tree.path}/server.mjs meanwhile`);
      ends(cli, tree);
      const status = await cli.exit;
      const { signalCode } = cli.process;
      const code = status ?? 128 + constants.signals[signalCode ?? 'SIGKILL'];
      assert.ok((codes as readonly number[]).includes(code), `${code}: ${cli.err}`);
    });

  test('messages that arrive while a module blocks the thread for long are answered in order', async () => {
    const slow = program(`${blocks(4_000)}\n${exported}`, { extension: 'mjs' });
    const tree = new Tree({ [SERVER]: slow, [WORD]: plainWord('one') });
    const cli = new Cli(['run', SERVER, '--no-supervisor'], { cwd: tree.path });
    await cli.initialize();
    await cli.said('while the program loads');
    assert.is(await cli.call('say'), 'one');
    assert.is(await cli.end(), 0);
  });

  test.full('the built command adopts from a program that imports another copy of the package', async () => {
    const foreign = (more: string): string => program(more, { troupe: SOURCES });
    const { cli, change, told, end } = await here(
      { 'server.ts': foreign(LISTENS), 'lib/word.ts': word('one') },
      'server.ts',
    );
    assert.is(await cli.call('say'), 'one');
    await change('server.ts', foreign(`server.tool('more', {}, () => 'more');\n${LISTENS}`));
    await told(TOOLS);
    assert.equal(await cli.list('tools'), ['say', 'more']);
    await end();
  });
}
