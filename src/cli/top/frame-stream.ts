/** The client of an inspector for `troupe top`: receives frames and reconnects after a lost connection. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { ActorView, Frame } from '../../inspector/frames.ts';

/** The first and the maximum delay between attempts to connect, in milliseconds. */
const BACK_OFF = { fromMs: 250, toMs: 2_000 };
/** The maximum length of a frame or response, in characters. */
const MAX_LENGTH = 16 * 1024 * 1024;
/** The time limit for the head of a response, in milliseconds. */
const ANSWER_MS = 5_000;
/** The maximum length of a rejection's reason, in characters. */
const MAX_WHY = 500;
const FRAMES: ReadonlySet<string> = new Set<Frame['type']>(['hello', 'chart', 'records', 'gap', 'look', 'bye']);

/** The inspector rejects the request, and a retry does not help. */
export class Rejected extends Error {
  override readonly name = 'Rejected';
}

interface FrameStreamOptions {
  /** The inspector's URL, with the token after the `#`. */
  readonly url: URL;
  /** The newest record that the viewer has. */
  since(): number;
  onFrame(frame: Frame): void;
  /** @param status a short description of the connection */
  onStatus(status: string): void;
}

export class FrameStream {
  readonly #options: FrameStreamOptions;
  readonly #viewer = randomUUID();
  readonly #ended = new AbortController();

  constructor(options: FrameStreamOptions) {
    this.#options = options;
  }

  /** Receives frames until `end`, and reconnects as needed. @throws {Rejected} */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.#ended.signal.aborted) {
      try {
        const frames = await this.once();
        if (frames > 0) failures = 0;
        this.#options.onStatus('disconnected: reconnecting');
      } catch (error) {
        if (error instanceof Rejected) throw error;
        this.#options.onStatus(`cannot connect (${messageOf(error)}): retrying`);
      }
      failures += 1;
      await sleep(delayAfter(BACK_OFF, failures), undefined, { signal: this.#ended.signal }).catch(() => {});
    }
  }

  /** Receives frames over one connection until it ends. @returns the number of frames @throws {Error} if the connection fails; {Rejected} */
  async once(): Promise<number> {
    const query = new URLSearchParams({ viewer: this.#viewer, since: String(this.#options.since()) });
    const body = await this.#ask(`/api/stream?${query}`);
    this.#options.onStatus('live');
    let rest = '';
    let frames = 0;
    try {
      for await (const chunk of body) {
        const events = (rest + String(chunk)).split('\n\n');
        rest = events.pop() ?? '';
        if (rest.length > MAX_LENGTH) throw new Error(`a frame is longer than ${MAX_LENGTH} characters`);
        for (const event of events) frames += this.#event(event);
      }
    } catch (error) {
      // After the first frame, a broken connection counts as one that has ended.
      if (frames === 0) throw error;
    }
    return frames;
  }

  /** Sets the focused actors: the inspector reports changes of their details. */
  async focus(actors: readonly string[]): Promise<void> {
    const body = JSON.stringify({ viewer: this.#viewer, actors });
    (await this.#ask('/api/focus', body)).resume();
  }

  /** Requests the details of an actor. @returns undefined if the actor does not exist any more */
  async view(actor: string): Promise<ActorView | undefined> {
    try {
      const view = await readJson(await this.#ask(`/api/look?${new URLSearchParams({ actor })}`));
      return isActorView(view) ? view : undefined;
    } catch {
      return undefined;
    }
  }

  end(): void {
    this.#ended.abort();
  }

  /** Sends a request. @param body JSON for a POST; undefined for a GET */
  async #ask(path: string, body?: string): Promise<IncomingMessage> {
    const { hostname, port, hash, origin } = this.#options.url;
    const headers = {
      Authorization: `Bearer ${hash.slice(1)}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request({ hostname, port, path, method, headers, signal: this.#ended.signal }, resolve);
      // The timeout covers only the head of the response: an open stream may be silent for long.
      asked.setTimeout(ANSWER_MS, () => asked.destroy(new Error(`no response within ${ANSWER_MS} ms`)));
      asked.once('response', () => asked.setTimeout(0));
      asked.on('error', reject);
      asked.end(body);
    });
    answer.setEncoding('utf8');
    const { statusCode = 0 } = answer;
    if (statusCode < 300) return answer;
    const problem = await readJson(answer).catch(() => undefined);
    // Another program may own the port now, so its text is sanitised and truncated.
    const why = visibleLine(isObject(problem) ? String(problem.error) : `status ${statusCode}`).slice(0, MAX_WHY);
    // 503 (too many viewers) and 404 (the viewer is not registered yet) are temporary.
    if (statusCode === 503 || statusCode === 404) throw new Error(why);
    throw new Rejected(`${origin} rejected the request: ${why}`);
  }

  #event(event: string): number {
    if (!event.startsWith('data: ')) return 0;
    const frame: unknown = JSON.parse(event.slice('data: '.length));
    if (!isFrame(frame)) return 0;
    this.#options.onFrame(frame);
    return 1;
  }
}

/** Recognises the known kinds of frames; all others are ignored. */
function isFrame(value: unknown): value is Frame {
  return isObject(value) && typeof value.type === 'string' && FRAMES.has(value.type);
}

function isActorView(value: unknown): value is ActorView {
  return isObject(value) && typeof value.actor === 'string' && Array.isArray(value.waits);
}

async function readJson(answer: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > MAX_LENGTH) throw new Error(`a response is longer than ${MAX_LENGTH} characters`);
  }
  return JSON.parse(text);
}
