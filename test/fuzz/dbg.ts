import { writeHeapSnapshot } from 'node:v8';
import { openTarget } from './target.ts';
import * as fc from 'fast-check';
import { input } from './hostile.ts';
import { settled } from '../../src/testing.ts';
const mode = process.argv[2];
const target = await openTarget();
const inputs = fc.sample(input, { seed: 1, numRuns: 600 });
async function go(n: number) {
  for (let c = 0; c < n; c++) {
    const o = target.connect();
    for (let i=0;i<3;i++) o.send(inputs[(c*3+i)%600]!.text);
    if (c % 2 === 0 ? mode !== 'close' : mode === 'vanish') o.vanish(); else o.close();
    target.release();
    await o.closed;
  }
  await settled();
}
const gc = (globalThis as any).gc;
await go(200); gc(); gc();
let last = process.memoryUsage().heapUsed;
for (let k=0;k<5;k++) { await go(1000); await settled(); gc(); gc(); const h = process.memoryUsage().heapUsed; console.log(mode, ((h-last)/1000).toFixed(0), 'bytes per connection'); last = h; }
if (process.argv[3]) writeHeapSnapshot('/tmp/h.heapsnapshot');
