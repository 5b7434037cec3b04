/** The documentation site: it builds, each link and picture leads somewhere, and a reader finds a page on a phone, in the dark, by search. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { GROUPS } from '../../../build/docs-list.ts';
import { Browsing, program } from '../../harness/browser.ts';
import { fullOnly, suite, timeLimit } from '../../harness/door.ts';

fullOnly('builds the site in a minute; the quick tests of links and of the list are in docs.test.ts');
timeLimit(900_000);

const root = fileURLToPath(new URL('../../..', import.meta.url));
const html = join(root, 'dist/site');
const VITEPRESS = join(root, 'site/node_modules/vitepress/bin/vitepress.js');
const test = suite('the site', existsSync(VITEPRESS) ? undefined : 'no VitePress: npm ci --prefix site');
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
};

/** Whether the page scrolls sideways, and whether it is dark. */
const LOOK = `[document.documentElement.scrollWidth > innerWidth, document.documentElement.classList.contains('dark')]`;

/** The file that a server with clean addresses sends. */
function fileAt(path: string): string | undefined {
  const file = join(html, path);
  return [file, `${file}.html`, join(file, 'index.html')].find((each) => existsSync(each) && statSync(each).isFile());
}

function run(...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  assert.is(status, 0, `${stdout}${stderr}`);
}

test.before(() => {
  run('--import', 'tsx', 'site/stage.ts');
  run(VITEPRESS, 'build', 'site');
});

test('each page of the list is a page of the site', () => {
  const listed = GROUPS.flatMap(({ pages }) => pages.map(({ file }) => file)).filter((file) =>
    file.startsWith('docs/'),
  );
  const pages = listed.map((file) => file.replace(/^docs\//, '/').replace(/\.md$/, ''));
  assert.equal(
    pages.filter((page) => fileAt(page) === undefined),
    [],
  );
  for (const file of ['index.html', '404.html', 'llms.txt']) assert.ok(existsSync(join(html, file)), file);
});

test('each link, anchor and picture of the site leads somewhere', () => {
  const pages = readdirSync(html, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'));
  assert.ok(pages.length > 90);
  const ids = new Map<string, Set<string>>();
  const idsOf = (file: string): Set<string> => {
    let found = ids.get(file);
    if (!found) {
      found = new Set([...readFileSync(file, 'utf8').matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id));
      ids.set(file, found);
    }
    return found;
  };
  const wrong: string[] = [];
  for (const page of pages)
    for (const [, link = ''] of readFileSync(join(html, page), 'utf8').matchAll(
      /<(?:a|img)[^>]* (?:href|src)="([^"]+)"/g,
    )) {
      if (!/^[/#]/.test(link)) continue;
      const [path = '', anchor] = link.split('#');
      const file = path === '' ? join(html, page) : fileAt(decodeURIComponent(path));
      const missing = anchor !== undefined && file !== undefined && !idsOf(file).has(decodeURIComponent(anchor));
      if (file === undefined || missing) wrong.push(`${page}: ${link}`);
    }
  assert.equal([...new Set(wrong)], []);
});

test('the diagrams of the machines are pictures', () => {
  const page = readFileSync(join(html, 'machines.html'), 'utf8');
  assert.ok(page.split('<img class="chart"').length > 10);
  assert.not.match(page, /stateDiagram/);
});

if (program === undefined) test.skip('a reader finds a page', 'no Chromium: set CHROMIUM, or install it');
else
  test('a reader finds a page by search, and no page is wider than a phone or a window', async () => {
    const server = createServer((request, response) => {
      const file = fileAt(decodeURIComponent((request.url ?? '/').split('?')[0] ?? '/'));
      const type = TYPES[extname(file ?? '404.html')] ?? 'application/octet-stream';
      response.writeHead(file === undefined ? 404 : 200, { 'content-type': type });
      response.end(readFileSync(file ?? join(html, '404.html')));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const address = `http://127.0.0.1:${port}`;
    const browsing = new Browsing();
    try {
      for (const [width, theme] of [
        [360, 'dark'],
        [1280, 'light'],
      ] as const) {
        const page = await browsing.page({ width, theme });
        for (const path of ['/', '/authors', '/machines', '/performance']) {
          await page.goto(`${address}${path}`, { waitUntil: 'networkidle' });
          const [wider, dark] = await page.evaluate<[boolean, boolean]>(LOOK);
          assert.is(wider, false, `${path} is wider than ${width} px`);
          assert.is(dark, theme === 'dark');
        }
        await page.goto(address, { waitUntil: 'networkidle' });
        await page.locator('#local-search button').click();
        await page.locator('#localsearch-input').fill('repeated runs');
        await page.getByRole('option', { name: 'Repeated runs' }).first().click();
        await page.waitForURL(/\/asking#repeated-runs$/);
      }
      assert.equal(browsing.complaints, []);
      const page = await browsing.page();
      await page.goto(`${address}/no-such-page`);
      await page.getByText('There is no such page').waitFor();
    } finally {
      await browsing.close();
      server.close();
    }
  });
