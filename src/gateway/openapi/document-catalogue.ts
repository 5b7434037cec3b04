/** The catalogue of a compiled document, as its mount offers and pins it. */
import type { JsonObject, JsonValue } from '../../core/protocol/json.ts';
import type { Tool } from '../../core/protocol/types.ts';
import type { UpstreamCatalogue } from '../mounts/upstream-catalogue.ts';
import type { OpenApiOptions } from './openapi-settings.ts';
import type { ApiOperation, CompiledDocument, SecurityScheme } from './operation.ts';

/** Maximum number of operations that a list has unless the option `expose` says otherwise. */
export const MAX_LISTED = 100;
/** Maximum number of warnings of one document that are reported, and of operations that a report names. */
const MAX_REPORTED = 20;
const MAX_NAMED = 3;

/** The catalogue of a document. */
export function catalogueOf(
  document: CompiledDocument,
  { async = true }: Pick<OpenApiOptions, 'async'>,
): UpstreamCatalogue {
  const { operations, info } = document;
  const tools = operations.map(
    ({ tool, request }): Tool =>
      async && request.responses.accepted ? { ...tool, execution: { taskSupport: 'optional' } } : tool,
  );
  const problems = problemsOf(document);
  return {
    capabilities: { tools: { listChanged: true }, tasks: { requests: { tools: { call: {} } } } },
    ...{ tools, resources: [], templates: [], prompts: [], skills: [] },
    requests: Object.fromEntries(operations.map((each) => [each.tool.name, pinnedRequest(each, document)])),
    ...(operations.some(({ policy }) => policy) && {
      policies: Object.fromEntries(operations.flatMap(({ tool, policy }) => (policy ? [[tool.name, policy]] : []))),
    }),
    ...(operations.length > MAX_LISTED && { expose: 'search' }),
    ...(problems.length > 0 && { problems }),
    version: info.version,
    isPublic: {},
  };
}

/** The request of an operation as its pin has it, with the security schemes that it uses: an address for tokens may change, too. */
export function pinnedRequest({ request, defaults }: ApiOperation, { securitySchemes }: CompiledDocument): JsonObject {
  const used = new Set(request.security.flatMap((combination) => combination.map(({ scheme }) => scheme)));
  const schemes = Object.fromEntries(
    [...used].sort().map((name): [string, SecurityScheme | undefined] => [name, securitySchemes[name]]),
  );
  const { method, path, base, parameters, body, accept, security, idempotencyHeader } = request;
  return asJson({
    ...{ method, path, base, parameters, accept, security, securitySchemes: schemes, defaults },
    ...(body && { body }),
    ...(idempotencyHeader !== undefined && { idempotencyHeader }),
  });
}

/** A value that consists of JSON, as JSON: without members that are undefined. */
export function asJson(value: object): JsonObject {
  const copy = (at: unknown): JsonValue => {
    if (Array.isArray(at)) return at.map(copy);
    if (typeof at === 'object' && at !== null)
      return Object.fromEntries(
        Object.entries(at).flatMap(([member, each]) => (each === undefined ? [] : [[member, copy(each)]])),
      );
    return typeof at === 'string' || typeof at === 'number' || typeof at === 'boolean' ? at : null;
  };
  return { ...Object(copy(value)) };
}

/** Describes in a few sentences which operations and parts are left out. */
function problemsOf({ warnings, skipped }: CompiledDocument): readonly string[] {
  const reasons = new Map<string, string[]>();
  for (const { operation, reason } of skipped) reasons.set(reason, [...(reasons.get(reason) ?? []), operation]);
  const left = [...reasons].map(([reason, operations]) => {
    const named = operations.slice(0, MAX_NAMED).join(', ');
    const more = operations.length - MAX_NAMED;
    return `${named}${more > 0 ? ` and ${more} more operations are` : operations.length > 1 ? ' are' : ' is'} left out: ${reason}`;
  });
  const more = warnings.length - MAX_REPORTED;
  return [...left, ...warnings.slice(0, MAX_REPORTED), ...(more > 0 ? [`${more} more warnings of the document`] : [])];
}
