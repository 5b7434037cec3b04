/**
 * Converts ajv's errors into problems: one for each thing to correct, and none for alternatives that the caller did not
 * mean.
 */
import { isObject } from '../protocol/json.ts';
import type { ValidatorError } from './ajv.ts';
import { listWords, literal, quote } from './excerpts.ts';
import { branches, expectedBy, expectedOf } from './expected.ts';
import { PROBLEM_LIMIT, problemAt } from './problems.ts';
import type { Problem } from './schema.ts';
import type { GuardedSchema } from './schema-guard.ts';
import { schemaTree } from './schema-guard.ts';
import type { SchemaNode, SchemaTree } from './walk.ts';

/** Keywords that try other schemas: ajv reports every failed trial, then the keyword itself. */
const TRIALS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'contains', 'propertyNames']);

/**
 * @param errors ajv's errors, in ajv's order
 * @param root the whole value
 * @param guarded the schema that the validator was compiled from
 */
export function ajvProblems(errors: readonly ValidatorError[], root: unknown, guarded: GuardedSchema): Problem[] {
  const tree = schemaTree(guarded);
  const bySchema = new Map<unknown, SchemaNode>();
  for (const node of tree.nodes.values()) bySchema.set(node.schema, node);
  const kept: ValidatorError[] = [];
  for (const error of errors) {
    const node = bySchema.get(error.parentSchema);
    // "if" fails only together with its "then" or "else", whose errors are in the list, too.
    if (error.keyword === 'if') continue;
    if (node !== undefined && TRIALS.has(error.keyword)) settle(kept, error, node, tree);
    else kept.push(error);
  }
  return kept.slice(0, PROBLEM_LIMIT).map((error) => problemOf(error, root, bySchema.get(error.parentSchema), tree));
}

/**
 * Replaces the failed trials at the end of the list by the error of their keyword, or by the errors of the intended
 * branch.
 */
function settle(kept: ValidatorError[], error: ValidatorError, node: SchemaNode, tree: SchemaTree): void {
  const isBranching = error.keyword === 'anyOf' || error.keyword === 'oneOf';
  const single = tree.nodes.get(`${node.at}/${error.keyword}`);
  const tried = isBranching ? branches(node, error.keyword, tree) : single === undefined ? [] : [single];
  const schemas = reach(tried);
  let begin = kept.length;
  while (begin > 0 && belongs(kept[begin - 1], error, schemas)) begin -= 1;
  const trials = kept.splice(begin);
  const meant = isBranching && !passedMany(error) ? tried.filter((branch) => mayFit(branch, error.data, tree)) : [];
  const ofMeant = meant.length === 1 ? reach(meant) : new Set();
  const better = trials.filter((trial) => ofMeant.has(trial.parentSchema));
  if (better.length > 0) kept.push(...better);
  else kept.push(error);
}

function belongs(trial: ValidatorError | undefined, error: ValidatorError, schemas: ReadonlySet<unknown>): boolean {
  if (trial === undefined) return false;
  const isWithin = trial.instancePath === error.instancePath || trial.instancePath.startsWith(`${error.instancePath}/`);
  return isWithin && schemas.has(trial.parentSchema);
}

/** All schemas that a check of these schemas can reach. */
function reach(from: readonly SchemaNode[]): ReadonlySet<unknown> {
  const seen = new Set(from);
  for (const node of seen) for (const next of [...node.inPlace, ...node.inner]) seen.add(next);
  return new Set([...seen].map(({ schema }) => schema));
}

/** True if a value looks meant for this branch: it has the right type and fixed values such as `kind: "circle"`. */
function mayFit(node: SchemaNode, value: unknown, tree: SchemaTree): boolean {
  if (typeof node.schema === 'boolean') return node.schema;
  const { type, properties } = node.schema;
  if (!isFixed(node.schema, value)) return false;
  if (typeof type === 'string' && !isOfType(value, type)) return false;
  if (Array.isArray(type) && !type.some((each) => isOfType(value, each))) return false;
  if (node.target !== undefined && !mayFit(node.target, value, tree)) return false;
  if (!branches(node, 'allOf', tree).every((part) => mayFit(part, value, tree))) return false;
  if (!isObject(value) || !isObject(properties)) return true;
  return Object.entries(properties).every(
    ([name, property]) => !Object.hasOwn(value, name) || !isObject(property) || isFixed(property, value[name]),
  );
}

