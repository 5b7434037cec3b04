/** A client for tests: the client of programs, beside raw methods on the same wire. It records every message, and never sleeps. */

import type { CallbackSubscription, SubscribeOptions } from '../client/callback-subscription.ts';
import type { ConnectedServer } from '../client/client-connection.actor.ts';
import { ClientError, ErrorResponse } from '../client/client-errors.ts';
import type { Client, CompletionReference } from '../client/client-interface.ts';
import type { CallOptions, ConnectOptions, ListOptions } from '../client/client-options.ts';
import type { ClientTask } from '../client/client-task.ts';
import type { ConnectedClient } from '../client/connected-client.ts';
import { clientOn } from '../client/open-client.ts';
import type { Changes, ChangesFilter } from '../client/server-changes.ts';
import type { EventsOptions, ServerEvents, ServerEventType } from '../client/server-events.ts';
import { capabilitiesOf } from '../client/server-requests.ts';
import type { Skill } from '../client/server-skills.ts';
import type { InspectionListener } from '../core/kernel/inspection/records.ts';
import type { JsonObject, JsonValue } from '../core/protocol/json.ts';
import { META } from '../core/protocol/meta.ts';
import { LATEST_LEGACY, LATEST_MODERN } from '../core/protocol/revisions.ts';
import type { SkillEntry } from '../core/protocol/skills.ts';
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Tool,
} from '../core/protocol/types.ts';
import { listArrivals, type PendingArrival, wait, waits } from './arrivals.ts';
import { SharedWireChannel } from './shared-wire.ts';
import { isJsonArray, isObjectInTest, readJson } from './test-json.ts';
import { asNotification, readAnswer, type SeenMessage, type SeenNotification, TARGET, type Wire } from './wire.ts';

/** The options of a client for tests: those of `connect` of `troupe/client`, and of the test. */
export interface TestClientOptions extends Omit<ConnectOptions, 'auth' | 'eras'> {
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
/** The first id of the first typed client, and the distance to the next: raw requests have the ids below. */
const TYPED_IDS = 1_000_000;

/** The client of the methods of {@link Client}, and its end of the wire. */
interface TypedClient {
  readonly channel: SharedWireChannel;
  readonly client: ConnectedClient;
  /** Opens the connection once. */
  open(): Promise<void>;
}

/**
 * A client on any {@link Wire}; `connect(server)` creates one for a server inside the process.
 *
 * It has all methods of {@link Client}, in the session if {@link initialize} opened one, otherwise modern. Its raw methods
 * (`initialize`, `send`, `modern`, `notify`, `raw`, `next`) put on the same wire what the test says, and nothing else.
 *
 * @example
 * const client = await connect(server);
 * const tools = await client.tools();
 */
export class TestClient implements Client {
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
  readonly #options: TestClientOptions;
  #typed: TypedClient | undefined;
  #typedIds = 0;

