/**
 * Screenshots of details that shots.ts omits: other kinds of actors, the chain of causes, what-if, compare, help. Not
 * shipped.
 */
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browsing } from '../../../test/harness/browser.ts';
import { stage } from '../../../test/inspector/browser/stage.ts';

const out = process.argv[2] ?? join(tmpdir(), 'troupe-page-shots');
mkdirSync(out, { recursive: true });
const browsing = new Browsing();
const show = await stage({ control: true });
const page = await browsing.page({ theme: process.argv[3] === 'dark' ? 'dark' : 'light' });
await page.goto(show.url);
await page.waitForSelector('.node');
await page.waitForTimeout(800);
await show.begin();
await page.waitForTimeout(800);
const shot = (name: string) => page.screenshot({ path: `${out}/more-${name}.png` });
await page.locator('.node.session').first().click();
await page.waitForTimeout(900);
await shot('session');
await page.locator('.node.request').first().click();
await page.waitForTimeout(900);
await shot('request');
await page.locator('.node.handle').first().click();
await page.waitForTimeout(700);
await page.fill('.suppose input', 'cancel');
await page.getByRole('button', { name: 'Try', exact: true }).click();
await page.waitForTimeout(500);
await page.locator('.supposed').scrollIntoViewIfNeeded();
await shot('whatif');
await page.locator('.detail .scroll').evaluate((element) => {
  element.scrollTop = element.scrollHeight;
});
await shot('history');
await page.keyboard.press('m');
await page.click('#tab-wire');
await page.locator('.wire-row', { hasText: 'order_checkout' }).last().click();
await page.waitForTimeout(300);
await shot('open');
await page.getByText('Effects').first().click();
await page.waitForTimeout(300);
await shot('record');
await page.click('#tab-messages');
await page.waitForTimeout(600);
await shot('chain');
await page.keyboard.press('?');
await page.waitForTimeout(300);
await shot('help');
process.stdout.write(`${browsing.complaints.join('\n')}\n`);
await browsing.close();
await show.close();
