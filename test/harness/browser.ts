/** A headless Chromium for the tests of the page: found by the variable CHROMIUM, or on the PATH. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { inspect, isDeepStrictEqual } from 'node:util';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { type Suite, suite } from './door.ts';
import { HANG_MS, until } from './wait.ts';

/** The browser's program; undefined where there is none. */
export const program = find();

function find(): string | undefined {
  const named = process.env.CHROMIUM;
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const folders = (process.env.PATH ?? '').split(delimiter);
  const places = [...(named ? [named] : []), ...folders.flatMap((folder) => names.map((name) => join(folder, name)))];
  return places.find((place) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * Features of Chromium that are switched off. The last such switch replaces that of Playwright, so the list begins with Playwright's. The
 * rest start three processes for each window, which take as much processor time as a page of ours: two for the pages of
 * the address bar's popup, and one in reserve.
 */
const DISABLED_FEATURES = [
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'TcpPortRandomizationWin',
  'ThirdPartyStoragePartitioning',
  'SpareRendererForSitePerProcess',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'WebUIOmniboxPopup',
];

/** What the page does not do for a reader who saves data, the tests need not pay for. */
const SAVES_DATA = `Object.defineProperty(NetworkInformation.prototype, 'saveData', { get: () => true });`;

export interface Look {
  /** Whether animations run: drawing sixty frames a second takes an eighth of a test's processor time. Off by default. */
  readonly motion?: boolean;
  /** Whether the page lays out charts before anybody looks at them, which takes a second of processor time. Off by default. */
  readonly ahead?: boolean;
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  readonly scale?: number;
}

/** Pages of one browser; what goes wrong in any of them is kept. */
export class Browsing {
  /** What a page wrote to its console as an error, or threw. */
  readonly complaints: string[] = [];
  #browser: Promise<Browser> | undefined;
  readonly #contexts: BrowserContext[] = [];

  /** Another reader: what one tab remembers is known to the others of the same. */
  async reader({
    motion = false,
    ahead = false,
    theme = 'light',
    width = 1440,
    height = 900,
    scale = 1,
  }: Look = {}): Promise<BrowserContext> {
    this.#browser ??= chromium.launch({
      ...(program === undefined ? {} : { executablePath: program }),
      args: ['--no-sandbox', '--disable-gpu', `--disable-features=${DISABLED_FEATURES.join()}`],
    });
    const browser = await this.#browser;
    const context = await browser.newContext({
      colorScheme: theme,
      reducedMotion: motion ? 'no-preference' : 'reduce',
      viewport: { width, height },
      deviceScaleFactor: scale,
      acceptDownloads: true,
    });
    this.#contexts.push(context);
    if (!ahead) await context.addInitScript(SAVES_DATA);
    context.on('page', (page) => this.#listen(page));
    return context;
  }

  async page(look?: Look): Promise<Page> {
    const context = await this.reader(look);
    return context.newPage();
  }

  async close(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
    await (await this.#browser)?.close();
    this.#browser = undefined;
  }

  #listen(page: Page): void {
    page.setDefaultTimeout(HANG_MS);
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.complaints.push(message.text());
    });
  }
}

/** A suite that needs a browser. */
export function browserSuite(name: string): Suite {
  return suite(name, program === undefined ? 'no Chromium: set CHROMIUM, or install it' : undefined);
}

/**
 * Waits until the text of an element matches: a page draws a change in a later frame.
 *
 * @param words what the text has, or a pattern of it
 * @throws Error with the text, if it does not match within a minute
 */
export async function shows(element: Locator, words: string | RegExp): Promise<void> {
  let text = '';
  const looks = async (): Promise<boolean> => {
    text = await element.innerText();
    return typeof words === 'string' ? text.includes(words) : words.test(text);
  };
  await until(looks, () => `${words} in "${text}"`);
}

/** Waits until the page has so many of these elements. @throws Error with their number, if it does not within a minute */
export async function counts(elements: Locator, expected: number, what = 'elements'): Promise<void> {
  let found = 0;
  const looks = async (): Promise<boolean> => {
    found = await elements.count();
    return found === expected;
  };
  await until(looks, () => `${what}: expected ${expected}, got ${found}`);
}

/**
 * Waits until a look at the page finds what is expected. An assertion would look once, before the page has drawn the change.
 *
 * @throws Error with what the last look found, if none finds the expected value within a minute
 */
export async function sees<Seen>(
  look: () => Promise<Seen>,
  expected: NoInfer<Seen>,
  what = String(look),
): Promise<void> {
  let found: Seen | undefined;
  const looks = async (): Promise<boolean> => {
    found = await look();
    return isDeepStrictEqual(found, expected);
  };
  await until(looks, () => `${what}: expected ${inspect(expected)}, got ${inspect(found)}`);
}

/**
 * Checks that a page or an element does not have a text now. Wait before it for what comes with the text, or at its time.
 *
 * @param place a page, with all of its markup, or an element, with its text
 */
export async function lacks(place: Page | Locator, words: string | RegExp): Promise<void> {
  const text = 'content' in place ? await place.content() : await place.innerText();
  assert.not.match(text, words);
}
