/** `troupe pack`: the archive holds a server that starts where nothing else is, and a manifest that the hosts' own tool accepts. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: hosts fill in such places of a manifest.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { type AskedVariable, bundleManifest, type ManifestParts } from '../../src/cli/pack/bundle-manifest.ts';
import { packedPackages } from '../../src/cli/pack/packed-packages.ts';
import { registryEntry } from '../../src/cli/pack/registry-entry.ts';
import { zipArchive } from '../../src/cli/pack/zip-archive.ts';
import { connect } from '../../src/client/client.ts';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { SCALE } from '../harness/scale.ts';
import { troupe } from './in-process.ts';

const test = suite('troupe pack');
const root = fileURLToPath(new URL('../..', import.meta.url));
/** The hosts' own tool. */
const judge = join(root, 'bench/peers/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js');

/** Reads an archive by its directory at the end. */
function unzipped(archive: Buffer): Readonly<Record<string, Buffer>> {
  const end = archive.lastIndexOf('PK\x05\x06');
  const files: [string, Buffer][] = [];
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    assert.is(archive.toString('latin1', at, at + 4), 'PK\x01\x02');
    const [crc, length, names, offset] = [16, 20, 28, 42].map((field) =>
      field === 28 ? archive.readUInt16LE(at + field) : archive.readUInt32LE(at + field),
    );
    const name = archive.toString('utf8', at + 46, at + 46 + Number(names));
    const start = Number(offset) + 30 + archive.readUInt16LE(Number(offset) + 26);
    const bytes = inflateRawSync(archive.subarray(start, start + Number(length)));
    assert.is(crc32(bytes), crc);
    files.push([name, bytes]);
    at += 46 + Number(names);
  }
  return Object.fromEntries(files);
}

const PROJECT = {
  name: 'shop',
  version: '1.2.0',
  type: 'module',
  description: 'Sells things',
  author: 'Ada <ada@example.com>',
};
const json = (value: unknown): string => JSON.stringify(value);

const MODULES = {
  'server.ts': `import { createServer } from 'troupe';
import { currency } from '@/currency';
import { priceOf } from './src/price.js';
import { greeting } from './src/greeting';
import { readFileSync } from 'node:fs';
const server = createServer({ name: 'shop', version: '1.2.0', title: 'The shop', log() {} });
const stock = JSON.parse(readFileSync(new URL('./stock.json', import.meta.url), 'utf8')) as string[];
server.tool('price', { description: 'Says what a thing costs.\\nMore words.' }, () => greeting + ' ' + priceOf(stock[0] ?? '') + ' ' + currency);
export default server;`,
  'src/price.ts': 'export const priceOf = (thing: string): string => `${thing} is ${thing.length as number}`;',
  'src/greeting.ts': "export { greeting } from './words/index.ts';",
  'src/words/index.ts': "export const greeting: string = 'The';",
  'src/currency.ts': "export { currency } from './euro.mjs';",
  'src/euro.mts': "export const currency = 'EUR' satisfies string;",
  'stock.json': '["pen"]',
  'tsconfig.json': '{ "compilerOptions": { "paths": { "@/*": ["./src/*"] } } }',
  'server.test.ts': 'throw new Error("a test");',
  '.env': 'BANK_KEY=abc',
  '.env.example': '# The key of the bank\nBANK_KEY=\n\nCURRENCY="EUR"\n',
};

test('an archive is what the reader of its directory finds, and equal files make equal bytes', () => {
  const file = fc.record({
    path: fc.string({ minLength: 1 }),
    bytes: fc.uint8Array({ maxLength: 500 }),
    executable: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.uniqueArray(file, { selector: ({ path }) => path, maxLength: 8 }), (given) => {
      const files = given.map(({ path, bytes, executable }) => ({
        path: path.toWellFormed(),
        bytes: Buffer.from(bytes),
        executable,
      }));
      const read = unzipped(zipArchive(files));
      for (const { path, bytes } of files) assert.ok(read[path] && Buffer.compare(read[path], bytes) === 0);
      assert.equal(zipArchive(files), zipArchive([...files].reverse()));
    }),
    { numRuns: 50 },
  );
});

