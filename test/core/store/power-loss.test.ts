/** Power loss: after any of them, the file opens, holds every acknowledged batch whole, and takes more. */
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { suite, timeLimit } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { image, type Loss, readLog } from './power-loss.ts';
import { acknowledged, faultIn, folder, full, numbersIn, program, random, shim } from './support.ts';

timeLimit(600_000);
const test = suite('power loss');
const place = folder();
const built = shim(place.path);
const IMAGES = atScale({ quick: 3, full: 24, proof: 300 });
/** Batches that the program writes. */
const BATCHES = atScale({ quick: 200, full: 700, proof: 700 });
const LOSSES: readonly Loss[] = ['all', 'torn', 'in order'];
test.after(place.remove);

/** Lets the program write, and says what is wrong with the files after each of so many power losses. */
async function losses(mode: string, images: number, library: string): Promise<(string | undefined)[]> {
  const at = folder();
  const log = join(place.path, `${mode}.log`);
  try {
    // Large enough that the log is written back to the file on the way.
    const batches = mode === 'write' ? BATCHES : 300;
    const args = [mode, at.path, String(batches), '4000'];
    const writer = program(args, { LD_PRELOAD: library, SHIM_WATCH: at.path, SHIM_LOG: log });
    await writer.ended;
    assert.ok(acknowledged(at.path).length >= Math.min(batches, 300), writer.errors());
    const operations = readLog(log);
    const [numbers, found] = [random(7), [] as (string | undefined)[]];
    for (let n = 0; n < images; n += 1) {
      const into = folder();
      const cut = Math.floor(operations.length * (0.02 + 0.98 * numbers()));
      const acks = numbersIn(image(operations, cut, LOSSES[n % 3] ?? 'all', numbers, into.path));
      found.push(faultIn(join(into.path, 'store.db'), acks));
      into.remove();
    }
    return found;
  } finally {
    at.remove();
  }
}

if ('why' in built) test.skip('R-03: no power loss takes an acknowledged batch', built.why);
else {
  const { library } = built;
  test(`R-03: no power loss takes an acknowledged batch, or leaves half of one (${IMAGES} images)`, async () => {
    const wrong = (await losses('write', IMAGES, library)).filter((fault) => fault !== undefined);
    assert.equal(wrong, []);
  });

  test.full('R-03: with synchronous=NORMAL, most power losses take some', async () => {
    const found = await losses('careless', full ? 60 : 12, library);
    const lost = found.filter((fault) => fault?.startsWith('lost')).length;
    assert.ok(lost * 2 >= found.length, `expected that at least half of ${found.length} lose something, got ${lost}`);
  });
}
