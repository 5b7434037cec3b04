/** The output schema of a machine's tools: its states are those of the chart, its view and output those of the author's schemas. */
import { nodesOf } from '../../../core/kernel/charts/chart.ts';
import type { ChartNode } from '../../../core/kernel/charts/chart-node.ts';
import type { JsonObject, JsonValue } from '../../../core/protocol/json.ts';
import { compileOutput } from '../../../core/schema/compile-schema.ts';
import { refers } from '../../../core/schema/wrap.ts';
import type { AnyMachine } from '../define-machine.ts';
import { withoutUsualDialect } from './handle-arguments.ts';

/** Maximum number of states that a schema names. Every model and client reads them. */
const MAX_STATES = 40;

/**
 * Makes the schema of an instance as structured content.
 *
 * @param chart the states of an instance; undefined for any states
 * @throws {SchemaError} for a schema of the author that cannot be registered
 */
export function viewSchema(
  { name, key, previous, schemas = {} }: AnyMachine,
  chart: ChartNode | undefined,
): JsonObject {
  const own = (member: 'view' | 'output'): JsonObject => {
    const schema = schemas[member];
    if (schema === undefined) return {};
    const json = withoutUsualDialect(compileOutput(schema, `machine "${name}": schemas.${member}`).json);
    // References inside of a schema refer to its own root; an `$id` preserves that.
    return refers(json) && json.$id === undefined ? { $id: member, ...json } : json;
  };
  const keyed = key !== undefined;
  // An instance may finish on its earlier machine, whose states are others.
  const named = previous === undefined && chart !== undefined && nodesOf(chart).length <= MAX_STATES;
  return {
    type: 'object',
    properties: {
      happened: { type: 'string' },
      [keyed ? 'key' : 'handle']: { type: 'string' },
      state: named ? (keyed ? orAbsent(stateSchema(chart)) : stateSchema(chart)) : {},
      status: { type: 'string', enum: ['active', 'done', 'failed', 'ended', ...(keyed ? ['absent'] : [])] },
      view: own('view'),
      accepts: { type: 'array', items: { type: 'string' } },
      asks: { type: 'array', items: { type: 'object' } },
      version: { type: 'integer' },
      output: own('output'),
      failure: { type: 'string' },
      created: { type: 'string' },
      expires: { type: 'string' },
    },
    required: keyed
      ? ['key', 'state', 'status', 'accepts', 'version']
      : ['handle', 'state', 'status', 'accepts', 'version', 'created', 'expires'],
  };
}

/** The state of a key without an instance is `absent`. */
function orAbsent(states: JsonObject): JsonObject {
  return { anyOf: [{ type: 'string', enum: ['absent'] }, ...(Array.isArray(states.anyOf) ? states.anyOf : [states])] };
}

/** The schema of a state value of XState: the key of an atomic state, or an object with the state inside of each. */
export function stateSchema({ type, nodes: all }: ChartNode): JsonObject {
  const nodes = all.filter((node) => node.type !== 'history');
  if (type === 'parallel') return members(nodes);
  const atomic = nodes.filter((node) => node.nodes.length === 0).map(({ key }): JsonValue => key);
  const nested = nodes.filter((node) => node.nodes.length > 0).map((node) => members([node]));
  const forms = [...(atomic.length > 0 ? [{ type: 'string', enum: atomic }] : []), ...nested];
  return forms.length > 1 ? { anyOf: forms } : (forms[0] ?? { type: 'object' });
}

function members(nodes: readonly ChartNode[]): JsonObject {
  return {
    type: 'object',
    properties: Object.fromEntries(
      nodes.map((node) => [node.key, node.nodes.length === 0 ? { type: 'object' } : stateSchema(node)]),
    ),
    required: nodes.map(({ key }) => key),
  };
}
