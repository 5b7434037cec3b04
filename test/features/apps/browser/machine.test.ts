/** The page of a machine in Chromium, behind a proxy of another origin, with the official bridge and a scripted server. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { McpUiHostContext } from '@modelcontextprotocol/ext-apps/app-bridge';
import * as assert from 'uvu/assert';
import { GERMAN } from '../../../../examples/order/german.ts';
import { Browsing, browserSuite, counts, lacks, sees, shows } from '../../../harness/browser.ts';
import { fullOnly } from '../../../harness/door.ts';
import { assertFigure } from '../../../harness/pace.ts';
import { SCALE } from '../../../harness/scale.ts';
import { until } from '../../../harness/wait.ts';
import { violationsIn } from './axe.ts';
import { type BrowserHost, CAPABLE, openInHost } from './host.ts';
import { FOR_MODEL, order, orderPage, ScriptedServer } from './scripted.ts';

fullOnly('opens many pages; the quick browser test of views is order.test.ts');

const test = browserSuite('the page of a machine');
const browsing = new Browsing();
let html = '';

test.before(async () => {
  html = await orderPage();
});
test.after(async () => {
  await browsing.close();
  // A policy that is violated, and a script that fails, complain on the console.
  assert.equal(browsing.complaints, []);
});

interface Opened extends BrowserHost {
  readonly server: ScriptedServer;
}

async function opened({
  theme = 'light',
  width = 720,
  height = 1000,
  scale = 1,
  context = {},
  capabilities = CAPABLE,
  before = '',
  source = html,
}: {
  theme?: 'light' | 'dark';
  width?: number;
  height?: number;
  scale?: number;
  context?: McpUiHostContext;
  capabilities?: typeof CAPABLE;
  /** A part of the page that precedes its policy. */
  before?: string;
  source?: string;
} = {}): Promise<Opened> {
  const page = await browsing.page({ theme, width: Math.max(width, 400), height, scale });
  const server = new ScriptedServer();
  const host = await openInHost(page, {
    html: source.replace('<head>', () => `<head>${before}`),
    width,
    capabilities,
    context: { theme, locale: 'en', timeZone: 'UTC', ...context },
    prepare: server.serve,
  });
  await host.bridge.sendToolInput({ arguments: { customer: 'Ada' } });
  await host.bridge.sendToolResult(server.result() as never);
  await host.view.locator('dl').first().waitFor();
  return { ...host, server };
}

const QUESTION = {
  id: 'consent',
  kind: 'elicit',
  message: 'Charge Ada 38?',
  fields: [{ name: 'agreed', required: true, title: 'Charge my card', kind: 'field', field: { kind: 'flag' } }],
  until: '2030-01-01T12:00:00.000Z',
};
const ASKING = { state: 'confirming', accepts: ['cancel'], timers: [], asks: [QUESTION] };

test('shows the state, its data, its timers and its events, and makes no request', async () => {
  const { view, requests, page } = await opened();
  await sees(() => view.locator('.state').textContent(), 'Cart');
  await sees(() => view.locator('li[aria-current=step]').textContent(), 'Cart');
  await counts(view.locator('rect.now'), 1);
  await sees(() => view.locator('th').allTextContents(), ['Sku', 'Quantity']);
  await sees(() => view.locator('td').allTextContents(), ['tea', '2', 'kettle', '1']);
  const buttons = view.locator('[aria-label=Actions] > .buttons button:visible');
  await sees(() => buttons.allTextContents(), ['Add item', 'Checkout', 'Cancel', 'Discard']);
  await view.locator('progress').waitFor();
  await shows(view.locator('.timer'), /^Patience\s*00:2\d:\d\d$/);
  assert.equal(requests, []);
  await page.close();
});

