/** The address and the secret of a node: what other nodes cannot use is rejected before the node joins. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { readCluster } from '../../../src/cli/serving/cluster-option.ts';
import { suite } from '../../harness/door.ts';
import { Tree } from '../discovery/tree.ts';

const test = suite('the options of a cluster');
const VARIABLE = 'TROUPE_CLUSTER_SECRET';
const SECRET = 's'.repeat(32);
const before = process.env[VARIABLE];
test.beforeEach(() => {
  process.env[VARIABLE] = SECRET;
});
test.after(() => {
  if (before === undefined) delete process.env[VARIABLE];
  else process.env[VARIABLE] = before;
});

const EXPECTED = 'expected the address at which the other nodes reach this one, such as "10.0.0.5:7400"';

function rejection(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    return String(error);
  }
  return 'accepted';
}

test('S-53: the command line rejects the same addresses, and a short secret by its source, and shows no secret', () => {
  for (const cluster of ['0.0.0.0:7400', '7400', ':7400'])
    assert.match(
      rejection(() => readCluster('serve', { cluster })),
      `troupe serve: --cluster: ${EXPECTED}, got string "${cluster}"`,
    );
  assert.match(
    rejection(() => readCluster('serve', { cluster: '10.0.0.5:65535' }, { index: 1, generation: 0 })),
    'got string "10.0.0.5:65537"',
  );
  process.env[VARIABLE] = 'hunter2';
  const { path } = new Tree({});
  writeFileSync(join(path, 'secret'), 'hunter2\n');
  for (const [values, source] of [
    [{ cluster: '10.0.0.5:7400' }, VARIABLE],
    [{ cluster: '10.0.0.5:7400', 'cluster-secret-file': join(path, 'secret') }, '--cluster-secret-file'],
  ] as const) {
    const text = rejection(() => readCluster('run', values));
    assert.match(text, `troupe run: ${source}: expected at least 32 characters, got 7`);
    assert.not.match(text, 'hunter2');
  }
});

test('the nodes of a fleet have ports of their own, those of two generations too, and free ones of loopback without --cluster', () => {
  const listen = (cluster: string | undefined, index: number, generation: number): string | undefined =>
    readCluster('serve', { cluster }, { index, generation })?.listen;
  assert.equal(
    [0, 1].flatMap((index) => [0, 1, 2].map((generation) => listen('[fd00::5]:7400', index, generation))),
    [7400, 7401, 7400, 7402, 7403, 7402].map((port) => `[fd00::5]:${port}`),
  );
  assert.is(listen('10.0.0.5:0', 3, 1), '10.0.0.5:0');
  assert.is(listen(undefined, 3, 1), '127.0.0.1:0');
});
