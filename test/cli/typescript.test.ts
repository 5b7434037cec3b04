/**
 * TypeScript programs: Node removes the types itself where it can, and tsx loads the programs that need more. Each program has a
 * process, because a loader stays in the process that it has prepared.
 */
import { mkdirSync, symlinkSync } from 'node:fs';
import module from 'node:module';
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { newerNode, noNewerNode } from '../harness/newer-node.ts';
import { atScale } from '../harness/scale.ts';
import { withoutStalls } from './agent.ts';
import { Cli, isBuilt, TROUPE } from './cli.ts';

const test = suite('troupe run: TypeScript');

/** A server whose tool returns its own text as it was compiled: Node replaces a type by blanks, tsx removes it. */
const SERVER = `import { createServer } from '${TROUPE}';
const twice = (value: number) => value * 2;
const server = createServer({ name: 'typed', version: '1.0.0' });
server.tool('text', {}, () => twice.toString());
server.tool('location', {}, () => import.meta.url);
export default server;
`;
const BY_NODE = '(value        ) => value * 2';

const TYPES = `export interface Name { readonly name: string }
export const ada: Name = { name: 'Ada' };
`;

/** Programs that Node cannot link: the reason, and their files. */
const NEED_TSX: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['an enum', { 'server.ts': `enum Kind { One }\n${SERVER}` }],
  ['a parameter property', { 'server.ts': `class Named { constructor(readonly name: string) {} }\n${SERVER}` }],
  ['a namespace', { 'server.ts': `namespace Inner { export const one = 1; }\n${SERVER}` }],
  ['an import without an extension', { 'server.ts': `import './types';\n${SERVER}`, 'types.ts': TYPES }],
  [
    'an import of a type without the word type',
    { 'server.ts': `import { ada, Name } from './types.ts';\nconst name: Name = ada;\n${SERVER}`, 'types.ts': TYPES },
  ],
  ['a .tsx file', { 'server.ts': `import './view.tsx';\n${SERVER}`, 'view.tsx': TYPES }],
  [
    'paths in tsconfig.json',
    {
      'server.ts': `import '#types';\n${SERVER}`,
      'types.ts': TYPES,
      'tsconfig.json': '{ "compilerOptions": { "paths": { "#types": ["./types.ts"] } } }',
    },
  ],
];

/** A newer Node removes types itself. Quick: one program that it cannot link. */
const ON_NEWER_NODE = atScale({
  quick: NEED_TSX.filter(([reason]) => reason === 'an import without an extension'),
  full: NEED_TSX,
  proof: NEED_TSX,
});

/** On this Node tsx loads all programs. Quick: one for its compiler and its resolver. */
const ON_THIS_NODE = atScale({
  quick: [
    [
      'an enum, an import without an extension and paths in tsconfig.json',
      {
        'server.ts': `import '#types';\nimport './types';\nenum Kind { One }\n${SERVER}`,
        'types.ts': TYPES,
        'tsconfig.json': '{ "compilerOptions": { "paths": { "#types": ["./types.ts"] } } }',
      },
    ],
  ] as const,
  full: NEED_TSX,
  proof: NEED_TSX,
});

async function textOf(node: string, files: Tree | Readonly<Record<string, string>>): Promise<string> {
  const tree = files instanceof Tree ? files : new Tree(files);
  const cli = new Cli(['run', 'server.ts', '--no-supervisor'], { cwd: tree.path, node });
  await cli.initialize();
  const text = await cli.call('text');
  assert.is(await cli.end(), 0);
  assert.is(withoutStalls(cli.err), '');
  return text;
}

