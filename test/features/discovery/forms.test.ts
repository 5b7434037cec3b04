/** The forms in which a module may offer a tool, and what each turns into. */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { readExports } from '../../../src/features/discovery/module-exports.ts';
import { createServer, defineMachine, definePrompt, defineResource, defineTool } from '../../../src/index.ts';
import type { TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('forms of tools');

/** A client of a server that offers what a module with these exports would. */
async function serve(exports: Readonly<Record<string, unknown>>, path = '/tools/weather.ts'): Promise<TestClient> {
  const server = createServer({ name: 'forms', version: '1.0.0', offers: ['tools', 'resources', 'prompts'] });
  const { tools, machines, resources, prompts } = await readExports(exports, path);
  server.tools.replaceSource(path, tools);
  server.machines.replaceSource(path, machines);
  server.resources.replaceSource(path, resources);
  server.prompts.replaceSource(path, prompts);
  const client = await inSession(server);
  return client;
}

async function refusal(exports: Readonly<Record<string, unknown>>): Promise<string> {
  try {
    await readExports(exports, '/tools/weather.ts');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return 'not refused';
}

async function answer(client: TestClient, name: string, args = {}): Promise<string> {
  const { content, isError } = await client.call(name, args);
  const [block] = content;
  return `${isError ? 'error: ' : ''}${block?.type === 'text' ? block.text : JSON.stringify(block)}`;
}

const object = {
  getName: () => 'add',
  getDefinition: () => ({
    title: 'Addition',
    description: 'Adds two numbers',
    inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
    annotations: { readOnlyHint: true },
  }),
  validateArguments: (): unknown => true,
  execute: ({ a, b }: { a: number; b: number }): unknown => String(a + b),
};

test('defineTool, defineResource and definePrompt are offered, alone and in lists', async () => {
  const client = await serve({
    default: defineTool({ name: 'one', handler: () => '1' }),
    more: [defineTool({ name: 'two', handler: () => '2' }), definePrompt({ name: 'greet', handler: () => 'hello' })],
    time: defineResource({ uri: 'app://time', handler: () => 'noon' }),
  });
  assert.is(await answer(client, 'one'), '1');
  assert.is(await answer(client, 'two'), '2');
  assert.match(JSON.stringify(await client.send('prompts/list')), /"greet"/);
  assert.match(JSON.stringify(await client.send('resources/list')), /"app:\/\/time"/);
});

test('defineMachine is offered as a set of tools; a statechart alone is no offer', async () => {
  const machine = createMachine({ initial: 'off', states: { off: { on: { toggle: 'on' } }, on: {} } });
  const client = await serve({ lamp: defineMachine({ name: 'lamp', machine, events: { toggle: true } }), machine });
  assert.match(await answer(client, 'lamp_create'), /^lamp \S+: off\n/);
  assert.match(await refusal({ machine }), /exports no definition/);
});

test('the default export comes first, then the named ones by name; one value under two names counts once', async () => {
  const tool = (name: string) => defineTool({ name, handler: () => name });
  const shared = tool('shared');
  const { tools } = await readExports({ a: tool('a'), b: shared, default: shared, c: tool('c') }, '/x.ts');
  assert.equal(
    tools.map(({ name }) => name),
    ['shared', 'a', 'c'],
  );
});

test('an object with the four methods is a tool', async () => {
  const client = await serve({ adder: object });
  assert.equal((await client.send('tools/list')).tools, [
    {
      name: 'add',
      title: 'Addition',
      description: 'Adds two numbers',
      inputSchema: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
      },
      annotations: { readOnlyHint: true },
    },
  ]);
  assert.is(await answer(client, 'add', { a: 1, b: 2 }), '3');
  assert.match(await answer(client, 'add', { a: '1', b: 2 }), /^error: .*a: expected number/s);
});

test('a class with the four methods is a tool: it is made once, without arguments, and keeps its own state', async () => {
  class Counter {
    #count = 0;
    getName(): string {
      return 'count';
    }
    async getDefinition() {
      return { description: 'Counts its calls', input: { type: 'object' } };
    }
    validateArguments(): void {}
    execute(): string {
      this.#count += 1;
      return `call ${this.#count}`;
    }
  }
  const client = await serve({ Counter });
  assert.is(await answer(client, 'count'), 'call 1');
  assert.is(await answer(client, 'count'), 'call 2');
});

for (const [what, validate, expected] of [
  ['false', () => false, 'error: Invalid arguments for tool "add":\n- the tool rejected them without a reason'],
  ['a text', () => 'a is odd', 'error: Invalid arguments for tool "add":\n- a is odd'],
  ['a list of texts', () => ['a is odd', 'b too'], 'error: Invalid arguments for tool "add":\n- a is odd\n- b too'],
  ['a promise of a text', async () => 'a is odd', 'error: Invalid arguments for tool "add":\n- a is odd'],
  [
    'a thrown error',
    () => {
      throw new Error('a is odd');
    },
    'error: Invalid arguments for tool "add":\n- a is odd',
  ],
  ['an empty list', () => [], '3'],
  ['nothing', () => {}, '3'],
  ['true', async () => true, '3'],
  ['converted arguments', () => ({ a: 10, b: 20 }), '30'],
  [
    'a number',
    () => 7,
    'error: validateArguments of tool "add": expected true, false, a text, texts or converted arguments, got number 7',
  ],
] as const) {
  test(`validateArguments: ${what}`, async () => {
    const client = await serve({ adder: { ...object, validateArguments: validate } });
    assert.is(await answer(client, 'add', { a: 1, b: 2 }), expected);
  });
}

test('a function with a schema is a tool, under its own name', async () => {
  function shout({ text }: { text: string }): string {
    return text.toUpperCase();
  }
  shout.schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
  shout.description = 'Says it louder';
  const client = await serve({ default: shout });
  assert.match(JSON.stringify(await client.send('tools/list')), /"name":"shout","description":"Says it louder"/);
  assert.is(await answer(client, 'shout', { text: 'hey' }), 'HEY');
});

test('a function is called toolName, or its own name, or its export, or for a default export its file', async () => {
  const schema = { type: 'object' };
  const nameOf = async (exports: Readonly<Record<string, unknown>>) =>
    (await readExports(exports, '/tools/weather.ts')).tools[0]?.name;
  const own = Object.assign(
    function own() {
      return '';
    },
    { schema },
  );
  const nameless = () =>
    Object.defineProperty(
      Object.assign(() => '', { schema }),
      'name',
      { value: '' },
    );
  assert.is(await nameOf({ x: Object.assign(() => '', { input: schema, toolName: 'given' }) }), 'given');
  assert.is(await nameOf({ x: own }), 'own');
  assert.is(await nameOf({ exported: nameless() }), 'exported');
  assert.is(await nameOf({ default: nameless() }), 'weather');
  assert.is(await nameOf({ default: Object.defineProperty(nameless(), 'name', { value: 'default' }) }), 'weather');
});

test('helpers, data, schemas and base classes beside a tool are no tools', async () => {
  class Base {
    static schema = { type: 'object' };
    help(): void {}
  }
  const { tools } = await readExports(
    { helper: () => 1, data: { a: 1 }, type: Object.assign(() => 1, { '~standard': {}, input: {} }), Base, object },
    '/x.ts',
  );
  assert.equal(
    tools.map(({ name }) => name),
    ['add'],
  );
});

test('the error for a module without a tool lists what it could export', async () => {
  assert.match(
    await refusal({ helper: () => 1 }),
    /exports no definition; export defineTool\(…\).*getName, getDefinition, validateArguments and execute.*schema.*helper module with "_"/,
  );
});

test('the error for a value that is nearly a tool names the missing part', async () => {
  const { getDefinition: _, ...lacking } = object;
  assert.match(await refusal({ lacking }), /^lacking has getName and execute, but no getDefinition: add one/);
  assert.is(
    await refusal({ odd: { ...object, getDefinition: () => 'text' } }),
    'odd.getDefinition: expected an object, got string "text"',
  );
  assert.is(await refusal({ odd: { ...object, getName: () => 7 } }), 'odd: name: expected a string, got number 7');
  assert.is(
    await refusal({ odd: { ...object, getDefinition: () => ({ description: 7 }) } }),
    'odd: description: expected a string, got number 7',
  );
  assert.is(
    await refusal({ odd: Object.assign(() => 1, { schema: 'object' }) }),
    'function odd: input: expected a schema, got string "object"',
  );
});
