/** `troupe init`, `troupe install` and `troupe uninstall`, in empty folders with a home of their own. */
import { execFile, execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { installedFrom } from '../../src/cli/setup/installed-from.ts';
import { nodeCommand } from '../../src/cli/setup/node-command.ts';
import { withTomlTable } from '../../src/cli/setup/toml-edit.ts';
import { compiled } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { TROUPE } from './cli.ts';
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
function run(
  args: readonly string[],
  cwd: string,
  program = process.execPath,
): Promise<{ readonly code: number; readonly out: string }> {
  return new Promise((resolve) => {
    const child = execFile(program, [...args], { cwd }, (error, out, err) =>
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

test('init --container adds a Dockerfile to a project, once, and to nothing else', async () => {
  const cwd = folder();
  const none = await troupe(['init', '--container', 'shop'], cwd);
  assert.is(none.code, 2);
  assert.match(none.err, 'expected a project with package.json and server.ts');
  assert.is((await troupe(['init', 'shop'], cwd)).code, 0);
  const added = await troupe(['init', '--container', 'shop'], cwd);
  assert.is(added.code, 0, added.err);
  assert.match(added.out, 'Created Dockerfile, .dockerignore.');
  const text = readFileSync(join(cwd, 'shop/Dockerfile'), 'utf8');
  // The recipe that the tests of deployment run, without its port for metrics.
  const recipe = readFileSync(join(ROOT, 'examples/deploy/Dockerfile'), 'utf8')
    .replace(' 9464', '')
    .replace('"--metrics", "0.0.0.0:9464", ', '');
  assert.is(text, recipe);
  assert.match(readFileSync(join(cwd, 'shop/.dockerignore'), 'utf8'), /^\.env\*$/m);
  const again = await troupe(['init', '--container', 'shop'], cwd);
  assert.is(again.code, 2);
  assert.match(again.err, 'has Dockerfile, .dockerignore already');
});

test('troupe init creates a project with its commands', async () => {
  const cwd = folder();
  const { code, out, err } = await troupe(['init', 'my server'], cwd);
  assert.equal([code, err], [0, '']);
  assert.match(out, 'Created package.json, ');
  assert.match(out, 'npx troupe dev server.ts');
  assert.match(readFileSync(join(cwd, 'my server/package.json'), 'utf8'), '"name": "my-server"');
  // The variables of a project are often secrets.
  assert.match(readFileSync(join(cwd, 'my server/.gitignore'), 'utf8'), /^\.env$/m);
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
  writeFileSync(join(project, 'more.test.ts'), "import { test } from 'node:test';\ntest('more', () => {});\n");
  const tested = await run(['test'], project, 'npm');
  assert.is(tested.code, 0, tested.out);
  assert.match(tested.out, /pass 2/);
  const checked = await run([join(ROOT, 'node_modules/typescript/bin/tsc'), '--checkers', '1', '--noEmit'], project);
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
  const installed = await troupe(
    ['install', 'server.ts', '--client', 'cursor', '--yes', '--name', 'notes', '--', '--fast'],
    cwd,
  );
  assert.equal([installed.code, installed.err], [0, '']);
  assert.equal(config(file), {
    mcpServers: {
      other: { command: 'x' },
      notes: { command: nodeCommand(), args: [MAIN, 'run', join(cwd, 'server.ts'), '--', '--fast'] },
    },
    theme: 'dark',
  });
  assert.is(readFileSync(`${file}.troupe-backup`, 'utf8'), before);
  const removed = await troupe(['uninstall', 'server.ts', '--yes', '--name', 'notes'], cwd);
  assert.is(removed.code, 0);
  assert.equal(config(file), { mcpServers: { other: { command: 'x' } }, theme: 'dark' });
  assert.ok(existsSync(`${file}.troupe-backup-1`));
});

test('VS Code reads the transport of an entry, in a file of the directory', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  await troupe(['install', 'tools.ts', '--client', 'vscode', '--yes', '--name', 'tools'], cwd);
  assert.equal(config(join(cwd, '.vscode/mcp.json')), {
    servers: { tools: { type: 'stdio', command: nodeCommand(), args: [MAIN, 'run', join(cwd, 'tools.ts')] } },
  });
});

test('--print shows the entry of Goose as YAML that it reads', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  const { out } = await troupe(
    ['install', 'tools.ts', '--print', '--client', 'goose', '--name', 'kit', '--env', 'A=b: "c"'],
    cwd,
  );
  const { args, ...rest } = parse(out).extensions.kit;
  assert.equal(rest, {
    name: 'kit',
    type: 'stdio',
    enabled: true,
    cmd: nodeCommand(),
    envs: { A: 'b: "c"' },
    timeout: 300,
  });
  assert.equal(args, [MAIN, 'run', join(cwd, 'tools.ts')]);
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
  writeFileSync(join(cwd, 'tools.mjs'), '');
  for (const name of ['', ' ', 'a\x1b[2J', 'a\u202eb', 'a\nb']) {
    const { code, err } = await troupe(['install', 'tools.mjs', '--client', 'cursor', '--yes', '--name', name], cwd);
    assert.is(code, 2, err);
    assert.match(err, '--name: expected a name without invisible characters');
  }
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'kit\x1b[2J' }));
  const named = await troupe(['install', 'tools.mjs', '--client', 'cursor', '--yes'], cwd);
  assert.match(named.err, '"kit·[2J"');
  assert.equal(readdirSync(cwd), ['package.json', 'tools.mjs']);
});

