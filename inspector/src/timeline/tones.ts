/** The colour of a state, by its meaning. */
import { isWaiting } from '../actors/waiting-states.ts';

/** The colours of states. Two of them are for states without a meaning to Troupe: neighbours differ. */
export const TONES = ['live', 'live-2', 'waiting', 'failed', 'done', 'ended'] as const;

const tones = new Map<string, number>();
const ENDED = /^(closed|stopped|gone|cancelled|expired|idle|hibernat)/;
const FAILED = /fail|error|crash|broken|aside/;
const DONE = /^(done|completed?|answered|accepted|succeeded|finished|returned)\b/;

/** The index of a state's colour in {@link TONES}. The same name has the same colour everywhere. */
export function toneOf(state: string): number {
  const known = tones.get(state);
  if (known !== undefined) return known;
  if (tones.size > 2_000) tones.clear();
  const tone = TONES.indexOf(meaningOf(state));
  tones.set(state, tone);
  return tone;
}

function meaningOf(state: string): (typeof TONES)[number] {
  if (FAILED.test(state)) return 'failed';
  if (isWaiting(state)) return 'waiting';
  if (DONE.test(state)) return 'done';
  if (ENDED.test(state)) return 'ended';
  let hash = 7;
  for (let index = 0; index < state.length; index += 1) hash = (hash * 31 + state.charCodeAt(index)) >>> 0;
  return hash % 2 === 0 ? 'live' : 'live-2';
}
