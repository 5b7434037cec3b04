/** Separates a server's messages from other output on its stdout, and reports that output once per burst. It does no I/O. */
import type { Clock } from '../../core/kernel/clock.ts';
import { messageInLine } from '../../core/transports/message-in-line.ts';
import { asideStart, isAside } from '../../core/transports/relay.ts';
import { USUAL } from '../shim/scan.ts';

/** The time after a report during which stray output is only counted, in milliseconds. */
const BURST_MS = 10_000;

/** The maximum number of characters of stray output that a report quotes. */
const QUOTED = 80;

interface StrayOutputOptions {
  readonly clock: Clock;
  /** Prints a line on stderr. */
  say(line: string): void;
}

export class StrayOutput {
  readonly #options: StrayOutputOptions;
  #reportedAt: number | undefined;
  /** The number of stray outputs since the last report. */
  #unreported = 0;

  constructor(options: StrayOutputOptions) {
    this.#options = options;
  }

  /**
   * Extracts from a line the JSON-RPC message or batch, or the report to the relay. @returns undefined if the line contains neither
   *
   * Until the first stray output, a line that starts and ends like the server's messages passes unparsed. From then on, each line
   * is parsed: output of a child process can split a message that is longer than the pipe's buffer.
   */
  messageIn(line: string): string | undefined {
    if (this.#reportedAt === undefined && line.startsWith(USUAL) && line.endsWith('}')) return line;
    if (isAside(line)) return line;
    const found = messageInLine(line);
    if (found?.noise === '') return line;
    // A message never contains the mark of a relay report, and stray output hardly ever does.
    const aside = asideStart(line);
    if (aside !== -1) {
      this.#stray(line.slice(0, aside));
      return line.slice(aside);
    }
    // Output without a newline precedes the next message on the same line.
    this.#stray(found?.noise ?? line);
    return found?.message;
  }

  #stray(text: string): undefined {
    const { clock, say } = this.#options;
    const now = clock.now();
    if (this.#reportedAt !== undefined && now - this.#reportedAt < BURST_MS) {
      this.#unreported += 1;
      return;
    }
    const before = this.#unreported === 0 ? '' : ` (and ${this.#unreported} more since the last report)`;
    say(
      `dropped output on the server's stdout that is not a JSON-RPC message${before}: ${JSON.stringify(text.slice(0, QUOTED))}`,
    );
    this.#reportedAt = now;
    this.#unreported = 0;
  }
}