test('an event goes to its tool with the key, its refusal is shown at its form, and the model gets a sentence', async () => {
  const { view, server, told, page } = await opened();
  const panel = view.getByRole('group', { name: 'Add item' });
  // The browser asks for the missing choice.
  await panel.getByRole('button').click();
  assert.equal(server.calls, []);
  await panel.getByLabel('Sku').selectOption('cup');
  server.answer = () => ({ ...FOR_MODEL, _meta: { 'dev.troupe/view': { reason: 'refused' } } });
  await panel.getByRole('button').click();
  await view.getByRole('alert').filter({ hasText: 'This is not possible now.' }).waitFor();
  assert.equal(told, []);
  await sees(() => panel.getByLabel('Sku').inputValue(), 'cup');
  server.answer = () => {
    server.change({ view: { total: 47 } });
    return server.result();
  };
  await panel.getByRole('button').click();
  await view.getByText('47').waitFor();
  assert.equal(
    server.calls.map(({ name, arguments: args, meta }) => [name, args, meta]),
    [1, 2].map(() => [
      'order_add_item',
      { handle: 'V1StGXR8_Z5jdHi6B-myT', sku: 'cup', quantity: 1 },
      { 'dev.troupe/view': { key: 'k' } },
    ]),
  );
  await sees(
    async () => told,
    ['order V1StGXR8_Z5jdHi6B-myT: Cart, by the user in the view'],
    'the texts for the model',
  );
  await page.close();
});

test('a destructive event asks again, and Back returns to its button', async () => {
  const { view, server, page } = await opened();
  const cancel = view.locator('.buttons').getByRole('button', { name: 'Cancel', exact: true });
  await cancel.click();
  const panel = view.getByRole('group', { name: 'Cancel' });
  await panel.getByRole('button', { name: 'Back' }).click();
  await sees(() => cancel.evaluate((button) => button.matches(':focus')), true);
  assert.equal(server.calls, []);
  await cancel.click();
  await panel.getByLabel('Reason').fill('changed my mind');
  server.answer = () => {
    server.change({ state: 'cancelled', status: 'done', accepts: [], timers: [], output: { total: 38 } });
    return server.result();
  };
  await panel.getByLabel('Reason').press('Enter');
  await view.locator('.state', { hasText: 'Cancelled' }).waitFor();
  await counts(view.getByRole('button'), 0);
  await counts(view.locator('progress'), 0);
  // The button with the focus has gone: the focus is on the state.
  await sees(() => view.locator('.state').evaluate((state) => state.matches(':focus')), true);
  await page.close();
});

test('a question is answered in the view, and a half-filled form survives a change', async () => {
  const { view, server, page } = await opened();
  await view.getByLabel('Quantity').fill('7');
  server.change({ view: { total: 39 } });
  await view.getByText('39').waitFor();
  await sees(() => view.getByLabel('Quantity').inputValue(), '7');
  server.change(ASKING);
  const question = view.getByRole('group', { name: 'Charge Ada 38?' });
  await question.getByText('Until Jan 1, 2030, 12:00 PM').waitFor();
  await question.getByLabel('Charge my card').check();
  // Each use of the instance makes it live longer.
  server.change({ view: { total: 40 }, asks: [{ ...QUESTION, until: '2030-01-01T12:05:00.000Z' }] });
  await view.getByText('40', { exact: true }).waitFor();
  await sees(() => question.getByLabel('Charge my card').isChecked(), true);
  server.answer = () => {
    server.change({ state: 'packing', asks: [], accepts: [] });
    return server.result();
  };
  await question.getByRole('button', { name: 'Answer' }).click();
  await view.locator('.state', { hasText: 'Packing' }).waitFor();
  await counts(question, 0);
  const [{ name, arguments: args } = { name: '', arguments: {} }] = server.calls;
  assert.is(name, 'troupe_answer');
  assert.equal(args, {
    id: 'troupe://order/V1StGXR8_Z5jdHi6B-myT',
    answers: { consent: { action: 'accept', content: { agreed: true } } },
  });
  await page.close();
});

test('a question of another kind is a link with its host, or waits for the model', async () => {
  const links: string[] = [];
  const { view, server, bridge, page } = await opened();
  const answered = new Promise<void>((resolve) => {
    server.answer = () => {
      resolve();
      return server.result();
    };
  });
  bridge.onopenlink = async ({ url }) => {
    links.push(url);
    return {};
  };
  const asks = [
    {
      id: 'pay',
      kind: 'elicitUrl',
      message: 'Pay at your bank',
      url: 'https://shop.example.com@bank.example.com/pay?id=7',
    },
    { id: 'name', kind: 'sample', message: 'Find a name' },
  ];
  server.change({ ...ASKING, asks });
  await view.getByText('The assistant answers this.').waitFor();
  const group = view.getByRole('group', { name: 'Pay at your bank' });
  await group.getByRole('button', { name: 'Open bank.example.com' }).click();
  await view.locator('.question').nth(1).waitFor();
  await answered;
  assert.equal(links, ['https://shop.example.com@bank.example.com/pay?id=7']);
  const [{ arguments: args } = { arguments: {} }] = server.calls;
  assert.is(Object(args).answers.pay.action, 'accept');
  await page.close();
});

