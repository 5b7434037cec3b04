/** A client for tests: supports both eras, records every message, and never sleeps. */
import type { CallOptions, ConnectOptions, SamplingSupport } from '../client/client-options.ts';
import type { Client, CompletionReference, ListOptions } from '../client/connected-client.ts';
import type { Clock } from '../core/kernel/clock.ts';
import type { JsonObject, JsonValue } from '../core/protocol/json.ts';
import { META } from '../core/protocol/meta.ts';
import { LATEST_LEGACY, LATEST_MODERN } from '../core/protocol/revisions.ts';
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  ReadResourceResult,
  Tool,
} from '../core/protocol/types.ts';
import { listArrivals, type PendingArrival, wait } from './arrivals.ts';
import { SharedWireChannel } from './shared-wire.ts';
import { isJsonArray, isObjectInTest, readJson } from './test-json.ts';
import {
  asNotification,
  ErrorAnswer,
  isCallToolResult,
  readAnswer,
  type SeenMessage,
  type SeenNotification,
  type Wire,
} from './wire.ts';

export interface TestClientOptions {
  /** Milliseconds of real time after which a wait fails. Default 5,000. */
  readonly deadlineMs?: number;
  /** The clock of the typed methods: their timeouts, and the lifetime of their lists. Default: the real time. */
  readonly clock?: Clock;
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
const TARGET = 'the server under test';
/** The first id of the first typed client, and the distance to the next: raw requests have the ids below. */
const TYPED_IDS = 1_000_000;

/** The functions that answer what the server asks. */
type Answerers = {
  -readonly [K in 'elicit' | 'elicitUrl' | 'sample' | 'sampling' | 'roots']?: NonNullable<ConnectOptions[K]>;
};

/** The typed client, and its end of the wire. */
interface TypedClient {
  readonly channel: SharedWireChannel;
  readonly client: Promise<Client>;
}

/**
 * A client on any {@link Wire}; `connect(server)` creates one for a server inside the process.
 *
 * Its raw methods (`request`, `modern`, `notify`, `raw`, `next`) put on the wire what the test says, and nothing else.
 * Its typed methods (`listTools`, `readResource`, `getPrompt`, `complete`, and `callTool` once a function answers) are
 * those of `troupe/client`, on the same wire: in the session if {@link initialize} opened one, otherwise modern.
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
  /** The result of `initialize`. */
  #session: JsonObject | undefined;
  readonly #clock: Clock | undefined;
  readonly #answerers: Answerers = {};
  #typed: TypedClient | undefined;
  #typedIds = 0;

