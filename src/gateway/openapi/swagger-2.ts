/** Translates the parts of a Swagger 2 document that OpenAPI 3 writes differently. Schemas stay as they are. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import type { Part } from './document-parts.ts';

const FLOWS: Readonly<Record<string, string>> = {
  accessCode: 'authorizationCode',
  application: 'clientCredentials',
  implicit: 'implicit',
  password: 'password',
};

/** The members of a parameter that are its schema in OpenAPI 3. */
const OF_SCHEMA: ReadonlySet<string> = new Set([
  ...[
    'type',
    'format',
    'items',
    'default',
    'enum',
    'pattern',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
  ],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems', 'multipleOf'],
]);

/** The servers, as OpenAPI 3 writes them: `https` first. Without a host they are relative to the address of the document. */
export function serversOf({ host, basePath, schemes }: JsonObject): JsonValue {
  const path = typeof basePath === 'string' ? basePath : '/';
  if (typeof host !== 'string' || host === '') return [{ url: path }];
  const known = Array.isArray(schemes) ? schemes.filter((each) => each === 'http' || each === 'https') : [];
  return (known.length === 0 ? ['https'] : known).map((scheme) => ({ url: `${scheme}://${host}${path}` }));
}

/** The security schemes, as OpenAPI 3 writes them. */
export function securitySchemesOf({ securityDefinitions }: JsonObject): JsonObject {
  if (!isJsonObject(securityDefinitions)) return {};
  return Object.fromEntries(
    Object.entries(securityDefinitions).map(([name, scheme]) => [
      name,
      isJsonObject(scheme) ? securityScheme(scheme) : {},
    ]),
  );
}

function securityScheme(scheme: JsonObject): JsonObject {
  if (scheme.type === 'basic') return { type: 'http', scheme: 'basic' };
  if (scheme.type !== 'oauth2') return scheme;
  const { flow, authorizationUrl, tokenUrl, scopes } = scheme;
  const name = typeof flow === 'string' ? FLOWS[flow] : undefined;
  return { type: 'oauth2', flows: name === undefined ? {} : { [name]: { authorizationUrl, tokenUrl, scopes } } };
}

/**
 * An operation with its parameters and body as OpenAPI 3 writes them.
 *
 * @param parameters of the operation and its path, without references
 */
export function translatedOperation(
  operation: JsonObject,
  parameters: readonly Part[],
  root: JsonObject,
): { readonly operation: JsonObject; readonly parameters: readonly Part[] } {
  const consumes = mediaTypes(operation.consumes ?? root.consumes);
  const others: Part[] = [];
  const fields: JsonObject[] = [];
  let body: JsonObject | undefined;
  for (const part of parameters) {
    if (!isJsonObject(part.value)) continue;
    const { value } = part;
    if (value.in === 'body') {
      const content = Object.fromEntries(
        (consumes.length === 0 ? ['application/json'] : consumes).map((type) => [type, { schema: value.schema }]),
      );
      body = { required: value.required === true, description: value.description, content };
    } else if (value.in === 'formData') fields.push(value);
    else others.push({ ...part, value: { ...value, schema: schemaOf(value), ...styleOf(value) } });
  }
  if (fields.length > 0) body = formOf(fields, consumes);
  const { responses } = operation;
  const produces = mediaTypes(operation.produces ?? root.produces);
  return {
    operation: {
      ...operation,
      ...(body && { requestBody: body }),
      ...(isJsonObject(responses) && {
        responses: Object.fromEntries(
          Object.entries(responses).map(([status, response]) => [
            status,
            isJsonObject(response) && response.schema !== undefined
              ? {
                  ...response,
                  content: Object.fromEntries(
                    (produces.length === 0 ? ['application/json'] : produces).map((type) => [
                      type,
                      { schema: response.schema },
                    ]),
                  ),
                }
              : response,
          ]),
        ),
      }),
    },
    parameters: others,
  };
}

function formOf(fields: readonly JsonObject[], consumes: readonly string[]): JsonObject {
  const hasFile = fields.some(({ type }) => type === 'file');
  const type =
    hasFile || consumes.includes('multipart/form-data') ? 'multipart/form-data' : 'application/x-www-form-urlencoded';
  const properties = Object.fromEntries(
    fields.map((field) => [
      String(field.name),
      field.type === 'file'
        ? { type: 'string', format: 'binary', description: field.description }
        : { ...schemaOf(field), description: field.description },
    ]),
  );
  const required = fields.filter((field) => field.required === true).map(({ name }) => String(name));
  const encoding = Object.fromEntries(
    fields.flatMap((field) => (field.type === 'array' ? [[String(field.name), styleOf(field)]] : [])),
  );
  return {
    required: required.length > 0,
    content: { [type]: { schema: { type: 'object', properties, ...(required.length > 0 && { required }) }, encoding } },
  };
}

function schemaOf(parameter: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(parameter).filter(([member]) => OF_SCHEMA.has(member)));
}

/** `collectionFormat` as style and explode. */
function styleOf({ in: where, type, collectionFormat }: JsonObject): JsonObject {
  if (type !== 'array') return {};
  if (where === 'path' || where === 'header') return { style: 'simple', explode: false };
  if (collectionFormat === 'multi') return { style: 'form', explode: true };
  if (collectionFormat === 'ssv') return { style: 'spaceDelimited', explode: false };
  if (collectionFormat === 'pipes') return { style: 'pipeDelimited', explode: false };
  return { style: collectionFormat === 'tsv' ? 'tabDelimited' : 'form', explode: false };
}

function mediaTypes(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
