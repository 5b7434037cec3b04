/** What the docs show is true: each program in them runs, each command exists, each link leads somewhere. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { PARTS } from '../../../bench/series.ts';
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
import { connectionMachine } from '../../../machines/connection.ts';
import { STAGES } from '../../../src/core/execution/stages.ts';
import { AUDIT_EVENTS } from '../../../src/features/guard/audit/audit-record.ts';
import { troupe } from '../../cli/in-process.ts';
import { compileProgram, startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
const test = suite('docs');
/** Full: each program is a process of its own. Quick: most of them share one, because loading the package takes two thirds of the time. */
const OWN_PROCESS = SCALE === 'quick' ? /\blisten\(stdio\(|\bprocess\.(?:argv|exit|on|once|stdin)\b/ : /^/;
/** Most of the code of a program runs once: with these options the programs that share a process take 1.8 s of processor time instead of 2.3. */
const RUNS_ONCE = SCALE === 'quick' ? ['--liftoff-only', '--max-semi-space-size=64', '--interrupt-budget=1000000'] : [];
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

interface Printed {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  /** Both. */
  readonly output: string;
}

/**
 * Runs a program with its arguments and nothing on stdin, inside the package, so that it imports `troupe` as its readers do. */
function run(...file: readonly string[]): Promise<Printed> {
  return new Promise((done) => {
    const child = spawn(process.execPath, [...RUNS_ONCE, ...file], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    child.on('close', (code) => done({ code, out, err, output: `${out}${err}` }));
  });
}

/** The text of each program, by its file: a line before it names the file ({@link ONE_AFTER_ANOTHER}). */
function byProgram(text: string): Map<string, string> {
  const [, ...parts] = text.split(/^=== (.*) ===\n/m);
  return new Map(parts.flatMap((file, index) => (index % 2 === 0 ? [[file, parts[index + 1] ?? '']] : [])));
}

const squeezed = (text: string): string => text.replaceAll(/[\s'"`]/g, '');

/** The comments behind `console.log(…);` that are not what was printed there; `…` in a comment stands for anything. */
function notPrinted(program: string, out: string): readonly string[] {
  let rest = squeezed(out);
  return [...program.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].flatMap(([, comment = '']) => {
    for (const part of comment.split('…').map(squeezed)) {
      const found = rest.indexOf(part);
      if (found === -1) return [comment];
      rest = rest.slice(found + part.length);
    }
    return [];
  });
}

/**
 * Quick: a program starts an example from its compiled file, because a start with tsx takes a second of processor time. A program
 * that listens on stdio, whose end ends the process, is opened by a client in memory instead, in the process that programs share: only
 * that of the README listens.
 */
function inQuickRun(page: string, program: string): string {
  const text = program.replaceAll(/'--import', 'tsx', '(examples\/[^']+)'/g, (_, file) => `'${startable(file)}'`);
  return page === 'README.md'
    ? text
    : text.replaceAll(
        /^await server\.listen\((stdio\(.*\))\);$/gm,
        "$1;\nawait (await (await import('troupe/testing')).connect(server)).close();",
      );
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

/** A program of a page. */
interface Program {
  readonly page: string;
  readonly text: string;
  /** Its compiled file. */
  readonly file: string;
  readonly isAlone: boolean;
}

let compiling: Promise<readonly Program[]> | undefined;
let together: Promise<{ readonly printed: Map<string, string>; readonly logged: Map<string, string> }> | undefined;

/** The programs of all pages, compiled once. */
function programsOfDocs(): Promise<readonly Program[]> {
  compiling ??= compilePrograms();
  return compiling;
}

async function compilePrograms(): Promise<readonly Program[]> {
  const folder = join(root, 'dist/docs');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const compiled: Program[] = [];
  for (const page of pages)
    for (const [index, text] of blocks(page, 'ts').entries()) {
      const source = join(folder, `${page.replaceAll('/', '-')}-${index}.ts`);
      const runs = SCALE === 'quick' ? inQuickRun(page, text) : text;
      writeFileSync(source, runs);
      compiled.push({ page, text, file: await compileProgram(source), isAlone: OWN_PROCESS.test(runs) });
    }
  return compiled;
}

/** What the programs that share a process have printed, and logged, by their files. */
async function runTogether() {
  const files = (await programsOfDocs()).flatMap(({ file, isAlone }) => (isAlone ? [] : [file]));
  const { code, output, out, err } = await run(ONE_AFTER_ANOTHER, ...files);
  assert.is(code, 0, output);
  const [printed, logged] = [byProgram(out), byProgram(err)];
  assert.is(printed.size, files.length);
  return { printed, logged };
}

/** Runs a program. @returns what it prints, and what it logs */
async function printedBy({ page, file, isAlone }: Program): Promise<{ readonly out: string; readonly err: string }> {
  if (!isAlone) {
    together ??= runTogether();
    const { printed, logged } = await together;
    return { out: printed.get(file) ?? '', err: logged.get(file) ?? '' };
  }
  const { code, output, out, err } = await run(file);
  assert.is(code, 0, `${page}, ${basename(file)}:\n${output}`);
  return { out, err };
}

for (const page of pages.filter((each) => blocks(each, 'ts').length > 0))
  test(`the programs of ${page} run, print what their comments say, and log no warning`, async () => {
    const wrong: string[] = [];
    for (const program of (await programsOfDocs()).filter((each) => each.page === page)) {
      const { out, err } = await printedBy(program);
      const said = [...notPrinted(program.text, out), ...(err.match(/^troupe (?:error|warning): .*/gm) ?? [])];
      wrong.push(...said.map((each) => `${basename(program.file)}: ${each}`));
    }
    assert.equal(wrong, []);
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

/** Compiles the TypeScript files of a folder into another one: tsx takes half a second of processor time to start. */
async function compiledFolder(folder: string): Promise<string> {
  const out = `${folder}-compiled`;
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const from = await compileProgram(join(folder, file));
    const to = join(out, relative(folder, from));
    mkdirSync(dirname(to), { recursive: true });
    renameSync(from, to);
  }
  return out;
}

test('the files of docs/several-files.md are a server with a test, and a server with a directory', async () => {
  const folder = filesOf('docs/several-files.md');
  writeFileSync(
    join(folder, 'both.test.ts'),
    "import './server.test.ts';\nimport assert from 'node:assert/strict';\nimport { connect } from 'troupe/client';\nimport server from './with-directory.ts';\n\nconst client = await connect(server);\nassert.deepEqual((await client.call('add', { a: 1, b: 2 })).structuredContent, { sum: 3 });\nawait client.close();\nawait server.close();\n",
  );
  const { code, output } =
    SCALE === 'quick'
      ? await run(join(await compiledFolder(folder), 'both.test.js'))
      : await run('--import', 'tsx', join(folder, 'both.test.ts'));
  assert.is(code, 0, output);
  assert.match(output, 'pass 1');
});

test('the files of docs/secrets.md are a server that needs its variable', async () => {
  const source = filesOf('docs/secrets.md');
  const [folder, program] = SCALE === 'quick' ? [await compiledFolder(source), 'server.js'] : [source, 'server.ts'];
  const call = ['call', join(folder, program)];
  const without = await troupe(call);
  assert.match(without.err, 'WEATHER_KEY');
  assert.is.not(without.code, 0);
  writeFileSync(join(folder, '.env'), 'WEATHER_KEY=none\n');
  const { code, out, err } = await troupe(call);
  assert.is(code, 0, err);
  assert.match(out, 'forecast');
});

test('every program in the docs type-checks as strictly as ours', async () => {
  await programsOfDocs();
  const folder = join(root, 'dist/docs');
  writeFileSync(
    join(folder, 'tsconfig.json'),
    '{ "extends": "../../tsconfig.base.json", "compilerOptions": { "composite": false, "noEmit": true, "declaration": false, "sourceMap": false, "types": ["node"] }, "include": ["**/*.ts"] }',
  );
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '--checkers', '1', '-p', folder],
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

/** The words of code of a part; those of the first cells of its rows. */
const CODE = /`([^`]+)`/g;
const FIRST_CELL = /^\| (`[^|]*`) \|/gm;

/** The members of a union of texts, in a file of src. */
function unionOf(file: string, name: string): string[] {
  const [, members = ''] = new RegExp(`export type ${name} =([^;]*);`).exec(read(`src/${file}`)) ?? [];
  return [...members.matchAll(/'([^']+)'/g)].map(([, member = '']) => member);
}

/** The members of an interface, in a file of src, without those that it extends. */
function membersOf(file: string, name: string): string[] {
  const [, members = ''] =
    new RegExp(`^(?:export )?interface ${name}\\b[\\s\\S]*?\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(read(`src/${file}`)) ??
    [];
  return [...members.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(]/gm)].map(([, member = '']) => member);
}

/** The types of inspection records. */
function recordTypes(): string[] {
  const source = read('src/core/kernel/inspection/records.ts');
  return [...source.matchAll(/readonly type: '(\w+)'/g)].map(([, type = '']) => type);
}

/** The names of all metrics. */
function metrics(): string[] {
  const named = /(?:(?:\b(?:gauge|counter|duration)|[gG]auge)\(|\bname: )\s*'((?:mcp|troupe)\.[\w.]+)'/g;
  return [...sourcesOf('src').matchAll(named)].map(([, name = '']) => name);
}

/** The text of each source file below these folders, read once. */
function sourcesOf(...folders: readonly string[]): string {
  return folders.map(sourcesBelow).join('\n');
}

const texts = new Map<string, string>();

function sourcesBelow(folder: string): string {
  const known = texts.get(folder);
  if (known !== undefined) return known;
  // The benchmark's peers are installed below it.
  const entries = readdirSync(join(root, folder), { withFileTypes: true }).filter(
    ({ name }) => name !== 'node_modules',
  );
  const text = entries
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return sourcesBelow(path);
      return /\.tsx?$/.test(path) ? read(path) : [];
    })
    .join('\n');
  texts.set(folder, text);
  return text;
}

/** A text with one byte a character, which is searched several times as fast. */
const plain = (text: string): string => text.replaceAll(/[^\0-\xff]/g, '?');
const proseOf = (page: string): string => read(page).replace(/^```[\s\S]*?^```/gm, '');
const wordsOfCode = (text: string): string[] => [...text.matchAll(/`([^`\n]+)`/g)].map(([, word = '']) => word);
/** The pages that say what is. A decision says what was. */
const present = pages.filter((page) => !page.startsWith('docs/adr/'));

/** Names in the words of code of a page: a path of the repository, a limit, an option of a command, a command. */
const NAMED = [
  [
    /^(?:\.\.\/)?((?:src|test|build|bench|examples|machines|inspector|apps)\/[\w./-]*\w)\/?$/,
    (path: string) => existsSync(join(root, path)),
  ],
  [/\blimits\.(\w+)(?!\w*:)/, (limit: string) => new RegExp(`\\b${limit}\\b`).test(sourcesOf('src'))],
  [/(?:^|\s)--([a-z][a-z-]+)/, (option: string, sources: string) => sources.includes(option)],
  [/^(?:npx )?troupe ([a-z]+)/, (command: string) => existsSync(join(root, `src/cli/commands/${command}.ts`))],
] as const;

test('paths, limits, options and commands that the docs name exist', () => {
  const sources = plain(`${sourcesOf('src', 'bench', 'build', 'test/runner')}${read('package.json')}`);
  const known = new Map<string, boolean>();
  const isKnown = (name: string, exists: (name: string, sources: string) => boolean): boolean => {
    const found = known.get(name) ?? exists(name, sources);
    known.set(name, found);
    return found;
  };
  // An option of node, a style variable of a host, and a limit that the page adds itself.
  const others = ['max-old-space-size', 'safe-area-top', 'maxWords'];
  const wrong = present.flatMap((page) =>
    wordsOfCode(proseOf(page)).flatMap((word) =>
      NAMED.flatMap(([pattern, exists]) => {
        const name = pattern.exec(word)?.[1];
        return name === undefined || others.includes(name) || isKnown(name, exists) ? [] : [`${page}: ${word}`];
      }),
    ),
  );
  assert.equal(wrong, []);
});

/** Names of node, of systemd, of Kubernetes, and of OpenTelemetry. */
const FOREIGN = [
  'execSync',
  'TimeoutStopSec',
  'terminationGracePeriodSeconds',
  'httpGet',
  'NodeSDK',
  'allowImportingTsExtensions',
];
/** They are about other packages, labels on GitHub, and a feature and errors of a program. */
const OF_OTHERS = /^docs\/(?:from-|author-errors|mistakes|policies|features)|^CONTRIBUTING/;

/** A name of several words. */
const NAME = /\b[A-Za-z]+[a-z][A-Z]\w*\b/g;

test('names and messages that the docs quote are in the sources', () => {
  const sources = plain(sourcesOf('src', 'machines', 'apps/src', 'inspector/src', 'build', 'bench'))
    .replaceAll(/\$\{[^}]*\}/g, '?')
    .replaceAll(/['`] \+\n? *['`]/g, '');
  const names = new Set(sources.match(NAME));
  const wrong = present
    .filter((page) => !OF_OTHERS.test(page))
    .flatMap((page) =>
      wordsOfCode(proseOf(page))
        .filter((word) => {
          const unknown = (word.match(NAME) ?? []).filter((name) => !names.has(name));
          if (unknown.some((name) => !FOREIGN.includes(name) && !read(page).includes(`${name}(`))) return true;
          // A message: words, and … for what differs.
          if (
            !/^[\w…][\w …,.:;'?-]* [\w …,.:;'?-]* [\w …,.:;'?-]*$/.test(word) ||
            /^(?:np[mx]|node|troupe|kill|\d{3}) /.test(word)
          )
            return false;
          return word
            .split(/…|\b\d+\b/)
            .some((part) => part.trim().includes(' ') && !sources.includes(plain(part.trim())));
        })
        .map((word) => `${page}: ${word}`),
    );
  assert.equal(wrong, []);
});

test('each option that the docs give to a command is one of that command', async () => {
  const commands = readdirSync(join(root, 'src/cli/commands')).map((file) => file.replace('.ts', ''));
  const help = new Map<string, string>();
  for (const command of commands) help.set(command, (await troupe([command, '--help'])).out);
  const wrong = pages.flatMap((page) =>
    [...read(page).matchAll(/\btroupe (\w+)([^`|\n]*)/g)].flatMap(([, command = '', rest = '']) => {
      const [own = ''] = rest.split(/ -- | #/);
      const options = help.has(command)
        ? [...own.matchAll(/\s(--[a-z][a-z-]+)/g)].map(([, option = '']) => option)
        : [];
      return options
        .filter((option) => !help.get(command)?.includes(option))
        .map((option) => `${page}: troupe ${command} ${option}`);
    }),
  );
  assert.equal(wrong, []);
});

test('decisions that hold name files that exist, and each dependency of the package', () => {
  const decisions = pages.filter((page) => page.startsWith('docs/adr/') && !/^Superseded by/m.test(read(page)));
  const [[path, exists]] = NAMED;
  assert.equal(
    decisions.flatMap((page) =>
      wordsOfCode(read(page)).filter((word) => {
        const name = path.exec(word)?.[1];
        return name !== undefined && !exists(name);
      }),
    ),
    [],
  );
  const { dependencies } = z
    .object({ dependencies: z.record(z.string(), z.string()) })
    .parse(JSON.parse(read('package.json')));
  const text = read('docs/adr/0004-dependencies.md');
  assert.equal(
    Object.entries(dependencies).filter(([name, version]) => {
      // Of a version below 1, the second number counts.
      const [line] = version.match(/0\.\d+|[1-9]\d*/) ?? [];
      return name !== 'ajv-formats' && !text.includes(`${name} ${line}`);
    }),
    [],
  );
});

test('each decision that a page, a source or a test names exists', () => {
  const decisions = readdirSync(join(root, 'docs/adr')).map((file) => Number.parseInt(file, 10));
  const text = `${pages.map(read).join('\n')}${sourcesOf('src', 'machines', 'test', 'bench', 'build', 'inspector/src')}`;
  const named = [...text.matchAll(/\bADRs? (\d+(?:(?:, | and )\d+)*)/g)].flatMap(
    ([, list = '']) => list.match(/\d+/g) ?? [],
  );
  assert.ok(named.length > 100);
  assert.equal(
    named.filter((decision) => !decisions.includes(Number(decision))),
    [],
  );
});

/** The rows of a table of options. */
const OPTIONS_OF = (title: string): RegExp => new RegExp(`^\\| ${title} \\|.*\\n([\\s\\S]*?)\\n\\n`, 'm');
const GUARDED = membersOf('core/messages/authorization-rule.ts', 'Guarded');

/** Lists of a page that are lists of the code: the part of the page, an item of it, and the items of the code. */
const LISTS: readonly (readonly [page: string, part: RegExp, item: RegExp, code: readonly string[]])[] = [
  ['docs/client.md', /^\| state \| calls \|\n([\s\S]*?)\n\n/m, FIRST_CELL, Object.keys(connectionMachine.states)],
  [
    'docs/client.md',
    /^\| reason \| cause .*\n([\s\S]*?)\n\n/m,
    FIRST_CELL,
    unionOf('client/client-errors.ts', 'FailureReason'),
  ],
  ['docs/observe.md', /^\| `event` \| (.*) \|$/m, CODE, unionOf('core/kernel/operator-log.ts', 'LogEvent')],
  ['docs/observe.md', /^\| event \| when \|\n([\s\S]*?)\n\n/m, FIRST_CELL, AUDIT_EVENTS],
  ['docs/observe.md', /^\| metric \| kind .*\n([\s\S]*?)\n\n/m, FIRST_CELL, metrics()],
  [
    'docs/observe.md',
    OPTIONS_OF('option of `otel`'),
    FIRST_CELL,
    membersOf('features/telemetry/otel.ts', 'OtelOptions'),
  ],
  [
    'docs/observe.md',
    OPTIONS_OF('option'),
    FIRST_CELL,
    membersOf('features/guard/audit/audit-options.ts', 'AuditOptions'),
  ],
  [
    'docs/handles.md',
    OPTIONS_OF('option'),
    FIRST_CELL,
    membersOf('features/machines/define-machine.ts', 'MachineOptions'),
  ],
  [
    'docs/apps.md',
    OPTIONS_OF('option of `app`'),
    FIRST_CELL,
    membersOf('features/machines/define-machine.ts', 'MachineAppOptions'),
  ],
  [
    'docs/apps.md',
    OPTIONS_OF('option of `server.app`'),
    FIRST_CELL,
    ['html', 'entry', ...membersOf('features/apps/app-options.ts', 'AppLooks')],
  ],
  [
    'docs/skills.md',
    OPTIONS_OF('option'),
    FIRST_CELL,
    [
      ...membersOf('features/skills/skills-options.ts', 'SkillsOptions'),
      ...GUARDED,
      ...membersOf('core/protocol/types.ts', 'CacheHints'),
    ],
  ],
  [
    'docs/gateway.md',
    OPTIONS_OF('option'),
    FIRST_CELL,
    [
      'max…',
      ...membersOf('gateway/mounts/names.ts', 'NameOptions'),
      ...membersOf('gateway/mounts/mount-options.ts', 'MountOptions').filter((name) => !name.startsWith('max')),
      ...GUARDED,
    ],
  ],
  ['docs/architecture.md', /calls the listener with every record: (.*?)\. Each/, CODE, recordTypes()],
  ['docs/architecture.md', /^`hold` → (.*)$/m, CODE, Object.keys(STAGES).slice(1)],
];

test('lists of names in the docs are those of the code', () => {
  for (const [page, part, item, code] of LISTS) {
    const [, text = ''] = part.exec(read(page)) ?? [];
    const names =
      item === CODE ? wordsOfCode(text) : [...text.matchAll(item)].flatMap(([, cell = '']) => wordsOfCode(cell));
    assert.ok(code.length > 1, `${page}: ${part}`);
    assert.equal(names.map((name) => name.replace(/\.\*$/, '')).sort(), [...code].sort(), `${page}: ${part}`);
  }
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

test('the map of CONTRIBUTING.md names files that exist, and each room of src', () => {
  const [, map = ''] = /^## To change X, read Y\n([\s\S]*?)^## /m.exec(read('CONTRIBUTING.md')) ?? [];
  const paths = [...map.matchAll(/`([\w./-]+\/[\w./-]*)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => path !== 'src/');
  assert.ok(paths.length > 40);
  assert.equal(
    paths.filter((path) => !existsSync(join(root, path))),
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

/** The numbers that options of this name have as defaults. */
function defaultsOf(): Map<string, Set<number>> {
  const numbers = new Map<string, Set<number>>();
  for (const [, name = '', value = ''] of sourcesOf('src').matchAll(/^ {2}(\w+): ([\d_]+(?: \* [\d_]+)*),/gm)) {
    const product = value.split('*').reduce((all, factor) => all * Number(factor.replaceAll('_', '')), 1);
    numbers.set(name, (numbers.get(name) ?? new Set()).add(product));
  }
  return numbers;
}

const LONG_UNITS = { ...UNITS, second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const NUMBER = String.raw`(\d[\d,]*)(?: (ms|s|min|h|d|KiB|MiB|second|minute|hour|day)s?\b)?`;
const OPTION = String.raw`\`(?:\w+\.)*(\w+)\``;

test('numbers beside the names of options are their defaults', () => {
  const defaults = defaultsOf();
  const wrong: string[] = [];
  let count = 0;
  const compare = (page: string, text: string, name: string, digits: string, unit = ''): void => {
    const known = defaults.get(name);
    const factor = Object.entries(LONG_UNITS).find(([each]) => each === unit)?.[1] ?? 1;
    if (!known) return;
    count += 1;
    if (!known.has(Number(digits.replaceAll(',', '')) * factor)) wrong.push(`${page}: ${text}`);
  };
  for (const page of present) {
    const prose = proseOf(page);
    // `timeoutMs` (60 s), and: 10 s for a connection (`upstreamWaitMs`).
    for (const [text, name = '', digits = '', unit] of prose.matchAll(new RegExp(`${OPTION} \\(${NUMBER}\\)`, 'g')))
      compare(page, text, name, digits, unit);
    for (const [text, digits = '', unit, name = ''] of prose.matchAll(
      new RegExp(`${NUMBER}[^.,\`|;()]{0,40}\\(${OPTION}\\)`, 'g'),
    ))
      compare(page, text, name, digits, unit);
    // Rows: options in the first cell, and their defaults in the same order in the second.
    for (const [row, first = '', second = ''] of prose.matchAll(/^\| (`[^|]*`[^|]*) \| ([^|]*\d[^|]*) \|/gm)) {
      const numbers = [...second.matchAll(new RegExp(NUMBER, 'g'))];
      for (const [index, [, name = '']] of [...first.matchAll(new RegExp(OPTION, 'g'))].entries())
        if (numbers[index]) compare(page, row, name, numbers[index][1] ?? '', numbers[index][2]);
    }
  }
  assert.ok(count > 60, `${count}`);
  assert.equal(wrong, []);
});

/** Counts that a page states: where, and the file, its part and an item of it. */
const COUNTS: readonly (readonly [page: string, count: RegExp, file: string, part: RegExp, item: RegExp])[] = [
  ['docs/gateway.md', /\[(\d+) forms\]/, 'test/gateway/forms.test.ts', /[\s\S]*/, /^ {4}form: /gm],
  [
    'docs/gateway.md',
    /forms\]\S* of (\d+) programs/,
    'test/gateway/forms.test.ts',
    /^const SOURCES[\s\S]*?^};/m,
    /^ {2}(?!several|'Claude Code plugin'|Troupe|\/)\S.*/gm,
  ],
  [
    'docs/reliability.md',
    /`npm test` runs (\d+) worlds/,
    'test/system/simulation/simulation.test.ts',
    /const SEEDS = .*/,
    /(?<=quick: )\d+/g,
  ],
  ['docs/security.md', /(\d+) hostile schemas/, 'test/system/security/schemas.test.ts', /HOSTILE\.length, .*/, /\d+/g],
  [
    'docs/security.md',
    /(\d+) kinds of bad tokens/,
    'test/features/oauth/bad-tokens.test.ts',
    /^async function badTokens[\s\S]*?^}/m,
    /^ {4}'.*': /gm,
  ],
  [
    'docs/security.md',
    /pair of (\d+) hosts/,
    'test/core/http/guard.test.ts',
    /^const HOSTS[\s\S]*?^};/m,
    /^ {2}\S.*: (?:true|false),/gm,
  ],
  [
    'docs/security.md',
    /hosts and (\d+) origins/,
    'test/core/http/guard.test.ts',
    /^const ORIGINS[\s\S]*?^};/m,
    /^ {2}\S.*: (?:true|false),/gm,
  ],
];

test('counts that the docs state of tests are those of the tests', () => {
  for (const [page, count, file, part, item] of COUNTS) {
    const found = part.exec(read(file))?.[0].match(item) ?? [];
    const [only = ''] = found;
    assert.is(count.exec(read(page))?.[1], found.length === 1 ? only : `${found.length}`, `${page}: ${count}`);
  }
});

test('each section of figures in docs/performance.md has a day, and its list of parts is that of the benchmark', () => {
  const text = read('docs/performance.md');
  const sections = text.split(/^## /m).slice(1);
  assert.equal(
    sections
      .filter((section) => section.includes('| ') && !/\b2026-\d\d-\d\d\b/.test(section))
      .map((section) => section.split('\n')[0]),
    [],
  );
  const [, parts = ''] = /`--only PART` measures one part: (.*?)\./.exec(text) ?? [];
  assert.equal(wordsOfCode(parts), [...PARTS]);
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
