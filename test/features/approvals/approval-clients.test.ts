/** The official clients over HTTP, in both eras: their user is sent to the page of an approval, and the call that waits runs once. */
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { createServer, http, type Server } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { freePort } from '../../harness/free-port.ts';
import { textOf } from '../../harness/results.ts';

const test = suite('official clients at the pages of approvals');

/** The browser of ada: reads the page, and approves. */
async function approve(address: string): Promise<void> {
  const { origin } = new URL(address);
  const headers = { 'x-user': 'ada', origin };
  const page = await (await fetch(address, { headers })).text();
  const [, mark = ''] = /name="mark" value="([^"]+)"/.exec(page) ?? [];
  const body = new URLSearchParams({ mark, decision: 'approve' });
  assert.is((await fetch(address, { method: 'POST', redirect: 'manual', headers, body })).status, 303);
}

/** Each connects, calls the tool, and opens the pages that it is asked to. */
const CALLS: Readonly<Record<string, (url: URL, pages: string[]) => Promise<object>>> = {
  async 'version 1'(url, pages) {
    const client = new Client({ name: 'v1', version: '1' }, { capabilities: { elicitation: { url: {} } } });
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      if ('url' in params) pages.push(String(params.url));
      void approve(pages.at(-1) ?? '');
      return { action: 'accept' as const };
    });
    const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { 'x-user': 'ada' } } });
    // Its types do not know `exactOptionalPropertyTypes`.
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    const result = await client.callTool({ name: 'refund', arguments: {} });
    await client.close();
    return result;
  },
  'version 2 in a session': (url, pages) => withNew(url, pages, 'legacy'),
  'version 2 without a session': (url, pages) => withNew(url, pages, 'auto'),
};

async function withNew(url: URL, pages: string[], mode: 'legacy' | 'auto'): Promise<object> {
  const client = new NewClient(
    { name: 'v2', version: '1' },
    { capabilities: { elicitation: { url: {} } }, ...(mode === 'auto' && { versionNegotiation: { mode } }) },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    if ('url' in params) pages.push(String(params.url));
    void approve(pages.at(-1) ?? '');
    return { action: 'accept' as const };
  });
  await client.connect(new NewTransport(url, { requestInit: { headers: { 'x-user': 'ada' } } }));
  const result = await client.callTool({ name: 'refund', arguments: {} });
  await client.close();
  return result;
}

async function started(ran: string[]): Promise<readonly [Server, URL]> {
  const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
  server.tool('refund', { approve: true, input: { type: 'object' } }, (_, { approval }) => {
    ran.push(approval?.approvers.join() ?? '');
    return 'refunded';
  });
  const user = ({ header }: { header(name: string): string | undefined }): string | undefined => header('x-user');
  // The address of the pages is known before the port is: any free one is behind it.
  const port = await freePort();
  const transport = http({
    port,
    authenticate: user,
    signIn: { url: `http://127.0.0.1:${port}/oauth/callback`, identify: user },
  });
  await server.listen(transport);
  return [server, new URL(transport.url)];
}

for (const [title, call] of Object.entries(CALLS))
  test(`the user of a client of ${title} approves on the page, and its call runs once`, async () => {
    const ran: string[] = [];
    const pages: string[] = [];
    const [server, url] = await started(ran);
    assert.is(textOf(await call(url, pages)), 'refunded');
    assert.equal([pages.length, ran], [1, ['ada']]);
    assert.match(pages[0] ?? '', '/approvals/');
    await server.close();
  });
