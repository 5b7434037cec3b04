/** A line of the screen of `troupe top`. */

export type Tone = 'title' | 'head' | 'bad' | 'faint' | 'plain';

export interface Line {
  readonly text: string;
  readonly tone: Tone;
}

export function line(text: string, tone: Tone = 'plain'): Line {
  return { text, tone };
}
