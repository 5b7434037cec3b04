/** What the docs show is true: each program in them runs, each command exists, each link leads somewhere. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import {
  anchorsOf,
  fileOf,
  GROUPS,
  linksOf,
  llmsText,
  REPOSITORY,
  readmeWithList,
  ships,
} from '../../../build/docs-list.ts';
import { compileProgram, startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
const test = suite('docs');
/** Full: each program is a process of its own. Quick: most of them share one, because loading the package takes two thirds of the time. */
const OWN_PROCESS = SCALE === 'quick' ? /\bstdio\(|\bprocess\.(?:argv|exit|on|once|stdin)\b/ : /^/;
const ONE_AFTER_ANOTHER = join(root, 'test/fixtures/one-after-another.mjs');

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'machines/README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];

function blocks(page: string, language: string): string[] {
  return [...read(page).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, body = '']) => body,
  );
}

/** Runs a program with its arguments and nothing on stdin, inside the package, so that it imports `troupe` as its readers do. */
function run(...file: readonly string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((done) => {
    const child = spawn(process.execPath, file, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('close', (code) => done({ code, output }));
  });
}

/** Quick: a program starts an example from its compiled file. A start with tsx takes a second of processor time. */
function withCompiled(program: string): string {
  return program.replaceAll(/'--import', 'tsx', '(examples\/[^']+)'/g, (_, file) => `'${startable(file)}'`);
}

for (const [page, example] of [
  ['README.md', 'examples/hello/server.ts'],
  ['docs/guard.md', 'examples/guarded/server.ts'],
  ['docs/deploy.md', 'examples/deploy/server.ts'],
] as const)
  test(`${page} shows ${example} as it is`, () => {
    const [shown = ''] = blocks(page, 'ts');
    const file = read(example).replace(/^\/\*\*[\s\S]*?\*\/\n/, '');
    assert.is(shown.trim(), file.trim());
  });

test('every program in the docs runs', async () => {
  const folder = join(root, 'dist/docs');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  let count = 0;
  const shared: string[] = [];
  for (const page of pages) {
    for (const [index, program] of blocks(page, 'ts').entries()) {
      const file = join(folder, `${page.replaceAll('/', '-')}-${index}.ts`);
      writeFileSync(file, SCALE === 'quick' ? withCompiled(program) : program);
      count += 1;
      const compiled = await compileProgram(file);
      if (!OWN_PROCESS.test(program)) {
        shared.push(compiled);
        continue;
      }
      const { code, output } = await run(compiled);
      assert.is(code, 0, `${page}, program ${index + 1}:\n${output}`);
    }
  }
  assert.ok(count >= 8);
  const { code, output } = await run(ONE_AFTER_ANOTHER, ...shared);
  assert.is(code, 0, output);
});

test('every program in the docs type-checks as strictly as ours', () => {
  const folder = join(root, 'dist/docs');
  writeFileSync(
    join(folder, 'tsconfig.json'),
    '{ "extends": "../../tsconfig.base.json", "compilerOptions": { "composite": false, "noEmit": true, "declaration": false, "sourceMap": false, "types": ["node"] }, "include": ["*.ts"] }',
  );
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder],
    { encoding: 'utf8' },
  );
  assert.is(status, 0, stdout);
});

test('every npm command in the docs is a script', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  for (const page of pages) {
    for (const block of blocks(page, 'sh')) {
      for (const [, name = ''] of block.matchAll(/npm run (?:--silent )?([\w:]+)/g))
        assert.ok(scripts[name], `${page}: npm run ${name}`);
    }
  }
});

test('every JSON in the docs is JSON', () => {
  for (const page of pages) for (const block of blocks(page, 'json')) JSON.parse(block);
});

test('the architecture names files that exist, and every actor', () => {
  const text = read('docs/architecture.md');
  const named = [...text.matchAll(/[`\d ]((?:[\w-]+\/)*[\w.-]+\.ts)\b/g)].map(([, path = '']) => path);
  const found = named.map((path) => ['', 'src', 'src/client'].find((folder) => existsSync(join(root, folder, path))));
  assert.equal(
    named.filter((_, index) => found[index] === undefined),
    [],
  );
  const actors = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.actor.ts'))
    .map((path) => `src/${path}`);
  const paths = new Set(named.map((path, index) => join(found[index] ?? '', path)));
  assert.equal(
    actors.filter((path) => !paths.has(path)),
    [],
  );
});

test('every link to a file leads to one, and every anchor to a heading', () => {
  const wrong = pages.flatMap((page) =>
    linksOf(read(page))
      .filter((link) => {
        const file = fileOf(page, link);
        const [, anchor] = link.split('#');
        if (file === undefined || /^(?:issues|security|actions)\b/.test(file)) return false;
        if (!existsSync(join(root, file))) return true;
        return anchor !== undefined && file.endsWith('.md') && !anchorsOf(read(file)).includes(anchor);
      })
      .map((link) => `${page}: ${link}`),
  );
  assert.equal(wrong, []);
});

test('the anchors of a page are those that GitHub gives to its headings', () => {
  const page = '# One `two`\n\n```\n# none\n```\n## A [link](b.md), and *more*\n## -32700 ParseError\n## One two\n';
  assert.equal(anchorsOf(page), ['one-two', 'a-link-and-more', '-32700-parseerror', 'one-two-1']);
});

test('a page in the package links to what is not in it by its address on GitHub', () => {
  for (const page of pages.filter(ships))
    for (const link of linksOf(read(page))) {
      const file = fileOf(page, link);
      if (file === undefined || link.startsWith(REPOSITORY)) continue;
      // The tables of promises name their tests, which are read with a clone of the repository.
      assert.ok(
        ships(file) || file.startsWith('test/') || file.startsWith('docs/images/'),
        `${page} links to ${link}, which the package does not contain`,
      );
    }
});

test('README.md and llms.txt have the list of docs/pages.json: npm run docs:list writes it', () => {
  assert.is(readmeWithList(), read('README.md'));
  assert.is(llmsText(), read('llms.txt'));
});

test('docs/pages.json lists each page once', () => {
  const listed = GROUPS.flatMap((group) => group.pages.map(({ file }) => file));
  assert.equal(
    listed.filter((file, index) => !existsSync(join(root, file)) || listed.indexOf(file) !== index),
    [],
  );
  const inFolders = listed.filter((file) => !file.endsWith('.md')).map((folder) => `${folder}/`);
  assert.equal(
    pages.filter((page) => !listed.includes(page) && !inFolders.some((folder) => page.startsWith(folder))),
    ['README.md'],
  );
});

test('docs/commands.md names each command', () => {
  const text = read('docs/commands.md');
  const commands = readdirSync(join(root, 'src/cli/commands')).map((file) => file.replace('.ts', ''));
  assert.equal(
    commands.filter((command) => !text.includes(`\`troupe ${command}`)),
    [],
  );
});

test('the README says actor and statechart only after its first example', () => {
  const [start = ''] = read('README.md').split('```ts');
  assert.not.match(start, /\b(?:actor|statechart)/i);
});
