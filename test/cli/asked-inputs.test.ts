/** The inputs of a configuration, asked at a terminal. */
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { askInputs } from '../../src/cli/serving/asked-inputs.ts';
import type { ConfiguredInput } from '../../src/gateway/inputs.ts';
import { suite } from '../harness/door.ts';

const test = suite('asked inputs');

const INPUT: ConfiguredInput = { id: 'key', description: undefined, password: false, fallback: undefined, options: [] };

/** A terminal at which a person types these lines. */
async function asked(inputs: readonly ConfiguredInput[], typed: string) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stderr = new PassThrough();
  let shown = '';
  stderr.on('data', (text) => {
    shown += String(text);
  });
  const exits: unknown[] = [];
  stdin.end(typed);
  const answers = await askInputs(inputs, { stdin, stderr, exit: (code) => void exits.push(code) });
  await new Promise((resolve) => setImmediate(resolve));
  return { answers, shown, exits };
}

test('each input is asked by its description, and its answer is kept by its id', async () => {
  const { answers, shown } = await asked(
    [INPUT, { ...INPUT, id: 'region', description: 'The \u202eregion', fallback: 'eu' }],
    'k3y\n\n',
  );
  assert.equal(answers, { key: 'k3y', region: 'eu' });
  assert.match(shown, '  key: ');
  assert.match(shown, /The \S*region \(region\) \[eu\]: /);
  assert.not.match(shown, '\u202e');
});

test('a secret is not shown', async () => {
  const { answers, shown } = await asked([{ ...INPUT, password: true }], 's3cret\n');
  assert.equal(answers, { key: 's3cret' });
  assert.not.match(shown, 's3cret');
});

test('no arrow key brings a secret back as the answer to the next question', async () => {
  const { answers } = await asked(
    [
      { ...INPUT, password: true },
      { ...INPUT, id: 'next' },
    ],
    's3cret\n\u001b[A\n',
  );
  assert.equal(answers, { key: 's3cret', next: '' });
});

test('an option is chosen by its number or its text, and another answer is asked again', async () => {
  const region = { ...INPUT, id: 'region', options: ['eu', 'us'] };
  const { answers, shown } = await asked(
    [region, { ...region, id: 'other' }, { ...region, id: 'first' }],
    '3\n2\nus\n\n',
  );
  assert.equal(answers, { region: 'us', other: 'us', first: 'eu' });
  assert.match(shown, 'Expected a number from 1 to 2.');
});

test('the end of the input ends the questions, and an interrupt the command', async () => {
  assert.equal((await asked([INPUT, { ...INPUT, id: 'b' }], 'a\n')).answers, { key: 'a' });
  assert.equal((await asked([INPUT], '\u0003')).exits, [130]);
});
