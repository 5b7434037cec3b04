/** URI templates: the examples of the RFC, what is refused and why, and what each operator matches. */
import * as assert from 'uvu/assert';
import { parseTemplate, TemplateError } from '../../../src/core/protocol/uri-template.ts';
import { suite } from '../../harness/door.ts';
import { examples, refused, values } from './rfc6570-examples.ts';

const expansion = suite('URI template expansion');
const refusal = suite('URI template refusal');
const matching = suite('URI template matching');

for (const [section, rows] of Object.entries(examples)) {
  expansion(`follows RFC 6570 section ${section}`, () => {
    for (const [template, uri] of rows) assert.is(parseTemplate(template).expand(values), uri, template);
  });
}

expansion('leaves out a variable that has no value of its own', () => {
  assert.is(parseTemplate('a{/constructor,__proto__}').expand({}), 'a');
  assert.is(parseTemplate('a{/x*}').expand({ x: [] }), 'a');
});

expansion('keeps percent-escapes of reserved expansion and of literal text, and encodes the rest', () => {
  assert.is(parseTemplate('{+a}').expand({ a: 'x%20y%z[é]' }), 'x%20y%25z[%C3%A9]');
  assert.is(parseTemplate('é%20/{a}').expand({ a: '%20' }), '%C3%A9%20/%2520');
});

expansion('counts a prefix in characters, not in code units', () => {
  assert.is(parseTemplate('{a:2}').expand({ a: '😀é!' }), '%F0%9F%98%80%C3%A9');
});

expansion('says which value it cannot write', () => {
  throws(
    () => parseTemplate('{a:3}').expand({ a: ['x'] }),
    /variable "a": expected a string, because ":n".* got array of 1/,
  );
  throws(() => parseTemplate('{a}').expand({ a: '\ud800' }), /variable "a": expected well-formed Unicode/);
  const unchecked: Record<string, string> = JSON.parse('{"a":5,"b":[5],"c":null}');
  throws(() => parseTemplate('{a}').expand(unchecked), /"a": expected a string, a list .*got number 5/);
  throws(() => parseTemplate('{b}').expand(unchecked), /"b": expected only strings .*got number 5/);
  throws(() => parseTemplate('{c}').expand(unchecked), /"c": expected a string, a list .*got null/);
});

refusal('says where a template is malformed, what was expected and how to fix it', () => {
  const rows: readonly (readonly [string, RegExp])[] = [
    ['a{b', /^URI template "a\{b", character 2: expected "}" .*. Close it/],
    ['a}b', /character 2: expected "\{" before this "}"\. .*%7D/],
    ['a{b{c}d}', /character 3: expected a variable name .*got "b\{c"/],
    ['{}', /character 1: expected a variable name between the braces, got none. Write, for example, \{id}/],
    ['{?}', /Write, for example, \{\?id}/],
    ['{user-id}', /character 2: expected a variable name .*got "user-id". Write user_id/],
    ['{a,}', /character 4: expected a variable name .*got ""/],
    ['{.a..b}', /character 3: expected a variable name .*got "a..b"/],
    ['{a.}', /got "a.". Write a/],
    ['{%zz}', /got "%zz"/],
    ['{%ff}', /got "%ff"/],
    ['{a b}', /got "a b". Write a_b/],
    ['{a:}', /character 3: expected ":" and a length from 1 to 9999, got ":". Write, for example, :3/],
    ['{a:0}', /got ":0"/],
    ['{a:10000}', /got ":10000"/],
    ['{a:3*}', /character 2: expected either ":n" or "\*" .*got "a:3\*". Remove one/],
    ['{a*:3}', /expected either ":n" or "\*"/],
    ['{a}/{a}', /character 6: expected each variable once, got "a" again, .*Rename one/],
    ['{a,b,%61}', /character 6: expected each variable once, got "%61" again/],
    ['a b', /character 2: expected a character that URIs allow, got " ". Write %20/],
    ['a\ud800', /character 2: .*Remove it/],
    ['50%', /character 3: expected two hex digits after "%". Write %25/],
    ['%ff', /character 1: expected percent-escapes of UTF-8/],
    ['x'.repeat(2049), /character 2049: expected at most 2048 characters, got 2049. Shorten/],
    ['{a}'.repeat(33).replaceAll(/a/g, nextName()), /expected at most 32 expressions. Combine/],
  ];
  for (const [template, message] of rows) throws(() => parseTemplate(template), message);
  for (const symbol of '=,!@|') throws(() => parseTemplate(`{${symbol}a}`), /character 2: .* RFC 6570 reserves/);
  for (const template of refused) throws(() => parseTemplate(template), /expected each variable once/);
});

refusal('lets in a template at each bound', () => {
  assert.is(parseTemplate('x'.repeat(2048)).text.length, 2048);
  assert.is(parseTemplate('{a}'.repeat(32).replaceAll(/a/g, nextName())).variables.length, 32);
  assert.equal(parseTemplate("it's{/a.b_1,%C3%A9:9999}{?c*}").variables, ['a.b_1', '%C3%A9', 'c']);
});

