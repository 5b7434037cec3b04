/** A full-screen terminal: draws on the alternate screen, reads keys, and restores the terminal on every exit. */
import type { ReadStream, WriteStream } from 'node:tty';
import type { Line, Tone } from './line.ts';

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const REST_OF_LINE = '\u001b[K';
const REST_OF_SCREEN = '\u001b[J';
const PLAIN = '\u001b[0m';

const TONES: Readonly<Record<Tone, string>> = {
  title: '\u001b[7m',
  head: '\u001b[1m',
  bad: '\u001b[31m',
  faint: '\u001b[2m',
  plain: '',
};

/** The input sequences of keys. */
const KEYS: Readonly<Record<string, Key>> = {
  q: 'quit',
  '\u0003': 'quit',
  '\u0004': 'quit',
  s: 'sort',
  j: 'down',
  k: 'up',
  '\u001b[A': 'up',
  '\u001b[B': 'down',
  '\u001b[5~': 'page up',
  '\u001b[6~': 'page down',
};

export type Key = 'quit' | 'sort' | 'up' | 'down' | 'page up' | 'page down';

interface TerminalOptions {
  readonly input: ReadStream;
  readonly output: WriteStream;
  pressed(key: Key): void;
  resized(): void;
}

export class Terminal {
  readonly #options: TerminalOptions;
  readonly #colours = (process.env.NO_COLOR ?? '') === '';

  constructor(options: TerminalOptions) {
    this.#options = options;
    const { input, output } = options;
    output.write(ENTER);
    output.on('resize', options.resized);
    process.on('exit', () => output.write(LEAVE));
    if (!input.isTTY) return;
    input.setRawMode(true);
    input.setEncoding('utf8').on('data', (text: string) => {
      const keys = KEYS[text] === undefined ? [...text] : [text];
      for (const each of keys) {
        const key = KEYS[each];
        if (key !== undefined) options.pressed(key);
      }
    });
    process.on('exit', () => input.setRawMode(false));
  }

  get columns(): number {
    return this.#options.output.columns || 80;
  }

  get rows(): number {
    return this.#options.output.rows || 24;
  }

  /** Draws over the previous lines without clearing the screen, to avoid flicker. */
  show(lines: readonly Line[]): void {
    const text = lines.slice(0, this.rows).map(({ text, tone }) => {
      const colour = this.#colours ? TONES[tone] : '';
      return colour === '' ? `${text}${REST_OF_LINE}` : `${colour}${text}${PLAIN}${REST_OF_LINE}`;
    });
    this.#options.output.write(`${HOME}${text.join('\r\n')}${REST_OF_SCREEN}`);
  }
}
