/** An exported page shows the charts as they were: their pictures travel with it. */
import * as assert from 'uvu/assert';
import { readPictures, withPictures } from '../../../inspector/src/chart/layout/carried.ts';
import { dagreLayout } from '../../../inspector/src/chart/layout/dagre.ts';
import { layout } from '../../../inspector/src/chart/layout/layout.ts';
import { suite } from '../../harness/door.ts';
import { large, measure } from './charts.ts';

const test = suite('carried pictures');
const PAGE = '<body><script type="application/json" id="recording">{}</script></body>';

test('an exported page returns the pictures that were put into it', async () => {
  const placed = await layout(large(8, 12), measure, 'down', [
    (sketch, direction) => Promise.resolve(dagreLayout(sketch, direction)),
  ]);
  const page = withPictures(PAGE, { chart: [placed] });
  const data = /id="pictures">(.*)<\/script>\n<script type="application\/json" id="recording">/.exec(page)?.[1] ?? '';
  assert.equal(readPictures(JSON.parse(data)), { chart: [JSON.parse(JSON.stringify(placed))] });
});

test('a name with an end tag in it ends no block of data', () => {
  const node = { id: '</script><script>alert(1)</script>', x: 0, y: 0, width: 1, height: 1 };
  const page = withPictures(PAGE, {
    chart: [{ engine: 'grid', direction: 'down', width: 1, height: 1, nodes: [node], edges: [] }],
  });
  assert.is(page.match(/<\/script>/g)?.length, 2);
});

test('a page without a place for them stays as it is', () => {
  assert.is(withPictures('<body></body>', {}), '<body></body>');
});

test('data that is no picture is left out', () => {
  const good = { engine: 'elk', direction: 'down', width: 9, height: 9, nodes: [], edges: [] };
  const wrong = [
    [],
    'x',
    [{ ...good, engine: 'other' }],
    [{ ...good, width: null }],
    [{ ...good, nodes: [{ id: 'a', x: 0 }] }],
    [{ ...good, edges: [{ id: 'a', points: [{ x: 1 }] }] }],
  ];
  assert.equal(
    readPictures(Object.fromEntries([['good', [good]], ...wrong.map((each, index) => [`${index}`, each])])),
    {
      good: [good],
    },
  );
  assert.equal(readPictures(null), {});
});