test('texts of users and tools stay text, and no shape of data breaks the page', async () => {
  const { view, server, page } = await opened();
  const evil = '<img src=x onerror="document.title=1"><script>document.title=1</script>';
  server.change({
    state: { [evil]: { deep: 'x' } },
    view: {
      [evil]: evil,
      list: [evil, [evil]],
      rows: [{ [evil]: evil }],
      nothing: null,
      empty: {},
      none: [],
      ok: true,
    },
    asks: [{ ...QUESTION, message: evil }],
    timers: [{ label: evil, at: order().expires, lasts: 1000 }],
    accepts: [evil],
  });
  await view.locator('.question').waitFor();
  await counts(view.locator('img, article script'), 0);
  await sees(
    () => view.locator('dt').first().textContent(),
    evil.charAt(0) +
      evil
        .slice(1)
        .toLowerCase()
        .replace(/[._-]+/g, ' '),
  );
  await sees(() => view.locator('h1').textContent(), 'Order');
  await page.close();
});

test('a host that proxies neither the watch nor reads gets a button, which asks the tool', async () => {
  const page = await browsing.page({ width: 720, height: 900 });
  const names: string[] = [];
  const host = await openInHost(page, {
    html,
    capabilities: {},
    prepare: (bridge) => {
      bridge.oncalltool = async ({ name }) => {
        names.push(name);
        if (name === 'troupe_watch') return { content: [], isError: true };
        return names.filter((each) => each === 'order_get').length === 1
          ? ({ content: [], structuredContent: order({ state: 'packing', version: 9 }) } as never)
          : { ...FOR_MODEL, _meta: { 'dev.troupe/view': { reason: 'expired' } } };
      };
    },
  });
  await host.bridge.sendToolResult({ content: [], structuredContent: order() } as never);
  await host.view.locator('.note', { hasText: 'This chat does not let you do this here.' }).waitFor();
  const again = host.view.getByRole('button', { name: 'Try again' });
  await again.click();
  await host.view.locator('.state', { hasText: 'Packing' }).waitFor();
  await again.click();
  await host.view.locator('.note', { hasText: 'This is no longer available.' }).waitFor();
  await sees(() => host.view.locator('.state').textContent(), 'No longer available');
  await sees(() => host.view.getByRole('button').allTextContents(), ['Try again']);
  await page.close();
});

test('results after the first change nothing: late ones, empty ones, failed ones, and those of other calls', async () => {
  const { view, server, bridge, page } = await opened();
  server.change({ state: 'packing', accepts: [] });
  await view.locator('.state', { hasText: 'Packing' }).waitFor();
  // An earlier version, from the conversation.
  await bridge.sendToolResult({ content: [], structuredContent: order() } as never);
  // As a host sends it when it shows the conversation again.
  await bridge.sendToolResult({ content: [{ type: 'text', text: '{}' }], structuredContent: {} });
  await bridge.sendToolResult(FOR_MODEL);
  await bridge.sendToolResult({ content: [], structuredContent: order({ handle: 'another', version: 99 }) } as never);
  await bridge.sendToolCancelled({ reason: 'AbortError: user action' });
  await view.locator('.note', { hasText: 'This was cancelled.' }).waitFor();
  await sees(() => view.locator('.state').textContent(), 'Packing');
  await lacks(view.locator('main'), /order_pay|AbortError/);
  server.change({ view: { total: 77 } });
  await view.getByText('77').waitFor();
  await page.close();
});

test('a view without a result shows the instance of its arguments, and says that nothing came where there are none', async () => {
  const page = await browsing.page({ width: 760, height: 900 });
  const server = new ScriptedServer();
  const { bridge, view } = await openInHost(page, { html, prepare: server.serve });
  await bridge.sendToolInput({ arguments: { handle: order().handle } });
  await bridge.sendToolResult({ content: [{ type: 'text', text: '{}' }], structuredContent: {} });
  await view.locator('.state', { hasText: 'Cart' }).waitFor();
  await page.close();

  const other = await browsing.page({ width: 760, height: 900 });
  await other.clock.install();
  const silent = await openInHost(other, { html });
  await other.clock.fastForward(15_000);
  await silent.view.locator('.note', { hasText: 'The chat has not sent what this view shows.' }).waitFor();
  await other.close();

  const third = await browsing.page({ width: 760, height: 900 });
  const failed = await openInHost(third, { html });
  await failed.bridge.sendToolResult(FOR_MODEL);
  await failed.view.locator('.note', { hasText: 'There is nothing to show' }).waitFor();
  await third.close();
});

