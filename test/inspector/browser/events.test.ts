/** The view of events: its tables, a test event, a schedule by hand, and a dead letter that is delivered again. */
import type { Page } from 'playwright-core';
import { openInspector } from 'troupe/inspector';
import * as assert from 'uvu/assert';
import { Browsing, browserSuite, lacks, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { type Bakery, bakery } from '../traffic-stage.ts';

fullOnly('opens pages; the quick test of what the view shows is event-traffic.test.ts');

const test = browserSuite('the view of events');
const browsing = new Browsing();
let show: Bakery;
let page: Page;

test.before(async () => {
  show = await bakery();
  const inspector = await openInspector(show.server, { control: true });
  await show.begin();
  page = await browsing.page({ width: 1_280, height: 800 });
  await page.goto(inspector.url);
  await page.waitForSelector('.status.live');
  await page.click('#tab-events');
});
test.after(async () => {
  await browsing.close();
  await show.close();
});

const rowOf = (name: string) => page.locator('.traffic tbody tr', { hasText: name }).first();

test('an event of the form is checked against the schema, and reaches the subscribers', async () => {
  const row = rowOf('order.paid');
  await row.getByText('#1', { exact: true }).waitFor();
  await shows(row, /1 \/ min[\s\S]*1 event[\s\S]*2 webhooks/);
  await row.getByRole('button', { name: 'Test event' }).click();
  const form = page.getByRole('form', { name: 'test event of order.paid' });
  await form.getByLabel('order').fill('an order with a name that is too long');
  await form.getByLabel('amount').fill('3');
  await form.getByRole('button', { name: 'Emit' }).click();
  await page.locator('.notice', { hasText: 'the data does not fit "payload"' }).waitFor();
  assert.is(show.works.posts.length, 1);
  await form.getByLabel('order').fill('o2');
  await form.getByRole('button', { name: 'Emit' }).click();
  await row.getByText('#2', { exact: true }).waitFor();
  await until(() => show.works.posts.length === 2);
  await row.getByRole('button', { name: 'Close' }).click();
  await form.waitFor({ state: 'detached' });
});

test('a callback that fails stands first, with its host only', async () => {
  const first = page.locator('.subscriptions-table tbody tr').first();
  await first.getByText('bob').waitFor();
  await shows(first, /127\.0\.0\.1:\d+[\s\S]*\d dead[\s\S]*http_4xx/);
  await lacks(page, /zq7wxk3v9/);
});

test('a schedule runs by hand, and its next date stays', async () => {
  const row = rowOf('inventory');
  const date = await row.locator('.cell-until .cell-beside').innerText();
  await row.getByRole('button', { name: 'Run now' }).click();
  await row.getByText('by hand').waitFor();
  assert.is(show.slots[0]?.manual, true);
  await sees(() => row.locator('.cell-until .cell-beside').innerText(), date);
  const tidy = rowOf('tidy');
  await sees(() => tidy.getByRole('combobox').inputValue(), 'north');
  await tidy.getByRole('button', { name: 'Run now' }).click();
  await page.locator('.notice', { hasText: 'sent "tidy" to oven north' }).waitFor();
});

test('a dead letter opens with its content and its error, and is delivered again', async () => {
  show.closed = false;
  const letter = page.locator('.traffic details', { hasText: 'webhook' }).first();
  await letter.locator('summary').click();
  await letter.locator('pre', { hasText: '"password": "«redacted»"' }).waitFor();
  await letter.getByText('the bakery is closed').waitFor();
  await letter.getByRole('button', { name: 'Deliver again' }).click();
  await letter.locator('summary', { hasText: 'delivered again' }).waitFor();
  await until(() => show.pushes.length === 1);
});

test('a narrow page shows the tables without a scroll bar of its own', async () => {
  await page.setViewportSize({ width: 390, height: 800 });
  await sees(() => page.evaluate('innerWidth'), 390);
  await sees(() => page.locator('.traffic').evaluate((all) => all.scrollWidth - all.clientWidth), 0);
});

test('no page has written an error to its console', () => {
  // A command that the server rejects is a failed request, which Chromium reports.
  assert.equal(
    browsing.complaints.filter((text) => !text.includes('400 (Bad Request)')),
    [],
  );
});