test('a program of TypeScript starts from its archive alone, in another folder', async () => {
  const tree = new Tree({ 'package.json': json(PROJECT), ...MODULES });
  const { code, out, err } = await troupe(['pack', 'server.ts'], { cwd: tree.path });
  assert.is(code, 0, err);
  assert.match(err, 'of the project: manifest.json, package.json, server.js, src/currency.js, src/euro.mjs, ');
  assert.match(out, /^shop-1\.2\.0\.mcpb: 1 tool, [\d,]+ files, [\d.]+ MB, sha256 [0-9a-f]{64}\n$/);
  const files = unzipped(readFileSync(tree.at('shop-1.2.0.mcpb')));
  assert.equal(
    Object.keys(files).filter((path) => !path.startsWith('node_modules/')),
    [
      'manifest.json',
      'package.json',
      'server.js',
      'src/currency.js',
      'src/euro.mjs',
      'src/greeting.js',
      'src/price.js',
      'src/words/index.js',
      'stock.json',
    ],
  );
  const packages = new Set(
    Object.keys(files).flatMap((path) => /^node_modules\/(@[^/]+\/[^/]+|[^/]+)/.exec(path)?.[1] ?? []),
  );
  assert.ok(packages.has('troupe') && packages.has('ajv'));
  for (const name of ['tsx', 'esbuild', 'libsql', 'typescript', 'uvu']) assert.not.ok(packages.has(name), name);
  assert.equal(
    Object.keys(files).filter((path) => /\.d\.ts$|\.map$/.test(path)),
    [],
  );
  const manifest = JSON.parse(String(files['manifest.json']));
  assert.equal(manifest.tools, [{ name: 'price', description: 'Says what a thing costs.' }]);
  assert.equal([manifest.display_name, manifest.author], ['The shop', { name: 'Ada', email: 'ada@example.com' }]);
  assert.equal(manifest.user_config.bank_key, {
    type: 'string',
    title: 'BANK_KEY',
    description: 'The key of the bank',
    required: true,
    sensitive: true,
  });
  assert.equal([manifest.user_config.currency.required, manifest.user_config.currency.default], [false, 'EUR']);
  // The value of .env is nowhere.
  assert.not.match(json(manifest), 'abc');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-unpacked-'));
  try {
    for (const [path, bytes] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), bytes);
    }
    const args = manifest.server.mcp_config.args.map((each: string) => each.replace('${__dirname}', folder));
    const client = await connect({ command: process.execPath, args });
    const { content } = await client.call('price', {});
    assert.equal(content, [{ type: 'text', text: 'The pen is 3 EUR' }]);
    await client.close();
    // A program of another project, which takes as long to start as the archive.
    if (SCALE === 'quick') return;
    if (existsSync(judge)) {
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [judge, 'validate', join(folder, 'manifest.json')],
        { encoding: 'utf8' },
      );
      assert.is(status, 0, `${stdout}${stderr}`);
    } else console.log('skipped: the manifest in the eyes of mcpb (npm ci --prefix bench/peers installs it)');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.full('the same project is the same archive', async () => {
  const tree = new Tree({ 'package.json': json(PROJECT), ...MODULES });
  for (const name of ['one', 'two']) await troupe(['pack', 'server.ts', '--out', `${name}.mcpb`], { cwd: tree.path });
  assert.is(Buffer.compare(readFileSync(tree.at('one.mcpb')), readFileSync(tree.at('two.mcpb'))), 0);
});

test.full('a folder of tools is packed as a folder, with what "files" names', async () => {
  const tree = new Tree({
    'package.json': json({ ...PROJECT, files: ['tools/', './words.txt'] }),
    'tools/hello.ts': `import { defineTool } from 'troupe';
export const hello = defineTool({ name: 'hello', handler: () => 'Hello' as string });`,
    'words.txt': 'words',
    'other.txt': 'other',
  });
  const { code, err } = await troupe(['pack', 'tools', '--out', 'tools.mcpb', '--env', 'LEVEL=3'], { cwd: tree.path });
  assert.is(code, 0, err);
  const files = unzipped(readFileSync(tree.at('tools.mcpb')));
  assert.equal(
    Object.keys(files).filter((path) => !path.startsWith('node_modules/')),
    ['manifest.json', 'package.json', 'tools/hello.js', 'words.txt'],
  );
  const { server, tools } = JSON.parse(String(files['manifest.json']));
  assert.equal(
    [server.entry_point, tools[0].name, server.mcp_config.env],
    ['tools', 'hello', { LEVEL: '${user_config.level}' }],
  );
});