test('without a terminal nothing is changed unless --yes allows it', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  const { code, err } = await troupe(['install', 'tools.ts', '--client', 'cursor', '--name', 'tools'], cwd);
  assert.is(code, 2);
  assert.match(err, 'pass --yes, or --print');
  assert.equal(readdirSync(cwd), ['tools.ts']);
});

test('a file with comments keeps them, and a file that is not JSON is left alone, in words', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  mkdirSync(join(cwd, '.cursor'));
  writeFileSync(join(cwd, '.cursor/mcp.json'), '{ // mine\n "mcpServers": {} }');
  const { code, err } = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes', '--name', 'tools'], cwd);
  assert.equal([code, err], [0, '']);
  assert.match(readFileSync(join(cwd, '.cursor/mcp.json'), 'utf8'), /mine[\s\S]*tools\.ts/);
  writeFileSync(join(cwd, '.cursor/mcp.json'), '{ // mine\n "mcpServers": }');
  const wrong = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes', '--name', 'tools'], cwd);
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
    const { code, err } = await troupe(['install', 'tools.ts', '--client', 'cursor', '--yes', '--name', 'tools'], cwd);
    assert.is(code, 1);
    assert.match(err, /mcp\.json: expected a file, got a folder, a pipe or a device/);
  }
});

function pipe(path: string): void {
  execFileSync('mkfifo', [path]);
}

