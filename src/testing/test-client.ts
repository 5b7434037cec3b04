/** A client for tests: supports both eras, records every message, and never sleeps. */
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import { META } from '../protocol/meta.ts';
import { LATEST_LEGACY, LATEST_MODERN } from '../protocol/revisions.ts';
import type { CallToolResult } from '../protocol/types.ts';
import { listArrivals, type PendingArrival, wait } from './arrivals.ts';
import { isJsonArray, isObjectInTest, readJson } from './test-json.ts';
import {
  asNotification,
  isCallToolResult,
  readAnswer,
  type SeenMessage,
  type SeenNotification,
  type Wire,
} from './wire.ts';

export interface TestClientOptions {
  /** Milliseconds of real time after which a wait fails. Default 5,000. */
  readonly deadlineMs?: number;
  /**
   * Receives each message before any waiting call does. If it throws, all later waits and `close()` fail with that
   * error.
   */
  onMessage?(message: SeenMessage): void;
}

interface Next extends PendingArrival<JsonValue> {
  fits(message: JsonValue): boolean;
}

const CLIENT_INFO = { name: 'troupe-test-client', version: '1.0.0' };

/**
 * A client on any {@link Wire}; `connect(server)` creates one for a server inside the process.
 *
 * @example
 * const client = await connect(server);
 * const tools = await client.modern('tools/list');
 */
export class TestClient {
  /** Every message in both directions, in the order on the wire. */
  readonly messages: readonly SeenMessage[];
  readonly #seen: SeenMessage[] = [];
  readonly #wire: Wire;
  readonly #deadlineMs: number;
  readonly #onMessage: ((message: SeenMessage) => void) | undefined;
  readonly #requests = new Map<JsonValue, PendingArrival<JsonObject>>();
  readonly #nexts = new Set<Next>();
  /** Messages from the server that neither a request nor a `next` has consumed. */
  readonly #untaken: JsonValue[] = [];
  /** The error that `onMessage` threw, or the error for an invalid message. */
  #failure: Error | undefined;
  /** Set once the connection is closed. */
  #gone: Error | undefined;
  #lastId = 0;
  #legacy = false;