if (!isBuilt) test.skip('all of it', 'dist is not built: npm run build');
else if (noNewerNode !== undefined) test.skip('on a Node that removes types', noNewerNode);
else {
  for (const type of [undefined, 'module', 'commonjs'])
    test.full(`Node removes the types of a program in a package of type ${type}, without tsx`, async () => {
      const node = await newerNode();
      const files = type ? { 'package.json': JSON.stringify({ type }) } : undefined;
      assert.is(await textOf(node, { ...files, 'server.ts': SERVER }), BY_NODE);
    });

  for (const [reason, files] of ON_NEWER_NODE)
    test.full(`tsx loads a program with ${reason}`, async () => {
      const node = await newerNode();
      assert.not.equal(await textOf(node, files), BY_NODE);
    });

  test.full('a program that throws runs once', async () => {
    const node = await newerNode();
    const tree = new Tree({ 'server.ts': `console.error('began');\nconst text: string = '{';\nJSON.parse(text);\n` });
    const cli = new Cli(['run', 'server.ts'], { cwd: tree.path, node });
    assert.is(await cli.exit, 1);
    assert.is(cli.err.split('began').length, 2, cli.err);
    assert.match(cli.err, 'SyntaxError');
  });

  test.full('a file that Node loads natively keeps its own URL', async () => {
    const tree = new Tree({ 'server.ts': SERVER });
    const cli = new Cli(['run', 'server.ts'], { cwd: tree.path, node: await newerNode() });
    await cli.initialize();
    assert.is(await cli.call('location'), new URL(`file://${tree.at('server.ts')}`).href);
    assert.is(await cli.end(), 0);
  });
}

if (isBuilt) {
  for (const [reason, files] of ON_THIS_NODE)
    test(`this Node runs a program with ${reason}`, async () => {
      assert.match(await textOf(process.execPath, files), /^\(?value\b[\s)]*=> ?value ?\* ?2$/);
    });

  test.full('troupe dev watches no modules that tsx makes of text, in a package without a type', async () => {
    const tree = new Tree({ 'server.ts': `import './types.ts';\n${SERVER}`, 'types.ts': TYPES });
    const cli = new Cli(['dev', 'server.ts', '--no-inspect'], { cwd: tree.path });
    await cli.initialize();
    assert.is(await cli.end(), 0);
    assert.match(cli.err, 'loaded');
    assert.not.match(cli.err, 'cannot watch');
  });

  test.full('a package of the same workspace may be TypeScript', async () => {
    const tree = new Tree({
      'server.ts': `import { twice } from '@work/twice';\nimport { createServer } from '${TROUPE}';
const server = createServer({ name: 'typed', version: '1.0.0' });
server.tool('text', {}, () => String(twice(21)));
export default server;
`,
      'packages/twice/package.json': '{ "name": "@work/twice", "type": "module", "exports": "./index.ts" }',
      'packages/twice/index.ts':
        'enum By { Two = 2 }\nexport const twice = (value: number): number => value * By.Two;\n',
    });
    mkdirSync(tree.at('node_modules/@work'), { recursive: true });
    symlinkSync('../../packages/twice', tree.at('node_modules/@work/twice'));
    assert.is(await textOf(process.execPath, tree), '42');
  });

  if ('registerHooks' in module)
    test.skip('esbuild loads only in the thread of the hooks', 'this Node has no such thread');
  else
    test.full('esbuild loads only in the thread of the hooks', async () => {
      const server = `enum Kind { One }
import { createRequire } from 'node:module';
import { createServer } from '${TROUPE}';
const server = createServer({ name: 'typed', version: '1.0.0' });
server.tool('text', {}, () => Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes('/esbuild/')).join());
export default server;
`;
      assert.is(await textOf(process.execPath, { 'server.ts': server }), '');
    });

  test.full(
    'a TypeScript program imports names from CommonJS files in TypeScript, which require each other',
    async () => {
      const server = `import { createServer } from '${TROUPE}';
import { kind } from './kind.cts';
const server = createServer({ name: 'typed', version: '1.0.0' });
server.tool('text', {}, () => \`kind \${kind}\`);
export default server;
`;
      const files = {
        'server.ts': server,
        'kind.cts': `enum Kind { One = 1 }\nexports.kind = require('./base.cjs').base + Kind.One;\n`,
        'base.cjs': 'exports.base = 6;\n',
      };
      assert.is(await textOf(process.execPath, files), 'kind 7');
    },
  );
}
