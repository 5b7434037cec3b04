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

/** The longest declaration of one function, of its parameters in it, and of all in one answer, in characters. */
const MAX_ONE = 6_000;
const MAX_ARGUMENTS = 4_500;
const MAX_ALL = 24_000;
/** The longest description of a function: the more functions, the shorter. */
const MAX_DESCRIPTION = 500;
const MIN_DESCRIPTION = 120;
const DESCRIPTIONS = 900;
/** Objects inside objects: a declaration has the last of these depths with which it is short enough. */
const DEPTHS = [1, 2, 3, 4, 5, 8] as const;
/** The longest parameters in an error. */
const MAX_PARAMETERS = 1_500;
/** Alternatives of a schema in which a member is looked up. */
const MAX_ALTERNATIVES = 50;

/** Objects inside objects that are written. */
interface Depths {
  readonly args: number;
  readonly result: number;
}

/** The declarations of functions, as many as one answer can have. */
interface Declarations {
  readonly text: string;
  /** The functions that are left out. */
  readonly left: readonly string[];
}

/** Declares functions. Types that several of them use are written once. It yields between functions: large ones take milliseconds. */
export function* declaring(functions: readonly Declarable[]): Generator<undefined, Declarations> {
  const description = Math.min(MAX_DESCRIPTION, Math.max(MIN_DESCRIPTION, Math.floor(DESCRIPTIONS / functions.length)));
  let length = 0;
  const fitting: (Depths & { readonly each: Declarable })[] = [];
  for (const each of functions) {
    if (fitting.length > 0) yield;
    const counted = countedTypes([each]);
    const lengthOf = (one: Depths): number => written([{ each, ...one }], description, counted).length;
    const args = deepest((depth) => lengthOf({ args: depth, result: 0 }) <= MAX_ARGUMENTS) ?? 1;
    const result = each.output ? (deepest((depth) => lengthOf({ args, result: depth }) <= MAX_ONE) ?? 0) : 0;
    const own = lengthOf({ args, result });
    length += own;
    if (length > MAX_ALL && length > own) break;
    fitting.push({ each, args, result });
  }
  const text = written(fitting, description, countedTypes(fitting.map(({ each }) => each)));
  const left = functions.slice(fitting.length).map(({ of }) => of.whole);
  return { text: text.length <= 2 * MAX_ALL ? text : `${text.slice(0, 2 * MAX_ALL)}…`, left };
}

/** The deepest of the depths with which a text fits. A longer text is not written. */
function deepest(fits: (depth: number) => boolean): number | undefined {
  let found: number | undefined;
  for (const depth of DEPTHS) {
    if (!fits(depth)) break;
    found = depth;
  }
  return found;
}

function countedTypes(functions: readonly Declarable[]): SharedTypes {
  const shared = new SharedTypes();
  for (const { of, output } of functions) {
    const { inputSchema } = of.definition;
    shared.count(inputSchema, inputSchema, false);
    shared.count(output);
  }
  return shared;
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
  const counted = new SharedTypes();
  counted.count(part, root, false);
  const textOf = (objects: number): { readonly text: string; readonly cut: readonly string[] | undefined } => {
    const shared = counted.unnamed();
    const types = new SchemaTypes(root, { writer: 'model', objects, comments: place === 'args', shared });
    const type = types.type(part);
    const name = typeName(path.split('.').at(-1) ?? '', 'Part');
    return { text: [`type ${name} = ${type};\n`, ...shared.declarations].join(''), cut: types.cut };
  };
  const found = textOf(deepest((depth) => textOf(depth).text.length <= MAX_ONE) ?? 1);
  const text = found.text.length <= MAX_ONE ? found.text : `${found.text.slice(0, MAX_ONE)}…\n`;
  return `${text}${found.cut ? wayTo(`${of.whole}:${[path, ...found.cut].join('.')}`) : ''}`;
}

function written(
  functions: readonly (Depths & { readonly each: Declarable })[],
  description: number,
  counted: SharedTypes,
): string {
  const shared = counted.unnamed();
  const groups = new Map<string, string[]>();
  for (const { each, ...depths } of functions) {
    const lines = groups.get(each.of.group) ?? [];
    lines.push(method(each, depths, shared, description));
    groups.set(each.of.group, lines);
  }
  const consts = [...groups].map(([group, lines]) => `declare const ${group}: {\n${lines.join('')}};\n`);
  return [...consts, ...shared.declarations].join('');
}

function method({ of, output, seen }: Declarable, depths: Depths, shared: SharedTypes, description: number): string {
  const { definition, whole, name } = of;
  const marks = [...(of.effects ? ['!'] : []), ...(of.approved ? ['(needs approval)'] : [])];
  const about = [...marks, onOneLine(definition.description ?? definition.title, description)]
    .filter(Boolean)
    .join(' ');
  const parameters = parametersOf(definition.inputSchema, depths.args, shared, true, '  ');
  const results = new SchemaTypes(output, { writer: 'model', objects: depths.result, comments: false, shared });
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
  const shapes = shapesOf(schema);
  const { members, others } = anyShape(shapes);
  const isOptional = shapes.some(({ required }) => required.size === 0);
  const isClosed = others === undefined && (schema.additionalProperties === false || isObject(schema.properties));
  if (members.size === 0 && isClosed) return { text: '' };
  const types = new SchemaTypes(schema, { writer: 'model', objects, comments, shared });
  return { text: `args${isOptional ? '?' : ''}: ${types.type(schema, indent)}`, cut: types.cut };
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
