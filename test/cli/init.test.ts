/** `troupe init`, `troupe install` and `troupe uninstall`, in empty folders with a home of their own. */
import { execFile, execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { installedFrom } from '../../src/cli/setup/installed-from.ts';
import { compiled } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { troupe as command, type Ran } from './in-process.ts';

const test = suite('troupe init and install');

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The entry names the copy of the command that wrote it. */
const MAIN = compiled('src/cli/main.ts');
const folders: string[] = [];

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'troupe-init-'));
  folders.push(made);
  return made;
}

/** Runs a program until it ends. */
function run(args: readonly string[], cwd: string): Promise<{ readonly code: number; readonly out: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [...args], { cwd }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, out: out + err }),
    );
    child.stdin?.end();
  });
}

/** The directory is also the home. */
function troupe(args: readonly string[], cwd: string): Promise<Ran> {
  const env = { HOME: cwd, USERPROFILE: cwd, APPDATA: cwd, XDG_CONFIG_HOME: join(cwd, '.config') };
  return command(args, { cwd, env });
}

/** A JSON file of a client. */
const config = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

test('troupe init creates a project with its commands', async () => {
  const cwd = folder();
  const { code, out, err } = await troupe(['init', 'my server'], cwd);
  assert.equal([code, err], [0, '']);
  assert.match(out, 'Created package.json, ');
  assert.match(out, 'npx troupe dev server.ts');
  assert.match(readFileSync(join(cwd, 'my server/package.json'), 'utf8'), '"name": "my-server"');
});

test('a new project installs the copy of Troupe that created it', async () => {
  const cwd = folder();
  const lock = (resolved: unknown): string => {
    const modules = join(mkdtempSync(join(cwd, 'npm-')), 'node_modules');
    mkdirSync(modules);
    if (resolved !== undefined)
      writeFileSync(
        join(modules, '.package-lock.json'),
        JSON.stringify({ packages: { 'node_modules/troupe': { resolved } } }),
      );
    return join(modules, 'troupe');
  };
  for (const [what, resolved, expected] of [
    ['a registry', 'https://registry.npmjs.org/troupe/-/troupe-1.2.3.tgz', '^1.2.3'],
    ['a registry behind a proxy', 'http://127.0.0.1:4873/npm/troupe/-/troupe-1.2.3.tgz', '^1.2.3'],
    ['another package manager', undefined, '^1.2.3'],
    ['a record of another form', 7, '^1.2.3'],
    ['a packed file', 'file:../troupe-1.2.3.tgz', `file:${join(cwd, 'troupe-1.2.3.tgz')}`],
    ['an address', 'https://example.com/troupe.tgz', 'https://example.com/troupe.tgz'],
    ['git', 'git+ssh://git@github.com/a/b.git#1', 'git+ssh://git@github.com/a/b.git#1'],
  ] as const)
    assert.is(installedFrom(lock(resolved), '1.2.3').replaceAll('\\', '/'), expected.replaceAll('\\', '/'), what);
  assert.is(installedFrom('/home/me/clone', '1.2.3'), 'file:/home/me/clone');
  const { out } = await troupe(['init'], cwd);
  assert.match(out, `package.json installs troupe from ${ROOT.replace(/.$/, '')}`);
  assert.is(Object(config(join(cwd, 'package.json'))).dependencies.troupe, `file:${ROOT.replace(/.$/, '')}`);
});

test.full('the project of troupe init passes its test and its type check', async () => {
  const cwd = folder();
  await troupe(['init', 'my server'], cwd);
  const project = join(cwd, 'my server');
  // The packages of this clone stand for `npm install`.
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
  symlinkSync(ROOT, join(project, 'node_modules/troupe'), 'dir');
  for (const name of ['zod', 'tsx', 'typescript', '@types/node'])
    symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name), 'dir');
  const tested = await run(['--import', 'tsx', '--test', 'server.test.ts'], project);
  assert.is(tested.code, 0, tested.out);
  assert.match(tested.out, /pass 1/);
  const checked = await run([join(ROOT, 'node_modules/typescript/bin/tsc'), '--noEmit'], project);
  assert.is(checked.code, 0, checked.out);
});

test('troupe init changes no file that exists', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'server.ts'), 'mine');
  const { code, err } = await troupe(['init'], cwd);
  assert.is(code, 2);
  assert.match(err, 'expected a directory without server.ts');
  assert.equal(readdirSync(cwd), ['server.ts']);
  assert.is(readFileSync(join(cwd, 'server.ts'), 'utf8'), 'mine');
});

