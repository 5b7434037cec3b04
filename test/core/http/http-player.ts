/** Plays the transcript of an HTTP conversation against a server, wherever that is mounted. */
import { Readable } from 'node:stream';
import * as assert from 'uvu/assert';
import type { JsonValue } from '../../../src/core/protocol/json.ts';
import { difference, fillIn, type Values } from '../../../src/testing/match-json.ts';
import { type SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { inTime } from '../../harness/wait.ts';
import { type Content, type Field, type HttpStep, readHttpTranscript } from './http-transcript.ts';
import type { Requested } from './served.ts';
import { EventReader } from './sse.ts';

export interface HttpPlay {
  fetch(asking: Requested): Promise<Response>;
  readonly clock: SimulatedClock;
  /** Values of named wildcards. */
  readonly values: Readonly<Record<string, JsonValue>>;
  /** Gets each message as the server sees it. @param status of the answer that has it as its body */
  onMessage(direction: 'in' | 'out', text: string, status?: number): void;
}

/** A request, with what has come of its answer. */
interface Exchange {
  readonly answer: Promise<Response>;
  events: EventReader | undefined;
  body: Readable | undefined;
  comments: number;
}

/** A request that no server answers with anything but 405: by its answer, what the server sent before it has come. */
const ROUND_TRIP: Requested = { method: 'PUT' };

/** @throws {Error} for the first step that fails: its line, what was expected, what came */
export async function playHttp(text: string, play: HttpPlay): Promise<void> {
  const player = new HttpPlayer(play);
  for (const step of readHttpTranscript(text).steps)
    try {
      await player.take(step);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      throw new Error(`transcript line ${step.line}: ${problem}`, { cause: error });
    }
  await player.end();
}

class HttpPlayer {
  readonly #play: HttpPlay;
  readonly #values: Values;
  readonly #exchanges = new Map<string, Exchange>();

  constructor(play: HttpPlay) {
    this.#play = play;
    this.#values = new Map(Object.entries(play.values));
  }

  take(step: HttpStep): Promise<void> | void {
    switch (step.kind) {
      case 'send':
        return this.#send(step);
      case 'answer':
        return this.#answer(step);
      case 'event':
        return this.#event(step);
      case 'advance':
        return this.#play.clock.advance(step.ms);
      default:
        return this.#stream(step.exchange, step.kind);
    }
  }

  /** What nobody has expected fails here, too. */
  async end(): Promise<void> {
    for (const [name, { events, body }] of this.#exchanges) {
      if (events && !body?.destroyed) await this.#silence(name, events);
      body?.destroy();
    }
  }

  #send({ exchange, method, target, fields, content }: HttpStep & { kind: 'send' }): void {
    const filled = (text: string): string => String(fillIn(text, this.#values));
    const headers = Object.fromEntries(
      fields.map(([name, value]) => [name, value === undefined ? undefined : filled(value)]),
    );
    const body = content && ('text' in content ? content.text : JSON.stringify(fillIn(content.json, this.#values)));
    if (content && 'json' in content && body !== undefined) this.#play.onMessage('in', body);
    const asking = { method, headers, ...(body !== undefined && { body }), ...(target && { path: filled(target) }) };
    const answer = this.#play.fetch(asking);
    answer.catch(() => {});
    this.#exchanges.set(exchange, { answer, events: undefined, body: undefined, comments: 0 });
  }

  async #answer({ exchange, status, fields, content }: HttpStep & { kind: 'answer' }): Promise<void> {
    const known = this.#known(exchange);
    const answer = await inTime(known.answer, 'the head of the answer');
    const isStream = answer.headers.get('content-type') === 'text/event-stream';
    const text = isStream && answer.status === 200 ? '' : await answer.text();
    assert.is(answer.status, status, `expected ${status}, got ${answer.status}: ${text}`);
    this.#compare(fields, (name) => answer.headers.get(name) ?? undefined);
    if (!isStream) return this.#content(content, text === '' ? undefined : text, status);
    if (content || !answer.body) throw new Error('expected a body, got an event stream');
    known.body = Readable.fromWeb(answer.body);
    known.body.on('error', () => {});
    known.events = new EventReader(known.body);
  }

  async #event({ exchange, fields, content }: HttpStep & { kind: 'event' }): Promise<void> {
    const event = await this.#events(exchange).next();
    const given = new Map<string, string | undefined>(Object.entries(event));
    // An event that names no type is a message.
    const expected = new Map([['event', undefined] satisfies Field, ...fields]);
    this.#compare([...expected], (name) => given.get(name));
    this.#content(content, event.data);
  }

  async #stream(exchange: string, kind: 'comment' | 'end' | 'cut' | 'nothing'): Promise<void> {
    const known = this.#known(exchange);
    const events = this.#events(exchange);
    switch (kind) {
      case 'comment':
        known.comments += 1;
        await events.comment(known.comments);
        return;
      case 'end':
        assert.equal(await events.rest(), []);
        return;
      case 'cut':
        known.body?.destroy();
        return;
      case 'nothing':
        return this.#silence(exchange, events);
    }
  }

  async #silence(exchange: string, events: EventReader): Promise<void> {
    await settled();
    await (await this.#play.fetch(ROUND_TRIP)).text();
    assert.equal(events.untaken, [], `expected nothing more on the stream "${exchange}"`);
  }

  #compare(fields: readonly Field[], got: (name: string) => string | undefined): void {
    for (const [name, value] of fields) {
      const found = got(name);
      const problem =
        value === undefined
          ? found !== undefined && `expected none, got ${found}`
          : difference(value, found, this.#values);
      if (problem) throw new Error(`${name}: ${problem}`);
    }
  }

  #content(content: Content | undefined, got: string | undefined, status?: number): void {
    if (!content) return assert.is(got, undefined, `expected no content, got ${got}`);
    const problem =
      'text' in content
        ? difference(content.text, got ?? '', this.#values)
        : difference(content.json, this.#message(got, status), this.#values);
    if (problem) throw new Error(`${problem}\n  in ${got}`);
  }

  #message(text: string | undefined, status: number | undefined): JsonValue {
    if (text === undefined) throw new Error('expected JSON, got no content');
    this.#play.onMessage('out', text, status);
    const message: JsonValue = JSON.parse(text);
    return message;
  }

  #known(exchange: string): Exchange {
    const known = this.#exchanges.get(exchange);
    if (!known) throw new Error(`no request was sent as "${exchange}"`);
    return known;
  }

  #events(exchange: string): EventReader {
    const { events } = this.#known(exchange);
    if (!events) throw new Error(`the answer to "${exchange}" is no event stream`);
    return events;
  }
}
