/** A required audit and a process that is killed: no call has an effect without a record of its start. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { readFileAudit, readStoredAudit } from '../../../../src/features/guard/audit/server-audit.ts';
import { type AuditRecord, sqlite } from '../../../../src/index.ts';
import { startable } from '../../../harness/compiled.ts';
import { conclusive, suite, timeLimit } from '../../../harness/door.ts';
import { atScale, PROOF } from '../../../harness/scale.ts';
import { elapse } from '../../../harness/wait.ts';

const test = suite('a required audit, killed');
const FIXTURE = startable('test/fixtures/audit/paying.ts');
/** The fixture never kills itself at this point: its parent does, at any time. */
const OUTSIDE = 'outside';
const KILLS = atScale({ quick: 0, full: 1, proof: 40 });
const POINTS = atScale({
  quick: ['effect'],
  full: ['handler', 'effect', 'answered'],
  proof: ['handler', 'effect', 'answered'],
});

timeLimit(PROOF ? 600_000 : 60_000);

async function recordsOf(folder: string, to: string): Promise<readonly AuditRecord[]> {
  const query = { limit: 1_000_000 };
  if (to === 'file') return readFileAudit(join(folder, 'audit.jsonl'), query);
  const store = sqlite(join(folder, 'store.db'));
  await store.open({ clock: systemClock, log: () => {} });
  const records = await readStoredAudit(store, query);
  await store.close();
  return records;
}

async function kill(to: string, way: string, point: string, count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-audit-kill-'));
  try {
    const child = spawn(process.execPath, [FIXTURE, folder, to, way, point, String(count)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exit = once(child, 'exit');
    if (point === OUTSIDE) {
      await once(child.stdout, 'data');
      await elapse(count, 'the life of the process');
      child.kill('SIGKILL');
    }
    const [, signal] = await exit;
    assert.is(signal, 'SIGKILL', `${to} ${way} ${point}`);
    const ledger = join(folder, 'ledger');
    const effects = existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : [];
    const started = new Set(
      (await recordsOf(folder, to)).flatMap((record) => (record.outcome === 'started' ? String(record.arguments) : [])),
    );
    const missing = effects.filter((number) => !started.has(number));
    conclusive(() => assert.equal(missing, [], `${to} ${way} ${point} ${count}: effects without a record`));
    if (point === 'handler') assert.ok(started.has(String(count)));
    if (point !== OUTSIDE) assert.ok(effects.length >= count - 1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('G-11 a full disk: calls fail with 503 and have not run, and each that ran has a record of its start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-audit-full-'));
  try {
    const path = join(folder, 'audit.jsonl');
    const full = startable('test/fixtures/audit/full-disk.ts');
    // The files of this process have at most 16 KiB.
    const child = spawn('bash', ['-c', 'ulimit -f 16; exec "$@"', 'bash', process.execPath, full, path, '60'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    await once(child, 'close');
    const { ran, statuses }: { ran: number[]; statuses: number[] } = JSON.parse(out);
    assert.ok(ran.length > 0 && ran.length < 60, String(ran.length));
    assert.equal(
      statuses.map((status, index) => [index + 1, status]).filter(([, status]) => status !== 503),
      ran.map((number) => [number, 200]),
    );
    const damaged: unknown[] = [];
    const records = await readFileAudit(path, { limit: 1_000 }, (...file) => void damaged.push(file));
    const started = records.flatMap((record) => (record.outcome === 'started' ? Number(record.arguments) : []));
    assert.equal(
      ran.filter((number) => !started.includes(number)),
      [],
    );
    assert.equal(damaged, []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** `npm test` has one: the full disk has the file. */
const QUICK = ['store modern'];

for (const to of ['store', 'file'])
  for (const way of ['modern', 'session'])
    (QUICK.includes(`${to} ${way}`) ? test : test.full)(
      `G-11 ${to}, ${way}: each call with an effect has a record, wherever the process is killed`,
      async () => {
        for (const point of POINTS) await kill(to, way, point, 2);
        for (let n = 0; n < KILLS; n += 1) await kill(to, way, OUTSIDE, 5 + n * 13);
      },
    );