for (const [client, file, before, added] of [
  [
    'codex',
    '.codex/config.toml',
    '# mine\nmodel = "a" # why\n\n[mcp_servers.other]\ncommand = "x"\n\n# last\n[tui]\nnotes = """\n[mcp_servers.tools]\n"""\n',
    (text: string) =>
      assert.match(
        text,
        /\n\[mcp_servers\.tools\]\ncommand = "(?:\S*\/)?node"\nargs = \[".*", "run", ".*tools\.ts"\]\n\n\[mcp_servers\.tools\.env\]\nKEY = "a=\\"b\\""\n$/,
      ),
  ],
  [
    'goose',
    '.config/goose/config.yaml',
    '# mine\nGOOSE_MODE: auto # why\nextensions:\n  other:\n    enabled: true\n',
    (text: string) =>
      assert.equal(parse(text).extensions.tools, {
        ...{ name: 'tools', type: 'stdio', enabled: true, cmd: nodeCommand() },
        ...{ args: [MAIN, 'run', /- (\/.*tools\.ts)/.exec(text)?.[1]], envs: { KEY: 'a="b"' }, timeout: 300 },
      }),
  ],
  [
    'gemini',
    '.gemini/settings.json',
    '{\n  // mine\n  "mcpServers": {\n    "other": {} // why\n  }\n}\n',
    (text: string) => assert.match(text, /"tools": \{\n {6}"command": "(?:\S*\/)?node",/),
  ],
  [
    'zed',
    '.config/zed/settings.json',
    '// mine\n{\n  "theme": "One", // why\n  "context_servers": { "other": {} },\n}\n',
    (text: string) => assert.match(text, /"tools": \{\s+"command": "(?:\S*\/)?node",/),
  ],
  [
    'opencode',
    '.config/opencode/opencode.jsonc',
    '{\n  // mine\n  "mcp": {\n    "other": {} // why\n  }\n}\n',
    (text: string) =>
      assert.match(
        text,
        /"tools": \{\s+"type": "local",\s+"command": \[\s+"(?:\S*\/)?node",[^\]]*\],\s+"enabled": true,\s+"environment": \{\s+"KEY": "a=\\"b\\""/,
      ),
  ],
] as const)
  test(`${client} gets its entry in ${file}, comments and other entries stay, and uninstall restores the file`, async () => {
    const cwd = folder();
    writeFileSync(join(cwd, 'tools.ts'), '');
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), before);
    const change = (command: string, ...more: string[]): Promise<Ran> =>
      troupe([command, 'tools.ts', '--client', client, '--name', 'tools', '--yes', ...more], cwd);
    const installed = await change('install', '--env', 'KEY=a="b"');
    assert.equal([installed.code, installed.err], [0, '']);
    const text = readFileSync(join(cwd, file), 'utf8');
    for (const kept of ['mine', 'why', 'other']) assert.match(text, kept);
    added(text);
    const replaced = await change('install', '--env', 'KEY=a="b"');
    assert.match(replaced.out, 'replaced "tools"');
    assert.is(readFileSync(join(cwd, file), 'utf8'), text);
    assert.is((await change('uninstall')).code, 0);
    const after = readFileSync(join(cwd, file), 'utf8');
    assert.is(after.replace(/\s+/g, ''), before.replace(/\s+/g, ''));
    assert.match((await change('uninstall')).out, 'No client has an entry "tools"');
  });

for (const [what, text, message] of [
  ['an inline table', 'mcp_servers = {}', 'expected the table [mcp_servers.tools], got mcp_servers = …'],
  ['an inline entry', '[mcp_servers]\ntools = { command = "x" }', 'got mcp_servers.tools = …'],
  ['a dotted key', 'mcp_servers.tools.command = "x"', 'got mcp_servers.tools.command = …'],
  ['a text that does not end', 'a = """\n', 'it ends within a string or an array'],
  ['a string that does not end', 'a = "b\n', 'a string does not end: a = "b'],
] as const)
  test(`the file of Codex with ${what} is left alone, in words`, async () => {
    const cwd = folder();
    writeFileSync(join(cwd, 'tools.ts'), '');
    mkdirSync(join(cwd, '.codex'));
    writeFileSync(join(cwd, '.codex/config.toml'), text);
    const { code, err } = await troupe(['install', 'tools.ts', '--client', 'codex', '--name', 'tools', '--yes'], cwd);
    assert.is(code, 1);
    assert.match(err, message);
    assert.match(err, 'Correct the file, or add the entry by hand (--print)');
    assert.is(readFileSync(join(cwd, '.codex/config.toml'), 'utf8'), text);
  });

for (const [what, text, expected] of [
  ['another order', '[mcp_servers.tools.env]\nA = "1"\n\n[b]\n\n[mcp_servers."tools"]\ncommand = "y"\n', '[b]'],
  [
    'arrays of several lines',
    'a = [\n  "[mcp_servers.tools]", # [\n]\n[mcp_servers.tools]\nargs = [\n "x",\n]\n# of c\n[c]\n',
    'a = [\n  "[mcp_servers.tools]", # [\n]\n# of c\n[c]',
  ],
  ['lists of tables', '[mcp_servers.tools]\ncommand = "y"\n[[d]]\ne = 1\n', '[[d]]\ne = 1'],
] as const)
  test(`a table of TOML is removed from a file with ${what}`, () => {
    const { text: left, present } = withTomlTable(text, 'mcp_servers', 'tools', undefined);
    assert.is(present, true);
    assert.is(left.trim(), expected);
  });

test('a damaged file of one client does not keep the others from the server', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  for (const path of ['.cursor', '.gemini']) mkdirSync(join(cwd, path));
  writeFileSync(join(cwd, '.cursor/mcp.json'), '{ "mcpServers": ');
  writeFileSync(join(cwd, '.gemini/settings.json'), '');
  const { code, out, err } = await troupe(['install', 'tools.ts', '--name', 'tools', '--yes'], cwd);
  assert.is(code, 1);
  assert.match(err, /mcp\.json:1:\d+: /);
  assert.match(out, 'settings.json: added "tools"');
  assert.is(readFileSync(join(cwd, '.cursor/mcp.json'), 'utf8'), '{ "mcpServers": ');
});

