/** Draws the progress of a call on the last line of a terminal. */
import type { ServerProgress } from '../../client/client-options.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { clipLine } from '../top/format.ts';

/** The part of a terminal's stream that the bar needs. */
export interface BarOutput {
  readonly columns?: number;
  write(text: string): unknown;
}

const WIDTH = 24;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[K';

export class ProgressBar {
  readonly #output: BarOutput;
  #shown = false;

  constructor(output: BarOutput) {
    this.#output = output;
  }

  show(progress: ServerProgress): void {
    const columns = this.#output.columns ?? DEFAULT_COLUMNS;
    this.#output.write(`${CLEAR_LINE}${clipLine(progressLine(progress), Math.max(1, columns - 1))}`);
    this.#shown = true;
  }

  /** Removes the bar, so that other text begins on an empty line. */
  clear(): void {
    if (this.#shown) this.#output.write(CLEAR_LINE);
    this.#shown = false;
  }
}

/** @example progressLine({ progress: 1, total: 4, message: 'step' }) // [######------------------] 25 % step */
export function progressLine({ progress, total, message }: ServerProgress): string {
  const text = message === undefined ? '' : ` ${visibleLine(message)}`;
  if (total === undefined || !(total > 0)) return `${progress}${text}`;
  const share = Math.min(1, Math.max(0, progress / total));
  const full = Math.round(share * WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(WIDTH - full)}] ${Math.floor(share * 100)} %${text}`;
}
