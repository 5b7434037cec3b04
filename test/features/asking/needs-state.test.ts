/** Which handlers cannot do without `ctx.state`: nobody is asked for what would then be lost. */
import { type Context, createServer } from 'troupe';
import { connect } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { needsState } from '../../../src/features/asking/needs-state.ts';
import { suite } from '../../harness/door.ts';

const test = suite('handlers that need state');

const elsewhere = { state: new Map<string, number>() };
const rows: readonly (readonly [string, (args: never, ctx: Context) => unknown, boolean])[] = [
  [
    'calls ctx.state',
    async (_, ctx) => {
      await ctx.state.set('k', 1);
    },
    true,
  ],
  [
    'names its context otherwise',
    async function named(_, $c) {
      return $c.state.get('k');
    },
    true,
  ],
  ['destructures its arguments', async ({ a }: { a: number }, ctx) => ctx.state.update('k', () => a), true],
  ['destructures its context', async (_, { state }) => state.list(), true],
  ['reads the scope', async (_, ctx) => (ctx.state.scope ? ctx.state.get('k') : undefined), false],
  [
    'catches errors',
    async (_, ctx) => {
      try {
        return await ctx.state.get('k');
      } catch {
        return 0;
      }
    },
    false,
  ],
  ['catches a rejection', async (_, ctx) => ctx.state.get('k').catch(() => 0), false],
  ['uses another state', () => elsewhere.state.get('k'), false],
  ['has another state beside its context', (_, ctx) => `${elsewhere.state.get('k')} ${ctx.principal}`, false],
  ['only asks', async (_, ctx) => (await ctx.elicit({ message: 'm', schema: {} as never })).status, false],
];

for (const [what, handler, expected] of rows)
  test(`a handler that ${what} ${expected ? 'needs' : 'does not need'} state`, () =>
    assert.is(needsState({ handler }), expected));

test('an anonymous caller without a session is asked nothing by a tool that needs state, and the error says what to do', async () => {
  const server = createServer({ name: 'x', version: '1.0.0', log: () => {} });
  server.tool('order', async (_, ctx) => {
    const answer = await ctx.elicit({
      message: 'Which one?',
      schema: { type: 'object', properties: { one: { type: 'string' } } },
    });
    await ctx.state.set('one', answer);
    return 'ordered';
  });
  let asked = 0;
  const client = await connect(server, {
    elicit: () => {
      asked += 1;
      return { action: 'decline' };
    },
  } as never);
  const result = await client.call('order').catch((error: unknown) => String(error));
  const text = JSON.stringify(result);
  assert.is(asked, 0);
  assert.match(text, 'http: { authenticate }');
  assert.match(text, 'ctx.state.scope is undefined');
  await server.close();
});
