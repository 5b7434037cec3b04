/** Two APIs of the example, with their OpenAPI documents, at a port of this machine. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { effect } from './effects.ts';

function documentOf(title: string, noun: string): object {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };
  const responses = { '200': { description: 'ok', content: { 'application/json': { schema: { type: 'object' } } } } };
  return {
    openapi: '3.1.0',
    info: { title, version: '1.0.0' },
    servers: [{ url: '/' }],
    paths: {
      [`/${noun}s/{id}`]: {
        get: { operationId: `get_${noun}`, summary: `Reads a ${noun}`, parameters: [id], responses },
        delete: { operationId: `delete_${noun}`, summary: `Deletes a ${noun}`, parameters: [id], responses },
      },
    },
  };
}

const DOCUMENTS: Readonly<Record<string, object>> = {
  '/customers.json': documentOf('Customers', 'customer'),
  '/tickets.json': documentOf('Tickets', 'ticket'),
};

/** Starts the APIs. @returns their address, and ends them */
export async function startApis(): Promise<{ readonly url: string; close(): void }> {
  const web = createServer(async (request, response) => {
    const path = request.url ?? '';
    const document = Object.hasOwn(DOCUMENTS, path) ? DOCUMENTS[path] : undefined;
    const isDeletion = request.method === 'DELETE';
    const body = document ?? { did: isDeletion ? await effect(`deleted ${path}`) : `read ${path}` };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body));
  });
  await once(web.listen(0, '127.0.0.1'), 'listening');
  const address = web.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    close() {
      web.close();
      web.closeAllConnections();
    },
  };
}
