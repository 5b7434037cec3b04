/** Compiles one operation: its parameters and body become the arguments of a tool and the plan of a request. */
import { sha256 } from '../../core/kernel/sha256.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import type { CompileOptions, OperationOverride } from './compile-options.ts';
import { descriptionText } from './description-text.ts';
import type { DocumentParts, DocumentPlace, Part } from './document-parts.ts';
import type { DocumentSchemas } from './document-schemas.ts';
import type { DocumentServers } from './document-servers.ts';
import { DocumentError } from './document-source.ts';
import type {
  BodyEncoding,
  OperationBody,
  OperationParameter,
  OperationRequest,
  ParameterStyle,
  SecurityScheme,
} from './operation.ts';
import { requirementsOf } from './security-schemes.ts';

interface CompilerOptions {
  readonly parts: DocumentParts;
  readonly servers: DocumentServers;
  readonly schemes: Readonly<Record<string, SecurityScheme>>;
  readonly options: CompileOptions;
  readonly input: DocumentSchemas;
}

interface GivenOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: JsonObject;
  readonly item: JsonObject;
  readonly place: DocumentPlace;
  readonly name: string;
  /** Without references. */
  readonly parameters: readonly Part[];
  readonly override: OperationOverride;
}

interface CompiledOperation {
  readonly inputSchema: JsonObject;
  readonly checked: JsonObject;
  readonly defaults: JsonObject;
  readonly request: OperationRequest;
}

/** An argument of the tool. */
interface Argument {
  readonly schema: JsonObject;
  readonly required: boolean;
}

const PLACES = ['path', 'query', 'header'] as const;
/** Headers that are not arguments (OpenAPI 3.1, "Parameter Object"), or that only the runtime may write. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...['accept', 'content-type', 'authorization', 'cookie', 'host', 'content-length', 'connection', 'transfer-encoding'],
  ...['upgrade', 'te', 'trailer', 'keep-alive', 'proxy-authorization', 'expect', 'accept-encoding'],
]);
const IDEMPOTENCY = /^(?:x-)?idempotency[-_]?key$/i;
const STYLES: Readonly<Record<(typeof PLACES)[number], readonly ParameterStyle[]>> = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
};
/** A name of a header (RFC 9110 section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const LONGEST_ARGUMENT = 64;

/** A file in a body. */
const FILE: JsonObject = {
  type: 'object',
  description: 'A file: its data, or the uri of a resource of this server that has them',
  properties: {
    data: { type: 'string', contentEncoding: 'base64', description: 'The bytes in base64' },
    uri: { type: 'string', description: 'A resource, in place of data' },
    type: { type: 'string', description: 'The media type' },
    name: { type: 'string', description: 'The name of the file' },
  },
  additionalProperties: false,
};

export class OperationCompiler {
  readonly #options: CompilerOptions;
  /** Names in lower case of headers and query parameters that carry credentials, or that the configuration sets. */
  readonly #hiddenHeaders: ReadonlySet<string>;
  readonly #hiddenQueries: ReadonlySet<string>;

  constructor(options: CompilerOptions) {
    this.#options = options;
    const keys = Object.values(options.schemes).filter((scheme) => scheme.type === 'apiKey');
    const of = (where: string): readonly string[] => keys.filter((key) => key.in === where).map(({ name }) => name);
    const set = Object.keys(options.options.headers ?? {});
    this.#hiddenHeaders = new Set([...of('header'), ...set].map((name) => name.toLowerCase()).concat([...OWN_HEADERS]));
    this.#hiddenQueries = new Set(of('query'));
  }

