/** Passes on what the server of `troupe call` writes on stderr: without control characters, dimmed on a terminal, and up to a limit. */
import { stripVTControlCharacters } from 'node:util';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { CommandIo } from '../command-io.ts';

/** Characters that are passed on at once. */
const MAX_CHARACTERS = 262_144;
/** The last lines, and their characters each, that are passed on at the end if there was more. */
const LAST_LINES = 20;
const LAST_LINE_CHARACTERS = 1_000;

export class ServerOutput {
  readonly #io: Pick<CommandIo, 'stderr' | 'env'>;
  readonly #clear: () => void;
  #passed = 0;
  #held = 0;
  #last: string[] = [];

  /** @param clear removes what the command shows on the current line of the terminal */
  constructor(io: Pick<CommandIo, 'stderr' | 'env'>, clear: () => void) {
    this.#io = io;
    this.#clear = clear;
  }

  /** Passes on a line as the server wrote it. */
  readonly line = (written: string): void => {
    const text = stripVTControlCharacters(written)
      .split('\t')
      .map((part) => visibleLine(part))
      .join('\t');
    if (this.#passed + text.length <= MAX_CHARACTERS) {
      this.#passed += text.length + 1;
      return this.#write(text);
    }
    // All that follows is held back, so that the lines stay in their order.
    this.#passed = MAX_CHARACTERS;
    this.#held += 1;
    this.#last.push(text.slice(0, LAST_LINE_CHARACTERS));
    if (this.#last.length > LAST_LINES) this.#last.shift();
  };

  /** Prints a note of the command in the same way. */
  note(text: string): void {
    this.#write(text);
  }

  /** Passes on the last lines of what the limit has held back. */
  end(): void {
    if (this.#held === 0) return;
    const omitted = this.#held - this.#last.length;
    if (omitted > 0) this.#write(`(${omitted} lines of the server on stderr were left out)`);
    for (const line of this.#last.splice(0)) this.#write(line);
    this.#held = 0;
  }

  #write(line: string): void {
    this.#clear();
    const { stderr, env } = this.#io;
    const isDimmed = stderr.isTTY === true && (env.NO_COLOR ?? '') === '';
    stderr.write(isDimmed ? `\x1b[2m${line}\x1b[22m\n` : `${line}\n`);
  }
}
