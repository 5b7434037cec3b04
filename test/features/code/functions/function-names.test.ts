/** The names of functions and groups, and the names that a mistyped one may mean. */
import * as assert from 'uvu/assert';
import { identifiersFor, TAKEN_GLOBALS } from '../../../../src/features/code/functions/function-names.ts';
import { NearNames } from '../../../../src/features/code/functions/near-names.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('names of functions');

const NAMES: readonly (readonly [why: string, names: readonly string[], identifiers: readonly (string | RegExp)[]])[] =
  [
    ['an identifier', ['issues_list', '$a', '_'], ['issues_list', '$a', '_']],
    ['other characters', ['issues/list-for.repo', 'größe', 'a b'], ['issues_list_for_repo', 'gr__e', 'a_b']],
    ['a digit at the beginning, and nothing', ['2fa', ''], ['_2fa', '_']],
    ['reserved words, which members may be', ['delete', 'new', 'constructor'], ['delete', 'new', 'constructor']],
    ['one identifier for several names', ['a-b', 'a_b', 'a.b'], [/^a_b_[0-9a-f]{8}$/, 'a_b', /^a_b_[0-9a-f]{8}$/]],
    ['a name and its double', ['a-b', 'a-b'], ['a_b', 'a_b']],
  ];

for (const [why, names, identifiers] of NAMES)
  test(`makes identifiers of ${why}, in any order`, () => {
    for (const order of [names, [...names].reverse()]) {
      const made = identifiersFor(order);
      for (const [at, name] of names.entries()) {
        const expected = identifiers[at] ?? '';
        const got = made.get(name) ?? '';
        if (typeof expected === 'string') assert.is(got, expected);
        else assert.match(got, expected);
      }
      assert.is(new Set(made.values()).size, new Set(names).size);
    }
  });

test('a group is no word that a global of a script cannot be', () => {
  const made = identifiersFor(['new', 'my-shop', 'sleep', 'shop'], TAKEN_GLOBALS);
  assert.equal([...made.values()], ['new_', 'my_shop', 'sleep_', 'shop']);
  for (const word of TAKEN_GLOBALS)
    assert.not.ok(TAKEN_GLOBALS.has(identifiersFor([word], TAKEN_GLOBALS).get(word) ?? word));
});

const KNOWN = ['gh.issues_list', 'gh.issues_list_for_repo', 'gh.pulls_list', 'shop.orders_list', 'shop.refund'];

const NEAR: readonly (readonly [name: string, first: string | undefined])[] = [
  ['gh.issuesList', 'gh.issues_list'],
  ['gh.list_issues', 'gh.issues_list'],
  ['gh.issue_list', 'gh.issues_list'],
  ['github.issues_list', 'gh.issues_list'],
  ['issues_list', 'gh.issues_list'],
  ['shop.refnd', 'shop.refund'],
  ['shop.list_orders', 'shop.orders_list'],
  ['gh.orders_list', 'shop.orders_list'],
  ['zzz.zzz', undefined],
  ['', undefined],
];

for (const [name, first] of NEAR)
  test(`suggests ${first ?? 'nothing'} for "${name}"`, () => {
    const near = new NearNames(KNOWN).of(name, 3);
    assert.is(near[0], first);
    assert.ok(near.length <= 3);
  });
