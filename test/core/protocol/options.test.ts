/** Checks the table of options: each takes what the table says, and refuses everything else with an error that names it. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import * as assert from 'uvu/assert';
import { describe } from '../../../src/core/protocol/json.ts';
import { suite } from '../../harness/door.ts';
import { HOSTILE, OPTIONS, type Options } from './option-table.ts';

const test = suite('options');

/** Types of rows that the table does not have by their names, and what refuses their values. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ApiOAuth: 'test/gateway/openapi/api-auth.test.ts',
  AppLooks: 'AppOptions',
  ApprovalDecision: 'test/features/approvals/approvals.test.ts',
  ApprovalQuery: 'test/features/approvals/approvals.test.ts',
  ApprovedCalls: 'MountOptions: approve',
  ArgumentCondition: 'MountOptions: approve',
  ConfiguredAuth: 'test/gateway/configuration.test.ts',
  ConfiguredOptions: 'test/gateway/configuration.test.ts',
  HookQuery: 'test/features/hooks/webhooks.test.ts',
  MachineAppOptions: 'MachineOptions: app',
  RememberPolicy: 'ApprovalPolicy: remember',
  UpstreamOAuth: 'test/gateway/mounts/sign-ins.test.ts',
  ViewLabels: 'MachineOptions: app',
  ViewTexts: 'MachineOptions: app',
};

/** The message with which options are refused: `accepted` if they are not. An error of JavaScript itself has no name of an option. */
async function refusal({ read }: Options, given: unknown): Promise<string> {
  try {
    await read(given);
  } catch (error) {
    return error instanceof Error && /^(?:Type|Range|Definition)Error$/.test(error.name)
      ? error.message
      : String(error);
  }
  return 'accepted';
}

const has = (values: readonly unknown[], value: unknown): boolean =>
  values.some((each) => isDeepStrictEqual(each, value));

for (const [type, options] of Object.entries(OPTIONS)) {
  const { where, base, open, rows, refused = [] } = options;
  test(`${type}: takes and refuses what the table says`, async () => {
    const wrong: string[] = [];
    const expect = async (given: unknown, beginning: string): Promise<void> => {
      const message = await refusal(options, given);
      if (!message.startsWith(beginning)) wrong.push(`expected ${beginning}, got ${message}`);
      for (const [name, value] of Object.entries(Object(given)))
        if (rows[name]?.secret && typeof value === 'string' && value.length > 2 && message.includes(value))
          wrong.push(`${name}: the message has the secret`);
    };
    for (const [name, { expects, takes, refuses, secret, beside }] of Object.entries(rows)) {
      const given = (value: unknown): object => ({ ...base, ...beside, [name]: value });
      for (const value of takes) await expect(given(value), 'accepted');
      const named = refused.map(([each]) => ({ ...base, ...beside, ...each }));
      for (const value of [...HOSTILE, ...refuses]) {
        if (has(takes, value) || has(named, given(value))) continue;
        // An empty list or object may lack something else.
        const isEmpty = isDeepStrictEqual(value, []) || isDeepStrictEqual(value, {});
        const words = isEmpty ? '' : `: expected ${expects}${secret ? '' : `, got ${describe(value)}`}`;
        await expect(given(value), `${where}${name}${words}`);
      }
    }
    for (const [given, words] of refused) await expect({ ...base, ...given }, where + words);
    // In the place of all options.
    for (const value of [null, 7, 'x', []]) await expect(value, where.replace(/[:.] ?$/, ''));
    if (!open) {
      const unknown = `${Object.keys(rows)[0]}s`;
      const message = await refusal(options, { ...base, [unknown]: 1 });
      const [beginning, known = ''] = message.split('; there are ');
      assert.is(beginning, `${where}${unknown}: no such option`);
      assert.equal(known.split(', ').sort(), Object.keys(rows).sort());
    }
    assert.equal(wrong, []);
  });
}

test('the table has each type of rows of src', () => {
  const root = fileURLToPath(new URL('../../../src', import.meta.url));
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const found = sources.flatMap((file) =>
    [...readFileSync(`${root}/${file}`, 'utf8').matchAll(/option\.Rows<(?:\w+<)?(\w+)/g)].map(([, type = '']) => type),
  );
  const has = (type: string): boolean => Object.hasOwn(OPTIONS, type) || Object.hasOwn(ELSEWHERE, type);
  assert.equal(
    found.filter((type) => !has(type)),
    [],
  );
});
