/** The output schema of a machine's tools: it has the states of the chart, and the author's schemas of view and output. */
import * as assert from 'uvu/assert';
import { type AnyStateMachine, createActor, createMachine } from 'xstate';
import { z } from 'zod';
import { readChart } from '../../../src/core/kernel/charts/chart.ts';
import { compileOutput } from '../../../src/core/schema/compile-schema.ts';
import { stateSchema } from '../../../src/features/machines/tools/view-schema.ts';
import { createServer } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('the output schema of a machine');

const CHARTS: Readonly<Record<string, AnyStateMachine>> = {
  flat: createMachine({ initial: 'a', states: { a: { on: { go: 'b' } }, b: { type: 'final' } } }),
  nested: createMachine({
    initial: 'a',
    states: {
      a: { on: { go: 'b' } },
      b: {
        initial: 'c',
        on: { back: 'a', away: 'h' },
        states: { c: { on: { go: 'd' } }, d: { initial: 'e', states: { e: {} } }, past: { type: 'history' } },
      },
      h: { on: { go: 'b.past' } },
    },
  }),
  parallel: createMachine({
    type: 'parallel',
    states: { one: { initial: 'x', states: { x: { on: { go: 'y' } }, y: {} } }, two: {} },
  }),
  'without states': createMachine({ on: { go: {} } }),
};

test('every state that a machine reaches fits the schema of its chart, and no other text does', async () => {
  for (const [name, machine] of Object.entries(CHARTS)) {
    const { check } = compileOutput(stateSchema(readChart(machine)), name);
    const actor = createActor(machine).start();
    for (const type of ['go', 'go', 'go', 'away', 'go', 'back', 'go']) {
      const { value } = actor.getSnapshot();
      assert.equal(await check(value), { ok: true, value }, `${name}: ${JSON.stringify(value)}`);
      actor.send({ type });
    }
    assert.is((await check('elsewhere')).ok, false, name);
    actor.stop();
  }
});

test('the schemas of view and output are listed, and a result that does not fit is an error of its call', async () => {
  let drinks: unknown = 1;
  const server = createServer({ name: 'bar', version: '1.0.0', log: () => {} });
  server.machine('tab', createMachine({ initial: 'open', states: { open: { on: { pay: 'paid' } }, paid: {} } }), {
    events: { pay: true },
    view: () => ({ drinks }),
    schemas: { view: z.object({ drinks: z.number() }), output: z.object({ owed: z.number() }) },
  });
  const client = await inSession(server);
  const tools = await client.tools();
  const { properties } = Object(tools.find(({ name }) => name === 'tab_create')?.outputSchema);
  assert.equal(properties.state, { type: 'string', enum: ['open', 'paid'] });
  assert.equal(properties.view.properties, { drinks: { type: 'number' } });
  assert.equal(properties.output.properties, { owed: { type: 'number' } });
  const { structuredContent } = await client.call('tab_create');
  assert.equal(Object(structuredContent).view, { drinks: 1 });
  drinks = 'many';
  const wrong = await client.call('tab_get', { handle: Object(structuredContent).handle });
  assert.is(wrong.isError, true);
  assert.match(JSON.stringify(wrong.content), /view\.drinks: expected number/);
  assert.throws(
    () =>
      server.machine('odd', createMachine({ on: { go: {} } }), {
        events: { go: true },
        schemas: { state: {} } as never,
      }),
    /schemas: state: expected "view" or "output"/,
  );
  await server.close();
});
