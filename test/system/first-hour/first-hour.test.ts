/**
 * The first hour: the tutorial, block by block, in an empty folder. At full scale npm installs the packed Troupe, and every other
 * command follows. Otherwise the packages of this clone stand for the installation, and the tutorial ends after its first call.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { freePort } from '../../harness/free-port.ts';
import { SCALE } from '../../harness/scale.ts';
import { COMMANDS } from './commands.ts';
import { FirstHour } from './first-hour.ts';
import { Examples, type Step, stepsOf } from './steps.ts';

const test = suite('the first hour');
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PAGE = join(ROOT, 'docs/tutorial.md');
const PROJECT = 'tables';

const packed = SCALE !== 'quick';
const tutorial = stepsOf(readFileSync(PAGE, 'utf8'));
/** `npm test` leaves out what follows the first call: each block starts a process or two of commands that have tests of their own. */
const isLate = (step: Step): boolean => step.kind === 'file';
const steps = packed ? [...tutorial, ...COMMANDS] : tutorial.slice(0, tutorial.findIndex(isLate));
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

test.full('the server of the README gives the result that the README shows', async () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const found = /^```ts\n([\s\S]*?)^```\n+```sh\n(.*\n)```\n+```text\n(.*)\n```/m.exec(readme);
  const [, program = '', call = '', result = ''] = found ?? [];
  // The project has another server.ts by now.
  writeFileSync(join(hour.folder, PROJECT, 'readme.ts'), program);
  const block = withoutNpm(call).replace('server.ts', 'readme.ts');
  assert.match(block, 'troupe call readme.ts');
  await hour.shell.run(block, (output) => new Examples().match(result, output));
});

test('the tutorial has files, commands, and outputs to compare', () => {
  assert.ok(tutorial.filter(({ kind }) => kind === 'file').length >= 5);
  assert.ok(tutorial.filter((step) => step.kind === 'command' && step.output !== '').length >= 10);
});

test('every command is used', () => {
  const used = new Set([...tutorial, ...COMMANDS].flatMap(({ text }) => text.match(/(?<=\btroupe )[a-z]+/g) ?? []));
  const commands = readdirSync(join(ROOT, 'src/cli/commands')).map((file) => file.replace('.ts', ''));
  assert.equal(
    commands.filter((command) => !used.has(command)),
    [],
  );
});

test('a block with another output fails', async () => {
  const failing = hour.shell.run('echo one', (output) => new Examples().match('two', output));
  const reason = await failing.then(
    () => 'it passed',
    (error: Error) => error.message,
  );
  assert.match(reason, 'another output was expected of\necho one\none');
});

/** Runs the test file that `npm test` of the project runs, in one process instead of three. */
const TEST = `eval "$(sed -n 's/.*"test": "\\(.*\\) --test \\(.*\\)".*/\\1 \\2/p' package.json)"`;

/** The block for a linked installation: it installs nothing, checks no types, and `npx` only finds the command. */
function withoutNpm(block: string): string {
  return block
    .replace(/^npm install .*\n|^npm install\n|^npm run check\n/gm, '')
    .replace(/^npm test$/gm, TEST)
    .replace(/^npx --yes troupe/gm, `${PROJECT}/node_modules/.bin/troupe`)
    .replace(/^npx troupe/gm, 'node_modules/.bin/troupe');
}
