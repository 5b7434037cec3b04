/**
 * Serves the gateway at /mcp, and a page at /waiting on which people who have signed in at /people decide about calls: at port
 * 3000, or at `--port N`. `--data FILE` keeps what waits over restarts.
 */
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { parseArgs } from 'node:util';
import { type Approval, ApprovalError, sqlite } from 'troupe';
import { startApis } from './apis.ts';
import { NAMES, personOf, personOfBrowser } from './people.ts';
import { gateway } from './server.ts';

const MAX_FORM = 10_000;

const { values } = parseArgs({ options: { port: { type: 'string', default: '3000' }, data: { type: 'string' } } });
const apis = await startApis();
const server = await gateway(apis.url, values.data === undefined ? undefined : sqlite(values.data));

interface Page {
  readonly status: number;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function signIn(request: IncomingMessage): Promise<Page> {
  if (request.method !== 'POST') {
    const buttons = NAMES.map((name) => `<button name="person" value="${name}">I am ${name}</button>`);
    return { status: 200, html: `<form method="post">${buttons.join(' ')}</form>` };
  }
  const person = personOf((await formOf(request)).get('person') ?? undefined);
  if (!person) return { status: 400, html: 'Nobody has this name.' };
  const cookie = `person=${person.principal}; HttpOnly; SameSite=Strict; Path=/`;
  return { status: 303, headers: { location: '/waiting', 'set-cookie': cookie } };
}

async function waiting(request: IncomingMessage): Promise<Page> {
  const approver = personOfBrowser(request.headers.cookie);
  if (!approver) return { status: 303, headers: { location: '/people' } };
  if (request.method === 'POST') {
    // The form of another page decides nothing.
    if (request.headers.origin !== `http://${request.headers.host}`)
      return { status: 403, html: 'Not from this page.' };
    const form = await formOf(request);
    const decision = form.get('decision') === 'approve' ? 'approve' : 'deny';
    await server.approvals.decide(form.get('id') ?? '', { approver, decision, via: 'page' });
    return { status: 303, headers: { location: '/waiting' } };
  }
  const mine = await server.approvals.list({ approver });
  const all = await server.approvals.list({ state: 'all' });
  const ended = all.filter(({ id }) => !mine.some((each) => each.id === id));
  return {
    status: 200,
    html: `<h1>For ${approver.principal}</h1>${mine.map(formFor).join('')}<h2>Others</h2>${ended.map(row).join('')}`,
  };
}

function formFor({ id, text }: Approval): string {
  const buttons = ['approve', 'deny'].map((each) => `<button name="decision" value="${each}">${each}</button>`);
  return `<form method="post"><pre>${escaped(text)}</pre><input type="hidden" name="id" value="${escaped(id)}">${buttons.join(' ')}</form>`;
}

function row({ id, tool, principal, state }: Approval): string {
  return `<p data-id="${escaped(id)}">${escaped(tool)} of ${escaped(principal)}: ${state}</p>`;
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) {
    text += part;
    if (text.length > MAX_FORM) throw new Error('the form is too long');
  }
  return new URLSearchParams(text);
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const web = createHttpServer((request, response) => {
  const [path] = request.url?.split('?') ?? [];
  if (path === '/mcp') return server.node(request, response);
  const page = path === '/people' ? signIn : path === '/waiting' ? waiting : undefined;
  const shown = page ? page(request) : Promise.resolve<Page>({ status: 404, html: 'Nothing is here.' });
  shown
    .catch(
      (error: unknown): Page => ({
        status: 409,
        html: error instanceof ApprovalError ? escaped(error.message) : 'Failed.',
      }),
    )
    .then(({ status, html = '', headers }) =>
      response
        .writeHead(status, {
          ...{ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' },
          'content-security-policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
          ...headers,
        })
        .end(`<!doctype html><title>Approvals</title>${html}`),
    );
});

web.listen(Number(values.port), '127.0.0.1', () => {
  const address = web.address();
  if (typeof address === 'object') console.error(`The gateway is at http://127.0.0.1:${address?.port}/mcp`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await server.close(`${signal} came`);
    apis.close();
    web.close();
    web.closeAllConnections();
  });
