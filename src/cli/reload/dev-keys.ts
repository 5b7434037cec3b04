/** The keys of `troupe dev` on a terminal. Lines that begin with `{` are messages, for a person who speaks the protocol. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { PassThrough, type Readable } from 'node:stream';

/** A terminal that reports each key as it is pressed. */
export type RawInput = Readable & { readonly isTTY?: boolean; setRawMode(on: boolean): unknown };

export interface KeyActions {
  /** Opens the page of the inspector. */
  open(): void;
  restart(): void;
  /** Finishes the calls in flight, and ends. Pressed again, it ends at once. */
  quit(): void;
  /** Stops the process, as Ctrl-Z does, until it is continued. */
  suspend(): void;
  /** Writes on the terminal. */
  write(text: string): void;
}

export const KEYS_HELP = 'o opens the page, r restarts, q ends, h lists the keys';

/** Characters of a line that a person types. */
const MAX_LINE = 1_048_576;
/** The time limit for `ps`, in milliseconds. */
const PS_MS = 1_000;

/** The terminal of a command; undefined for a pipe, and for a stream of a test. */
export function rawInput(stdin: Readable & { readonly isTTY?: boolean }): RawInput | undefined {
  return stdin.isTTY === true && hasRawMode(stdin) ? stdin : undefined;
}

function hasRawMode(stdin: Readable): stdin is RawInput {
  return 'setRawMode' in stdin && typeof stdin.setRawMode === 'function';
}

/** True if this process may read the terminal. The system stops one in the background that tries. */
export function inForeground(): boolean {
  if (process.platform === 'win32') return true;
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // After the name in parentheses: state, parent, group, session, terminal, and the group that has the terminal.
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    if (process.platform === 'linux') return false;
  }
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(process.pid)], { encoding: 'utf8', timeout: PS_MS });
  return stdout?.includes('+') === true;
}

/** Reads keys until it ends, and restores the terminal then. */
export class DevKeys {
  /** The lines that the person types, for a server on stdio. */
  readonly lines = new PassThrough();
  readonly #input: RawInput;
  readonly #actions: KeyActions;
  #line = '';

  constructor(input: RawInput, actions: KeyActions) {
    this.#input = input;
    this.#actions = actions;
    this.resume();
    input.setEncoding('utf8').on('data', (text: string) => this.#typed(text));
  }

  /** Reads single keys, also after the process was stopped. */
  resume(): void {
    this.#input.setRawMode(true);
  }

  /** Restores the terminal. */
  end(): void {
    this.#input.setRawMode(false);
  }

  #typed(text: string): void {
    // The sequence of a key such as an arrow is none of ours.
    if (this.#line === '' && text.startsWith('\x1b')) return;
    for (const character of text) this.#press(character);
  }

  #press(character: string): void {
    const { open, restart, quit, suspend, write } = this.#actions;
    switch (character) {
      case '\x03':
      case '\x04':
        return quit();
      case '\x1a':
        return suspend();
    }
    if (this.#line !== '' || character === '{') return this.#extend(character);
    switch (character) {
      case 'o':
        return open();
      case 'r':
        return restart();
      case 'q':
        return quit();
      case 'h':
      case '?':
        return write(`troupe dev: ${KEYS_HELP}\n`);
    }
  }

  /** Adds a character to a line, which its end sends. */
  #extend(character: string): void {
    const { write } = this.#actions;
    if (character === '\r' || character === '\n') {
      write('\n');
      this.lines.write(`${this.#line}\n`);
      this.#line = '';
    } else if (character === '\x7f' || character === '\b') {
      this.#line = this.#line.slice(0, -1);
      write('\b \b');
    } else if (this.#line.length < MAX_LINE && character >= ' ') {
      this.#line += character;
      write(character);
    }
  }
}