const refused: readonly (readonly [what: string, files: Readonly<Record<string, string>>, expected: RegExp])[] = [
  [
    'no package.json member',
    { 'package.json': json({ ...PROJECT, author: undefined, description: ' ' }) },
    /package\.json: hosts show name, version, description, author\. Add "description", one sentence that says what the server does; "author", the name of a person or a company\n/,
  ],
  [
    'a key',
    { 'package.json': json(PROJECT), 'certs/server.key': 'x' },
    /certs\/server\.key looks like a secret or a database/,
  ],
  ['a database', { 'package.json': json(PROJECT), 'shop.db': 'x' }, /shop\.db looks like a secret or a database/],
  [
    'a package that is not installed',
    { 'package.json': json({ ...PROJECT, dependencies: { 'left-pad-of-ada': '1' } }) },
    /left-pad-of-ada: expected installed packages, got none\. Run npm install/,
  ],
  [
    'a module that no compiler reads',
    { 'package.json': json(PROJECT), 'broken.ts': 'const x: = 1;' },
    /broken\.ts:1:9: ERROR/,
  ],
  [
    'a program that "files" leaves out',
    { 'package.json': json({ ...PROJECT, files: ['src'] }) },
    /"files" of package\.json leaves out the program server\.mjs/,
  ],
  [
    'an unknown member of a manifest',
    { 'package.json': json({ ...PROJECT, mcpb: { displayname: 'x' } }) },
    /mcpb: expected display_name, .* got displayname \(did you mean display_name\?\)/,
  ],
  [
    'a picture that is not there',
    { 'package.json': json({ ...PROJECT, mcpb: { icon: 'icon.png' } }) },
    /icon\.png: no such file/,
  ],
];

for (const [what, files, expected] of refused)
  test(`pack rejects a project with ${what}, and writes nothing`, async () => {
    const tree = new Tree({
      'server.mjs':
        "import { createServer } from 'troupe'; export default createServer({ name: 'shop', version: '1.0.0' });",
      ...files,
    });
    const { code, err } = await troupe(['pack', 'server.mjs'], { cwd: tree.path });
    assert.is(code, 1, err);
    assert.match(err, expected);
    assert.not.ok(existsSync(tree.at('shop-1.2.0.mcpb')));
  });

test.full('a key that "files" names itself is packed', async () => {
  const tree = new Tree({
    'package.json': json({ ...PROJECT, files: ['server.mjs', 'public.pem'] }),
    'server.mjs':
      "import { createServer } from 'troupe'; export default createServer({ name: 'shop', version: '1.0.0' });",
    'public.pem': 'x',
  });
  const { code, err } = await troupe(['pack', 'server.mjs'], { cwd: tree.path });
  assert.is(code, 0, err);
});

test('packages of two versions are placed where each importer finds its own', () => {
  const manifest = (name: string, version: string, dependencies = {}) => json({ name, version, dependencies });
  const tree = new Tree({
    'package.json': json({ ...PROJECT, dependencies: { a: '1', b: '1', c: '1' } }),
    'node_modules/troupe/package.json': manifest('troupe', '0.1.0'),
    'node_modules/a/package.json': manifest('a', '1', { c: '2' }),
    'node_modules/a/node_modules/c/package.json': manifest('c', '2', { b: '1' }),
    'node_modules/b/package.json': manifest('b', '1', { a: '1', c: '1' }),
    'node_modules/b/lib/binding.node': 'x',
    'node_modules/c/package.json': manifest('c', '1'),
  });
  const { files, native, missing } = packedPackages(tree.path, tree.at('node_modules/troupe'), false);
  assert.equal(
    files.map(({ path }) => path).sort(),
    ['a', 'a/node_modules/c', 'b', 'c', 'troupe']
      .map((path) => `node_modules/${path}/package.json`)
      .concat('node_modules/b/lib/binding.node')
      .sort(),
  );
  assert.equal([native, missing], [['b'], []]);
});

