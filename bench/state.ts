/** Measures `ctx.state` in memory and in a file: one operation after the other, and a hundred at once. The least of ten rounds. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, memory, memoryStore, sqlite } from 'troupe';

const ROUNDS = 10;
const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-state-'));

async function measure(label: string, times: number, run: (time: number) => Promise<unknown>): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = performance.now();
    for (let time = 0; time < times; time += 1) await run(time);
    least = Math.min(least, (performance.now() - from) / times);
  }
  console.log(`  ${label}: ${(least * 1_000).toFixed(0)} µs`);
}

const increased = (n: unknown): number => (typeof n === 'number' ? n + 1 : 1);

for (const store of [memoryStore(), sqlite(join(folder, 'state.db'))]) {
  console.log(store.name);
  const server = createServer({ name: 'bench', version: '1.0.0', store, log: () => {} });
  await server.listen(memory().transport);
  const times = store.durable ? 200 : 2_000;
  const small = server.stateOf('small');
  await small.set('a', { n: 1 });
  await measure('get, a scope of 1 value', times, () => small.get('a'));
  await measure('set, a scope of 1 value', times, (n) => small.set('a', { n }));
  await measure('update, a scope of 1 value', times, () => small.update('n', increased));
  const large = server.stateOf('large');
  for (let key = 0; key < 200; key += 1) await large.set(`k${key}`, 'x'.repeat(1_000));
  await measure('get, a scope of 200 KB', 100, () => large.get('k7'));
  await measure('set, a scope of 200 KB', 100, () => large.set('k7', 'y'.repeat(1_000)));
  const hundred = Array.from({ length: 100 }, (_, n) => n);
  await measure('100 updates of one scope at once', 20, () =>
    Promise.all(hundred.map(() => small.update('n', increased))),
  );
  const scopes = hundred.map((n) => server.stateOf(`user ${n}`));
  await measure('100 sets of 100 scopes at once', 20, (n) => Promise.all(scopes.map((scope) => scope.set('a', n))));
  await server.close();
}
rmSync(folder, { recursive: true, force: true });
