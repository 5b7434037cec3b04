/** Takes pictures of the views: `node --import tsx inspector/dev/views/shots.ts OUT [CHART…]`. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { createServer } from 'vite';
import { all } from './charts.ts';

const [out = '.', ...names] = process.argv.slice(2);
const charts = await all();
const server = await createServer({
  configFile: false,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  cacheDir: join(out, '.vite'),
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  optimizeDeps: {
    include: [
      'preact',
      'preact/hooks',
      'preact/jsx-runtime',
      'preact/jsx-dev-runtime',
      '@dagrejs/dagre',
      'elkjs/lib/elk-worker.min.js',
    ],
  },
  plugins: [
    {
      name: 'charts',
      resolveId: (id) => (id === 'virtual:charts' ? '\0charts' : undefined),
      load: (id) => (id === '\0charts' ? `export default ${JSON.stringify(charts)}` : undefined),
    },
  ],
  server: { port: 0, host: '127.0.0.1', hmr: false, fs: { strict: false } },
});
await server.listen();
const address = server.httpServer?.address();
const port = typeof address === 'object' && address !== null ? address.port : 0;
mkdirSync(out, { recursive: true });
const path = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync) ?? 'chromium';
const browser = await chromium.launch({ executablePath: path, args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1000, height: 680 }, deviceScaleFactor: 1.5 });
page.on('console', (message) => console.log('console', message.text()));
page.on('pageerror', (error) => console.log('error', error.message));
const STATES: Record<string, unknown> = JSON.parse(process.env.STATES ?? '{}');
const views = ['timeline', 'strip', 'messages'];
for (const name of names.filter((each) => views.includes(each)))
  for (const theme of (process.env.THEMES ?? 'light').split(',')) {
    const state = encodeURIComponent(process.env.STATE ?? '{}');
    await page.goto(
      `http://127.0.0.1:${port}/dev/views/index.html?view=${name}&theme=${theme}&state=${state}&count=${process.env.COUNT ?? 300}`,
    );
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(out, `${name}-${theme}.png`) });
  }
for (const name of names.length > 0 ? names.filter((each) => !views.includes(each)) : Object.keys(charts))
  for (const theme of (process.env.THEMES ?? 'light').split(',')) {
    const state = encodeURIComponent(JSON.stringify(STATES[name] ?? {}));
    await page.goto(`http://127.0.0.1:${port}/dev/views/index.html?chart=${name}&theme=${theme}&state=${state}`);
    await page.waitForSelector('[data-engine]', { timeout: 15_000 }).catch(() => console.log('no picture'));
    await page.waitForTimeout(150);
    console.log(name, await page.getAttribute('.chart-pane', 'data-engine'));
    await page.screenshot({ path: join(out, `${name}-${theme}.png`) });
  }
await browser.close();
await server.close();
