/** Separates a server's messages from what else its process writes to stdout, and reports the rest once per burst. It reads and writes nothing. */
import type { Clock } from '../../clock.ts';
import { isObject } from '../../protocol/json.ts';
import { asideStart, isAside } from '../../transports/relay.ts';
import { parsed, USUAL } from '../shim/scan.ts';

/** Milliseconds after a report in which stray output is counted and not reported. */
const BURST_MS = 10_000;

/** Most characters of stray output that a report quotes. */
const QUOTED = 80;

export interface StrayOutputOptions {
  readonly clock: Clock;
  /** Tells people. */
  say(line: string): void;
}

export class StrayOutput {
  readonly #options: StrayOutputOptions;
  #reportedAt: number | undefined;
  /** Pieces of stray output since the last report. */
  #unreported = 0;

  constructor(options: StrayOutputOptions) {
    this.#options = options;
  }

  /**
   * The JSON-RPC message (or batch) in a line of the server, or what it tells its relay; undefined if the line has neither.
   *
   * Until the first stray output, a line that begins and ends as the server writes its messages counts as one unparsed. From then
   * on each line is parsed: output of a child process can tear a message that is longer than the pipe has room for.
   */
  messageIn(line: string): string | undefined {
    if (this.#reportedAt === undefined && line.startsWith(USUAL) && line.endsWith('}')) return line;
    if (isAside(line)) return line;
    if (isMessage(line)) return line;
    // No message has the mark of an aside in it, and stray output hardly ever.
    const aside = asideStart(line);
    if (aside !== -1) {
      this.#stray(line.slice(0, aside));
      return line.slice(aside);
    }
    // Output without a newline ends up in front of the next message.
    const start = line.indexOf(USUAL, 1);
    const message = start === -1 ? undefined : line.slice(start);
    if (message === undefined || !isMessage(message)) return this.#stray(line);
    this.#stray(line.slice(0, start));
    return message;
  }

  #stray(text: string): undefined {
    const { clock, say } = this.#options;
    const now = clock.now();
    if (this.#reportedAt !== undefined && now - this.#reportedAt < BURST_MS) {
      this.#unreported += 1;
      return;
    }
    const before = this.#unreported === 0 ? '' : ` (and ${this.#unreported} times since the last report)`;
    say(
      `the server wrote to stdout what is no JSON-RPC message${before}: the agent does not get it: ${JSON.stringify(text.slice(0, QUOTED))}`,
    );
    this.#reportedAt = now;
    this.#unreported = 0;
  }
}

function isMessage(text: string): boolean {
  const whole = parsed(text);
  const all: readonly unknown[] = Array.isArray(whole) ? whole : [whole];
  return all.length > 0 && all.every((one) => isObject(one) && one.jsonrpc === '2.0' && hasKind(one));
}

function hasKind({ method, result, error }: Readonly<Record<string, unknown>>): boolean {
  return typeof method === 'string' || result !== undefined || error !== undefined;
}