  constructor(wire: Wire, options: TestClientOptions = {}) {
    this.messages = this.#seen;
    this.#wire = wire;
    this.#options = options;
    this.#deadlineMs = options.deadlineMs ?? waits.deadlineMs;
    this.#onMessage = options.onMessage;
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
   * @param capabilities besides those that the functions of the options declare
   * @returns the result of `initialize`
   */
  async initialize(revision: string = LATEST_LEGACY, capabilities: JsonObject = {}): Promise<JsonObject> {
    const { extensions, ...declared } = capabilitiesOf(this.#options);
    const result = await this.send('initialize', {
      protocolVersion: revision,
      capabilities: { ...declared, ...capabilities },
      clientInfo: CLIENT_INFO,
    });
    this.#session = result;
    this.#dropTyped('the test opened a session');
    this.notify('notifications/initialized');
    return result;
  }

  /**
   * Sends a request unchanged and resolves with its result. {@link request} describes the client in the modern era.
   *
   * @throws {ErrorResponse} for an error response; an Error if no response arrives in time, or the connection closes
   */
  send(method: string, params?: JsonObject): Promise<JsonObject> {
    this.#lastId += 1;
    const id = this.#lastId;
    const waiting = this.#wait<JsonObject>(`the response to request ${id} (${method})`, () =>
      this.#requests.delete(id),
    );
    this.#requests.set(id, waiting);
    try {
      this.#write({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) });
    } catch (error) {
      waiting.fail(error instanceof Error ? error : new Error(String(error)));
    }
    return waiting.promise;
  }

  /**
   * Sends a request of the modern era: with a `_meta` that names the revision, the client and its capabilities (none).
   *
   * @param meta more members of `_meta`, or others; one that is `undefined` is left out
   * @throws as {@link send} does
   * @example await client.modern('tools/call', { name: 'work' }, { progressToken: 'w' });
   */
  modern(method: string, params: JsonObject = {}, meta: JsonObject = {}): Promise<JsonObject> {
    const described = {
      [META.protocolVersion]: LATEST_MODERN,
      [META.clientInfo]: CLIENT_INFO,
      [META.clientCapabilities]: {},
      ...meta,
    };
    return this.send(method, { ...params, _meta: described });
  }

  // The methods of every client

  get server(): ConnectedServer {
    return this.#client().client.server;
  }

  get state(): string {
    return this.#client().client.state;
  }

  get stderr(): string {
    return '';
  }

  tools(options?: ListOptions): Promise<readonly Tool[]> {
    return this.#call('tools()', (client) => client.tools(options));
  }

  resources(options?: ListOptions): Promise<readonly Resource[]> {
    return this.#call('resources()', (client) => client.resources(options));
  }

  templates(options?: ListOptions): Promise<readonly ResourceTemplate[]> {
    return this.#call('templates()', (client) => client.templates(options));
  }

  prompts(options?: ListOptions): Promise<readonly Prompt[]> {
    return this.#call('prompts()', (client) => client.prompts(options));
  }

  skills(options?: ListOptions): Promise<readonly SkillEntry[]> {
    return this.#call('skills()', (client) => client.skills(options));
  }

  call(name: string, args?: JsonObject, options?: CallOptions): Promise<CallToolResult> {
    return this.#call(`call("${name}")`, (client) => client.call(name, args, options));
  }

  start(name: string, args?: JsonObject, options?: CallOptions): Promise<ClientTask> {
    return this.#call(`start("${name}")`, (client) => client.start(name, args, options));
  }

  data(name: string, args?: JsonObject, options?: CallOptions): Promise<JsonValue> {
    return this.#call(`data("${name}")`, (client) => client.data(name, args, options));
  }

  task(id: string): ClientTask {
    return this.#client().client.task(id);
  }

  read(uri: string, options?: CallOptions): Promise<ReadResourceResult> {
    return this.#call(`read("${uri}")`, (client) => client.read(uri, options));
  }

  skill(skill: string | SkillEntry, options?: CallOptions): Promise<Skill> {
    return this.#call('skill()', (client) => client.skill(skill, options));
  }

  prompt(name: string, args?: Readonly<Record<string, string>>, options?: CallOptions): Promise<GetPromptResult> {
    return this.#call(`prompt("${name}")`, (client) => client.prompt(name, args, options));
  }

  complete(
    reference: CompletionReference,
    argument: { readonly name: string; readonly value: string },
    known?: Readonly<Record<string, string>>,
    options?: CallOptions,
  ): Promise<CompleteResult['completion']> {
    return this.#call('complete()', (client) => client.complete(reference, argument, known, options));
  }

  request(method: string, params?: JsonObject, options?: CallOptions): Promise<JsonValue> {
    return this.#call(`request("${method}")`, (client) => client.request(method, params, options));
  }

  changes(filter: ChangesFilter): Changes {
    const { client, open } = this.#client();
    void open();
    return client.changes(filter);
  }

  eventTypes(options?: ListOptions): Promise<readonly ServerEventType[]> {
    return this.#call('eventTypes()', (client) => client.eventTypes(options));
  }

  events(name: string, args?: JsonObject, options?: EventsOptions): ServerEvents {
    const { client, open } = this.#client();
    void open();
    return client.events(name, args, options);
  }

  subscribe(name: string, args: JsonObject, options: SubscribeOptions): Promise<CallbackSubscription> {
    return this.#call('subscribe()', (client) => client.subscribe(name, args, options));
  }

  rootsChanged(): void {
    this.#client().client.rootsChanged();
  }

  inspect(listener: InspectionListener): () => void {
    return this.#client().client.inspect(listener);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Raw methods

  /** Sends a notification. @throws {Error} if the connection is closed */
  notify(method: string, params?: JsonObject): void {
    this.#write({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) });
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

  #write(message: JsonObject): void {
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
    const { elicit, elicitUrl, sample, roots } = this.#options;
    const page = isObjectInTest(params) && params.mode === 'url';
    const answers =
      (method === 'elicitation/create' && (page ? elicitUrl : elicit)) ||
      (method === 'sampling/createMessage' && sample) ||
      (method === 'roots/list' && roots);
    if (!answers) return false;
    // A raw request may be the first that leads to a request of the server.
    void this.#client().open();
    return true;
  }

  #client(): TypedClient {
    if (this.#typed) return this.#typed;
    this.#typedIds += TYPED_IDS;
    const firstId = this.#typedIds;
    const { deadlineMs: _, onMessage: _own, ...options } = this.#options;
    const channel = new SharedWireChannel(this, this.#session);
    const client = clientOn(
      { channel: () => channel, name: TARGET, firstId },
      {
        ...CLIENT_INFO,
        ...options,
        // The session declares what the test says.
        ...(this.#session ? { sampling: { tools: true, context: true } } : {}),
        eras: this.#session ? 'legacy' : 'modern',
      },
    );
    let opened: Promise<void> | undefined;
    const open = (): Promise<void> => {
      opened ??= client.open();
      // Each method reports the failure.
      opened.catch(() => {});
      return opened;
    };
    this.#typed = { channel, client, open };
    return this.#typed;
  }

  /** Ends the typed client; the wire stays open. */
  #dropTyped(why: string): void {
    const typed = this.#typed;
    this.#typed = undefined;
    if (!typed) return;
    typed.channel.end(why);
    void typed.client.close().catch(() => {});
  }

  /** Runs a method of {@link Client}, with the deadline of the test. */
  async #call<T>(what: string, call: (client: ConnectedClient) => Promise<T>): Promise<T> {
    if (this.#failure) throw this.#failure;
    if (this.#gone) throw this.#gone;
    const waiting = this.#wait<T>(`the end of ${what}`, () => this.#nexts.delete(failing));
    // A failure of the connection, or of `onMessage`, ends the wait, as it does for `next`.
    const failing: Next = { promise: Promise.resolve(null), settle: () => {}, fail: waiting.fail, fits: () => false };
    this.#nexts.add(failing);
    const { client, open } = this.#client();
    open()
      .then(() => call(client))
      .then(waiting.settle, (error: unknown) => waiting.fail(this.#shown(error)));
    return waiting.promise;
  }

  /** Adds what the client received to the message of an error that no response explains. */
  #shown(error: unknown): Error {
    if (error instanceof ClientError && !(error instanceof ErrorResponse))
      error.message = `${error.message}; ${this.#arrived()}`;
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
