/** URI templates under generated input: what holds for every template, value and URI, and in how much time. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { TemplateValues } from '../../../src/core/protocol/uri-template.ts';
import { parseTemplate, TemplateError } from '../../../src/core/protocol/uri-template.ts';
import { character, grapheme } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { random, SCALE } from '../../harness/scale.ts';
import type { OracleExpression, OracleVariable } from './uri-template-oracle.ts';
import { ENCODED_SLASH, oracle } from './uri-template-oracle.ts';

const property = suite('URI template properties');
const time = suite('URI template time');

const operators = ['', '+', '#', '.', '/', ';', '?', '&'];
const words = fc.string({ unit: grapheme, minLength: 1, maxLength: 8 });

/** Templates of literals and expressions over variables a, b, c, … */
const templates = fc
  .array(
    fc.oneof(
      fc.stringMatching(/^[ab/.,;?&#=-]{1,3}$/),
      fc.record({
        operator: fc.constantFrom(...operators),
        variables: fc.array(
          fc.oneof<fc.Arbitrary<Omit<OracleVariable, 'name'>>[]>(
            fc.constant({ explode: false }),
            fc.constant({ explode: true }),
            fc.record({ explode: fc.constant(false), prefix: fc.integer({ min: 1, max: 3 }) }),
          ),
          { minLength: 1, maxLength: 3 },
        ),
      }),
    ),
    { maxLength: 5 },
  )
  .map((parts) => {
    let names = 0;
    return parts.map((part): string | OracleExpression => {
      if (typeof part === 'string') return part;
      const variables = part.variables.map((variable) => ({ ...variable, name: 'abcdefghijklmno'.charAt(names++) }));
      return { operator: part.operator, variables };
    });
  });

function write(parts: readonly (string | OracleExpression)[]): string {
  const spec = ({ name, explode, prefix }: OracleVariable): string =>
    name + (explode ? '*' : '') + (prefix === undefined ? '' : `:${prefix}`);
  return parts
    .map((part) => (typeof part === 'string' ? part : `{${part.operator}${part.variables.map(spec).join(',')}}`))
    .join('');
}

/** `match` does not try again where a value dealt among several is longer than its `:n`: see its documentation. */
function isDealtOnce(part: string | OracleExpression): boolean {
  if (typeof part === 'string' || /^[;?&]/.test(part.operator)) return false;
  return part.variables.length > 1 && part.variables.some(({ prefix }) => prefix !== undefined);
}

property('a match gives back the values that were expanded, where the template leaves no doubt', () => {
  const list = fc.array(words, { minLength: 1, maxLength: 4 });
  const dotless = words.map((word) => word.replaceAll('.', '-'));
  const bare = words.map((word) => word.replaceAll('%', '-'));
  const cases: readonly (readonly [string, Record<string, fc.Arbitrary<string | string[]>>])[] = [
    ['x://{a}/{b,c}', { a: words, b: words, c: words }],
    ['x://h{/a,b}@{/c*}', { a: words, b: words, c: list }],
    ['{a*}{?b,c,d*}{#e}', { a: list, b: words, c: words, d: list, e: bare }],
    ['x{;a,b*}{/c}', { a: words, b: list, c: words }],
    ['www{.a*}/', { a: fc.array(dotless, { minLength: 1 }) }],
    ['file:///{+path}', { path: bare }],
    ['x?y=z{&a,b,__proto__}', { a: words, b: words, ['__proto__']: words }],
    ['{a}/é/{b:3}', { a: words, b: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 3 }) }],
  ];
  for (const [text, arbitraries] of cases) {
    const template = parseTemplate(text);
    const pairs = Object.entries(arbitraries).map(([name, value]) => value.map((made) => [name, made] as const));
    fc.assert(
      fc.property(fc.tuple(...pairs), (made) => {
        const uri = template.expand(Object.fromEntries(made));
        assert.equal(Object.entries(template.match(uri) ?? {}).sort(), [...made].sort(), `${text} on ${uri}`);
      }),
      { numRuns: random(300) },
    );
  }
});

property('every expansion holds URI characters only, and matching it never throws', () => {
  const text = fc.string({ unit: grapheme, maxLength: 6 });
  const value = fc.oneof(text, fc.array(text, { maxLength: 3 }), fc.dictionary(text, text, { maxKeys: 3 }));
  fc.assert(
    fc.property(templates, fc.array(value, { minLength: 15, maxLength: 15 }), (parts, made) => {
      const template = parseTemplate(write(parts));
      const values: TemplateValues = Object.fromEntries(
        made.map((one, index) => ['abcdefghijklmno'.charAt(index), one]),
      );
      let uri: string;
      try {
        uri = template.expand(values);
      } catch (thrown) {
        assert.instance(thrown, TemplateError);
        return;
      }
      assert.match(uri, /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[0-9A-F]{2})*$/i);
      template.match(uri);
    }),
    { numRuns: random(3000) },
  );
});