/** False only if `const` or `enum` contains plain values and none of them equals this value. */
function isFixed(schema: Readonly<Record<string, unknown>>, value: unknown): boolean {
  const allowed = 'const' in schema ? [schema.const] : schema.enum;
  return (
    !Array.isArray(allowed) || allowed.some((each) => each === value || (typeof each === 'object' && each !== null))
  );
}

function isOfType(value: unknown, type: unknown): boolean {
  if (value === null) return type === 'null';
  if (Array.isArray(value)) return type === 'array';
  return typeof value === (type === 'integer' ? 'number' : type);
}

function passedMany({ keyword, params }: ValidatorError): boolean {
  return keyword === 'oneOf' && Array.isArray(params.passingSchemas);
}

function problemOf(error: ValidatorError, root: unknown, node: SchemaNode | undefined, tree: SchemaTree): Problem {
  const keys = keysOf(error.instancePath);
  const params: Readonly<Record<string, unknown>> = error.params;
  const at = (extra: unknown, expected: string): Problem => problemAt(root, [...keys, String(extra)], expected);
  switch (error.keyword) {
    case 'required':
      return at(
        params.missingProperty,
        node === undefined ? 'a value' : expectedProperty(node, String(params.missingProperty), tree),
      );
    case 'dependentRequired':
    case 'dependencies':
      return at(params.missingProperty, `a value, because ${quote(String(params.property))} is given`);
    case 'additionalProperties':
      return at(params.additionalProperty, `no such property${known(error.parentSchema)}`);
    case 'unevaluatedProperties':
      return at(params.unevaluatedProperty, 'no such property');
    case 'propertyNames':
      return at(
        params.propertyName,
        `another name: ${expectedOf(node && tree.nodes.get(`${node.at}/propertyNames`), tree)}`,
      );
    case 'anyOf':
      return problemAt(root, keys, expectedOf(node, tree));
    case 'oneOf':
      return problemAt(
        root,
        keys,
        passedMany(error) ? `only one of: ${expectedOf(node, tree)} (it fits several)` : expectedOf(node, tree),
      );
    case 'not':
      return problemAt(root, keys, `anything but ${expectedOf(node && tree.nodes.get(`${node.at}/not`), tree)}`);
    case 'contains':
      return problemAt(
        root,
        keys,
        expectedItems(params, expectedOf(node && tree.nodes.get(`${node.at}/contains`), tree)),
      );
    default:
      return problemAt(root, keys, expectedBy(error));
  }
}

function expectedProperty(node: SchemaNode, name: string, tree: SchemaTree): string {
  const property = isObject(node.schema) && isObject(node.schema.properties) ? node.schema.properties : {};
  if (!Object.hasOwn(property, name)) return 'a value';
  const pointer = name.replaceAll('~', '~0').replaceAll('/', '~1');
  return expectedOf(tree.nodes.get(`${node.at}/properties/${pointer}`), tree);
}

function expectedItems({ minContains, maxContains }: Readonly<Record<string, unknown>>, item: string): string {
  const most = maxContains === undefined ? '' : ` and at most ${String(maxContains)}`;
  return `array with at least ${String(minContains)}${most} of: ${item}`;
}

function known(parent: unknown): string {
  const properties = isObject(parent) && isObject(parent.properties) ? Object.keys(parent.properties) : [];
  return properties.length > 0
    ? ` (known: ${listWords(properties.map((name) => (/^[\w$-]{1,60}$/.test(name) ? name : literal(name))))})`
    : '';
}

/** The keys of a JSON Pointer (RFC 6901). */
function keysOf(pointer: string): string[] {
  const [, ...segments] = pointer.split('/');
  return segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}
