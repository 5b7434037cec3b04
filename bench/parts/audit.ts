/** Durable calls that are recorded by an audit in the same store, beside the same calls without one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTurns, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing } from '../serving.ts';
import { callFor, startCalls, WITH_STORE, WRITE } from './durable.ts';

export const AUDITED = 'audited';
export const AUDIT_REQUIRED = 'audit required';
/** Calls in flight. */
export const AUDITED_SIZE = 32;

export async function measureAudit(_contenders: unknown, scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('audit');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const start = (who: string, ...audit: readonly ('audit' | 'required')[]) => ({
    who,
    way: WRITE.way,
    start: () => startCalls(WRITE, join(folder, `${who}-${Date.now()}.db`), ...audit),
  });
  try {
    await inTurns({
      gathering,
      figures: { calls: '/s', p50: 'ms', cpu: 'µs' },
      runners: [start(WITH_STORE), start(AUDITED, 'audit'), start(AUDIT_REQUIRED, 'required')],
      sizes: [AUDITED_SIZE],
      rounds: scale.rounds,
      prepare: (running) => warmUp(scale.warmMs, (ms) => callFor(running, ms, AUDITED_SIZE)),
      async turn(running, size) {
        const [{ perSecond, p50, calls }, micros] = await costing(running, () => callFor(running, scale.ms, size));
        return { calls: perSecond, p50, cpu: micros / calls };
      },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return gathering.all;
}