test('the variables of --env-file and --env are in the entry, --env wins, and a new file is for its owner only', async () => {
  const cwd = folder();
  writeFileSync(join(cwd, 'tools.ts'), '');
  writeFileSync(join(cwd, 'vars'), 'A=1\nB="two words"\n');
  const args = ['install', 'tools.ts', '--client', 'claude-code', '--name', 'tools', '--yes'];
  const { code, out } = await troupe([...args, '--env-file', 'vars', '--env', 'A=x=y', '--dev'], cwd);
  assert.is(code, 0);
  assert.match(out, 'has the values of A, B now: do not commit secrets');
  const env = { A: 'x=y', B: 'two words' };
  assert.equal(config(join(cwd, '.mcp.json')), {
    mcpServers: { tools: { command: nodeCommand(), args: [MAIN, 'dev', join(cwd, 'tools.ts')], env } },
  });
  if (process.platform !== 'win32') assert.is(statSync(join(cwd, '.mcp.json')).mode & 0o777, 0o600);
  for (const [more, message] of [
    [['--env', 'secret'], /--env: expected KEY=VALUE, such as API_KEY=abc, got no =/],
    [['--env', '1=secret'], /got the KEY "1"/],
    [['--env-file', 'gone'], /--env-file: expected a readable file .*gone: ENOENT/],
  ] as const) {
    const refused = await troupe([...args, ...more], cwd);
    assert.is(refused.code, 2);
    assert.match(refused.err, message);
    assert.not.match(refused.err, 'secret');
  }
});

test('the name of an entry is that of the server, which is started with its variables; a server that does not start has another', async () => {
  const cwd = folder();
  const text = "export default createServer({ name: '@me/' + process.env.NAME, version: '1.0.0' });";
  writeFileSync(join(cwd, 'tools.mjs'), `import { createServer } from '${TROUPE}';\n${text}`);
  const named = await troupe(['install', 'tools.mjs', '--client', 'cursor', '--yes', '--env', 'NAME=my shop'], cwd);
  assert.equal([named.code, named.err], [0, '']);
  assert.match(named.out, 'added "my-shop"');
  writeFileSync(join(cwd, 'tools.mjs'), "throw new Error('no key');");
  const other = await troupe(['install', 'tools.mjs', '--client', 'cursor', '--yes'], cwd);
  assert.is(other.code, 0);
  assert.match(other.out, 'added "tools"');
  assert.match(other.err, /the server does not start yet, so its name is unknown \(--name NAME\).*no key/s);
});

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

for (const [title, place, expected] of [
  ['a Node that every program finds', { path: '/home/ada/bin:/usr/bin' }, 'node'],
  [
    'a Node of nvm, which only a shell finds',
    { path: '/home/ada/.nvm/versions/node/v22.1.0/bin:/usr/bin' },
    '/real/node',
  ],
  ['a Node that is not on the PATH', { path: '' }, '/real/node'],
  ['Windows, where each program has the PATH of all', { platform: 'win32', path: 'C:\\nvm' }, 'node'],
] as const)
  test(`the command of an entry for ${title}`, () => {
    const installed = ['/usr/bin/node', '/home/ada/.nvm/versions/node/v22.1.0/bin/node'];
    const isProgram = (file: string): boolean => installed.includes(file);
    assert.is(nodeCommand({ platform: 'linux', execPath: '/real/node', isProgram, ...place }), expected);
  });
