/** Mistakes of handlers that a result does not show: each is said once for each tool, and nothing is said of handlers without one. */
import * as assert from 'uvu/assert';
import { type Context, image } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';

const test = suite('silent mistakes');

const nothing = (): void => {};
const UNDEFINED = /warning: tool "t" returned undefined, so the model gets an empty result\. Is a return missing\?/;
const UNFINISHED =
  /warning: tool "t" returned before its ctx\.state\.(set\("k"\)|get\("k"\)|update\("k"\)) had ended: await it/;
const TEXT = /warning: tool "t" returned a text that contains \[object Promise\]: await the promise/;

const rows: readonly (readonly [string, (args: unknown, ctx: Context) => unknown, RegExp | undefined])[] = [
  [
    'a forgotten return',
    () => {
      nothing();
    },
    UNDEFINED,
  ],
  [
    'a forgotten return after an await',
    async () => {
      await null;
    },
    UNDEFINED,
  ],
  ['an expression without a value', () => nothing(), UNDEFINED],
  [
    'return without a value',
    (args) => {
      if (args) return;
      return 'x';
    },
    undefined,
  ],
  ['return undefined', () => undefined, undefined],
  ['a body without anything', () => {}, undefined],
  ['an empty text', () => '', undefined],
  ['null', () => null, undefined],
  ['a promise in a text', (_, ctx) => `it is ${ctx.state.get('k')}`, TEXT],
  [
    'a set that is not awaited',
    (_, ctx) => {
      void ctx.state.set('k', 1);
      return 'ok';
    },
    UNFINISHED,
  ],
  [
    'an update that is not awaited',
    (_, ctx) => {
      void ctx.state.update('k', () => 1);
      return { ok: true };
    },
    UNFINISHED,
  ],
  [
    'a get that is not awaited',
    (_, ctx) => {
      void ctx.state.get('k');
      return image('aGk=', 'image/png');
    },
    UNFINISHED,
  ],
  [
    'operations that are awaited',
    async (_, ctx) => {
      await ctx.state.set('k', 1);
      return String(await ctx.state.get('k'));
    },
    undefined,
  ],
  [
    'an operation that has ended before the result',
    async (_, ctx) => {
      void ctx.state.set('k', 1);
      // Operations end in their order.
      await ctx.state.get('k');
      return 'ok';
    },
    undefined,
  ],
];

for (const [what, handler, expected] of rows)
  test(`${what} is ${expected ? 'said once' : 'no mistake'}`, async () => {
    const { server, logged } = loggedServer({ name: 'x' });
    server.tool('t', {}, handler as never);
    const client = await connect(server, { auth: { principal: 'ada' } });
    for (const _ of [1, 2]) await client.call('t');
    await server.close();
    const patterns = expected ? [expected] : [UNDEFINED, UNFINISHED, TEXT];
    const said = logged.filter((line) => patterns.some((pattern) => pattern.test(line)));
    assert.is(said.length, expected ? 1 : 0, logged.join('\n'));
  });
