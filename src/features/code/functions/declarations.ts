/** The declarations of functions in TypeScript, as a model reads them before it writes a script. */
import { isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { visibleJson } from '../../../core/protocol/visible-text.ts';
import { onOneLine } from '../../../core/schema/first-sentence.ts';
import { anyShape, resolveReference, shapesOf } from '../../../core/schema/object-shapes.ts';
import { key, SchemaTypes, SharedTypes, typeName } from '../../../core/schema/written-types.ts';
import type { ScriptFunction } from './function-table.ts';

/** A function with the schema of its results. */
export interface Declarable {
  readonly of: ScriptFunction;
  readonly output: JsonObject | undefined;
  /** The schema is that of a result that was seen. */
  readonly seen: boolean;
}

/** The longest declaration of one function, and of all in one answer, in characters. */
const MAX_ONE = 6_000;
const MAX_ALL = 24_000;
/** The longest description of a function: the more functions, the shorter. */
const MAX_DESCRIPTION = 600;
const MIN_DESCRIPTION = 120;
const DESCRIPTIONS = 1_500;
/** Objects inside objects: a declaration has the first of these depths with which it is short enough. */
const DEPTHS = [8, 5, 4, 3, 2, 1] as const;
/** The longest parameters in an error. */
const MAX_PARAMETERS = 1_500;
/** Alternatives of a schema in which a member is looked up. */
const MAX_ALTERNATIVES = 50;

/** The declarations of functions, as many as one answer can have. */
interface Declarations {
  readonly text: string;
  /** The functions that are left out. */
  readonly left: readonly string[];
}

/** Declares functions. Types that several of them use are written once. */
export function declare(functions: readonly Declarable[]): Declarations {
  const description = Math.min(MAX_DESCRIPTION, Math.max(MIN_DESCRIPTION, Math.floor(DESCRIPTIONS / functions.length)));
  let length = 0;
  const fitting = functions.flatMap((each) => {
    if (length > MAX_ALL) return [];
    const depth = DEPTHS.find((depth) => written([{ each, depth }], description).length <= MAX_ONE) ?? 1;
    const one = written([{ each, depth }], description);
    length += one.length;
    return length > MAX_ALL && length > one.length ? [] : [{ each, depth }];
  });
  const text = written(fitting, description);
  const left = functions.slice(fitting.length).map(({ of }) => of.whole);
  return { text: text.length <= 2 * MAX_ALL ? text : `${text.slice(0, 2 * MAX_ALL)}…`, left };
}

/** Declares the parameters of one function on one line. */
export function declareParameters({ whole, definition }: ScriptFunction): string {
  const text = `${whole}(${parametersOf(definition.inputSchema, 2, new SharedTypes(), false).text})`;
  return text.length <= MAX_PARAMETERS ? text : `${text.slice(0, MAX_PARAMETERS)}…`;
}

/**
 * Declares a part of a function.
 *
 * @param path such as `args.body.items`
 * @returns undefined if there is no such part
 */
export function declarePart({ of, output }: Declarable, path: string): string | undefined {
  const [, place, rest = ''] = /^(args|result)(?:\.(.*))?$/s.exec(path) ?? [];
  const root = place === 'args' ? of.definition.inputSchema : place === 'result' ? output : undefined;
  const part = root && partOf(root, root, rest === '' ? [] : rest.split('.'));
  if (part === undefined) return undefined;
  const textOf = (objects: number): { readonly text: string; readonly cut: readonly string[] | undefined } => {
    const shared = new SharedTypes();
    shared.count(part, root, false);
    const types = new SchemaTypes(root, { writer: 'model', objects, comments: place === 'args', shared });
    const type = types.type(part);
    const name = typeName(path.split('.').at(-1) ?? '', 'Part');
    return { text: [`type ${name} = ${type};\n`, ...shared.declarations].join(''), cut: types.cut };
  };
  const found = DEPTHS.map(textOf).find(({ text }) => text.length <= MAX_ONE) ?? textOf(1);
  const text = found.text.length <= MAX_ONE ? found.text : `${found.text.slice(0, MAX_ONE)}…\n`;
  return `${text}${found.cut ? wayTo(`${of.whole}:${[path, ...found.cut].join('.')}`) : ''}`;
}

/** @param depth of objects inside objects */
function written(
  functions: readonly { readonly each: Declarable; readonly depth: number }[],
  description: number,
): string {
  const shared = new SharedTypes();
  for (const { each } of functions) {
    const { inputSchema } = each.of.definition;
    shared.count(inputSchema, inputSchema, false);
    shared.count(each.output);
  }
  const groups = new Map<string, string[]>();
  for (const { each, depth } of functions) {
    const lines = groups.get(each.of.group) ?? [];
    lines.push(method(each, depth, shared, description));
    groups.set(each.of.group, lines);
  }
  const consts = [...groups].map(([group, lines]) => `declare const ${group}: {\n${lines.join('')}};\n`);
  return [...consts, ...shared.declarations].join('');
}

function method({ of, output, seen }: Declarable, depth: number, shared: SharedTypes, description: number): string {
  const { definition, whole, name } = of;
  const marks = [...(of.effects ? ['!'] : []), ...(of.approved ? ['(needs approval)'] : [])];
  const about = [...marks, onOneLine(definition.description ?? definition.title, description)]
    .filter(Boolean)
    .join(' ');
  const parameters = parametersOf(definition.inputSchema, depth, shared, true, '  ');
  const results = new SchemaTypes(output, { writer: 'model', objects: depth, comments: false, shared });
  const result = output === undefined ? 'unknown' : results.type();
  const cut = parameters.cut ? ['args', ...parameters.cut] : results.cut && ['result', ...results.cut];
  return [
    about === '' ? '' : `  // ${about}\n`,
    `  ${key(name)}(${parameters.text}): Promise<${result}>;${seen ? ' // as seen once' : ''}\n`,
    cut ? `  ${wayTo(`${whole}:${cut.join('.')}`)}` : '',
  ].join('');
}

/** Tells how to get a part that is cut. */
function wayTo(part: string): string {
  return `// "object" is cut: describe_functions({ names: [${visibleJson(part).trimEnd()}] })\n`;
}

function parametersOf(
  schema: JsonObject,
  objects: number,
  shared: SharedTypes,
  comments: boolean,
  indent = '',
): { readonly text: string; readonly cut?: readonly string[] | undefined } {
  const { members, required, others } = anyShape(shapesOf(schema));
  const isClosed = others === undefined && (schema.additionalProperties === false || isObject(schema.properties));
  if (members.size === 0 && isClosed) return { text: '' };
  const types = new SchemaTypes(schema, { writer: 'model', objects, comments, shared });
  return { text: `args${required.size > 0 ? '' : '?'}: ${types.type(schema, indent)}`, cut: types.cut };
}

/** The schema of a member of a member, through references, lists and alternatives. A name may have points. */
function partOf(schema: unknown, root: unknown, path: readonly string[]): unknown {
  const [first] = path;
  if (first === undefined) return schema;
  const open = [schema];
  for (let read = 0; open.length > 0 && read < MAX_ALTERNATIVES; read += 1) {
    const each = open.shift();
    if (!isObject(each)) continue;
    const { members } = anyShape(shapesOf(each, root));
    for (let words = path.length; words > 0; words -= 1) {
      const [member] = members.get(path.slice(0, words).join('.')) ?? [];
      const found = member === undefined ? undefined : partOf(member, root, path.slice(words));
      if (found !== undefined) return found;
    }
    const { items, prefixItems, additionalProperties, anyOf, oneOf, allOf, $ref } = each;
    const lists = [prefixItems, anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []));
    open.push(items, additionalProperties, ...lists);
    if (typeof $ref === 'string') open.push(resolveReference($ref, root));
  }
  return undefined;
}
