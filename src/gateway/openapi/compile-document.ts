/** Compiles an OpenAPI document: each of its operations becomes a tool and the plan of a request. */
import { Lazy } from '../../core/kernel/lazy.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { describe, isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import type { Tool } from '../../core/protocol/types.ts';
import { matches } from '../mounts/names.ts';
import type { ToolDocumentation } from '../mounts/tool-finder.ts';
import type { CompileOptions, OperationOverride } from './compile-options.ts';
import { descriptionText } from './description-text.ts';
import { DocumentParts, type DocumentPlace, type Part } from './document-parts.ts';
import { DocumentSchemas } from './document-schemas.ts';
import { DocumentServers } from './document-servers.ts';
import { DocumentError, type SourceDocument } from './document-source.ts';
import type { ApiOperation, CompiledDocument } from './operation.ts';
import { OperationCompiler } from './operation-compiler.ts';
import { securitySchemesIn } from './security-schemes.ts';
import { securitySchemesOf, serversOf, translatedOperation } from './swagger-2.ts';

/** An operation of the document, before it is compiled. */
interface FoundOperation {
  /** In capitals. */
  readonly method: string;
  readonly path: string;
  readonly operation: JsonObject;
  readonly item: JsonObject;
  readonly place: DocumentPlace;
  /** The name of the tool, before overrides. */
  readonly name: string;
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'query'] as const;
/** Methods of HTTP that are no operations of an API, or that no request may use. */
const NOT_OFFERED: ReadonlySet<string> = new Set(['HEAD', 'OPTIONS', 'TRACE', 'CONNECT']);
const VERSION = /^(?:2\.0|3\.[012])(?:$|[.-])/;
/** Names of tools: several hosts accept no other characters and no longer names. */
const LONGEST_NAME = 64;
const STEM = 55;
const LONGEST_DESCRIPTION = 1_024;
/** Tags of one operation. */
const MAX_TAGS = 5;

/**
 * Compiles a document.
 *
 * @param maxOperations most operations that are offered
 * @throws {DocumentError} for a document of another version or form, with more operations, or for an override or filter that fits none
 * @example compileDocument(await readOpenApi('openapi.json', { clock }), { readOnly: true }, 5_000).operations
 */
