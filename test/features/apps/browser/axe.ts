/** Axe in the frame of a view: its policy lets no script of the page in, and this one is the test's. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { sees } from '../../../harness/browser.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The violations that axe finds in the innermost frame, whose document has this title. */
export async function violationsIn(page: Page, title: string): Promise<unknown> {
  const frame = page.frames().at(-1);
  await sees(async () => frame?.title(), title);
  await frame?.evaluate(AXE);
  return frame?.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html.slice(0, 160) + ' ' + failureSummary).slice(0, 3).join(' | ')))`,
  );
}
