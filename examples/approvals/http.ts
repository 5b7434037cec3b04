/**
 * Serves the gateway at /mcp, and its pages at /approvals, on which people who have signed in at /people decide about calls: at port
 * 3000, or at `--port N`. `--data FILE` keeps what waits over restarts.
 */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { type Server, sqlite } from 'troupe';
import { startApis } from './apis.ts';
import { NAMES, personOf } from './people.ts';
import { gateway } from './server.ts';

const MAX_FORM = 10_000;

const { values } = parseArgs({ options: { port: { type: 'string', default: '3000' }, data: { type: 'string' } } });
let server: Server | undefined;

/** A page on which a visitor says who they are. */
async function signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') {
    const buttons = NAMES.map((name) => `<button name="person" value="${name}">I am ${name}</button>`);
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(`<!doctype html><title>People</title><form method="post">${buttons.join(' ')}</form>`);
    return;
  }
  let form = '';
  for await (const part of request.setEncoding('utf8')) {
    form += part;
    if (form.length > MAX_FORM) throw new Error('the form is too long');
  }
  const person = personOf(new URLSearchParams(form).get('person') ?? undefined);
  if (!person) return void response.writeHead(400).end('Nobody has this name.');
  const cookie = `person=${person.principal}; HttpOnly; SameSite=Strict; Path=/`;
  response.writeHead(303, { location: '/approvals', 'set-cookie': cookie }).end();
}

const web = createHttpServer((request, response) => {
  if (request.url === '/people')
    return void signIn(request, response).catch(() => response.writeHead(400).end('The form cannot be read.'));
  if (server) return server.node(request, response);
  response.writeHead(503).end('The server starts.');
});
web.listen(Number(values.port), '127.0.0.1');
await once(web, 'listening');
const address = web.address();
const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : values.port}`;
const apis = await startApis();
server = await gateway({ apis: apis.url, origin, store: values.data === undefined ? undefined : sqlite(values.data) });
console.error(`The gateway is at ${origin}/mcp`);

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await server?.close(`${signal} came`);
    apis.close();
    web.close();
    web.closeAllConnections();
  });
