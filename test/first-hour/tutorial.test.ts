/**
 * The tutorial, block by block, in an empty folder. At full scale npm installs the packed Troupe; otherwise the packages of this
 * clone stand for the installation.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { SCALE } from '../harness/scale.ts';
import { FirstHour, freePort } from './first-hour.ts';
import { Examples, stepsOf } from './tutorial-page.ts';

const test = suite('the tutorial');
const PAGE = fileURLToPath(new URL('../../docs/tutorial.md', import.meta.url));
const PROJECT = 'tables';

const packed = SCALE !== 'quick';
const steps = stepsOf(readFileSync(PAGE, 'utf8'));
const examples = new Examples();
let hour: FirstHour;
/** The first block that failed: the blocks after it rest on it. */
let broken: string | undefined;

test.before(async () => {
  hour = packed ? await FirstHour.packed() : FirstHour.linked(PROJECT);
  examples.set('3000', String(await freePort()));
});
test.after(() => hour.close());

for (const [index, step] of steps.entries()) {
  const title = `block ${index + 1}: ${step.kind === 'file' ? step.name : (step.text.split('\n')[0] ?? '')}`;
  test(title, async () => {
    assert.is(broken, undefined, 'an earlier block failed');
    broken = title;
    if (step.kind === 'file') writeFileSync(join(hour.folder, PROJECT, step.name), step.text);
    else {
      const block = examples.filled(packed ? step.text : withoutNpm(step.text));
      await hour.shell.run(block, (output) => examples.match(step.output, output));
    }
    broken = undefined;
  });
}

test('the tutorial has files, commands, and outputs to compare', () => {
  assert.ok(steps.filter(({ kind }) => kind === 'file').length >= 5);
  assert.ok(steps.filter((step) => step.kind === 'command' && step.output !== '').length >= 10);
});

test('a block with another output fails', async () => {
  const failing = hour.shell.run('echo one', (output) => new Examples().match('two', output));
  const reason = await failing.then(
    () => 'it passed',
    (error: Error) => error.message,
  );
  assert.match(reason, 'another output was expected of\necho one\none');
});

/** The block for a linked installation: it installs nothing, and `npx` only finds the command. */
function withoutNpm(block: string): string {
  return block
    .replace(/^npm install .*\n|^npm install\n/gm, '')
    .replace(/^npx --yes troupe/gm, `${PROJECT}/node_modules/.bin/troupe`)
    .replace(/^npx troupe/gm, 'node_modules/.bin/troupe');
}