test('an entry is added beside the others, and removed again; each change keeps a backup', async () => {
  const cwd = folder();
  const file = join(cwd, '.cursor/mcp.json');
  mkdirSync(join(cwd, '.cursor'));
  const before = '{ "mcpServers": { "other": { "command": "x" } }, "theme": "dark" }';
  writeFileSync(file, before);
  writeFileSync(join(cwd, 'server.ts'), '');
  writeFileSync(join(cwd, 'package.json'), '{ "name": "@me/notes" }');
  const installed = await troupe(['install', 'server.ts', '--client', 'cursor', '--yes', '--', '--fast'], cwd);
  assert.equal([installed.code, installed.err], [0, '']);
  assert.equal(config(file), {
    mcpServers: {
      other: { command: 'x' },
      notes: { command: 'node', args: [MAIN, 'run', join(cwd, 'server.ts'), '--', '--fast'] },
    },
    theme: 'dark',
  });
  assert.is(readFileSync(`${file}.troupe-backup`, 'utf8'), before);
  const removed = await troupe(['uninstall', 'server.ts', '--yes'], cwd);
  assert.is(removed.code, 0);
  assert.equal(config(file), { mcpServers: { other: { command: 'x' } }, theme: 'dark' });
  assert.ok(existsSync(`${file}.troupe-backup-1`));
});

test('VS Code reads the transport of an entry, in a file of the directory', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  await troupe(['install', 'tools.ts', '--client', 'vscode', '--yes'], cwd);
  assert.equal(config(join(cwd, '.vscode/mcp.json')), {
    servers: { tools: { type: 'stdio', command: 'node', args: [MAIN, 'run', join(cwd, 'tools.ts')] } },
  });
});

test('--print prints the entry, and changes nothing', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  const { code, out } = await troupe(
    ['install', 'tools.ts', '--print', '--client', 'claude-desktop', '--name', 'kit'],
    cwd,
  );
  assert.is(code, 0);
  assert.equal(Object.keys(Object(JSON.parse(out)).mcpServers), ['kit']);
  assert.equal(readdirSync(cwd), ['tools.ts']);
});

test('a name that a person cannot read, from the package too, is no name of an entry', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  for (const name of ['', ' ', 'a\x1b[2J', 'a\u202eb', 'a\nb']) {
    const { code, err } = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes', '--name', name], cwd);
    assert.is(code, 2, err);
    assert.match(err, '--name: expected a name without invisible characters');
  }
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'kit\x1b[2J' }));
  const named = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes'], cwd);
  assert.match(named.err, '"kit·[2J"');
  assert.equal(readdirSync(cwd), ['package.json', 'tools.ts']);
});

test('without a terminal nothing is changed unless --yes allows it', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  const { code, err } = await troupe(['install', 'tools.ts', '--client', 'cursor'], cwd);
  assert.is(code, 2);
  assert.match(err, 'pass --yes, or --print');
  assert.equal(readdirSync(cwd), ['tools.ts']);
});

test('a file with comments keeps them, and a file that is not JSON is left alone, in words', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  mkdirSync(join(cwd, '.cursor'));
  writeFileSync(join(cwd, '.cursor/mcp.json'), '{ // mine\n "mcpServers": {} }');
  const { code, err } = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes'], cwd);
  assert.equal([code, err], [0, '']);
  assert.match(readFileSync(join(cwd, '.cursor/mcp.json'), 'utf8'), /mine[\s\S]*tools\.ts/);
  writeFileSync(join(cwd, '.cursor/mcp.json'), '{ // mine\n "mcpServers": }');
  const wrong = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes'], cwd);
  assert.is(wrong.code, 1);
  assert.match(wrong.err, 'mcp.json:2:16: expected a value');
  assert.match(readFileSync(join(cwd, '.cursor/mcp.json'), 'utf8'), '"mcpServers": }');
});

test('a folder or a pipe in the place of a configuration is left alone, in words', async () => {
  for (const make of [mkdirSync, ...(process.platform === 'win32' ? [] : [pipe])]) {
    const cwd = folder();
    writeFileSync(join(cwd, 'tools.ts'), '');
    mkdirSync(join(cwd, '.cursor'));
    make(join(cwd, '.cursor/mcp.json'));
    const { code, err } = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes'], cwd);
    assert.is(code, 1);
    assert.match(err, /mcp\.json: expected a file, got a folder, a pipe or a device/);
  }
});

function pipe(path: string): void {
  execFileSync('mkfifo', [path]);
}

test('a misspelled client gets a suggestion', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  const { code, err } = await troupe(['install', 'tools.ts', '--client', 'curser'], cwd);
  assert.is(code, 2);
  assert.match(err, 'did you mean cursor?');
});

test.after(() => {
  for (const made of folders) rmSync(made, { recursive: true, force: true });
});