test('packages behind links, as pnpm installs them, are copied to where Node finds them', () => {
  const tree = new Tree({
    'package.json': json({ ...PROJECT, dependencies: { a: '1' } }),
    'node_modules/troupe/package.json': json({ name: 'troupe', version: '1' }),
    'node_modules/.pnpm/a@1/node_modules/a/package.json': json({ name: 'a', version: '1', dependencies: { b: '1' } }),
    'node_modules/.pnpm/b@1/node_modules/b/package.json': json({ name: 'b', version: '1' }),
  });
  symlinkSync(tree.at('node_modules/.pnpm/a@1/node_modules/a'), tree.at('node_modules/a'));
  symlinkSync(tree.at('node_modules/.pnpm/b@1/node_modules/b'), tree.at('node_modules/.pnpm/a@1/node_modules/b'));
  const { files } = packedPackages(tree.path, tree.at('node_modules/troupe'), false);
  assert.equal(
    files.map(({ path }) => path).sort(),
    ['a', 'b', 'troupe'].map((name) => `node_modules/${name}/package.json`),
  );
});

const PARTS: ManifestParts = {
  ...{ project: PROJECT, entry: 'server.js', tools: [], prompts: [], title: undefined, variables: [], data: false },
  ...{ node: '>=20.19', platform: undefined, args: [] },
};

test('a manifest has the links of package.json as addresses, and leaves out what is none', () => {
  const linked = (more: JsonObject): unknown => {
    const { repository, homepage, support } = bundleManifest({ ...PARTS, project: { ...PROJECT, ...more } });
    return [repository, homepage, support];
  };
  assert.equal(linked({ repository: 'ada/shop', bugs: 'https://example.com/bugs' }), [
    { type: 'git', url: 'https://github.com/ada/shop' },
    undefined,
    'https://example.com/bugs',
  ]);
  assert.equal(linked({ repository: { url: 'git+https://github.com/ada/shop.git' }, homepage: 'example.com' }), [
    { type: 'git', url: 'https://github.com/ada/shop.git' },
    undefined,
    undefined,
  ]);
  assert.equal(linked({ repository: 'git@github.com:ada/shop.git' }), [undefined, undefined, undefined]);
});

test('state in a folder of the user, and arguments, are part of the command', () => {
  const { server, user_config: config } = bundleManifest({ ...PARTS, data: true, args: ['--fast'] });
  assert.equal(Object(server).mcp_config.args.slice(2), [
    '${__dirname}/server.js',
    '--data',
    '${user_config.data}',
    '--',
    '--fast',
  ]);
  assert.is(Object(config).data.type, 'directory');
});

const VARIABLES: readonly AskedVariable[] = [
  { name: 'BANK_KEY', usual: undefined, description: 'The key' },
  { name: 'CURRENCY', usual: 'EUR', description: undefined },
];

test('the entry of the registry names the archive, its hash and its variables', () => {
  const parts = {
    project: { ...PROJECT, mcpName: 'io.github.ada/shop', repository: 'https://github.com/ada/shop.git' },
    hash: 'f'.repeat(64),
    title: 'The shop',
    variables: VARIABLES,
  };
  const release = 'https://github.com/ada/shop/releases/download/v1.2.0/shop-1.2.0.mcpb';
  assert.equal(registryEntry({ ...parts, release }), {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: 'io.github.ada/shop',
    title: 'The shop',
    description: 'Sells things',
    repository: { url: 'https://github.com/ada/shop', source: 'github' },
    version: '1.2.0',
    packages: [
      {
        registryType: 'mcpb',
        identifier: release,
        fileSha256: 'f'.repeat(64),
        transport: { type: 'stdio' },
        environmentVariables: [
          { name: 'BANK_KEY', description: 'The key', isRequired: true, isSecret: true },
          { name: 'CURRENCY', isRequired: false, isSecret: false, default: 'EUR' },
        ],
      },
    ],
  });
  assert.throws(
    () => registryEntry({ ...parts, release: 'https://example.com/shop.mcpb' }),
    /expected the address of a release at github\.com or gitlab\.com/,
  );
  assert.throws(
    () => registryEntry({ ...parts, project: PROJECT, release }),
    /mcpName: expected the name in the registry, such as "io\.github\.ada\/shop", got none/,
  );
  assert.throws(
    () => registryEntry({ ...parts, project: { ...parts.project, description: 'x'.repeat(101) }, release }),
    /at most 100 characters, as the registry does, got 101/,
  );
});
