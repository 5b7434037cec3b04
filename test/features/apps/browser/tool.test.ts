/** The page of a tool in Chromium, with the official bridge as its host. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { isObject } from '../../../../src/core/protocol/json.ts';
import type { ToolPage } from '../../../../src/features/apps/view-definition.ts';
import { formFieldsOf } from '../../../../src/features/asking/form-model.ts';
import { Browsing, browserSuite, counts, sees } from '../../../harness/browser.ts';
import { fullOnly } from '../../../harness/door.ts';
import { violationsIn } from './axe.ts';
import { openInHost } from './host.ts';
import { pageOf } from './scripted.ts';

fullOnly('opens many pages; the quick browser test of views is order.test.ts');

const test = browserSuite('the page of a tool');
const browsing = new Browsing();
test.after(async () => {
  await browsing.close();
  assert.equal(browsing.complaints, []);
});

const INPUT = z.object({
  city: z.string().describe('The nearest one'),
  days: z.number().int().min(1).max(14).default(3),
  units: z.enum(['metric', 'imperial']).default('metric'),
  include: z.array(z.enum(['wind', 'rain'])).optional(),
  place: z.object({ latitude: z.number(), longitude: z.number() }).optional(),
  tags: z.array(z.string()).optional(),
  more: z.unknown().optional(),
  hourly: z.boolean().default(false),
});
const DEFINITION: ToolPage = {
  kind: 'tool',
  server: 'weather',
  title: 'Forecast',
  tool: 'forecast',
  description: 'Forecasts the weather.\nOnly for the model.',
  fields: formFieldsOf(z.toJSONSchema(INPUT, { io: 'input' }), (each) => (isObject(each) ? each : undefined)),
  output: { rain: 'Rain (mm)' },
};
const RESULT = {
  content: [{ type: 'text', text: 'Dry.' }],
  structuredContent: {
    city: 'Bern',
    days: [
      { day: '2026-01-31', rain: 1.5 },
      { day: '2026-02-01', rain: 0 },
    ],
  },
} as const;
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test('the form fills while a model writes, the tool shows that it runs, its result, and runs again', async () => {
  const page = await browsing.page({ width: 740, height: 1000 });
  const calls: unknown[] = [];
  let answer: object = RESULT;
  const { bridge, view, told } = await openInHost(page, {
    html: pageOf(DEFINITION, 'tool'),
    context: { theme: 'light', locale: 'de' },
    prepare: (host) => {
      host.oncalltool = async ({ name, arguments: args }) => {
        calls.push([name, args]);
        return answer as never;
      };
    },
  });
  await bridge.sendToolInputPartial({ arguments: { city: 'Be' } });
  // A person who has moved to a field stays there, and the model goes on.
  await view.getByLabel('City').focus();
  await bridge.sendToolInputPartial({ arguments: { city: 'Bern' } });
  await bridge.sendToolInput({ arguments: { city: 'Bern', days: 2, tags: ['a', 'b'], place: { latitude: 46.9 } } });
  await view.getByRole('progressbar', { name: 'Running' }).waitFor();
  await sees(() => view.getByLabel('City').inputValue(), 'Bern');
  await sees(() => view.getByLabel('City').evaluate((field) => field.matches(':focus')), true);
  await sees(() => view.getByLabel('Latitude').inputValue(), '46.9');
  await sees(() => view.getByLabel('Tags').inputValue(), 'a\nb');
  await bridge.sendToolResult(structuredClone(RESULT) as never);
  await view.getByText('1,5').waitFor();
  await sees(() => view.locator('th').allTextContents(), ['Day', 'Rain (mm)']);
  await counts(view.getByText('Dry.'), 0);
  await counts(view.getByText('Only for the model'), 0);
  await sees(() => violationsIn(page, 'Forecast'), []);

  await view.getByLabel('City').fill('Genf');
  await view.getByLabel('Longitude').fill('7.4');
  await view.getByLabel('Wind').check();
  await view.getByLabel('More').fill('{"a": [1]}');
  answer = {
    content: [
      { type: 'text', text: 'Line 1\nLine 2' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      { type: 'image', data: 'x', mimeType: 'text/html' },
    ],
  };
  await view.getByRole('button', { name: 'Run again' }).click();
  await view.getByText('Line 1').waitFor();
  assert.equal(calls, [
    [
      'forecast',
      {
        city: 'Genf',
        days: 2,
        units: 'metric',
        include: ['wind'],
        place: { latitude: 46.9, longitude: 7.4 },
        tags: ['a', 'b'],
        more: { a: [1] },
        hourly: false,
      },
    ],
  ]);
  await counts(view.locator('img'), 1);
  await sees(
    async () => told,
    ['forecast, run again by the user in the view: Line 1\nLine 2  '],
    'the texts for the model',
  );
  await sees(() => view.getByLabel('City').inputValue(), 'Genf');

  let release: (() => void) | undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  answer = released.then(() => ({ content: [{ type: 'text', text: 'No such city' }], isError: true }));
  await view.getByRole('button', { name: 'Run again' }).click();
  // A change of the theme does not end the run.
  bridge.setHostContext({ theme: 'light', locale: 'fr' });
  await view.locator('html[lang=fr]').waitFor();
  await view.getByRole('progressbar', { name: 'Running' }).waitFor();
  release?.();
  await view.getByRole('alert').filter({ hasText: 'No such city' }).waitFor();
  await page.close();
});

test('dark and narrow, axe finds nothing, and a cancelled call says so', async () => {
  const page = await browsing.page({ theme: 'dark', width: 400, height: 1000 });
  const { bridge, view } = await openInHost(page, {
    html: pageOf(DEFINITION, 'tool'),
    width: 320,
    context: { theme: 'dark' },
  });
  await bridge.sendToolInput({ arguments: { city: 'Bern' } });
  await bridge.sendToolCancelled({ reason: 'user action' });
  await view.getByText('This was cancelled.').first().waitFor();
  await counts(view.getByRole('progressbar'), 0);
  await sees(() => violationsIn(page, 'Forecast'), []);
  await page.close();
});
