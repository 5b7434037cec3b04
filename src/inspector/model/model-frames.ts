/** Converts a model back to frames: for a tab that opens later, and for a file. */
import { FORMAT, type Frame, type Recording, type TraceRecord } from '../frames.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';

/** @param live true if more frames follow */
export function framesOf(model: Model, live = false): readonly Frame[] {
  const { hello, causes, catalogue } = model;
  if (!hello) return [];
  const oldest = causes.oldest?.seq ?? LIVE;
  const records = [...forgotten(model, oldest), ...causes.records(oldest, LIVE)];
  // The paths of the recorded machine are of no use to the readers of a recording.
  const { connect, ...rest } = hello;
  const frames: Frame[] = [{ ...rest, live, ...(live && connect ? { connect } : {}) }];
  if (catalogue) frames.push({ type: 'catalogue', catalogue });
  for (const { id, root } of model.charts.values()) frames.push({ type: 'chart', id, chart: root });
  frames.push(...model.gaps);
  frames.push({ type: 'records', records });
  for (const line of model.actors.values()) {
    const view = line.view(LIVE);
    if (view) frames.push({ type: 'look', look: view });
  }
  if (model.counted) frames.push(model.counted);
  if (model.bye !== undefined) frames.push({ type: 'bye', why: model.bye });
  return frames;
}

export function recordingOfModel(model: Model): Recording {
  return { format: 'troupe-recording', version: FORMAT, frames: framesOf(model) };
}

/**
 * The actors that started before the oldest stored record, with their states, at the sequence numbers of the original
 * records.
 */
function forgotten(model: Model, oldest: number): readonly TraceRecord[] {
  const records: TraceRecord[] = [];
  for (const line of model.actors.values()) {
    const { address: actor, kind, parent, connection, label, chart } = line;
    const born = line.lives.first;
    if (!born || born.seq >= oldest) continue;
    const named = { parent, connection, label, chart, since: born.since };
    const members = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
    records.push({ type: 'created', seq: born.seq, at: born.at, cause: 0, actor, kind, ...members });
    const standing = line.standings.before(oldest - 1);
    if (!standing || standing.seq <= born.seq) continue;
    const { seq, at, state } = standing;
    records.push({ type: 'state', seq, at, cause: 0, actor, state });
  }
  return records.sort((a, b) => a.seq - b.seq);
}
