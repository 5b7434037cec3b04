/** Every file that Troupe writes: whole or not at all, with its mode, and never through a planted link. */
import {
  chmodSync,
  existsSync,
  lstatSync,
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
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { ResultText } from '../../src/cli/call/result-text.ts';
import { applyChange, CLIENTS, prepareChange } from '../../src/cli/setup/client-config.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { replaceFile } from '../../src/core/kernel/files/replace-file.ts';
import { CrashMarker } from '../../src/core/store/crash-marker.ts';
import { mustBePrivate } from '../../src/features/sqlite/database-file.ts';
import { sqlite } from '../../src/features/sqlite/sqlite.ts';
import { FilePins } from '../../src/gateway/mounts/pin-record.ts';
import { suite } from '../harness/door.ts';
import { rejection } from '../harness/results.ts';

const test =
  process.platform === 'win32' ? suite('written files', 'Windows has no such modes and links') : suite('written files');

let folder = '';
test.beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'troupe-files-'));
});
test.afterEach(() => rmSync(folder, { recursive: true, force: true }));

const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);
const client = CLIENTS.find(({ id }) => id === 'claude-code');

/** Adds an entry to the configuration of a client at this path, as `troupe install` does. */
async function install(path: string): Promise<void> {
  const change = await prepared(path, 'shop');
  if (change) applyChange(change);
}

function prepared(path: string, name: string) {
  if (!client) throw new Error('expected claude-code among the clients');
  return prepareChange(
    { ...client, file: () => path },
    name,
    { command: 'npx', args: ['troupe'] },
    { cwd: '.', env: {} },
  );
}

test('of two commands that change a configuration at once, each entry is written, or its command fails in words', async () => {
  for (const before of [undefined, '{"mcpServers":{}}']) {
    const path = join(folder, `mcp-${before === undefined}.json`);
    if (before !== undefined) writeFileSync(path, before);
    const [one, two] = await Promise.all(['one', 'two'].map((name) => prepared(path, name)));
    if (!one || !two) throw new Error('expected two changes');
    applyChange(one);
    assert.throws(() => applyChange(two), /has changed since it was read, and was left alone. Run the command again/);
    assert.equal(Object.keys(JSON.parse(readFileSync(path, 'utf8')).mcpServers), ['one']);
  }
});

/** The writers of files that belong to a person: a link leads to the file that is meant. */
const OF_PEOPLE: Readonly<Record<string, (path: string) => void | Promise<void>>> = {
  'troupe install': install,
  'the lock file of a gateway': (path) => new FilePins(path, 'm').write({ tools: [], prompts: [], events: [] }),
};

for (const [what, write] of Object.entries(OF_PEOPLE))
  test(`S-82 ${what} keeps a link, the mode of its file, and no draft`, async () => {
    const repository = join(folder, 'dotfiles');
    mkdirSync(repository);
    const file = join(repository, 'settings.json');
    await write(file);
    chmodSync(file, 0o600);
    const link = join(folder, 'settings.json');
    symlinkSync('dotfiles/settings.json', link);
    const { ino } = statSync(file);
    await write(link);
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.is.not(statSync(file).ino, ino, 'the linked file was replaced');
    assert.is(modeOf(file), '600');
    assert.equal(readdirSync(repository), ['settings.json']);
  });

test('an entry is installed in a file with comments, which stay, and a file that is not JSON is named with the place', async () => {
  const file = join(folder, 'mcp.json');
  writeFileSync(file, '{\n  // mine\n  "mcpServers": { "a": { "command": "a" }, },\n}\n');
  await install(file);
  assert.match(readFileSync(file, 'utf8'), /mine[\s\S]*"a"[\s\S]*"shop"/);
  writeFileSync(file, '{\n  "mcpServers": {{}\n}\n');
  assert.match((await rejection(install(file))).message, /mcp\.json:2:18: expected the name of a member.*--print/);
});

test('S-82 a backup has the mode of its file', async () => {
  const file = join(folder, 'mcp.json');
  writeFileSync(file, '{"mcpServers":{}}');
  chmodSync(file, 0o600);
  await install(file);
  for (const name of readdirSync(folder)) assert.is(modeOf(join(folder, name)), '600', name);
});

/** The writers of files of Troupe: a link in their place is of somebody else. */
const OWN: Readonly<Record<string, (path: string) => void>> = {
  'a saved image of troupe call --out': (path) =>
    void new ResultText({ out: join(path, '..'), terminal: false }).ofCall({
      content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }],
    }),
  'replaceFile without an option': (path) => replaceFile(path, 'text'),
};

for (const [what, write] of Object.entries(OWN))
  test(`S-82 ${what} takes the place of a link, and does not change the file that the link names`, () => {
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'precious');
    const path = join(folder, '1.png');
    symlinkSync(victim, path);
    write(path);
    assert.is(readFileSync(victim, 'utf8'), 'precious');
    assert.not(lstatSync(path).isSymbolicLink());
  });

test('S-82 the marker beside a store is not written through a link', () => {
  const victim = join(folder, 'victim');
  writeFileSync(victim, 'precious');
  symlinkSync(victim, join(folder, 'troupe.db-notes'));
  const marker = new CrashMarker(join(folder, 'troupe.db-notes'));
  marker.open();
  marker.write('{"an":"event"}');
  marker.close();
  assert.is(readFileSync(victim, 'utf8'), 'precious');
});

for (const [mode, accepted] of [
  [0o700, true],
  [0o755, true],
  [0o775, true],
  [0o1777, true],
  [0o777, false],
  [0o757, false],
] as const)
  test(`S-82 a store in a directory of mode ${mode.toString(8)} is ${accepted ? 'opened' : 'rejected, with what to do'}`, async () => {
    const directory = join(folder, 'data');
    mkdirSync(directory);
    chmodSync(directory, mode);
    const store = sqlite(join(directory, 'troupe.db'));
    const opened = await store.open({ clock: systemClock, log: () => {} }).then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (accepted) {
      assert.is(opened, undefined);
      await store.close();
    } else assert.match(opened ?? '', `chmod o-w ${directory}`);
  });

test('S-82 a store of another user in a directory in which every user may create files is rejected', async () => {
  const file = join(folder, 'troupe.db');
  const user = process.geteuid?.() ?? 0;
  for (const name of ['troupe.db', 'troupe.db-wal', 'troupe.db-mark']) {
    writeFileSync(join(folder, name), '');
    chmodSync(folder, 0o1777);
    mustBePrivate(file, file, user);
    assert.throws(
      () => mustBePrivate(file, file, user + 1),
      (error: Error) => error.message.startsWith(`${join(folder, name)} belongs to the user ${user}`),
    );
    // Nobody else could have created it.
    chmodSync(folder, 0o755);
    mustBePrivate(file, file, user + 1);
    rmSync(join(folder, name));
  }
});

test('S-82 a write that fails leaves the file as it was, and no draft', () => {
  const directory = join(folder, 'a directory');
  mkdirSync(directory);
  assert.throws(() => replaceFile(directory, 'text'));
  assert.equal(readdirSync(folder), ['a directory']);
});

test('S-82 a device is written to, and a link that leads nowhere becomes a file where it leads', () => {
  replaceFile('/dev/null', 'text');
  assert.ok(lstatSync('/dev/null').isCharacterDevice());
  symlinkSync('not-yet.json', join(folder, 'link'));
  replaceFile(join(folder, 'link'), 'text', { link: 'follow' });
  assert.is(readFileSync(join(folder, 'not-yet.json'), 'utf8'), 'text');
  assert.ok(existsSync(join(folder, 'link')));
});
