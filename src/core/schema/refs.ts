/** Resolves the references of a schema within its own document. Rejects external references and circular ones. */

import { quote } from './excerpts.ts';
import { SchemaError } from './schema-error.ts';
import { resolveUri, type SchemaNode, type SchemaTree, withoutHash } from './walk.ts';

/**
 * Maximum number of subschemas that may apply to one place of a value, counted through references: a chain of doubled references
 * grows as 2^n.
 */
const MAX_IN_PLACE = 10_000;

/**
 * Links each `$ref` and `$dynamicRef` to its target. Never fetches anything (MCP 2026-07-28 basic, "$ref Resolution").
 * @throws SchemaError if a reference leaves the document, names no schema, or returns to its own place without
 *   descending into the value; or if more than 10,000 subschemas apply to one place
 */
export function linkReferences(tree: SchemaTree, where: string): void {
  for (const node of tree.nodes.values()) {
    if (typeof node.schema === 'boolean') continue;
    const { $ref, $dynamicRef } = node.schema;
    if (typeof $ref === 'string') {
      node.target = find($ref, node, tree, where);
      node.inPlace.push(node.target);
    }
    if (typeof $dynamicRef === 'string' && tree.dialect === 'draft-2020-12')
      node.inPlace.push(findDynamic($dynamicRef, node, tree, where));
  }
  weigh(tree, where);
}

function find(reference: string, node: SchemaNode, tree: SchemaTree, where: string): SchemaNode {
  const uri = resolveUri(reference, node.base);
  const resource = uri && tree.resources.get(withoutHash(uri));
  if (uri === undefined || resource === undefined)
    throw new SchemaError(
      where,
      node.at,
      `"$ref" leads outside of the schema: ${quote(reference)}`,
      'nothing is fetched; copy the target into "$defs" and write "#/$defs/…"',
    );
  const fragment = decode(uri.hash.slice(1));
  const target =
    fragment === ''
      ? resource
      : fragment?.startsWith('/')
        ? tree.nodes.get(resource.at + fragment)
        : tree.anchors.get(`${resource.base}#${fragment}`);
  if (target !== undefined) return target;
  const known = [...tree.nodes.keys()].filter((at) => /^#\/(\$defs|definitions)\/[^/]+$/.test(at)).slice(0, 10);
  const fix = known.length > 0 ? `known are ${known.join(', ')}` : 'put the schema into "$defs" and write "#/$defs/…"';
  throw new SchemaError(where, node.at, `"$ref" names no schema: ${quote(reference)}`, fix);
}

/**
 * Our validator follows a `$dynamicRef` correctly only if its anchor is on the root. There it is equivalent to `$ref`,
 * unless a schema with its own `$id` is in between.
 */
function findDynamic(reference: string, node: SchemaNode, tree: SchemaTree, where: string): SchemaNode {
  const { root } = tree;
  const anchor = typeof root.schema === 'boolean' ? undefined : root.schema.$dynamicAnchor;
  if (typeof anchor === 'string' && reference === `#${anchor}` && node.base === root.base) return root;
  throw new SchemaError(
    where,
    node.at,
    `"$dynamicRef" is ${quote(reference)}`,
    'it may only name the "$dynamicAnchor" of the root; write "$ref" instead',
  );
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}

/** Counts, for each subschema, how many subschemas apply to the same place. */
function weigh({ nodes }: SchemaTree, where: string): void {
  const weights = new Map<SchemaNode, number>();
  const open = new Set<SchemaNode>();
  const weight = (node: SchemaNode): number => {
    const known = weights.get(node);
    if (known !== undefined) return known;
    if (open.has(node))
      throw new SchemaError(
        where,
        node.at,
        'a reference returns here without descending into the value',
        'put "properties" or "items" between: otherwise the check would never end',
      );
    open.add(node);
    let sum = 1;
    for (const next of node.inPlace) sum += weight(next);
    open.delete(node);
    if (sum > MAX_IN_PLACE)
      throw new SchemaError(
        where,
        node.at,
        `more than ${MAX_IN_PLACE} subschemas apply to one place`,
        'references multiply here: refer to each schema once',
      );
    weights.set(node, sum);
    return sum;
  };
  for (const node of nodes.values()) weight(node);
}