  /** @returns the reason why the operation cannot be offered, as `problem` */
  compile(given: GivenOperation): CompiledOperation | { readonly problem: string } {
    const { parts, servers, schemes, input } = this.#options;
    const { method, operation, item, place, override } = given;
    const sent = sentPath(given);
    if (typeof sent === 'string') return { problem: sent };
    const server = servers.baseFor(operation.servers, item.servers);
    if ('problem' in server) return server;
    const body = this.#body(operation.requestBody, place);
    if (body && 'problem' in body) return body;
    const args = new Map<string, Argument>();
    if (body) args.set('body', { schema: body.schema, required: body.plan.required });
    const read = this.#parameters({ ...given, path: sent.path }, args, sent.fixed);
    if ('problem' in read) return read;
    const { parameters, idempotencyHeader } = read;
    const hidden = hiddenBy(given.name, override, args);
    const names = [...args.keys()].filter((name) => name !== 'body').concat(body ? ['body'] : []);
    const visible = names.flatMap((name) => {
      const each = args.get(name);
      return each && !hidden.has(name) ? [[name, each] as const] : [];
    });
    const defaults = override.defaults ?? {};
    for (const [name, { required }] of args)
      if (hidden.has(name) && required && defaults[name] === undefined)
        throw new DocumentError(
          `operations.${given.name}: hide: the argument ${name} is required. Give it a value in defaults`,
        );
    const required = visible
      .filter(([name, each]) => each.required && defaults[name] === undefined)
      .map(([name]) => name);
    const schema: JsonObject = {
      type: 'object',
      properties: Object.fromEntries(visible.map(([name, each]) => [name, each.schema])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    };
    const responses = this.#responses(operation.responses, place);
    return {
      inputSchema: input.listed(schema),
      checked: input.withDefinitions(schema),
      defaults,
      request: {
        method,
        path: sent.path,
        base: server.base,
        parameters,
        ...(body && { body: body.plan }),
        accept: acceptOf(responses.media),
        security: requirementsOf(operation.security ?? parts.root.security, schemes),
        ...(idempotencyHeader !== undefined && { idempotencyHeader }),
        responses,
      },
    };
  }

  /** Reads the parameters into arguments: those of the path first, so that a name that several have is that of the path. */
  #parameters(
    { path, place, parameters: given }: GivenOperation,
    args: Map<string, Argument>,
    fixed: ReadonlySet<string>,
  ):
    | { readonly parameters: readonly OperationParameter[]; readonly idempotencyHeader?: string }
    | { readonly problem: string } {
    const { parts } = this.#options;
    const variables = new Set([...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name));
    const declared = new Set(
      given.flatMap(({ value }) => (isJsonObject(value) && value.in === 'path' ? [String(value.name)] : [])),
    );
    const missing = [...variables].filter((name) => !declared.has(name));
    for (const name of missing)
      parts.warn(`${place.shown}: {${name}} of the path is no parameter. It is taken for a text`);
    const all = [
      ...missing.map((name) => ({
        place,
        value: { name, in: 'path', required: true, schema: { type: 'string' } } as JsonObject,
      })),
      ...given,
    ];
    const parameters: OperationParameter[] = [];
    let idempotencyHeader: string | undefined;
    for (const where of PLACES)
      for (const part of all) {
        if (!isJsonObject(part.value) || part.value.in !== where) continue;
        const name = String(part.value.name);
        if (where === 'path' && !variables.has(name)) {
          parts.warn(`${place.shown}: the path has no {${name}}. The parameter is left out`);
          continue;
        }
        if (where === 'header' && IDEMPOTENCY.test(name)) {
          idempotencyHeader = name;
          continue;
        }
        if (this.#isHidden(where, name) || (where === 'query' && fixed.has(name))) continue;
        const read = this.#parameter(part.value, { ...part.place, shown: place.shown }, where, name, args);
        if (typeof read === 'string') return { problem: read };
        if (read) parameters.push(read);
      }
    for (const { value } of all) {
      if (!isJsonObject(value)) continue;
      const { in: where, name, required } = value;
      if (where === 'querystring' && required === true)
        return { problem: `the parameter ${String(name)} is a whole query string` };
      if (where === 'cookie' && !this.#isKey('cookie', String(name)))
        parts.warn(`${place.shown}: the cookie ${String(name)} is not sent`);
    }
    return { parameters, ...(idempotencyHeader !== undefined && { idempotencyHeader }) };
  }

  #isHidden(where: string, name: string): boolean {
    return where === 'header'
      ? this.#hiddenHeaders.has(name.toLowerCase())
      : where === 'query' && this.#hiddenQueries.has(name);
  }

  #isKey(where: string, name: string): boolean {
    return Object.values(this.#options.schemes).some(
      (each) => each.type === 'apiKey' && each.in === where && each.name === name,
    );
  }