test('an event that a guard rejects is off, with the reason of the author, until it can happen', async () => {
  const { view, server, page } = await opened();
  server.change({ accepts: ['add_item', 'cancel'], blocked: [{ event: 'checkout', guard: 'filled' }] });
  const checkout = view.getByRole('button', { name: 'Checkout' });
  await view.getByText('Checkout: Add something first.').waitFor();
  await sees(() => checkout.getAttribute('aria-disabled'), 'true');
  const reason = await checkout.getAttribute('aria-describedby');
  await sees(() => view.locator(`#${reason}`).textContent(), 'Checkout: Add something first.');
  // It has the focus and does nothing: Playwright would wait for a button that is enabled.
  await checkout.focus();
  await page.keyboard.press('Enter');
  server.change({ accepts: ['add_item', 'cancel', 'checkout'], blocked: [] });
  await view.getByText('Checkout: Add something first.').waitFor({ state: 'hidden' });
  assert.equal(server.calls, []);
  await sees(() => checkout.evaluate((button) => button.matches(':focus')), true);
  await page.keyboard.press('Enter');
  await until(() => server.calls.length > 0);
  server.change({ blocked: [{ event: 'checkout', guard: 'hasLoyaltyCard' }] });
  await view.getByText('Checkout: This is not possible now.').waitFor();
  await page.close();
});

test('a lost server shows at once, and so does its return; no error of a transport is shown', async () => {
  const { view, server, page } = await opened();
  server.lost = new Error('fetch failed: ECONNREFUSED 127.0.0.1:3000');
  server.change({});
  const note = view.locator('.note', { hasText: 'The connection is lost. This may be an earlier state.' });
  await note.waitFor();
  await counts(view.getByRole('status'), 1);
  await view.getByRole('button', { name: 'Checkout' }).click();
  await view.getByRole('alert').filter({ hasText: 'There was no answer.' }).waitFor();
  await lacks(view.locator('main'), /ECONNREFUSED|fetch|MCP|-32/);
  server.lost = undefined;
  server.change({ view: { total: 1234 } });
  await note.getByRole('button', { name: 'Try again' }).click();
  await view.getByText('1,234').waitFor();
  await note.waitFor({ state: 'hidden' });
  await page.close();
});

test('an instance that is gone shows at once, with its last data and without events', async () => {
  const { view, server, page } = await opened();
  server.gone = true;
  server.change({});
  await view.locator('.note', { hasText: 'This is no longer available.' }).waitFor();
  await sees(() => view.getByRole('button').allTextContents(), ['Try again']);
  await counts(view.locator('td'), 4);
  await page.close();
});

test('the end shows each outcome once', async () => {
  const { view, server, page } = await opened();
  const done = { status: 'done', accepts: [], timers: [] };
  server.change({ ...done, state: 'shipped', output: { total: 38, parcel: 'P7' } });
  await view.locator('.state', { hasText: 'Shipped' }).waitFor();
  await sees(() => view.locator('.state').textContent(), 'Shipped');
  await sees(() => view.locator('dt').allTextContents(), ['Total', 'Parcel', 'Customer', 'Items']);
  await page.close();
  const other = await opened();
  other.server.change({ ...done, status: 'failed', state: 'paying', failure: 'the machine failed (incident 7)' });
  await other.view.locator('.state', { hasText: 'Failed' }).waitFor();
  await sees(() => other.view.locator('.state').textContent(), 'Failed');
  await lacks(other.view.locator('main'), /incident/);
  await other.page.close();
  // The call that creates an instance is an error if the instance fails at once.
  const atOnce = await opened();
  const failed = order({ status: 'failed', state: 'paying', accepts: [], version: 50 });
  await atOnce.bridge.sendToolResult({ content: [], structuredContent: failed, isError: true } as never);
  await atOnce.view.locator('.state', { hasText: 'Failed' }).waitFor();
  await atOnce.page.close();
});