  constructor(wire: Wire, { deadlineMs = 5_000, onMessage, clock }: TestClientOptions = {}) {
    this.messages = this.#seen;
    this.#wire = wire;
    this.#deadlineMs = deadlineMs;
    this.#onMessage = onMessage;
    this.#clock = clock;
    wire.onText((text) => this.#receive(text));
    void wire.closed.then((reason) => {
      this.#gone = new Error(`the connection is closed (${reason})`);
      this.#abandon(this.#gone);
      this.#dropTyped(`the connection is closed (${reason})`);
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
   * @param capabilities besides those that {@link onElicit} and its siblings declare
   * @returns the result of `initialize`
   */
  async initialize(revision: string = LATEST_LEGACY, capabilities: JsonObject = {}): Promise<JsonObject> {
    const { elicit, elicitUrl, sample, sampling = {}, roots } = this.#answerers;
    const result = await this.request('initialize', {
      protocolVersion: revision,
      capabilities: {
        ...(elicit || elicitUrl
          ? { elicitation: { ...(elicit ? { form: {} } : {}), ...(elicitUrl ? { url: {} } : {}) } }
          : {}),
        ...(sample
          ? { sampling: { ...(sampling.tools ? { tools: {} } : {}), ...(sampling.context ? { context: {} } : {}) } }
          : {}),
        ...(roots ? { roots: { listChanged: true } } : {}),
        ...capabilities,
      },
      clientInfo: CLIENT_INFO,
    });
    this.#session = result;
    this.#dropTyped('the test opened a session');
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

  // Typed methods

  /** Answers the server's forms, from the next {@link initialize} or the first typed method on. @returns this client */
  onElicit(answer: NonNullable<ConnectOptions['elicit']>): this {
    return this.#answerWith('elicit', answer);
  }

  /** Answers the pages that the server wants opened, as {@link onElicit} answers forms. */
  onElicitUrl(answer: NonNullable<ConnectOptions['elicitUrl']>): this {
    return this.#answerWith('elicitUrl', answer);
  }

  /**
   * Answers the server's sampling requests, as {@link onElicit} answers forms.
   *
   * @param support declares `sampling.tools` and `sampling.context`
   */
  onSample(answer: NonNullable<ConnectOptions['sample']>, support: SamplingSupport = {}): this {
    return this.#answerWith('sampling', support).#answerWith('sample', answer);
  }

  /** Answers the server's requests for roots, as {@link onElicit} answers forms. */
  onRoots(answer: NonNullable<ConnectOptions['roots']>): this {
    return this.#answerWith('roots', answer);
  }

  /** All tools, of all pages. Cached as in `troupe/client`. @throws as {@link request} does */
  listTools(options?: ListOptions): Promise<readonly Tool[]> {
    return this.#typedCall('listTools()', (client) => client.tools(options));
  }

  readResource(uri: string, options?: CallOptions): Promise<ReadResourceResult> {
    return this.#typedCall(`readResource("${uri}")`, (client) => client.read(uri, options));
  }

  getPrompt(name: string, args?: Readonly<Record<string, string>>, options?: CallOptions): Promise<GetPromptResult> {
    return this.#typedCall(`getPrompt("${name}")`, (client) => client.prompt(name, args, options));
  }

  /** Completes an argument of a prompt (`{ prompt }`), or a variable of a template (`{ resource }`). */
  complete(
    reference: CompletionReference,
    argument: { readonly name: string; readonly value: string },
    known?: Readonly<Record<string, string>>,
  ): Promise<CompleteResult['completion']> {
    return this.#typedCall('complete()', (client) => client.complete(reference, argument, known));
  }

  /**
   * Calls a tool: in the session if {@link initialize} opened one, otherwise as a modern request. With {@link onElicit}
   * or its siblings, or with options, input requests are answered, and a task is waited for.
   *
   * @throws as {@link request} does
   */
  async callTool(name: string, args: JsonObject = {}, options?: CallOptions): Promise<CallToolResult> {
    if (options || Object.keys(this.#answerers).length > 0)
      return this.#typedCall(`callTool("${name}")`, (client) => client.call(name, args, options));
    const params = { name, arguments: args };
    const result = await (this.#session ? this.request('tools/call', params) : this.modern('tools/call', params));
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
    if (this.#forTyped(parsed)) return this.#typed?.channel.receive(text);
    if (parsed === undefined) {
      this.#failure ??= new Error(`the server sent text that is not JSON: ${text.slice(0, 400)}`);
      return this.#abandon(this.#failure);
    }
    if (isJsonArray(parsed)) {
      // A batch belongs to the requests that it answers; its other messages go to the waiting calls.
      const left = parsed.filter((message) => !this.#answer(message));
      if (left.length > 0) this.#offer(left.length === parsed.length ? parsed : left);
    } else if (!this.#answer(parsed)) {
      // Notifications belong to the test, and to the typed client: progress, changes of lists.
      if (asNotification(parsed)) this.#typed?.channel.receive(text);
      this.#offer(parsed);
    }
  }

  /** @returns whether only the typed client needs the message: its response, or a request that a function answers */
  #forTyped(message: JsonValue | undefined): boolean {
    if (!isObjectInTest(message)) return false;
    const { id, method, params } = message;
    if (method === undefined) return typeof id === 'number' && id >= TYPED_IDS && !this.#requests.has(id);
    if (id === undefined || !this.#session) return false;
    const { elicit, elicitUrl, sample, roots } = this.#answerers;
    const page = isObjectInTest(params) && params.mode === 'url';
    const answers =
      (method === 'elicitation/create' && (page ? elicitUrl : elicit)) ||
      (method === 'sampling/createMessage' && sample) ||
      (method === 'roots/list' && roots);
    if (!answers) return false;
    // A raw request may be the first that leads to a request of the server.
    void this.#openTyped();
    return true;
  }

  #answerWith<K extends keyof Answerers>(kind: K, answer: NonNullable<Answerers[K]>): this {
    if (this.#typed)
      throw new Error(
        'set onElicit, onElicitUrl, onSample and onRoots before the first typed method: they are capabilities',
      );
    this.#answerers[kind] = answer;
    return this;
  }

  #openTyped(): TypedClient {
    if (this.#typed) return this.#typed;
    this.#typedIds += TYPED_IDS;
    const firstId = this.#typedIds;
    const channel = new SharedWireChannel(this, this.#session);
    const client = import('../client/client.ts').then(({ connect }) =>
      connect(
        { channel: () => channel, name: TARGET, firstId },
        {
          ...CLIENT_INFO,
          ...this.#answerers,
          // The session declares what the test says.
          ...(this.#session ? { sampling: { tools: true, context: true } } : {}),
          eras: this.#session ? 'legacy' : 'modern',
          ...(this.#clock ? { clock: this.#clock } : {}),
        },
      ),
    );
    // Each typed method reports the failure.
    client.catch(() => {});
    this.#typed = { channel, client };
    return this.#typed;
  }

  /** Ends the typed client; the wire stays open. */
  #dropTyped(why: string): void {
    const typed = this.#typed;
    this.#typed = undefined;
    if (!typed) return;
    typed.channel.end(why);
    void typed.client.then((client) => client.close()).catch(() => {});
  }

  /** Runs a typed method, with the deadline of the test. Its errors show what was received. */
  async #typedCall<T>(what: string, call: (client: Client) => Promise<T>): Promise<T> {
    if (this.#failure) throw this.#failure;
    if (this.#gone) throw this.#gone;
    const waiting = this.#wait<T>(`the end of ${what}`, () => this.#nexts.delete(failing));
    // A failure of the connection, or of `onMessage`, ends the wait, as it does for `next`.
    const failing: Next = { promise: Promise.resolve(null), settle: () => {}, fail: waiting.fail, fits: () => false };
    this.#nexts.add(failing);
    this.#openTyped()
      .client.then(call)
      .then(waiting.settle, async (error: unknown) => waiting.fail(await this.#shown(error)));
    return waiting.promise;
  }

  /** The error of a typed method as the raw methods report it. */
  async #shown(error: unknown): Promise<Error> {
    const { ClientError, ErrorResponse } = await import('../client/client.ts');
    if (error instanceof ErrorResponse) {
      const { code, data, message } = error;
      return new ErrorAnswer(code, message.slice(`${TARGET}: `.length, -` (code ${code})`.length), data);
    }
    if (error instanceof ClientError) return new Error(`${error.message}; ${this.#arrived()}`, { cause: error });
    return error instanceof Error ? error : new Error(String(error));
  }

  /** Lists the messages of the server for an error. */
  #arrived(): string {
    const texts = this.#seen.flatMap(({ direction, text }) => (direction === 'out' ? [text] : []));
    return texts.length === 0 ? 'received nothing' : `received:${listArrivals(texts)}`;
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
        arrived: () => this.#arrived(),
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