  /** @returns the reason why the operation cannot be offered, or undefined for a parameter that is left out */
  #parameter(
    given: JsonObject,
    place: DocumentPlace,
    where: (typeof PLACES)[number],
    name: string,
    args: Map<string, Argument>,
  ): OperationParameter | string | undefined {
    const { parts, input } = this.#options;
    const required = where === 'path' || given.required === true;
    const omit = (reason: string): string | undefined => {
      if (required) return reason;
      parts.warn(`${place.shown}: ${reason}. The parameter is left out`);
      return undefined;
    };
    if (where === 'header' && !TOKEN.test(name)) return omit(`the header ${name.slice(0, 60)} has an invalid name`);
    const [type, media] = isJsonObject(given.content) ? (Object.entries(given.content)[0] ?? []) : [];
    const isJson = type !== undefined && /[/+]json\b/i.test(type);
    if (type !== undefined && !isJson && !type.startsWith('text/'))
      return omit(`the parameter ${name} has the media type ${type.slice(0, 60)}`);
    const usual = STYLES[where][0] ?? 'form';
    const style = given.style === undefined ? usual : STYLES[where].find((each) => each === given.style);
    if (style === undefined) return omit(`the parameter ${name} has the style ${String(given.style).slice(0, 60)}`);
    const source = isJsonObject(media) ? media.schema : given.schema;
    if (style === 'deepObject' && this.#isDeep(source, place))
      parts.warn(
        `${place.shown}: the parameter ${name} is an object in an object, which deepObject does not define. Such a value is rejected`,
      );
    const schema = input.exact(source, place);
    const description = typeof given.description === 'string' ? descriptionText(given.description, 1_024) : '';
    const argument = argumentName(where, name, args);
    args.set(argument, {
      required,
      schema: {
        ...schema,
        ...(description !== '' && { description }),
        ...(given.deprecated === true && { deprecated: true }),
      },
    });
    return {
      argument,
      name,
      in: where,
      style,
      explode: typeof given.explode === 'boolean' ? given.explode : style === 'form' || style === 'deepObject',
      allowReserved: given.allowReserved === true && where === 'query',
      json: isJson,
      required,
    };
  }

  /** True for an object with an object as a member. */
  #isDeep(schema: JsonValue | undefined, place: DocumentPlace): boolean {
    const { parts } = this.#options;
    const found = parts.object(schema, place);
    const members = found && isJsonObject(found.value.properties) ? Object.values(found.value.properties) : [];
    return members.some((member) => found && isJsonObject(parts.object(member, found.place)?.value.properties));
  }

  // The body

  #body(
    given: JsonValue | undefined,
    place: DocumentPlace,
  ): { readonly plan: OperationBody; readonly schema: JsonObject } | { readonly problem: string } | undefined {
    const { parts, options } = this.#options;
    if (given === undefined) return undefined;
    const found = parts.object(given, place);
    const content = found && isJsonObject(found.value.content) ? found.value.content : {};
    if (!found || Object.keys(content).length === 0) return undefined;
    const required = found.value.required === true;
    const [chosen] = Object.entries(content)
      .map(([type, media]) => ({ type, media: isJsonObject(media) ? media : {}, kind: kindOf(type, options.xml) }))
      .filter(({ kind }) => kind !== undefined)
      .sort((one, other) => KINDS.indexOf(one.kind ?? 'binary') - KINDS.indexOf(other.kind ?? 'binary'));
    if (chosen?.kind === undefined) {
      const reason = `the body has the media type ${Object.keys(content).join(', ').slice(0, 100)}, and only JSON, forms, text and binary bodies are sent`;
      if (required) return { problem: reason };
      parts.warn(`${place.shown}: ${reason}. The body is left out`);
      return undefined;
    }
    const { kind, media } = chosen;
    const description =
      typeof found.value.description === 'string' ? descriptionText(found.value.description, 1_024) : '';
    const { schema, files } = this.#bodySchema(kind, media.schema, { ...found.place, shown: place.shown });
    return {
      schema: { ...schema, ...(description !== '' && { description }) },
      plan: {
        required,
        type: chosen.type.includes('*') ? TYPES[kind] : chosen.type,
        kind,
        encoding: isJsonObject(media.encoding) ? encodingsOf(media.encoding) : {},
        files,
      },
    };
  }

  #bodySchema(
    kind: OperationBody['kind'],
    given: JsonValue | undefined,
    place: DocumentPlace,
  ): { readonly schema: JsonObject; readonly files: readonly string[] } {
    const { parts, input } = this.#options;
    if (kind === 'binary') return { schema: FILE, files: [] };
    if (kind === 'text') return { schema: { ...input.exact(given, place), type: 'string' }, files: [] };
    if (kind !== 'multipart') return { schema: input.exact(given, place), files: [] };
    const found = parts.object(given, place);
    if (!found) return { schema: { type: 'object' }, files: [] };
    const schema = input.exact(found.value, found.place);
    const properties: Record<string, JsonValue | undefined> = {
      ...(isJsonObject(schema.properties) ? schema.properties : {}),
    };
    const files: string[] = [];
    for (const [name, part] of Object.entries(isJsonObject(found.value.properties) ? found.value.properties : {})) {
      if (!Object.hasOwn(properties, name)) continue;
      const one = parts.object(part, found.place);
      const items = one && one.value.type === 'array' ? parts.object(one.value.items, one.place) : undefined;
      if (one && isFile(one.value)) properties[name] = described(FILE, one.value);
      else if (one && items && isFile(items.value))
        properties[name] = described({ type: 'array', items: FILE }, one.value);
      else continue;
      files.push(name);
    }
    return { schema: { ...schema, properties, type: 'object' }, files };
  }

  #responses(given: JsonValue | undefined, place: DocumentPlace): OperationRequest['responses'] {
    const { parts } = this.#options;
    const all = Object.entries(isJsonObject(given) ? given : {});
    const successful = all.filter(([status]) => /^2/.test(status));
    const media = new Set<string>();
    for (const [, response] of successful.length > 0 ? successful : all.filter(([status]) => status === 'default')) {
      const content = parts.object(response, place)?.value.content;
      for (const type of Object.keys(isJsonObject(content) ? content : {})) media.add(type);
    }
    return { media: [...media], accepted: successful.some(([status]) => status === '202') };
  }
}