test('the height of a view changes once with the result that opens it, from 360 to 720 pixels', async () => {
  for (const width of [360, 560, 720]) {
    const { view, server, heights, page } = await opened({ width });
    await view.locator('progress').waitFor();
    const height = () => view.locator('html').evaluate((root) => Math.ceil(root.getBoundingClientRect().height));
    await until(async () => heights.at(-1) === (await height()), 'the height of the result');
    const first = heights.at(-1) ?? 0;
    // The watch answers, with as much to show.
    server.change({ view: { ...order().view, total: 83 } });
    await view.getByText('83').waitFor();
    await sees(height, first, `the height at ${width}`);
    assert.is(heights.at(-1), first, `${width}: ${heights}`);
    assert.ok(
      heights.every((height) => height > 0),
      `${heights}`,
    );
    await page.close();
  }
});

test('chart and form stand side by side from 520 pixels on, and a chart that would be too small is a list', async () => {
  const large = await orderPage({ de: { labels: { states: { packing: 'Wird sehr sorgfältig gepackt' } } } });
  for (const [width, isBeside, isDrawn, source] of [
    [500, false, false, html],
    [520, true, true, html],
    [520, true, false, large],
    [720, true, true, large],
  ] as const) {
    const { view, page } = await opened({ width, source });
    const topOf = (selector: string) =>
      view
        .locator(selector)
        .first()
        .evaluate((each) => each.getBoundingClientRect().top);
    const beside = async () => Math.abs((await topOf('.steps')) - (await topOf('.columns > div'))) < 2;
    await sees(beside, isBeside, `chart and form side by side at ${width}`);
    await sees(() => view.locator('.picture').isVisible(), isDrawn, `${width}`);
    await page.close();
  }
});

test('a page speaks the language of its host, if its author has translated it', async () => {
  const page = await browsing.page({ width: 760, height: 900 });
  const server = new ScriptedServer();
  const host = await openInHost(page, {
    html: await orderPage({ de: GERMAN }),
    context: { theme: 'light', locale: 'de-CH', timeZone: 'UTC' },
    prepare: server.serve,
  });
  await host.bridge.sendToolResult(server.result() as never);
  const { view } = host;
  await view.locator('.state', { hasText: 'Warenkorb' }).waitFor();
  await sees(
    () => view.locator('[aria-label=Aktionen] > .buttons button').allTextContents(),
    [...['In den Warenkorb', 'Zur Kasse', 'Bestellung stornieren', 'Verwerfen']],
  );
  await sees(() => view.locator('select option').allTextContents(), ['bitte wählen', 'Tee', 'Tasse', 'Kessel']);
  await sees(() => view.locator('th').allTextContents(), ['Artikel', 'Menge']);
  for (const name of ['Warenkorb', 'Zur Kasse', 'Bedenkzeit', 'Wird gepackt', 'Versandt'])
    await view
      .locator('svg text')
      .and(view.getByText(name, { exact: true }))
      .first()
      .waitFor();
  await counts(view.locator('svg text', { hasText: /filled|assign|charge|consent/ }), 0, 'names of guards and actions');
  server.change({ ...ASKING, asks: [{ ...QUESTION, id: 'consent.2' }] });
  const question = view.getByRole('group', { name: '38 von der Karte von Ada abbuchen?' });
  await question.getByRole('button', { name: 'Ablehnen' }).waitFor();
  await page.close();
});

test('a changed theme, language and style of the host reach the page; incomplete colours do not', async () => {
  const { view, bridge, page } = await opened();
  const back = () =>
    view.locator('body').evaluate((body) => String(Reflect.get(globalThis, 'getComputedStyle')(body).backgroundColor));
  await sees(() => back(), 'rgb(255, 255, 255)');
  await view.getByText(/^00:2[345]:\d\d$/).waitFor();
  await view.locator('body').evaluate(() => {
    const { now } = Date;
    Date.now = () => now() + 1_000_000;
  });
  const variables = { '--color-background-primary': 'light-dark(#fff8e7, #201800)' };
  const context = { theme: 'dark', locale: 'ar-EG', styles: { variables } } as never;
  bridge.setHostContext(context);
  await view.locator('html[dir=rtl][lang=ar-EG]').waitFor();
  await sees(() => back(), 'rgb(28, 29, 32)');
  // The delay has gone on since the server named its time.
  await view.getByText(/^00:0[678]:\d\d$/).waitFor();
  const all = {
    ...variables,
    '--color-background-secondary': '#333',
    '--color-text-primary': '#eee',
    '--color-text-secondary': '#ccc',
    '--color-border-primary': '#555',
  };
  bridge.setHostContext({ theme: 'dark', styles: { variables: all } } as never);
  await view.locator('body.hosted').waitFor();
  await sees(() => back(), 'rgb(32, 24, 0)');
  await page.close();
});

