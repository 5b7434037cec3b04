/** Reads the lines of a person at a terminal, one for each question. Lines that are pasted at once answer one question each. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

export class TerminalLines {
  readonly #interface: ReturnType<typeof createInterface>;
  readonly #output: NodeJS.WritableStream;
  readonly #waiting: string[] = [];
  /** The terminal must not show what the person types. */
  #isSecret = false;
  #closed = false;
  #wake: (() => void) | undefined;

  /** @param interrupt is called for Ctrl-C */
  constructor(
    input: NodeJS.ReadableStream & { readonly isTTY?: boolean },
    output: NodeJS.WritableStream,
    interrupt: () => void,
  ) {
    this.#output = output;
    const shown = new Writable({
      write: (text, _, done) => {
        if (!this.#isSecret) output.write(text);
        done();
      },
    });
    // The arrow keys would show an earlier secret.
    this.#interface = createInterface({ input, output: shown, terminal: input.isTTY === true, historySize: 0 });
    this.#interface.on('line', (line) => {
      this.#waiting.push(line);
      this.#wake?.();
    });
    this.#interface.on('SIGINT', interrupt);
    this.#interface.on('close', () => {
      this.#closed = true;
      this.#wake?.();
    });
  }

  write(text: string): void {
    this.#output.write(text);
  }

  /** @param secret the answer is not shown @returns undefined at the end of the input */
  async question(prompt: string, { secret = false } = {}): Promise<string | undefined> {
    if (this.#closed) this.#output.write(prompt);
    else {
      this.#interface.setPrompt(prompt);
      this.#interface.prompt();
    }
    this.#isSecret = secret;
    while (this.#waiting.length === 0 && !this.#closed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    this.#isSecret = false;
    // The terminal has not shown the Enter key either.
    if (secret) this.#output.write('\n');
    return this.#waiting.shift();
  }

  close(): void {
    this.#interface.close();
  }
}
