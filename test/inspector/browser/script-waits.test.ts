/** A script that waits for people: the view names the question and its user, then the approval and its terms, and a page decides. */
import type { Page } from 'playwright-core';
import { createServer, type Server } from 'troupe';
import { type Client, connect } from 'troupe/client';
import { openInspector } from 'troupe/inspector';
import * as assert from 'uvu/assert';
import * as z from 'zod';
import { Browsing, browserSuite, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';

fullOnly('opens pages; the quick tests of waits are features/code/waits.test.ts and model/script-lane.test.ts');

const test = browserSuite('a script that waits for people');
const browsing = new Browsing();

const CODE = `const wrapped = await shop.wrap({ order: 'A1' });
const { refunded } = await shop.refund({ id: 'A1' });
return { wrapped, refunded };`;

function shopOf(): Server {
  const shop = createServer({ name: 'shop', version: '1.0.0' });
  const paper = z.object({ paper: z.string() });
  shop.tool('wrap', { description: 'Wraps an order.', input: z.object({ order: z.string() }) }, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Which paper?', schema: paper });
    return { paper: answer.status === 'accepted' ? answer.content.paper : 'none' };
  });
  shop.tool('refund', { description: 'Pays an order back.', input: z.object({ id: z.string() }) }, ({ id }) => ({
    refunded: id,
  }));
  return shop;
}

let server: Server;
let page: Page;
let client: Client;
let answered: (answer: { readonly paper: string }) => void = () => {};
/** It may be given before the client is asked. */
const answer = new Promise<{ readonly paper: string }>((resolve) => {
  answered = resolve;
});
let called: Promise<{ readonly content?: unknown }>;

test.before(async () => {
  server = createServer({ name: 'office', version: '1.0.0', code: { effects: 'allow', waitMs: 100 } });
  await server.mount('shop', shopOf(), { expose: 'code', trust: true });
  server.authorize(({ element }) => element.name !== 'shop_refund' || { approve: { by: { scope: 'boss' } } }, {
    ...{ name: 'refunds', version: '1' },
  });
  const inspector = await openInspector(server, { control: true });
  client = await connect(server, { elicit: () => answer });
  page = await browsing.page({ width: 1_280, height: 800 });
  await page.goto(inspector.url);
  await page.waitForSelector('.status.live');
  called = client.call('run_code', { code: CODE });
});
test.after(async () => {
  await browsing.close();
  await client.close();
  await server.close();
});

const waits = () => page.locator('.script .waits');
const here = () => page.locator('.script-code li.here');

test('the view of a script that waits for a question names the question and its user', async () => {
  await page.click('#tab-script');
  await waits().getByText('Which paper?').waitFor();
  await shows(waits(), /Which paper\?[\s\S]*for shop\.wrap \(call 1\)/);
  await shows(here(), /^1\s+const wrapped[\s\S]*call 1 shop\.wrap\s+asks/);
});

test('the view of a script that waits for an approval names the approval, and the terms at the line of the call', async () => {
  answered({ paper: 'blue' });
  await waits().getByText('the approval').waitFor();
  await shows(waits(), /the approval \S+ of shop\.refund \(call 2\)/);
  await here().getByText('shop.refund').first().waitFor();
  await shows(here(), /^2\s+const \{ refunded \}[\s\S]*call 2 shop\.refund/);
  await shows(page.locator('.script-why'), /^the approval of somebody with the scope boss, until 2/);
  await shows(page.locator('.script-head'), /waiting for approval/);
});

test('a person approves the call on the page, and the script returns', async () => {
  await page.click('#tab-overview');
  const card = page.getByRole('region', { name: /^approval: / });
  await shows(card, /"id": "A1"[\s\S]*Needs: somebody with the scope boss/);
  await card.getByRole('button', { name: 'Approve' }).click();
  await card.waitFor({ state: 'detached' });
  await page.click('#tab-script');
  await page.locator('.script-head', { hasText: 'returned' }).waitFor();
  await shows(page.locator('.script'), /"refunded":"A1"/);
  const text = textOf(await called);
  assert.match(text, /"wrapped":\{"paper":"blue"\},"refunded":"A1"/);
});

test('no page has written an error to its console', () => {
  assert.equal(browsing.complaints, []);
});
