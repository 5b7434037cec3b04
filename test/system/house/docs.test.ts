/** What the docs show is true: each program in them runs, each command exists, each link leads somewhere. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { z } from 'zod';
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

/** Writes the files of a page, whose fences have names, into a folder of their own. */
function filesOf(page: string): string {
  const folder = join(root, 'dist/docs', page.replaceAll(/\W/g, '-'));
  for (const [, name = '', text = ''] of read(page).matchAll(/^```ts (\S+)\n([\s\S]*?)^```/gm)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

test('the files of docs/several-files.md are a server with a test, and a server with a directory', async () => {
  const folder = filesOf('docs/several-files.md');
  const check = join(folder, 'both.test.ts');
  writeFileSync(
    check,
    "import './server.test.ts';\nimport assert from 'node:assert/strict';\nimport { connect } from 'troupe/client';\nimport server from './with-directory.ts';\n\nconst client = await connect(server);\nassert.deepEqual((await client.call('add', { a: 1, b: 2 })).structuredContent, { sum: 3 });\nawait client.close();\nawait server.close();\n",
  );
  const { code, output } = await run('--import', 'tsx', check);
  assert.is(code, 0, output);
  assert.match(output, 'pass 1');
});

test('the files of docs/secrets.md are a server that needs its variable', async () => {
  const folder = filesOf('docs/secrets.md');
  const call = ['dist/lib/cli/main.js', 'call', join(folder, 'server.ts')];
  const without = await run(...call);
  assert.match(without.output, 'WEATHER_KEY');
  assert.is.not(without.code, 0);
  writeFileSync(join(folder, '.env'), 'WEATHER_KEY=none\n');
  const { code, output } = await run(...call);
  assert.is(code, 0, output);
  assert.match(output, 'forecast');
});

test('every program in the docs type-checks as strictly as ours', () => {
  const folder = join(root, 'dist/docs');
  writeFileSync(
    join(folder, 'tsconfig.json'),
    '{ "extends": "../../tsconfig.base.json", "compilerOptions": { "composite": false, "noEmit": true, "declaration": false, "sourceMap": false, "types": ["node"] }, "include": ["**/*.ts"] }',
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

/** The text of each source file below these folders. */
function sourcesOf(...folders: readonly string[]): string {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
    )
    .filter((file) => /\.tsx?$/.test(file))
    .map(read)
    .join('\n');
}

/** Names in the words of code of a page: a path of the repository, a limit, an option of a command, a command. */
const NAMED = [
  [
    /^(?:\.\.\/)?((?:src|test|build|bench|examples|machines|inspector|apps)\/[\w./-]*\w)\/?$/,
    (path: string) => existsSync(join(root, path)),
  ],
  [/\blimits\.(\w+)(?!\w*:)/, (limit: string, sources: string) => new RegExp(`\\b${limit}\\b`).test(sources)],
  [/(?:^|\s)--([a-z][a-z-]+)/, (option: string, sources: string) => sources.includes(option)],
  [/^(?:npx )?troupe ([a-z]+)/, (command: string) => existsSync(join(root, `src/cli/commands/${command}.ts`))],
] as const;

test('paths, limits, options and commands that the docs name exist', () => {
  const sources = `${sourcesOf('src', 'bench', 'build', 'test/runner')}${read('package.json')}`;
  // An option of node, a style variable of a host, and a limit that the page adds itself.
  const others = ['max-old-space-size', 'safe-area-top', 'maxWords'];
  const wrong = pages
    .filter((page) => !page.startsWith('docs/adr/'))
    .flatMap((page) => {
      const prose = read(page).replace(/^```[\s\S]*?^```/gm, '');
      const words = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, word = '']) => word);
      return words.flatMap((word) =>
        NAMED.flatMap(([pattern, exists]) => {
          const name = pattern.exec(word)?.[1];
          return name === undefined || others.includes(name) || exists(name, sources) ? [] : [`${page}: ${word}`];
        }),
      );
    });
  assert.equal(wrong, []);
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

test('the map of CONTRIBUTING.md names files and decisions that exist, and each room of src', () => {
  const [, map = ''] = /^## To change X, read Y\n([\s\S]*?)^## /m.exec(read('CONTRIBUTING.md')) ?? [];
  const paths = [...map.matchAll(/`([\w./-]+\/[\w./-]*)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => path !== 'src/');
  assert.ok(paths.length > 40);
  assert.equal(
    paths.filter((path) => !existsSync(join(root, path))),
    [],
  );
  const decisions = readdirSync(join(root, 'docs/adr')).map((file) => Number.parseInt(file, 10));
  const named = [...map.matchAll(/ADR (\d+(?:, \d+)*)/g)].flatMap(([, list = '']) => list.split(', ').map(Number));
  assert.equal(
    named.filter((decision) => !decisions.includes(decision)),
    [],
  );
  const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.equal(
    rooms.map(({ name }) => `src/${name}/`).filter((room) => !paths.some((path) => path.startsWith(room))),
    [],
  );
});

/** Milliseconds, bytes, or the number itself. */
const UNITS = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000, KiB: 1_024, MiB: 1_048_576, '': 1 } as const;

/** The number that a file gives to a constant, to a member, or to the fallback behind a name. */
function numberIn(file: string, name: string): number {
  const source = read(file);
  const value = new RegExp(`(?:const ${name} =|^  ${name}:|${name}\\], ?)[ ]*([\\d_* ]+)`, 'm').exec(source)?.[1];
  assert.ok(value, `${file}: ${name}`);
  return value.split('*').reduce((product, factor) => product * Number(factor.replaceAll('_', '')), 1);
}

test('docs/defaults.md states the numbers of the code', () => {
  const rows = [
    ...read('docs/defaults.md').matchAll(/^\| (\d+)(?: (\w+))? \| .* \| (\S+) \| `(\S+)`(?: `(\S+)`)? \|$/gm),
  ];
  assert.ok(rows.length >= 28);
  assert.is(rows.length, read('docs/defaults.md').match(/^\| \d/gm)?.length);
  for (const [row, count = '', unit = '', option = '', file = '', constant] of rows) {
    const factor = Object.entries(UNITS).find(([name]) => name === unit)?.[1];
    assert.ok(factor, row);
    const name = constant ?? option.replaceAll('`', '').split('.').at(-1) ?? '';
    assert.is(Number(count) * factor, numberIn(file, name), row);
  }
});

test('docs/commands.md names each command', () => {
  const text = read('docs/commands.md');
  const commands = readdirSync(join(root, 'src/cli/commands')).map((file) => file.replace('.ts', ''));
  assert.equal(
    commands.filter((command) => !text.includes(`\`troupe ${command}`)),
    [],
  );
});

test('the comparison in the README has the versions that are measured, and the measured figures', () => {
  const readme = read('README.md');
  const { dependencies } = z
    .object({ dependencies: z.record(z.string(), z.string()) })
    .parse(JSON.parse(read('bench/peers/package.json')));
  for (const name of ['@modelcontextprotocol/server', 'fastmcp']) assert.match(readme, `[\`${name}\`](`);
  assert.match(readme, `/v2/) ${dependencies['@modelcontextprotocol/server']} |`);
  assert.match(readme, `/fastmcp) ${dependencies.fastmcp} |`);
  const [, troupe = '', official = '', fastmcp = ''] =
    /^\| calls a second over HTTP, 32 in flight .*\| \*\*([\d,]+)\*\* \| ([\d,]+) \| ([\d,]+) \|$/m.exec(readme) ?? [];
  const [, measured = ''] = /^### Echo over HTTP\n([\s\S]*?)^### /m.exec(read('docs/performance.md')) ?? [];
  assert.match(measured, `| troupe | modern | 32 | ${troupe} |`);
  assert.match(measured, new RegExp(`\\| @modelcontextprotocol/server [\\d.]+ \\| modern \\| 32 \\| ${official} \\|`));
  assert.match(measured, new RegExp(`\\| fastmcp [\\d.]+ \\| session \\| 32 \\| ${fastmcp} \\|`));
});

test('the README says actor and statechart only after its first example', () => {
  const [start = ''] = read('README.md').split('```ts');
  assert.not.match(start, /\b(?:actor|statechart)/i);
});
