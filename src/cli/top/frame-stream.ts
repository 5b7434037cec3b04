/** The client of an inspector for `troupe top`: receives frames and reconnects after a lost connection. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import type { ActorView, Frame } from '../../inspector/frames.ts';
import type { TrafficView } from '../../inspector/traffic/traffic-messages.ts';
import { askInspector, jsonOfAnswer, MAX_LENGTH, Rejected } from '../serving/inspector-requests.ts';

/** The first and the maximum delay between attempts to connect, in milliseconds. */
const BACK_OFF = { fromMs: 250, toMs: 2_000 };
const FRAMES: ReadonlySet<string> = new Set<Frame['type']>(['hello', 'chart', 'records', 'gap', 'look', 'bye']);

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
      const view = await jsonOfAnswer(await this.#ask(`/api/look?${new URLSearchParams({ actor })}`));
      return isActorView(view) ? view : undefined;
    } catch {
      return undefined;
    }
  }

  /** Requests the event traffic. @returns undefined if the server has none to show */
  async traffic(): Promise<TrafficView | undefined> {
    try {
      const view = await jsonOfAnswer(await this.#ask('/api/traffic'));
      return isTrafficView(view) ? view : undefined;
    } catch {
      return undefined;
    }
  }

  end(): void {
    this.#ended.abort();
  }

  #ask(path: string, body?: string): Promise<IncomingMessage> {
    return askInspector(this.#options.url, path, { body, signal: this.#ended.signal });
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

function isTrafficView(value: unknown): value is TrafficView {
  if (!isObject(value)) return false;
  const { types, subscriptions, schedules, letters } = value;
  return [types, schedules, letters, isObject(subscriptions) && subscriptions.some].every(Array.isArray);
}

function isActorView(value: unknown): value is ActorView {
  return isObject(value) && typeof value.actor === 'string' && Array.isArray(value.waits);
}