/** The kinds of bodies, those that models write best first. */
const KINDS: readonly OperationBody['kind'][] = ['json', 'form', 'multipart', 'text', 'binary'];

/** The types to send for those with `*`. */
const TYPES: Readonly<Record<OperationBody['kind'], string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
  text: 'text/plain',
  binary: 'application/octet-stream',
};

function kindOf(type: string, xml: CompileOptions['xml']): OperationBody['kind'] | undefined {
  const [name = ''] = type.toLowerCase().split(';', 1);
  const media = name.trim();
  if (media === '*/*' || /^(?:application|text)\/(?:[\w.+-]*\+)?json$/.test(media) || media === 'application/*')
    return 'json';
  if (media === 'application/x-www-form-urlencoded') return 'form';
  if (media === 'multipart/form-data' || media === 'multipart/*') return 'multipart';
  if (/[/+]xml$/.test(media)) return xml === 'text' ? 'text' : undefined;
  if (media.startsWith('multipart/')) return undefined;
  if (media.startsWith('text/') || media === 'application/x-ndjson' || media === 'application/yaml') return 'text';
  return 'binary';
}

/** True for a schema of bytes: `format: binary` (OpenAPI 3.0), or a media type without an encoding (3.1). */
function isFile({ type, format, contentMediaType, contentEncoding }: JsonObject): boolean {
  if (format === 'binary' || type === 'file') return true;
  return typeof contentMediaType === 'string' && contentEncoding === undefined && !/[/+]json$/.test(contentMediaType);
}