export function compileDocument(
  source: SourceDocument,
  options: CompileOptions,
  maxOperations: number,
): CompiledDocument {
  const { root } = source;
  const version = versionOf(root);
  const parts = new DocumentParts(source, version);
  const servers = new DocumentServers(version === '2.0' ? serversOf(root) : root.servers, options, source.url);
  const schemes = securitySchemesIn(
    version === '2.0' ? securitySchemesOf(root) : componentsOf(root).securitySchemes,
    parts,
  );
  const found = named(operationsOf(parts));
  const overrides = overridesOf(found, options);
  const skipped: { readonly operation: string; readonly reason: string }[] = [];
  const chosen = found.filter((each) => isChosen(each, options, overrides.get(each), skipped));
  checkFilters(found, options, parts);
  if (chosen.length > maxOperations)
    throw new DocumentError(
      `the document has ${chosen.length} operations, and at most ${maxOperations} can be offered (maxListed). Choose some with only, such as ["tag:users"] or ["GET /users*"], or with readOnly`,
    );
  const compiler = new OperationCompiler({
    parts,
    servers,
    schemes,
    options,
    input: new DocumentSchemas(parts, 'input'),
  });
  const outputs = new Lazy(() => new DocumentSchemas(parts, 'output'));
  const operations = new Map<string, ApiOperation>();
  const documented = new Map<string, () => ToolDocumentation>();
  for (const each of chosen) {
    const shown = `${each.method} ${each.path}`;
    const override = overrides.get(each) ?? {};
    const parameters = parametersOf(each, parts);
    const translated =
      version === '2.0'
        ? translatedOperation(each.operation, parameters, root)
        : { operation: each.operation, parameters };
    const compiled = compiler.compile({ ...each, ...translated, override });
    if ('problem' in compiled) {
      skipped.push({ operation: shown, reason: compiled.problem });
      continue;
    }
    // A part of a response does not fit the schema of the whole.
    const result = (): JsonObject | undefined =>
      override.result ? undefined : resultOf(translated.operation, each.place, parts, outputs.value);
    const declared = options.outputs === 'declare' ? result() : undefined;
    const tool = toolOf(each, override, compiled.inputSchema, declared && asObject(outputs.value.listed(declared)));
    if (operations.has(tool.name))
      skipped.push({ operation: shown, reason: `another operation has the name ${tool.name}` });
    else {
      operations.set(tool.name, {
        tool,
        checked: compiled.checked,
        defaults: compiled.defaults,
        request: compiled.request,
        ...(override.result && { pick: override.result.pick }),
        ...policyOf(override),
      });
      const whole = new Lazy(() => {
        const output = result();
        const { type } = (output && outputs.value.target(output)) ?? {};
        return {
          output:
            output &&
            outputs.value.withDefinitions(
              type === 'object' ? output : { ...asObject(output, type), required: ['result'] },
            ),
        };
      });
      documented.set(tool.name, () => ({
        tags: tagsOf(each.operation),
        get output() {
          return whole.value.output;
        },
      }));
    }
  }
  const [first] = skipped;
  if (operations.size === 0 && chosen.length > 0 && first)
    throw new DocumentError(
      `none of the ${chosen.length} operations can be offered: ${first.operation}: ${first.reason}`,
    );
  return {
    info: infoOf(root),
    // The order of the document may change without any other change.
    operations: [...operations.values()].sort(({ tool: one }, { tool: other }) => (one.name < other.name ? -1 : 1)),
    securitySchemes: schemes,
    trusted: servers.trusted,
    warnings: parts.warnings,
    skipped,
    documented,
    webhooks: webhooksOf(root, found),
  };
}

/** @throws {DocumentError} */
function versionOf(root: JsonObject): string {
  const given = root.openapi ?? root.swagger;
  const version = typeof given === 'number' ? given.toFixed(1) : given;
  if (typeof version === 'string' && VERSION.test(version)) return version.slice(0, 3);
  throw new DocumentError(
    given === undefined
      ? `expected an OpenAPI document with the member openapi or swagger, got the members ${Object.keys(root).slice(0, 5).join(', ') || 'none'}`
      : `expected a document of OpenAPI 3.0, 3.1 or 3.2, or of Swagger 2.0, got version ${describe(given)}`,
  );
}

function componentsOf(root: JsonObject): JsonObject {
  return isJsonObject(root.components) ? root.components : {};
}

function infoOf({ info }: JsonObject): CompiledDocument['info'] {
  const { title, version, description } = isJsonObject(info) ? info : {};
  return {
    title: typeof title === 'string' ? title : 'API',
    version: typeof version === 'string' || typeof version === 'number' ? String(version) : '0',
    ...(typeof description === 'string' && { description: descriptionText(description, LONGEST_DESCRIPTION) }),
  };
}

function operationsOf(parts: DocumentParts): readonly Omit<FoundOperation, 'name'>[] {
  const found: Omit<FoundOperation, 'name'>[] = [];
  const paths = parts.object(parts.root.paths, { file: '', key: '#/paths', shown: 'paths' });
  for (const [path, given] of Object.entries(paths?.value ?? {})) {
    if (path.startsWith('x-')) continue;
    const item = parts.object(given, { file: paths?.place.file ?? '', key: '', shown: path });
    if (!item) continue;
    const additional = isJsonObject(item.value.additionalOperations)
      ? Object.entries(item.value.additionalOperations)
      : [];
    for (const [method, value] of [...METHODS.map((each) => [each, item.value[each]] as const), ...additional]) {
      const name = method.toUpperCase();
      if (!isJsonObject(value) || NOT_OFFERED.has(name) || !/^[A-Z]{2,20}$/.test(name)) continue;
      const place = { ...item.place, shown: `${name} ${path}` };
      found.push({ method: name, path, operation: value, item: item.value, place });
    }
  }
  return found;
}

