/** The stream of an inspector, as `troupe top` hears it: frames, one after the other, over as many connections as it takes. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Frame, Look } from '../../inspector/frames.ts';
import { isObject, messageOf } from '../../protocol/json.ts';
import { safe } from './format.ts';

/** Between two tries to connect, in milliseconds: at first, and at most. */
const FIRST_MS = 250;
const MOST_MS = 2_000;
/** Longest frame, in characters: what is longer is no frame. */
const MAX_LENGTH = 16 * 1024 * 1024;
/** Within which an answer begins, in milliseconds. */
const ANSWER_MS = 5_000;
/** Characters of why it refuses. */
const MAX_WHY = 500;
const FRAMES: ReadonlySet<string> = new Set<Frame['type']>(['hello', 'chart', 'records', 'gap', 'look', 'bye']);

/** It is of no use to try again. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

export interface FrameStreamOptions {
  /** As it was said: with the token behind the `#`. */
  readonly url: URL;
  /** The last record that is known already. */
  since(): number;
  hear(frame: Frame): void;
  /** @param status in a word or a line */
  is(status: string): void;
}

export class FrameStream {
  readonly #options: FrameStreamOptions;
  readonly #viewer = randomUUID();
  readonly #ended = new AbortController();

  constructor(options: FrameStreamOptions) {
    this.#options = options;
  }

  /** Hears until it is ended, over one connection after the other. @throws {Refused} */
  async run(): Promise<void> {
    let wait = FIRST_MS;
    while (!this.#ended.signal.aborted) {
      try {
        const frames = await this.once();
        if (frames > 0) wait = FIRST_MS;
        this.#options.is('the server has gone: trying again');
      } catch (error) {
        if (error instanceof Refused) throw error;
        this.#options.is(`no answer (${messageOf(error)}): trying again`);
      }
      await sleep(wait, undefined, { signal: this.#ended.signal }).catch(() => {});
      wait = Math.min(MOST_MS, wait * 2);
    }
  }

  /** Hears over one connection, until that ends. @returns how many frames came @throws {Error} when it cannot connect; {Refused} */
  async once(): Promise<number> {
    const query = new URLSearchParams({ viewer: this.#viewer, since: String(this.#options.since()) });
    const body = await this.#ask(`/api/stream?${query}`);
    this.#options.is('live');
    let rest = '';
    let frames = 0;
    try {
      for await (const chunk of body) {
        const events = (rest + String(chunk)).split('\n\n');
        rest = events.pop() ?? '';
        if (rest.length > MAX_LENGTH) throw new Error('a frame has no end');
        for (const event of events) frames += this.#event(event);
      }
    } catch (error) {
      // A connection that is cut is one that has ended.
      if (frames === 0) throw error;
    }
    return frames;
  }

  /** Looks at these actors from now on: how they stand is told when it changes. */
  async focus(actors: readonly string[]): Promise<void> {
    const body = JSON.stringify({ viewer: this.#viewer, actors });
    (await this.#ask('/api/focus', body)).resume();
  }

  /** How an actor stands now; undefined when it has gone. */
  async look(actor: string): Promise<Look | undefined> {
    try {
      const look = await readJson(await this.#ask(`/api/look?${new URLSearchParams({ actor })}`));
      return isLook(look) ? look : undefined;
    } catch {
      return undefined;
    }
  }

  end(): void {
    this.#ended.abort();
  }

  /** @param body JSON to send, if any */
  async #ask(path: string, body?: string): Promise<IncomingMessage> {
    const { hostname, port, hash, origin } = this.#options.url;
    const headers = {
      Authorization: `Bearer ${hash.slice(1)}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request({ hostname, port, path, method, headers, signal: this.#ended.signal }, resolve);
      // A stream that is open may be quiet for long; an answer that does not begin is none.
      asked.setTimeout(ANSWER_MS, () => asked.destroy(new Error(`no answer within ${ANSWER_MS} ms`)));
      asked.once('response', () => asked.setTimeout(0));
      asked.on('error', reject);
      asked.end(body);
    });
    answer.setEncoding('utf8');
    const { statusCode = 0 } = answer;
    if (statusCode < 300) return answer;
    const told = await readJson(answer).catch(() => undefined);
    // Whoever has that port now may say anything.
    const why = safe(isObject(told) ? String(told.error) : `status ${statusCode}`).slice(0, MAX_WHY);
    // Too many viewers, or a viewer that is not there yet, may be otherwise soon.
    if (statusCode === 503 || statusCode === 404) throw new Error(why);
    throw new Refused(`${origin} refuses: ${why}`);
  }

  #event(event: string): number {
    if (!event.startsWith('data: ')) return 0;
    const frame: unknown = JSON.parse(event.slice('data: '.length));
    if (!isFrame(frame)) return 0;
    this.#options.hear(frame);
    return 1;
  }
}

/** What an inspector tells has this form; a kind of frame that is not known is passed over. */
function isFrame(value: unknown): value is Frame {
  return isObject(value) && typeof value.type === 'string' && FRAMES.has(value.type);
}

function isLook(value: unknown): value is Look {
  return isObject(value) && typeof value.actor === 'string' && Array.isArray(value.waits);
}

async function readJson(answer: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > MAX_LENGTH) throw new Error('an answer has no end');
  }
  return JSON.parse(text);
}