  constructor(wire: Wire, { deadlineMs = 5_000, onMessage }: TestClientOptions = {}) {
    this.messages = this.#seen;
    this.#wire = wire;
    this.#deadlineMs = deadlineMs;
    this.#onMessage = onMessage;
    wire.onText((text) => this.#receive(text));
    void wire.closed.then((reason) => {
      this.#gone = new Error(`the connection is closed (${reason})`);
      this.#abandon(this.#gone);
    });
  }

  /** The notifications from the server so far. */
  get notifications(): readonly SeenNotification[] {
    return this.#seen.flatMap(({ direction, parsed }) => {
      const notification = direction === 'out' ? asNotification(parsed) : undefined;
      return notification ? [notification] : [];
    });
  }

  /** Resolves with the reason once the connection is closed. */
  get closed(): Promise<string> {
    return this.#wire.closed;
  }

  /**
   * Opens a session: sends `initialize` and, after its response, `notifications/initialized`.
   *
   * @param revision the requested revision; the server may respond with another
   * @returns the result of `initialize`
   */
  async initialize(revision: string = LATEST_LEGACY, capabilities: JsonObject = {}): Promise<JsonObject> {
    const result = await this.request('initialize', {
      protocolVersion: revision,
      capabilities,
      clientInfo: CLIENT_INFO,
    });
    this.#legacy = true;
    this.notify('notifications/initialized');
    return result;
  }

  /**
   * Sends a request unchanged and resolves with its result.
   *
   * @throws {ErrorAnswer} for an error response; an Error if no response arrives in time, or the connection closes
   */
  request(method: string, params?: JsonObject): Promise<JsonObject> {
    this.#lastId += 1;
    const id = this.#lastId;
    const waiting = this.#wait<JsonObject>(`the response to request ${id} (${method})`, () =>
      this.#requests.delete(id),
    );
    this.#requests.set(id, waiting);
    try {
      this.#send({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) });
    } catch (error) {
      waiting.fail(error instanceof Error ? error : new Error(String(error)));
    }
    return waiting.promise;
  }

  /**
   * Sends a request of the modern era: with a `_meta` that names the revision, the client and its capabilities (none).
   *
   * @param meta more members of `_meta`, or others; one that is `undefined` is left out
   * @throws as {@link request} does
   * @example await client.modern('tools/call', { name: 'work' }, { progressToken: 'w' });
   */
  modern(method: string, params: JsonObject = {}, meta: JsonObject = {}): Promise<JsonObject> {
    const described = {
      [META.protocolVersion]: LATEST_MODERN,
      [META.clientInfo]: CLIENT_INFO,
      [META.clientCapabilities]: {},
      ...meta,
    };
    return this.request(method, { ...params, _meta: described });
  }

  /**
   * Calls a tool: in the session if {@link initialize} opened one, otherwise as a modern request. @throws as {@link
   * request} does
   */
  async callTool(name: string, args: JsonObject = {}): Promise<CallToolResult> {
    const params = { name, arguments: args };
    const result = await (this.#legacy ? this.request('tools/call', params) : this.modern('tools/call', params));
    if (!isCallToolResult(result))
      throw new Error(`tools/call: expected a result with content blocks, got ${JSON.stringify(result)}`);
    return result;
  }

  /** Sends a notification. @throws {Error} if the connection is closed */
  notify(method: string, params?: JsonObject): void {
    this.#send({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) });
  }

  /** Sends a text unchanged, even if it is not a message. @throws {Error} if the connection is closed */
  raw(text: string): void {
    this.#see({ direction: 'in', text, parsed: readJson(text) });
    this.#wire.send(text);
  }

  /**
   * The first matching message from the server that no request and no earlier `next` has consumed. Waits for it.
   *
   * @param fits default: any message
   * @param what the name of the expected message in an error
   */
  next(fits: (message: JsonValue) => boolean = () => true, what = 'a message'): Promise<JsonValue> {
    if (this.#failure) return rejected(this.#failure);
    const index = this.#untaken.findIndex(fits);
    const [here] = index === -1 ? [] : this.#untaken.splice(index, 1);
    if (here !== undefined) return Promise.resolve(here);
    if (this.#gone) return rejected(this.#gone);
    const next: Next = { ...this.#wait<JsonValue>(what, () => this.#nexts.delete(next)), fits };
    this.#nexts.add(next);
    return next.promise;
  }

  /** The params of the next notification of this method; waits for it. */
  async notification(method: string): Promise<JsonObject> {
    const message = await this.next((each) => asNotification(each)?.method === method, method);
    return asNotification(message)?.params ?? {};
  }

  /** Returns all unconsumed messages without waiting. */
  rest(): readonly JsonValue[] {
    return this.#untaken.splice(0);
  }

  /**
   * Ends the input and resolves when the server has closed the connection. @throws the error of `onMessage`, or an
   * Error if the connection stays open
   */
  async close(): Promise<void> {
    const waiting = this.#wait<void>('the server to close the connection');
    void this.#wire.closed.then(() => waiting.settle());
    this.#wire.close();
    await waiting.promise;
    if (this.#failure) throw this.#failure;
  }

  #send(message: JsonObject): void {
    this.raw(JSON.stringify(message));
  }

  #see(message: SeenMessage): void {
    this.#seen.push(message);
    try {
      this.#onMessage?.(message);
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
      this.#abandon(this.#failure);
    }
  }

  #receive(text: string): void {
    const parsed = readJson(text);
    this.#see({ direction: 'out', text, parsed });
    if (parsed === undefined) {
      this.#failure ??= new Error(`the server sent text that is not JSON: ${text.slice(0, 400)}`);
      return this.#abandon(this.#failure);
    }
    if (isJsonArray(parsed)) {
      // A batch belongs to the requests that it answers; its other messages go to the waiting calls.
      const left = parsed.filter((message) => !this.#answer(message));
      if (left.length > 0) this.#offer(left.length === parsed.length ? parsed : left);
    } else if (!this.#answer(parsed)) this.#offer(parsed);
  }

  /** @returns whether the message is the response to a request of this client */
  #answer(message: JsonValue): boolean {
    if (!isObjectInTest(message) || message.id === undefined || message.method !== undefined) return false;
    const waiting = this.#requests.get(message.id);
    if (!waiting) return false;
    const answer = readAnswer(message);
    if (answer instanceof Error) waiting.fail(answer);
    else waiting.settle(answer);
    return true;
  }

  #offer(message: JsonValue): void {
    for (const next of this.#nexts) if (next.fits(message)) return next.settle(message);
    this.#untaken.push(message);
  }

  #wait<T>(what: string, ended?: () => void): PendingArrival<T> {
    const waiting = wait<T>(
      {
        what,
        ms: this.#deadlineMs,
        arrived: () => {
          const texts = this.#seen.flatMap(({ direction, text }) => (direction === 'out' ? [text] : []));
          return texts.length === 0 ? 'received nothing' : `received:${listArrivals(texts)}`;
        },
      },
      ended,
    );
    if (this.#failure) waiting.fail(new Error(this.#failure.message, { cause: this.#failure }));
    return waiting;
  }

  #abandon(why: Error): void {
    for (const waiting of [...this.#requests.values(), ...this.#nexts])
      waiting.fail(new Error(why.message, { cause: why }));
  }
}

function rejected(error: Error): Promise<never> {
  const promise = Promise.reject(error);
  promise.catch(() => {});
  return promise;
}
