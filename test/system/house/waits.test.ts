/** No test trusts the clock: it waits for a cause, and a duration decides nothing. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { root } from './promises.ts';

const test = suite('the waits of the tests');

/** What may use timers: the waits themselves, what makes input late, the limits of a test and of a block of a page, the runner, and programs that tests start. */
const MAY = [
  'test/harness/wait.ts',
  'test/harness/door.ts',
  'test/harness/late-io.ts',
  'test/system/first-hour/shell.ts',
  'test/runner/',
  // Everything in it is simulated.
  'test/system/simulation/',
  'test/fixtures/',
  'test/faults/run.ts',
];

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node)
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter(isNode);
}

function some(node: Node, fits: (node: Node) => boolean): boolean {
  return fits(node) || childrenOf(node).some((child) => some(child, fits));
}

function nameOf(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Identifier' && typeof node.name === 'string' ? node.name : undefined;
}

/** True for `performance.now()`. */
function isNow(node: Node): boolean {
  if (node.type !== 'CallExpression' || !isNode(node.callee) || node.callee.type !== 'MemberExpression') return false;
  return nameOf(node.callee.object) === 'performance' && nameOf(node.callee.property) === 'now';
}

/** True for `clock.advance(…)`. */
function isAdvance({ type, callee }: Node): boolean {
  return (
    type === 'CallExpression' &&
    isNode(callee) &&
    callee.type === 'MemberExpression' &&
    nameOf(callee.property) === 'advance'
  );
}

/** True for an expression with `performance.now()`. A function that measures has a result of its own. */
function hasNow(node: Node): boolean {
  return !node.type.endsWith('FunctionExpression') && (isNow(node) || childrenOf(node).some(hasNow));
}

const BOUNDS = ['<', '<=', '>', '>='];

/** True for `took >= 25`: that nothing is early holds on any machine. */
function isLeast({ operator, left, right }: Node, isTime: (node: Node) => boolean): boolean {
  if (!isNode(left) || !isNode(right)) return false;
  return (operator === '>' || operator === '>=') && isTime(left) && right.type === 'Literal';
}

/** Each place of a file that trusts the clock, with its reason. */
function trusting(text: string): readonly string[] {
  if (!/setTimeout|performance\.now|\bwhile\b[^;]*\badvance\(/.test(text)) return [];
  const found: string[] = [];
  const times = new Set<string>();
  const tell = (node: Node, why: string): void =>
    void found.push(`${text.slice(0, node.start).split('\n').length}: ${why}`);
  const isTime = (node: Node): boolean => isNow(node) || times.has(nameOf(node) ?? '');
  const walk = (node: Node): void => {
    if (node.type === 'VariableDeclarator' && isNode(node.init) && hasNow(node.init)) {
      const name = nameOf(node.id);
      if (name !== undefined) times.add(name);
    }
    if (node.type === 'CallExpression' && nameOf(node.callee) === 'setTimeout')
      tell(node, 'setTimeout: use until, inTime or elapse of test/harness/wait.ts');
    if (node.type === 'WhileStatement' && some(node, isAdvance))
      tell(node, 'a clock that races real input: use untilPassed or whilePassing of test/harness/wait.ts');
    if (node.type === 'ImportDeclaration' && isNode(node.source) && node.source.value === 'node:timers/promises')
      if (some(node, (child) => nameOf(child) === 'setTimeout')) tell(node, 'setTimeout of node:timers/promises');
    if (
      node.type === 'BinaryExpression' &&
      BOUNDS.includes(String(node.operator)) &&
      some(node, isTime) &&
      !isLeast(node, isTime)
    )
      tell(node, 'a duration is compared: print it with assertFigure of test/harness/pace.ts');
    for (const child of childrenOf(node)) walk(child);
  };
  walk(parseAst(text, { lang: 'ts' }) as unknown as Node);
  return found;
}

test('tests sleep nowhere, and compare no duration', () => {
  const found: string[] = [];
  for (const file of readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join('test', file);
    if (!path.endsWith('.ts') || MAY.some((may) => path.startsWith(may))) continue;
    found.push(...trusting(readFileSync(join(root, path), 'utf8')).map((place) => `${path}:${place}`));
  }
  assert.equal(found, []);
});

test('a sleep, a comparison of a duration or of its variable, and a loop of a clock are found', () => {
  const bad = [
    'await new Promise((resolve) => setTimeout(resolve, 20));',
    "import { setTimeout as sleep } from 'node:timers/promises';",
    'const began = performance.now(); assert.ok(performance.now() - began < 500);',
    'const began = performance.now(); const took = performance.now() - began; assert.ok(took < 500);',
    'while (!socket.closed) await clock.advance(100);',
    'const end = performance.now() + 5_000; while (performance.now() < end) await turn();',
  ];
  for (const text of bad) assert.is(trusting(text).length > 0, true, text);
  for (const text of ['const script = "setTimeout(work, 5)";', "assertFigure(performance.now() - began, 5, 'a call');"])
    assert.equal(trusting(text), []);
});
