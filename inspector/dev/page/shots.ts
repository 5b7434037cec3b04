/** Screenshots of the page with a real server and real clients, in a headless Chromium. Not shipped. */
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browsing } from '../../../test/harness/browser.ts';
import { stage } from '../../../test/inspector/browser/stage.ts';

const out = process.argv[2] ?? join(tmpdir(), 'troupe-page-shots');
mkdirSync(out, { recursive: true });
const browsing = new Browsing();
for (const theme of ['light', 'dark'] as const) {
  const show = await stage();
  const page = await browsing.page({ theme, width: 1440, height: 900 });
  await page.goto(show.url);
  await page.waitForSelector('.node');
  await page.waitForTimeout(800);
  await show.begin();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${out}/${theme}-0-overview.png` });
  const node = page.locator('.node.handle').first();
  if (await node.count()) await node.click();
  await page.waitForTimeout(1200);
  await page.screenshot({ path: `${out}/${theme}-1-chart.png` });
  for (const tab of ['messages', 'wire', 'timeline', 'coverage']) {
    await page.click(`#tab-${tab}`);
    await page.waitForTimeout(700);
    if (tab === 'wire') await page.locator('.wire-row').nth(3).click();
    await page.waitForTimeout(200);
    await page.screenshot({ path: `${out}/${theme}-2-${tab}.png` });
  }
  if (theme === 'light') {
    await page.setViewportSize({ width: 1024, height: 700 });
    await page.click('#tab-chart');
    await page.waitForTimeout(500);
    await page.screenshot({ path: `${out}/${theme}-3-1024.png` });
  }
  await page.close();
  await show.close();
}
process.stdout.write(`${browsing.complaints.join('\n')}\n`);
await browsing.close();
