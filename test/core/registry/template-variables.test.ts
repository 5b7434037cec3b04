/** The types of a template's variables, which the compiler holds, and the values that handlers receive for them. */
import * as assert from 'uvu/assert';
import { createServer, defineResource, type TemplateVariables, type Variables } from '../../../src/index.ts';
import { connect, type ErrorResponse } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('variables of templates');

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only if the type argument is `true`. */
function holds<T extends true>(..._: T[]): void {}

/** URIs of each template, and the values that its handler receives. */
const READ = {
  'x://a/{id}/items{?page,tag*}': [
    ['x://a/7/items?tag=p&tag=q', { id: '7', tag: ['p', 'q'] }],
    ['x://a/7/items', { id: '7' }],
  ],
  'x://b/{+path}': [['x://b/c/d', { path: 'c/d' }]],
  'x://c{/dirs*}{.type}{#part}': [
    ['x://c/d/e.txt#f', { dirs: ['d', 'e'], type: 'txt', part: 'f' }],
    ['x://c', {}],
  ],
  'x://d/{one,two}{?three}': [
    ['x://d/1', { one: '1' }],
    ['x://d/1,2?three=3', { one: '1', two: '2', three: '3' }],
  ],
  'x://e/{list*}': [['x://e/1,2', { list: ['1', '2'] }]],
  'x://f/{short:3}': [['x://f/abc', { short: 'abc' }]],
  'x://g/{a.b}{&c}': [['x://g/1&c=2', { 'a.b': '1', c: '2' }]],
  'x://h': [['x://h', {}]],
} as const;

test('are typed as the matcher reads them', async () => {
  holds<
    Equal<
      TemplateVariables<'x://a/{id}/items{?page,tag*}'>,
      { readonly id: string; readonly page?: string; readonly tag?: readonly string[] }
    >
  >();
  holds<Equal<TemplateVariables<'x://b/{+path}'>, { readonly path: string }>>();
  holds<
    Equal<
      TemplateVariables<'x://c{/dirs*}{.type}{#part}'>,
      { readonly dirs?: readonly string[]; readonly type?: string; readonly part?: string }
    >
  >();
  holds<
    Equal<
      TemplateVariables<'x://d/{one,two}{?three}'>,
      { readonly one: string; readonly two?: string; readonly three?: string }
    >
  >();
  holds<Equal<TemplateVariables<'x://e/{list*}'>, { readonly list: readonly string[] }>>();
  holds<Equal<TemplateVariables<'x://f/{short:3}'>, { readonly short: string }>>();
  holds<Equal<TemplateVariables<'x://g/{a.b}{&c}'>, { readonly 'a.b': string; readonly c?: string }>>();
  holds<Equal<keyof TemplateVariables<'x://h'>, never>>();
  const server = createServer({ name: 's', version: '1', log: () => {} });
  for (const template of Object.keys(READ))
    server.resource(template, {}, ({ variables }) => JSON.stringify(Object.entries(variables)));
  const client = await connect(server);
  for (const cases of Object.values(READ))
    for (const [uri, expected] of cases) {
      const [content] = (await client.read(uri)).contents;
      assert.equal(Object.fromEntries(JSON.parse(content && 'text' in content ? content.text : '')), expected, uri);
    }
  // The first variable of an expression without an operator, or with `+`, is never absent: such a URI does not match.
  for (const uri of ['x://a//items', 'x://b/', 'x://d/?three=3', 'x://e/', 'x://f/'])
    assert.is(await client.read(uri).catch((error: ErrorResponse) => error.text), 'Resource not found', uri);
  await client.close();
  await server.close();
});

test('are any strings and lists if the text is unknown, or too long to read', () => {
  holds<Equal<TemplateVariables<string>, Variables>>();
  holds<Equal<TemplateVariables<`notes://${string}/{id}`>, Variables>>();
  type Ten<N extends string> = `{${N}0,${N}1,${N}2,${N}3,${N}4,${N}5,${N}6,${N}7,${N}8,${N}9}`;
  type Many = `x://${Ten<'a'>}${Ten<'b'>}${Ten<'c'>}${Ten<'d'>}${Ten<'e'>}${Ten<'f'>}`;
  holds<Equal<TemplateVariables<Many>['a9'], string | undefined>>();
  holds<Equal<TemplateVariables<`${Many}${Ten<'g'>}`>, Variables>>();
  holds<Equal<TemplateVariables<'a://{x}' | 'b://{y}'>, { readonly x: string } | { readonly y: string }>>();
});

test('reach handlers and completers with their names', () => {
  const server = createServer({ name: 's', version: '1', log: () => {} });
  server.resource('order://{id}/items{?page}', { complete: { id: async () => ['7'] } }, ({ variables }) => {
    holds<Equal<typeof variables, { readonly id: string; readonly page?: string }>>();
    // @ts-expect-error there is no such variable
    return `${variables.id} ${variables.page} ${variables.size}`;
  });
  assert.throws(
    // @ts-expect-error there is no such variable
    () => server.resource('other://{id}', { complete: { size: () => [] } }, () => 'x'),
    /complete\.size: there is no such argument; there are id/,
  );
  const defined = defineResource({ uri: 'note://{name}', handler: ({ variables: { name } }) => name.toUpperCase() });
  server.resources.register(defined);
  const uri: string = 'any://{id}';
  server.resource(uri, { complete: { id: () => [] } }, ({ variables: { id } }) => String(id));
});
