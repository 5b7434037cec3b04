/** The simulated chat client: views of a server in a frame of another origin, with the differences between hosts. */
import type { Page } from 'playwright-core';
import { createServer } from 'troupe';
import { openInspector } from 'troupe/inspector';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { orderMachine, SKU, totalOf } from '../../../examples/order/order.ts';
import { Browsing, browserSuite, sees, shows } from '../../harness/browser.ts';
import { fullOnly } from '../../harness/door.ts';

fullOnly('opens many pages; the quick test of the page is overview.test.ts');

const test = browserSuite('the simulated chat client');
const browsing = new Browsing();
const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
server.machine('order', orderMachine, {
  input: z.object({ customer: z.string() }),
  events: {
    add_item: z.object({ sku: SKU, quantity: z.number().int().min(1).default(1) }),
    checkout: true,
    cancel: true,
  },
  view: ({ context }) => ({ ...context, total: totalOf(context) }),
  app: true,
});
/** A page of an author, which shakes no hands. */
const board = (text: string) => ({
  html: `<!doctype html><html lang="en"><head><title>Board</title></head><body><p>${text}</p></body></html>`,
  tools: ['board_show'],
});
server.app('board', board('first'));
server.tool('board_show', () => 'The board');
let url = '';

test.before(async () => {
  url = (await openInspector(server, { control: true })).url;
});
test.after(async () => {
  await browsing.close();
  await server.close();
  assert.equal(browsing.complaints, []);
});

/** A switch of the page. */
function choice(page: Page, label: string) {
  return page.locator('.apps-switches label', { hasText: label }).locator('select');
}

async function openApps(address = url): Promise<Page> {
  const page = await browsing.page({ height: 1600 });
  await page.goto(address);
  await page.waitForSelector('.status.live');
  await page.click('#tab-server');
  await page.locator('.offer-row', { hasText: 'Apps in a chat client' }).click();
  return page;
}

test('opens a view, passes on what it does, and shows its messages and the context of the model', async () => {
  const page = await openApps();
  await page.locator('.apps-call textarea, .apps-call input').first().fill('Ada');
  await page.getByRole('button', { name: 'Call, and open the view' }).click();
  const view = page.frameLocator('.apps-frame iframe').frameLocator('iframe');
  await view.locator('.state', { hasText: 'Cart' }).waitFor();
  // The frame has an origin of its own, and neither the page nor its token.
  const frames = page.frames().map((frame) => frame.url());
  const [{ origin } = new URL(url), proxy] = frames
    .filter((each) => each.startsWith('http'))
    .map((each) => new URL(each));
  assert.not.equal(proxy?.origin, origin);
  assert.not.ok(frames.slice(1).some((each) => each.includes(new URL(url).hash.slice(1))));
  await view.getByRole('group', { name: 'Add item' }).getByLabel('Sku').selectOption('kettle');
  await view.getByRole('group', { name: 'Add item' }).getByRole('button').click();
  await view.getByText('30', { exact: true }).waitFor();
  const messages = page.locator('.apps-messages');
  await messages.getByText('ui/update-model-context').first().waitFor();
  await shows(messages, /ui\/initialize[\s\S]*tool-result[\s\S]*update-model-context/);
  await page.getByText('by the user in the view').first().waitFor();
  await shows(page.locator('.apps-text').first(), /^order \S+: cart/);

  await choice(page, 'theme').selectOption('dark');
  await view.locator('body[style*="dark"]').waitFor();
  await choice(page, 'language').selectOption('ar-EG');
  await view.locator('html[dir=rtl]').waitFor();
  await choice(page, 'width').selectOption('320');
  await view.locator('.picture').waitFor({ state: 'hidden' });
  await page.close();
});

test('a host of another preset is another frame: with a fixed height, or without anything', async () => {
  const page = await openApps();
  await page.locator('.apps-call textarea, .apps-call input').first().fill('Grace');
  await page.getByRole('button', { name: 'Call, and open the view' }).click();
  const view = page.frameLocator('.apps-frame iframe').frameLocator('iframe');
  await view.locator('.state', { hasText: 'Cart' }).waitFor();
  await choice(page, 'host').selectOption('ChatGPT');
  await view.locator('.state', { hasText: 'Cart' }).waitFor();
  await sees(() => page.locator('.apps-frame iframe').getAttribute('height'), '695');
  await choice(page, 'host').selectOption('none');
  await view.getByRole('button', { name: 'Try again' }).waitFor();
  await page.locator('.apps-messages .refusal').first().waitFor();
  await choice(page, 'host').selectOption('everything');
  await view.locator('.state', { hasText: 'Cart' }).waitFor();
  await page.close();
});

test('a page that is saved is shown in place of the earlier one, with the same call', async () => {
  const page = await openApps();
  await page.locator('.apps-call select').first().selectOption('board_show');
  await page.getByRole('button', { name: 'Call, and open the view' }).click();
  const view = page.frameLocator('.apps-frame iframe').frameLocator('iframe');
  await view.getByText('first').waitFor();
  server.apps.update({ name: 'board', ...board('second') });
  await view.getByText('second').waitFor();
  await page.close();
});

test('without control, the page says how to get it', async () => {
  const inspector = await openInspector(server);
  const page = await openApps(inspector.url);
  await page.getByText('--inspect-control').waitFor();
  await page.close();
  await inspector.close();
});