const rules: Readonly<Record<string, readonly (readonly [string, string, unknown])[]>> = {
  'reads a simple variable up to a slash, a question mark or a hash, and never an empty one': [
    ['users/{id}', 'users/42', { id: '42' }],
    ['users/{id}', 'users/', undefined],
    ['users/{id}', 'users/4/2', undefined],
    ['users/{id}', 'users/4?2', undefined],
    ['users/{id}', 'users/4#2', undefined],
    ['users/{id}', 'users/a,b@c:d=e&f;g', { id: 'a,b@c:d=e&f;g' }],
    ['users/{id}', 'Users/42', undefined],
    ['users', 'users', {}],
    ['users', 'users/', undefined],
    ['', '', {}],
  ],
  'decodes values, whatever they decode to': [
    ['{a}', 'a%2Fb', { a: 'a/b' }],
    ['{a}', '..%2f..', { a: '../..' }],
    ['{a}', '%F0%9F%98%80+%2B', { a: '😀++' }],
    ['{a}', 'é😀', { a: 'é😀' }],
    ['{a}{b:1}', 'x\u0000%00', { a: 'x\u0000', b: '\u0000' }],
  ],
  'does not match a malformed percent-escape or a lone surrogate anywhere': [
    ['{+a}', '%', undefined],
    ['{+a}', 'x%2', undefined],
    ['{+a}', '%zz', undefined],
    ['{+a}', '%FF', undefined],
    ['{+a}', '%C3', undefined],
    ['{+a}', '\ud83d', undefined],
    ['x{?a}', 'x?a=%', undefined],
  ],
  'finds literal text in whichever way it is written, but keeps an escaped reserved character apart': [
    ['é/{a}', '%c3%a9/x', { a: 'x' }],
    ['%C3%A9~/{a}', 'é%7E/x', { a: 'x' }],
    ['a/{b}', '%61/x', { b: 'x' }],
    ['a/{b}', 'a%2Fx', undefined],
    ['a%2F{b}', 'a/x', undefined],
    ['a%2F{b}', 'a%2fx', { b: 'x' }],
  ],
  'takes the shortest text for each expression from the left that lets the rest match': [
    ['{a}-{b}', 'x-y-z', { a: 'x', b: 'y-z' }],
    ['{a}{b}', 'xyz', { a: 'x', b: 'yz' }],
    ['{a}{b}', 'x', undefined],
    ['{a}{b}', '%C3%A9😀', { a: 'é', b: '😀' }],
    ['{+dir}/{name}', 'a/b/c', { dir: 'a/b', name: 'c' }],
    ['{+a}-{b}', 'x-y/z-w', { a: 'x-y/z', b: 'w' }],
    ['{name}{.ext}', 'a.tar.gz', { name: 'a', ext: 'tar.gz' }],
    ['{/dir*}{/name}', '/a/b/c', { dir: ['a', 'b'], name: 'c' }],
    ['{/a}{/b}', '/x', { a: 'x' }],
    ['{a}aab', 'aaaab', { a: 'aa' }],
  ],
  'reads reserved expansion across slashes, question marks and hashes': [
    ['file:///{+path}', 'file:///a/b.txt', { path: 'a/b.txt' }],
    ['file:///{+path}', 'file:///', undefined],
    ['{+a}', 'x?y#z', { a: 'x?y#z' }],
    ['{+a}{?q}', 'x/y?q=1', { a: 'x/y', q: '1' }],
    ['{+a}{#f}', 'x/y#z', { a: 'x/y', f: 'z' }],
  ],
  'reads a fragment, a label and a path segment behind their mark, empty or left out': [
    ['a{#f}', 'a#b/c?d#e', { f: 'b/c?d#e' }],
    ['a{#f}', 'a#', { f: '' }],
    ['a{#f}', 'a', {}],
    ['a{.b}', 'a.', { b: '' }],
    ['a{.b}', 'a', {}],
    ['a{.b}', 'ab', undefined],
    ['a{/b}', 'a/', { b: '' }],
    ['a{/b}', 'a', {}],
    ['a{/b}', 'a/x/y', undefined],
    ['a{/b,c}', 'a/x', { b: 'x' }],
    ['a{/b,c}', 'a/x/y', { b: 'x', c: 'y' }],
    ['a{/b,c}', 'a/x/y/z', undefined],
  ],
  'reads an exploded variable as a list': [
    ['{a*}', 'x', { a: ['x'] }],
    ['{a*}', 'x,y%2Cz,', { a: ['x', 'y,z', ''] }],
    ['{+a*}', 'x/y,z', { a: ['x/y', 'z'] }],
    ['{#a*}', '#x,y', { a: ['x', 'y'] }],
    ['www{.a*}', 'www.example.com', { a: ['example', 'com'] }],
    ['{/a*}', '/x/y%2Fz', { a: ['x', 'y/z'] }],
    ['a{/b*}', 'a', {}],
    ['{;a*}', ';a=1;a=2', { a: ['1', '2'] }],
    ['{?a*,b}', '?a=1&b=2&a=3', { a: ['1', '3'], b: '2' }],
    ['?z{&a*}', '?z&a', { a: [''] }],
  ],
  'deals one part to each variable of an expression, and what is left over to the first exploded one': [
    ['{a,b}', 'x', { a: 'x' }],
    ['{a,b}', 'x,y', { a: 'x', b: 'y' }],
    ['{a,b}', 'x,y,z', undefined],
    ['{a,b}', ',', { a: '', b: '' }],
    ['{+a,b}', 'x/y,z', { a: 'x/y', b: 'z' }],
    ['{a,b*}', 'x,y,z', { a: 'x', b: ['y', 'z'] }],
    ['{a*,b}', 'x,y,z', { a: ['x', 'y'], b: 'z' }],
    ['{a*,b*,c}', 'w,x,y,z', { a: ['w', 'x'], b: ['y'], c: 'z' }],
  ],
  'reads parameters in any order, each at most once, and no others': [
    ['x{?a,b}', 'x', {}],
    ['x{?a,b}', 'x?b=2&a=1', { a: '1', b: '2' }],
    ['x{?a,b}', 'x?b', { b: '' }],
    ['x{?a,b}', 'x?b=', { b: '' }],
    ['x{?a,b}', 'x?a=1&a=2', undefined],
    ['x{?a,b}', 'x?c=1', undefined],
    ['x{?a,b}', 'x?a=1&c=1', undefined],
    ['x{?a,b}', 'x?', undefined],
    ['x{?a,b}', 'x?a=1&', undefined],
    ['x{?a,b}', 'x?ab=1', undefined],
    ['x{?a}', 'x?a=/b?c=d', { a: '/b?c=d' }],
    ['x{?a}', 'x?%61=1', { a: '1' }],
    ['x{?a}{#f}', 'x?a=1#a=2', { a: '1', f: 'a=2' }],
    ['x{?a}{&b}', 'x?a=1&b=2', { a: '1', b: '2' }],
    ['x{?a}{&b}', 'x?b=2', undefined],
    ['x?y=z{&a,b}', 'x?y=z&b=2', { b: '2' }],
    ['x{;a,b}', 'x;b=2;a', { a: '', b: '2' }],
    ['x{;a,b}/y', 'x;a=1/y', { a: '1' }],
    ['x{;a,b}', 'x;a=1;a=2', undefined],
  ],
  'refuses a value that is longer than its prefix': [
    ['{a:3}', 'xyz', { a: 'xyz' }],
    ['{a:3}', 'wxyz', undefined],
    ['{a:1}{b}', 'xyz', { a: 'x', b: 'yz' }],
    ['{a}{b:1}', 'xyz', { a: 'xy', b: 'z' }],
    ['{a:2}', '%F0%9F%98%80%C3%A9', { a: '😀é' }],
    ['{?a:2}', '?a=xy', { a: 'xy' }],
    ['{?a:2,b}', '?a=xyz&b=1', undefined],
    ['{a:2,b}', 'xyz,w', undefined],
    ['{/a:2,b}', '/xy/zzz', { a: 'xy', b: 'zzz' }],
  ],
  'takes no harm from the names of Object.prototype': [
    ['{__proto__}/{constructor}', 'a/b', { ['__proto__']: 'a', constructor: 'b' }],
    ['x{?__proto__*,toString}', 'x?__proto__=a&__proto__=b', { ['__proto__']: ['a', 'b'] }],
    ['x{?toString}', 'x?constructor=a', undefined],
  ],
};