property('matches exactly as a matcher that tries every split', () => {
  let matched = 0;
  const unit = fc.constantFrom(
    'a',
    'b',
    'c',
    'a=',
    '/',
    '.',
    ',',
    ';',
    '?',
    '&',
    '#',
    '=',
    ENCODED_SLASH,
    '?a=',
    '&b=',
  );
  // Half of the URIs are put together from the template, so that many match or nearly do.
  const likely = (parts: readonly (string | OracleExpression)[]): fc.Arbitrary<string> => {
    const piece = (part: string | OracleExpression): fc.Arbitrary<string> => {
      if (typeof part === 'string') return fc.constant(part);
      const body = fc.string({ unit: fc.constantFrom('a', 'b', '=', ',', '/', '.', ENCODED_SLASH), maxLength: 3 });
      const named = ';?&'.includes(part.operator) && part.operator !== '';
      const separator = part.operator === '?' ? '&' : part.operator || ',';
      const one = fc
        .tuple(fc.constantFrom(...part.variables), body)
        .map(([{ name }, text]) => (named ? `${name}=${text}` : text));
      const first = part.operator === '+' ? '' : part.operator;
      return fc.array(one, { maxLength: 3 }).map((all) => (all.length === 0 ? '' : first + all.join(separator)));
    };
    return fc.tuple(...parts.map(piece)).map((pieces) => pieces.join(''));
  };
  const cases = templates.chain((parts) =>
    fc.tuple(fc.constant(parts), fc.oneof(likely(parts), fc.string({ unit, maxLength: 10 }))),
  );
  fc.assert(
    fc.property(cases, ([parts, uri]) => {
      fc.pre(!parts.some(isDealtOnce));
      const text = write(parts);
      const found = parseTemplate(text).match(uri.replaceAll(ENCODED_SLASH, '%2F'));
      const expected = oracle(parts, uri);
      if (expected) matched += 1;
      assert.equal(found && { ...found }, expected, `${text} on ${uri}`);
    }),
    { numRuns: random(10_000) },
  );
  assert.ok(matched > random(1_000), `expected many of the cases to match, got ${matched}`);
});

property('no text makes a match throw', () => {
  const unit = fc.oneof(
    fc.constantFrom(...'%/?#&=;,.{}', '%2F', '%C3', '\ud800'),
    fc.string({ unit: character, maxLength: 2 }),
  );
  const all = operators.flatMap((operator) =>
    ['{OPa}', 'x{OPa*}', '{OPa,b*}{OPc:2}', 'a/{OPa,b}/é'].map((text) => text.replaceAll('OP', operator)),
  );
  const parsed = all.map(parseTemplate);
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 30 }), fc.nat(parsed.length - 1), (uri, index) => {
      parsed[index]?.match(uri);
    }),
    { numRuns: random(10_000) },
  );
});

property('text either is a template that keeps it, or is refused with a TemplateError', () => {
  const unit = fc.oneof(
    fc.constantFrom(...'{}{}%*:,?+abc13 ', '{a}', '{?b*}', '%20'),
    fc.string({ unit: character, maxLength: 2 }),
  );
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
      try {
        const template = parseTemplate(text);
        assert.is(template.text, text);
        assert.is(new Set(template.variables).size, template.variables.length);
        assert.is(template.variables.length > 0, text.includes('{'));
        template.expand({});
      } catch (thrown) {
        assert.instance(thrown, TemplateError);
      }
    }),
    { numRuns: random(10_000) },
  );
});

/** Most processor time that one match may take, in ms. A matcher that took length times length would need 20 times this. */
const LIMIT = 10;

time(
  'S-23, CVE-2026-0621: hostile URIs match or fail within 10 ms on templates of 32 expressions, for every operator',
  () => {
    const hostile = [
      ',',
      'a',
      '/',
      '.',
      ';',
      '&',
      '?v0=',
      '&v0=',
      '&v1=&v2',
      ';v0',
      '%2C',
      '%C3%A9',
      '?&',
      ',/',
      'aaaa,/',
    ];
    const shapes = [
      '{OPvN}',
      '{OPvN*}',
      '{OPvN:3}',
      '{OPvN*,wN}',
      '{OPvN,wN}',
      '{OPvN*},',
      '{OPvN}aaaaaaaab',
      '{OPvN}/{OPwN*},',
    ];
    for (const operator of operators) {
      for (const shape of shapes) {
        const times = shape.includes('}/{') ? 16 : 32;
        const text = [...Array(times).keys()].map((index) =>
          shape.replaceAll('OP', operator).replaceAll('N', `${index}`),
        );
        const template = parseTemplate(text.join(''));
        // In a quick run each operator meets each text once.
        for (const unit of hostile.filter(
          (_, index) => SCALE !== 'quick' || (index + shapes.indexOf(shape)) % shapes.length === 0,
        )) {
          for (const length of [8192, 51_200])
            within(LIMIT, template.text, () => template.match(fill(unit, length)), unit);
        }
      }
    }
  },
);

time('S-23, CVE-2026-0621: hostile templates are read or refused within 10 ms', () => {
  for (const unit of ['{', '}', '{}', '{a', '%', '%41', '{a,', 'a.', '{a.', '{a}', 'a', ',', '{%41']) {
    for (const text of [fill(unit, 2048), `{${fill(unit, 2046)}}`, fill(unit, 51_200)])
      within(LIMIT, text, () => attempt(text), unit);
  }
});

function fill(unit: string, length: number): string {
  return unit.repeat(Math.floor(length / unit.length));
}

function attempt(text: string): void {
  try {
    parseTemplate(text);
  } catch (thrown) {
    assert.instance(thrown, TemplateError);
  }
}

/** Processor time, as other processes may take the clock's; the best of several runs, as the compiler takes some of one. */
function within(limit: number, what: string, run: () => unknown, unit: string): void {
  let best = Number.POSITIVE_INFINITY;
  for (let left = 20; left > 0 && best > limit; left -= 1) {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
  }
  assert.ok(
    best <= limit,
    `${what.slice(0, 80)} on repeated "${unit}": ${best.toFixed(1)} ms, expected at most ${limit}`,
  );
}
