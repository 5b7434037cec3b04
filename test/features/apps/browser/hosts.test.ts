/** The policies of pages in the ways of hosts to embed them: a page that is put into another has its own policy all the same. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createServer } from 'troupe';
import { connect } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { addApps } from '../../../../examples/everything/apps.ts';
import { withPolicy } from '../../../../src/features/apps/page-policy.ts';
import { Browsing, browserSuite, sees } from '../../../harness/browser.ts';
import { fullOnly } from '../../../harness/door.ts';
import { until } from '../../../harness/wait.ts';
import { type BrowserHost, type Embedding, openInHost } from './host.ts';
import { orderPage, ScriptedServer } from './scripted.ts';

fullOnly('opens many pages; the quick tests of policies are page-policy.test.ts');

const test = browserSuite('pages in the frames of hosts');
const browsing = new Browsing();
test.after(() => browsing.close());

const EMBEDDINGS: readonly Embedding[] = ['as it is', 'written', 'wrapped', 'preceded'];

/** The page of an author: the handshake, and nothing else. */
const AUTHORS =
  await withPolicy(`<!doctype html><html lang="en"><head><title>Board</title></head><body><h1>Board</h1><script>
addEventListener('message', ({ data }) => {
  if (data.id === 1) parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/initialized' }, '*');
});
const params = { protocolVersion: '2026-01-26', appInfo: { name: 'board', version: '1' }, appCapabilities: {} };
parent.postMessage({ jsonrpc: '2.0', id: 1, method: 'ui/initialize', params }, '*');
</script></body></html>`);

/** Tries in the page what its policy rejects. @returns the attempts that succeeded */
async function attempts({ view }: BrowserHost): Promise<unknown> {
  return view.locator('body').evaluate(async (body) => {
    const done: string[] = [];
    const { document: page } = Object(globalThis);
    const script = page.createElement('script');
    try {
      script.textContent = 'globalThis.injected = 1';
      page.body.append(script);
    } catch {
      // Trusted Types reject the text.
    }
    if ('injected' in globalThis) done.push('a script');
    try {
      Object(body).insertAdjacentHTML('beforeend', '<img src="data:," onerror="globalThis.handled = 1">');
      await new Promise((failed) => Object(body).lastElementChild.addEventListener('error', failed));
    } catch {
      // Trusted Types reject the markup.
    }
    if ('handled' in globalThis) done.push('a handler');
    await fetch('http://elsewhere.test/').then(
      () => done.push('a request'),
      () => {},
    );
    return done;
  });
}

for (const embedding of EMBEDDINGS)
  test(`the page of a machine, and that of an author, keep their policies in a frame: ${embedding}`, async () => {
    const page = await browsing.page({ width: 760, height: 900 });
    const server = new ScriptedServer();
    const host = await openInHost(page, { html: await orderPage(), embedding, prepare: server.serve });
    await host.bridge.sendToolResult(server.result() as never);
    await host.view.locator('.state', { hasText: 'Cart' }).waitFor();
    await sees(() => attempts(host), []);
    assert.equal(host.requests, []);
    server.change({ view: { total: 41 } });
    await host.view.getByText('41').waitFor();
    await page.close();

    const other = await browsing.page({ width: 760, height: 900 });
    const board = await openInHost(other, { html: AUTHORS, embedding });
    await sees(() => attempts(board), []);
    assert.equal(board.requests, []);
    await other.close();
  });

test('the clock of examples/everything follows the theme of its host, also when that changes', async () => {
  const page = await browsing.page({ theme: 'light', width: 400, height: 300 });
  const server = createServer({ name: 'everything', version: '1.0.0', log: () => {} });
  addApps(server);
  const client = await connect(server);
  const { _meta } = (await client.tools()).find(({ name }) => name === 'show_clock') ?? {};
  const { contents } = await client.read(String(Object(Object(_meta).ui).resourceUri));
  const context = { theme: 'dark' } as const;
  const { bridge, view } = await openInHost(page, { html: String(Object(contents[0]).text), context });
  const back = () =>
    view.locator('body').evaluate((body) => String(Reflect.get(globalThis, 'getComputedStyle')(body).backgroundColor));
  await until(async () => (await back()) === 'rgb(28, 29, 32)');
  bridge.setHostContext({ theme: 'light' });
  await until(async () => (await back()) === 'rgb(255, 255, 255)');
  await bridge.sendToolResult({ content: [], structuredContent: { time: 'noon' } });
  await view.getByText('noon').waitFor();
  await page.close();
  await server.close();
});

/** A page that uses the library, without a package around it. */
const filling = (library: string): string =>
  `<!doctype html><html lang="en"><head><title>Full</title><style>html, body { height: 100%; margin: 0 } p { height: 300px; margin: 0 }</style></head><body><p>Full</p><script type="module">${library}</script></body></html>`;

test('a page that is as high as its frame reports the height of its content once, and no height of the frame', async () => {
  const library = readFileSync(fileURLToPath(new URL('../../../../dist/apps/app.js', import.meta.url)), 'utf8');
  const [, name = ''] = /([\w$]+) as connectView/.exec(library) ?? [];
  const page = await browsing.page({ width: 400, height: 900 });
  const host = await openInHost(page, {
    html: filling(`${library.replace(/export\s*\{[^}]*\};?/, '')};${name}();`),
  });
  await until(() => host.heights.includes(300));
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))');
  assert.equal([...new Set(host.heights)], [300]);
  await page.close();
});
