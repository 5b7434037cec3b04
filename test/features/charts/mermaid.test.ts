/** A statechart as Mermaid and as a table: every state and transition is in it, and no name of an author's can break it. */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { nodesOf, readChart } from '../../../src/core/kernel/charts/chart.ts';
import { toTable } from '../../../src/core/kernel/charts/table.ts';
import { toMermaid } from '../../../src/features/charts/mermaid.ts';
import { suite } from '../../harness/door.ts';

const test = suite('statecharts as text');

const types = { events: {} as { type: string } };
const guards = { isPaid: () => true };

const order = setup({ types, guards }).createMachine({
  id: 'order',
  initial: 'cart',
  on: { expire: '.gone' },
  states: {
    cart: {
      description: 'nothing is | paid <yet>',
      tags: ['open'],
      on: { pay: [{ guard: 'isPaid', target: 'paying' }, { target: 'gone' }], add_item: {} },
      after: { 30000: { target: 'gone', description: 'nobody came back' } },
    },
    paying: {
      initial: 'asking',
      on: { cancel: 'cart', retry: '.asking' },
      states: {
        asking: { on: { answered: 'charging' } },
        charging: { on: { sent: '#order.gone', again: '#order.paying' } },
      },
    },
    gone: { type: 'final' },
  },
});

test('a chart is written as a stateDiagram-v2: nested states, guards, delays, and what leads from a box to its inside', () => {
  assert.is(
    toMermaid(readChart(order)),
    `stateDiagram-v2
  accTitle: The statechart order
  state "any state" as order__any
  [*] --> cart
  cart --> paying : pay [isPaid]
  cart --> gone : pay [otherwise]
  cart --> cart : add_item
  cart --> gone : after 30 s
  state paying {
    state "any state" as paying_any
    [*] --> paying_asking
    state "asking" as paying_asking
    paying_asking --> paying_charging : answered
    state "charging" as paying_charging
    paying_charging --> paying_asking : again
    paying_any --> paying_asking : retry
  }
  paying --> cart : cancel
  gone --> [*]
  order__any --> gone : expire
  paying_charging --> gone : sent
`,
  );
});

test('parallel states are regions, also of a whole machine', () => {
  const machine = setup({ types }).createMachine({
    id: 'both',
    type: 'parallel',
    states: {
      left: { initial: 'a', states: { a: { on: { go: 'b' } }, b: {} } },
      right: { initial: 'c', states: { c: { on: { cross: '#both.left' } } } },
    },
  });
  assert.is(
    toMermaid(readChart(machine)),
    `stateDiagram-v2
  accTitle: The statechart both
  state "both" as both_ {
    state "left" as s_left {
      [*] --> left_a
      state "a" as left_a
      left_a --> left_b : go
      state "b" as left_b
    }
    --
    state "right" as s_right {
      [*] --> right_c
      state "c" as right_c
    }
  }
  right_c --> s_left : cross
`,
  );
});

test('each line is a state, an arrow or a box, for every name of an author', () => {
  const nasty = [
    'end',
    'state',
    'a b',
    'a-b',
    'a"b',
    '<b>',
    '%%',
    '{',
    '}',
    '[*]',
    '--',
    ';',
    ':',
    '#',
    'x_end',
    'constructor',
    '中文',
    '1',
  ];
  const machine = setup({ types }).createMachine({
    id: 'nasty "one"\n%% #',
    initial: 'first',
    states: Object.fromEntries(
      ['first', ...nasty].map((name) => [
        name,
        {
          id: `id ${name}`,
          on: Object.fromEntries(nasty.map((event) => [`on ${event}`, { target: `#id ${event}` }])),
          ...(name === '{' ? { initial: 'end', states: { end: {}, start: {} } } : {}),
        },
      ]),
    ),
  });
  const chart = readChart(machine);
  const [first, ...lines] = toMermaid(chart).trimEnd().split('\n');
  assert.is(first, 'stateDiagram-v2');
  const id = String.raw`(\[\*\]|[A-Za-z]\w*)`;
  const text = String.raw`(?:[\p{L}\p{N}_ ,.()[\]/'?!=+→-]|#\d+;)+`;
  const line = new RegExp(
    `^ +(accTitle: ${text}|state ("${text}" as )?${id}( \\{)?|${id} --> ${id}( : ${text})?|\\}|${id})$`,
    'u',
  );
  assert.equal(
    lines.filter((each) => !line.test(each)),
    [],
  );
  const arrows = lines.filter((each) => each.includes(' : '));
  assert.is(arrows.length, nodesOf(chart).flatMap(({ edges }) => edges).length);
  const ids = new Set(lines.flatMap((each) => / as (\w+)/.exec(each)?.[1] ?? []));
  assert.is(ids.size, lines.filter((each) => each.includes(' as ')).length, 'no two states have one id');
});

test('a chart is written as a table with the columns that it needs', () => {
  assert.is(
    toTable(readChart(order)),
    `| state | tags | on | guard | to |
| --- | --- | --- | --- | --- |
| \`cart\` (nothing is \\| paid &lt;yet>) | open | \`pay\` | isPaid | paying |
| | | \`pay\` | otherwise | gone |
| | | \`add_item\` | | |
| | | after 30 s (nobody came back) | | gone |
| \`paying\` | | \`cancel\` | | cart |
| | | \`retry\` | | paying.asking |
| \`paying.asking\` | | \`answered\` | | paying.charging |
| \`paying.charging\` | | \`sent\` | | gone |
| | | \`again\` | | paying |
| \`gone\` (final) | | | | |
| any of these | | \`expire\` | | gone |
`,
  );
  const plain = setup({ types }).createMachine({ initial: 'a', states: { a: { on: { go: 'b' } }, b: {} } });
  assert.match(toTable(readChart(plain)), /^\| state \| on \| to \|\n/);
});
