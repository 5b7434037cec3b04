/** The records of pins: the lock file that people review, and the store of a server. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { FilePins } from '../../../src/gateway/mounts/pin-record.ts';
import { compareWithPins, pinsOf } from '../../../src/gateway/mounts/pins.ts';
import { suite } from '../../harness/door.ts';

const test = suite('records of pins');

const ADD = { name: 'add', description: 'Adds.\u200b Sums.\u{e0041}', inputSchema: { type: 'object' } };
const PINS = pinsOf({ tools: [ADD], prompts: [{ name: 'ask' }] });

async function inDirectory(run: (file: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'pins-'));
  try {
    await run(join(directory, 'mcp.lock.json'));
    assert.equal(
      readdirSync(directory).filter((name) => name !== 'mcp.lock.json'),
      [],
      'no draft is left',
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function problem(run: () => Promise<unknown>): Promise<string> {
  try {
    await run();
  } catch (error) {
    return String(error instanceof Error && error.message);
  }
  return 'none';
}

test('a lock file has the pins of each mount, in an order that does not depend on who wrote first', () =>
  inDirectory(async (file) => {
    const [gh, files] = [new FilePins(file, 'gh'), new FilePins(file, 'files')];
    assert.is(await gh.read(), undefined);
    await Promise.all([gh.write(PINS), files.write(pinsOf({ tools: [], prompts: [] }))]);
    assert.equal(await gh.read(), PINS);
    assert.equal(compareWithPins(PINS, (await gh.read()) ?? PINS), []);
    const text = readFileSync(file, 'utf8');
    assert.ok(text.indexOf('"files"') < text.indexOf('"gh"'));
    rmSync(file);
    await files.write(pinsOf({ tools: [], prompts: [] }));
    await gh.write(PINS);
    assert.is(readFileSync(file, 'utf8'), text);
  }));

test('a lock file shows invisible characters as escapes', () =>
  inDirectory(async (file) => {
    await new FilePins(file, 'gh').write(PINS);
    const text = readFileSync(file, 'utf8');
    assert.ok(text.includes('"description": "Adds.\\u200b Sums.\\udb40\\udc41"'));
    assert.not.match(text, /[^\x20-\x7e\n]/);
  }));

for (const [title, text] of [
  ['is not JSON', '{ "version": 1, "servers": {'],
  ['has another version', '{ "version": 2, "servers": {} }'],
  ['has a server of another shape', '{ "version": 1, "servers": { "gh": { "tools": 7 } } }'],
] as const)
  test(`a lock file that ${title} is neither read nor replaced`, () =>
    inDirectory(async (file) => {
      writeFileSync(file, text);
      const pins = new FilePins(file, 'gh');
      assert.match(await problem(() => pins.read()), 'Restore the file, or remove it and approve again');
      assert.match(await problem(() => pins.write(PINS)), 'Restore the file, or remove it and approve again');
      assert.is(readFileSync(file, 'utf8'), text);
    }));

test('an entry of another shape approves nothing', () =>
  inDirectory(async (file) => {
    const lock = { version: 1, servers: { gh: { tools: [{ name: 'add' }, 7, null], prompts: [] } } };
    writeFileSync(file, JSON.stringify(lock));
    assert.equal(await new FilePins(file, 'gh').read(), { tools: [], prompts: [], events: [] });
    assert.ok(existsSync(file));
  }));