for (const [title, rows] of Object.entries(rules)) {
  matching(title, () => {
    for (const [template, uri, expected] of rows) {
      const found = parseTemplate(template).match(uri);
      assert.equal(plain(found), plain(expected), `${template} on ${uri}: got ${JSON.stringify(found)}`);
    }
  });
}

matching('answers with an object that has no prototype', () => {
  assert.is(Object.getPrototypeOf(parseTemplate('{a}').match('x')), null);
});

matching('does not match a URI of more than 8,192 code units', () => {
  assert.is(parseTemplate('{a}').match('x'.repeat(8192))?.a?.length, 8192);
  assert.is(parseTemplate('{a}').match('x'.repeat(8193)), undefined);
});

/** As entries, since `assert.equal` compares prototypes too. */
function plain(found: unknown): unknown {
  return typeof found === 'object' && found !== null ? Object.entries(found).sort() : found;
}

function throws(call: () => unknown, message: RegExp): void {
  try {
    call();
  } catch (thrown) {
    assert.instance(thrown, TemplateError);
    if (thrown instanceof TemplateError) assert.match(thrown.message, message);
    return;
  }
  assert.unreachable(`expected an error like ${String(message)}`);
}

function nextName(): () => string {
  let count = 0;
  return () => `v${count++}`;
}