/** Names the operations. The name of each depends on the other operations of the document, and not on their order. */
function named(operations: readonly Omit<FoundOperation, 'name'>[]): readonly FoundOperation[] {
  const wanted = operations.map(nameOf);
  const counts = new Map<string, number>();
  for (const name of wanted) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
  return operations.map((each, index) => {
    const name = wanted[index] ?? '';
    const fits = name.length <= LONGEST_NAME && counts.get(name.toLowerCase()) === 1;
    const hash = sha256(`${each.method} ${each.path}`, 'hex').slice(0, 8);
    return { ...each, name: fits ? name : `${name.slice(0, STEM)}_${hash}` };
  });
}

function nameOf({ method, path, operation: { operationId } }: Omit<FoundOperation, 'name'>): string {
  const given = typeof operationId === 'string' ? cleaned(operationId) : '';
  if (given !== '') return given;
  const words = path.split('/').map((segment) => cleaned(segment.replace(/\{([^{}]*)\}/g, 'by_$1')));
  return [method.toLowerCase(), ...words].filter((word) => word !== '').join('_');
}

function cleaned(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+|_+$/g, '');
}

/** @throws {DocumentError} for an override that names no operation */
function overridesOf(
  found: readonly FoundOperation[],
  { operations = {} }: CompileOptions,
): ReadonlyMap<FoundOperation, OperationOverride> {
  const overrides = new Map<FoundOperation, OperationOverride>();
  for (const [key, override] of Object.entries(operations)) {
    const meant = found.filter((each) => isNamed(each, key));
    if (meant.length === 0)
      throw new DocumentError(
        `operations.${key}: the document has no such operation${suggestion(
          key,
          found.map(({ name }) => name),
        )}. Write the name of its tool, its operationId, or GET /path`,
      );
    if (meant.length > 1)
      throw new DocumentError(
        `operations.${key}: expected the name of one operation, got that of ${meant.length}. Write METHOD /path`,
      );
    for (const each of meant) overrides.set(each, { ...overrides.get(each), ...override });
  }
  return overrides;
}

function isNamed({ name, method, path, operation }: FoundOperation, key: string): boolean {
  return key === name || key === operation.operationId || key === `${method} ${path}`;
}

/** True if a filter names an operation: `tag:name`, `GET /path/*`, or a name. */
function fits({ name, method, path, operation }: FoundOperation, filter: string): boolean {
  if (filter.startsWith('tag:'))
    return (
      Array.isArray(operation.tags) &&
      operation.tags.some((tag) => typeof tag === 'string' && matches(filter.slice(4), tag))
    );
  if (filter.includes(' /')) return matches(filter, `${method} ${path}`);
  return matches(filter, name) || (typeof operation.operationId === 'string' && matches(filter, operation.operationId));
}

function isChosen(
  found: FoundOperation,
  { only, except = [], methods, readOnly }: CompileOptions,
  override: OperationOverride | undefined,
  skipped: { operation: string; reason: string }[],
): boolean {
  if (only && !only.some((filter) => fits(found, filter))) return false;
  if (except.some((filter) => fits(found, filter))) return false;
  if (methods && !methods.some((method) => method.toUpperCase() === found.method)) return false;
  const isReading = override?.annotations?.readOnlyHint ?? (found.method === 'GET' || found.method === 'QUERY');
  if (readOnly === true && isReading !== true) return false;
  if (found.operation.deprecated !== true || only?.some((filter) => isNamed(found, filter))) return true;
  skipped.push({ operation: `${found.method} ${found.path}`, reason: 'deprecated. Name it in only to offer it' });
  return false;
}

function checkFilters(
  found: readonly FoundOperation[],
  { only = [], except = [] }: CompileOptions,
  parts: DocumentParts,
): void {
  for (const [option, filters] of Object.entries({ only, except }))
    for (const filter of filters)
      if (!found.some((each) => fits(each, filter))) parts.warn(`${option}: ${filter} fits no operation`);
}