function described(schema: JsonObject, { description }: JsonObject): JsonObject {
  return typeof description === 'string' ? { ...schema, description: descriptionText(description, 1_024) } : schema;
}

function encodingsOf(given: JsonObject): OperationBody['encoding'] {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, one]) => {
      if (!isJsonObject(one)) return [];
      const { contentType, style, explode, allowReserved } = one;
      const known = STYLES.query.find((each) => each === style);
      const encoding: BodyEncoding = {
        ...(typeof contentType === 'string' && { contentType }),
        ...(known && { style: known }),
        ...(typeof explode === 'boolean' && { explode }),
        ...(allowReserved === true && { allowReserved }),
      };
      return [[name, encoding]];
    }),
  );
}

/** The characters of a query that a path may have (RFC 3986 section 3.4), and variables. */
const FIXED_QUERY = /^[\w.~!$&'()*+,;=:@/?%{}-]*$/;

/**
 * The path to send. Some documents distinguish operations by a query (`/?Action=List`), or by a fragment, which is never sent. A pair
 * of the query whose value is a variable of a query parameter is that parameter.
 *
 * @returns the path with the other pairs, and their names; or the reason why the operation cannot be offered
 */
function sentPath({
  path,
  parameters,
}: Pick<GivenOperation, 'path' | 'parameters'>):
  | { readonly path: string; readonly fixed: ReadonlySet<string> }
  | string {
  const [whole = ''] = path.split('#', 1);
  const mark = whole.indexOf('?');
  const plain = mark === -1 ? whole : whole.slice(0, mark);
  const query = mark === -1 ? '' : whole.slice(mark + 1);
  if (!plain.startsWith('/')) return 'the path does not begin with a slash';
  if (/\\|(?:^|\/)\.{1,2}(?:\/|$)/.test(plain)) return 'the path has a segment with dots';
  if (!FIXED_QUERY.test(query)) return 'the query of the path has characters that no query has';
  const declared = new Set(
    parameters.flatMap(({ value }) => (isJsonObject(value) && value.in === 'query' ? [String(value.name)] : [])),
  );
  const pairs = query.split('&').filter((pair) => {
    const variable = /^[^=]*=\{([^{}]+)\}$/.exec(pair)?.[1];
    return pair !== '' && (variable === undefined || !declared.has(variable));
  });
  return {
    path: pairs.length === 0 ? plain : `${plain}?${pairs.join('&')}`,
    fixed: new Set(pairs.map((pair) => pair.split('=', 1)[0] ?? '')),
  };
}

/** The name of an argument: letters, digits, `_`, `.` and `-`, because several providers accept no other names of members. */
function argumentName(where: string, name: string, taken: ReadonlyMap<string, Argument>): string {
  const clean = name.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/^_+|_+$/g, '') || 'value';
  const plain = /^[A-Za-z0-9_.-]+$/.test(name) ? name : clean;
  for (const each of [plain, `${where}_${clean}`]) if (each.length <= LONGEST_ARGUMENT && !taken.has(each)) return each;
  return `${plain.slice(0, LONGEST_ARGUMENT - 9)}_${sha256(`${where} ${name}`, 'hex').slice(0, 8)}`;
}

/** @throws {DocumentError} for a name that is no argument */
function hiddenBy(
  name: string,
  { hide = [], defaults = {} }: OperationOverride,
  args: ReadonlyMap<string, Argument>,
): ReadonlySet<string> {
  for (const [option, names] of Object.entries({ hide, defaults: Object.keys(defaults) }))
    for (const each of names)
      if (!args.has(each))
        throw new DocumentError(
          `operations.${name}: ${option}: it has no argument ${each}. It has ${[...args.keys()].join(', ') || 'none'}`,
        );
  return new Set(hide);
}

function acceptOf(media: readonly string[]): string {
  const json = media.find((type) => /[/+]json\b/i.test(type));
  const first = json ?? media.find((type) => type !== '*/*' && /^[\w.+*-]+\/[\w.+*-]+(?:;[\x20-\x7e]*)?$/.test(type));
  return `${first ?? 'application/json'}, */*;q=0.1`;
}
