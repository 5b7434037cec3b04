/** What a reader does with the page, and what can be seen on it. */
import type { Page } from 'playwright-core';
import { type Browsing, type Look, shows } from '../../harness/browser.ts';
import type { Stage } from './stage.ts';

/** The page of that shop with the view of the chart, once it shows who is there. */
export async function open(browsing: Browsing, shop: Stage, look?: Look): Promise<Page> {
  const page = await browsing.page(look);
  await page.goto(shop.url);
  await page.waitForSelector('.status.live');
  // An error has the text of the tree.
  await shows(page.locator('.tree'), 'handles ·');
  await page.click('#tab-chart');
  return page;
}

/** Selects the actor whose name in the tree has the text. */
export async function choose(page: Page, name: string): Promise<void> {
  await page.locator('.node', { hasText: name }).first().click();
}

/** A handle, as the tree names it. */
export const short = (handle = ''): string => handle.slice(0, 8);

/** The active states of the chart that is shown. */
export const activeOf = (page: Page): Promise<readonly (string | undefined)[]> =>
  page
    .locator('.picture .state.active')
    .evaluateAll((all) => all.map((each) => each.getAttribute('data-path') ?? undefined));

/** The transitions that are marked as just taken. */
export const takenOf = (page: Page): Promise<readonly (string | undefined)[]> =>
  page
    .locator('.picture .taken[data-edge]')
    .evaluateAll((all) => [...new Set(all.map((each) => each.getAttribute('data-edge') ?? undefined))]);