test('in a language that is written from right to left, the picture of the chart stays as it was drawn', async () => {
  const { view, bridge, page } = await opened();
  const places = () =>
    view.locator('svg').evaluate((svg) => {
      const { left } = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text')].map((text) => Math.round(text.getBoundingClientRect().left - left));
    });
  const before = await places();
  bridge.setHostContext({ theme: 'light', locale: 'ar', timeZone: 'UTC' });
  await view.locator('html[dir=rtl]').waitFor();
  assert.ok(before.length > 0);
  await sees(() => places(), before);
  await page.close();
});

test('the keyboard alone fills a form, sends it, and reads the result', async () => {
  const { view, server, page } = await opened();
  server.answer = () => {
    server.change({ view: { total: 99 } });
    return server.result();
  };
  await view.locator('body').press('Tab');
  const focused = () => view.locator(':focus').evaluate((each) => each.textContent || each.tagName);
  const reached: string[] = [];
  for (let step = 0; step < 12; step += 1) {
    const here = await focused();
    reached.push(here);
    if ((await view.locator(':focus').evaluate((each) => each.tagName)) === 'SELECT') break;
    await page.keyboard.press('Tab');
  }
  assert.ok(reached.includes('Checkout'), reached.join());
  await page.keyboard.press('t');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await view.getByText('99').waitFor();
  assert.equal(Object(server.calls[0]?.arguments).sku, 'tea');
  await page.close();
});

test('axe finds nothing in both themes, narrow and wide, with a question, and with text of twice the size', async () => {
  for (const theme of ['light', 'dark'] as const)
    for (const width of SCALE === 'quick' ? [theme === 'light' ? 320 : 720] : [320, 720]) {
      const { view, server, page } = await opened({ theme, width });
      await sees(() => violationsIn(page, 'Order'), [], `${theme} ${width}`);
      server.change(ASKING);
      await view.locator('.question').waitFor();
      await view.locator('html').evaluate((root) => Reflect.set(Object(root).style, 'fontSize', '200%'));
      await sees(() => violationsIn(page, 'Order'), [], `${theme} ${width} at 200 %`);
      // Nothing is cut off.
      const overflow = () => view.locator('html').evaluate((root) => root.scrollWidth - root.clientWidth);
      await sees(overflow, 0, `${theme} ${width}: wider than its frame`);
      await page.close();
    }
});

/** True where the pictures are written, and not only taken. */
const WRITES = process.env.TROUPE_PICTURES === '1';

test('the picture of the README is the view of an order, in light and dark', async () => {
  for (const theme of WRITES ? (['light', 'dark'] as const) : (['light'] as const)) {
    const { view, page } = await opened({ theme, scale: 2, height: 780 });
    await view.locator('progress').waitFor();
    await view.getByLabel('Sku').selectOption('cup');
    const picture = await page.locator('iframe').screenshot();
    assert.ok(picture.length > 20_000, `${theme}: ${picture.length} bytes`);
    if (WRITES)
      writeFileSync(fileURLToPath(new URL(`../../../../docs/images/view-${theme}.png`, import.meta.url)), picture);
    await page.close();
  }
});

/** Resolves, by the clock of the frame, once a state is painted: Playwright sees that a tenth of a second later. */
const PAINTED = `<script>Object.assign(globalThis, { painted: new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector('dl')) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  }).observe(document, { childList: true, subtree: true });
}) });</script>`;

test('the first state comes within 300 ms of the frame, and a change within 150 ms', async () => {
  const { view, server, page, openedMs } = await opened({ before: PAINTED });
  assertFigure(openedMs, 300, 'the handshake');
  const firstMs: unknown = await view.locator('html').evaluate(() => Reflect.get(globalThis, 'painted'));
  assertFigure(Number(firstMs), 300, 'the first state, painted');
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const shown = view.getByText(`${1000 + round}`).waitFor();
    const began = performance.now();
    server.change({ view: { total: `${1000 + round}` } });
    await shown;
    times.push(performance.now() - began);
  }
  assertFigure(Math.min(...times), 150, 'a change');
  await page.close();
});