/** The parameters of an operation and of its path, without references. One of the operation replaces one of the path. */
function parametersOf({ operation, item, place }: FoundOperation, parts: DocumentParts): readonly Part[] {
  const all = new Map<string, Part>();
  for (const list of [item.parameters, operation.parameters])
    for (const given of Array.isArray(list) ? list : []) {
      const found = parts.object(given, place);
      if (found && typeof found.value.name === 'string')
        all.set(`${String(found.value.in)} ${found.value.name}`, {
          value: found.value,
          place: { ...found.place, shown: place.shown },
        });
    }
  return [...all.values()];
}

function toolOf(
  { method, name, operation, path }: FoundOperation,
  override: OperationOverride,
  inputSchema: JsonObject,
  outputSchema: JsonObject | false | undefined,
): ApiOperation['tool'] {
  const summary = typeof operation.summary === 'string' ? descriptionText(operation.summary, 200) : '';
  const text =
    typeof operation.description === 'string' ? descriptionText(operation.description, LONGEST_DESCRIPTION) : '';
  const both = text.toLowerCase().startsWith(summary.toLowerCase())
    ? text
    : [summary, text].filter(Boolean).join('\n\n');
  const title = override.title ?? summary;
  const description = override.description ?? descriptionText(both || `${method} ${path}`, LONGEST_DESCRIPTION);
  const shown = override.name ?? name;
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(shown))
    throw new DocumentError(
      `operations.${name}: name: expected 1 to 64 letters, digits, "_", "." and "-", got ${describe(shown)}`,
    );
  return {
    name: shown,
    // Most summaries are the whole description: a title that repeats it says nothing.
    ...(title !== '' && title !== description && { title }),
    description,
    inputSchema: { ...inputSchema, type: 'object' },
    ...(outputSchema && { outputSchema: { ...outputSchema, type: 'object' } }),
    annotations: { ...annotationsOf(method), ...override.annotations },
  };
}

function policyOf({ timeoutMs, approve }: OperationOverride): Pick<ApiOperation, 'policy'> {
  if (timeoutMs === undefined && approve === undefined) return {};
  return { policy: { ...(timeoutMs !== undefined && { timeoutMs }), ...(approve !== undefined && { approve }) } };
}

/** The hints that follow from a method (RFC 9110 section 9.2). */
function annotationsOf(method: string): NonNullable<Tool['annotations']> {
  if (method === 'GET' || method === 'QUERY') return { readOnlyHint: true, openWorldHint: true };
  const idempotentHint = method === 'PUT' || method === 'DELETE';
  return { readOnlyHint: false, destructiveHint: true, idempotentHint, openWorldHint: true };
}

/** The exact schema of the result of the first successful response with JSON, as clients get it. */
function resultOf(
  operation: JsonObject,
  place: DocumentPlace,
  parts: DocumentParts,
  schemas: DocumentSchemas,
): JsonObject | undefined {
  const { responses } = operation;
  for (const [status, given] of Object.entries(isJsonObject(responses) ? responses : {})) {
    if (!/^2/.test(status)) continue;
    const response = parts.object(given, place);
    const content = response && isJsonObject(response.value.content) ? response.value.content : {};
    for (const [type, media] of Object.entries(content)) {
      if (!/[/+]json\b/i.test(type) || !isJsonObject(media) || media.schema === undefined || !response) continue;
      return schemas.exact(media.schema, response.place);
    }
  }
  return undefined;
}

/** Results are objects: another value is the member `result` of one. */
function asObject(schema: JsonObject, type = schema.type): JsonObject {
  return type === 'object' ? schema : { type: 'object', properties: { result: schema } };
}

function tagsOf({ tags }: JsonObject): readonly string[] {
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string').slice(0, MAX_TAGS) : [];
}

function webhooksOf({ webhooks, 'x-webhooks': earlier }: JsonObject, found: readonly FoundOperation[]): number {
  const count = (value: JsonValue | undefined): number => (isJsonObject(value) ? Object.keys(value).length : 0);
  return found.reduce((sum, { operation }) => sum + count(operation.callbacks), count(webhooks) + count(earlier));
}
