/** An API on this machine with its OpenAPI document, for the tests of mounts and commands. */

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { JsonObject } from '../../../src/core/protocol/json.ts';

export interface ApiServer {
  /** `http://127.0.0.1:PORT`, without a slash at its end. */
  readonly url: string;
  /** The requests that it got, such as `GET /pets?limit=5`. */
  readonly requests: readonly string[];
  /** The headers of the last request. */
  readonly headers: IncomingMessage['headers'];
  /** The document at `/openapi.json`. */
  document: JsonObject;
  close(): Promise<void>;
}

/** The document of the API: relative to its own address. */
export function petsDocument(more: JsonObject = {}): JsonObject {
  const limit = { name: 'limit', in: 'query', description: 'How many.', schema: { type: 'integer', maximum: 100 } };
  const petId = { name: 'petId', in: 'path', required: true, schema: { type: 'string' } };
  const Pet = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
  const requestBody = {
    required: true,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
  };
  const responses = { '200': { description: 'ok' } };
  return {
    openapi: '3.1.0',
    info: { title: 'Pets', version: '1.0.0' },
    servers: [{ url: '/' }],
    paths: {
      '/pets': {
        get: { operationId: 'listPets', summary: 'Lists pets', parameters: [limit], responses },
        post: { operationId: 'createPet', summary: 'Creates a pet', requestBody, responses },
      },
      '/pets/{petId}': {
        delete: { operationId: 'deletePet', summary: 'Deletes a pet', parameters: [petId], responses },
      },
    },
    components: { schemas: { Pet } },
    ...more,
  };
}

/** Starts the API. It answers each request with its method and address, and a document with an ETag. */
export async function apiServer(document: JsonObject = petsDocument()): Promise<ApiServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    api.headers = request.headers;
    response.setHeader('content-type', 'application/json');
    if (request.url !== '/openapi.json')
      return response.end(JSON.stringify({ did: `${request.method} ${request.url}` }));
    const text = JSON.stringify(api.document);
    const etag = `"${text.length}"`;
    response.setHeader('etag', etag);
    if (request.headers['if-none-match'] === etag) return response.writeHead(304).end();
    return response.end(text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const api = {
    ...{ url: `http://127.0.0.1:${port}`, requests, document },
    headers: {} as IncomingMessage['headers'],
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return api;
}
