/** Small OpenAPI documents, and their compilation: what the tests of documents share. */
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { compileDocument } from '../../../src/gateway/openapi/compile-document.ts';
import type { CompileOptions } from '../../../src/gateway/openapi/compile-options.ts';
import { readOpenApi } from '../../../src/gateway/openapi/document-source.ts';
import type { ApiOperation, CompiledDocument } from '../../../src/gateway/openapi/operation.ts';

const OK: JsonObject = { '200': { description: 'ok' } };

/** A document of OpenAPI 3.1 at one server. */
export function documentOf(paths: JsonObject, more: JsonObject = {}): JsonObject {
  const servers = [{ url: 'https://api.example.com/v1' }];
  return { openapi: '3.1.0', info: { title: 'Test', version: '1.0.0' }, servers, paths, ...more };
}

/** A GET operation with these parameters. */
export function reading(name: string, parameters: readonly JsonObject[], more: JsonObject = {}): JsonObject {
  return { get: { operationId: name, parameters, responses: OK, ...more } };
}

/** A POST operation with a body of JSON of this schema. */
export function writing(name: string, schema: JsonObject, more: JsonObject = {}): JsonObject {
  const requestBody = { required: true, content: { 'application/json': { schema } } };
  return { post: { operationId: name, requestBody, responses: OK, ...more } };
}

export async function compiled(
  document: JsonObject,
  options: CompileOptions = {},
  maxOperations = 5_000,
): Promise<CompiledDocument> {
  return compileDocument(await readOpenApi(document, { clock: systemClock }), options, maxOperations);
}

/** The only operation of a document. */
export async function only(document: JsonObject, options: CompileOptions = {}): Promise<ApiOperation> {
  const { operations, skipped } = await compiled(document, options);
  const [operation] = operations;
  if (!operation || operations.length !== 1)
    throw new Error(`expected one operation, got ${operations.length}, and left out: ${JSON.stringify(skipped)}`);
  return operation;
}

/** The names of the tools. */
export function names({ operations }: CompiledDocument): readonly string[] {
  return operations.map(({ tool }) => tool.name);
}

/** The properties of an input schema. */
export function propertiesOf(schema: JsonObject): JsonObject {
  return { ...Object(schema.properties) };
}
