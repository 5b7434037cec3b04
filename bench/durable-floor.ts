/** Writes with a store beside writes without one, of Troupe and of a bare server with the same two group commits, in turns. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FLOOR, OURS } from './contenders.ts';
import {
  callFor,
  FLOOR_WITH_THREAD,
  type Running,
  startCalls,
  startFloor,
  WITH_STORE,
  WRITE,
} from './parts/durable.ts';
import { inTurns, type Runner, warmUp } from './rounds.ts';
import { Gathering, ratio, type Series, type Spread, spread } from './series.ts';
import { costing } from './serving.ts';

const IN_FLIGHT = 32;
const ROUNDS = 9;
const TURN_MS = 1_000;
const WARM_MS = 1_000;

/** @returns a line for each server: calls per second, their share of the same server without a store, processor time of a call */
export async function measureFloorOfWrites(): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const gathering = new Gathering('durable');
  const runners: readonly Runner<Running>[] = [
    { who: FLOOR, way: WRITE.way, start: () => startFloor('none') },
    { who: FLOOR_WITH_THREAD, way: WRITE.way, start: () => startFloor(join(folder, 'floor.db')) },
    { who: OURS, way: WRITE.way, start: () => startCalls(WRITE, undefined) },
    { who: WITH_STORE, way: WRITE.way, start: () => startCalls(WRITE, join(folder, 'troupe.db')) },
  ];
  try {
    await inTurns({
      gathering,
      figures: { calls: '/s', cpu: 'µs' },
      runners,
      sizes: [IN_FLIGHT],
      rounds: ROUNDS,
      prepare: (running) => warmUp(WARM_MS, (ms) => callFor(running, ms, IN_FLIGHT)),
      async turn(running) {
        const [{ perSecond, calls }, micros] = await costing(running, () => callFor(running, TURN_MS, IN_FLIGHT));
        return { calls: perSecond, cpu: micros / calls };
      },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const found = (who: string, measure: string): Series | undefined =>
    gathering.all.find((series) => series.who === who && series.measure === measure);
  const shown = (all: Spread | undefined, digits: number): string =>
    all ? `${all.median.toFixed(digits)} (${all.least.toFixed(digits)} to ${all.most.toFixed(digits)})` : 'failed';
  return [FLOOR, FLOOR_WITH_THREAD, OURS, WITH_STORE].map((who, index) => {
    const base = index < 2 ? FLOOR : OURS;
    const calls = found(who, 'calls');
    const cpu = spread(found(who, 'cpu')?.rounds ?? []);
    return `write, ${IN_FLIGHT} in flight, ${who}: ${shown(spread(calls?.rounds ?? []), 0)} calls/s, ${shown(ratio(calls, found(base, 'calls')), 2)} of ${base}, ${shown(cpu, 0)} µs of processor time a call`;
  });
}
