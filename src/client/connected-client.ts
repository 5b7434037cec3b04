/** The client object of the public API: lists, calls, reads, follows tasks and changes, closes. */
import { randomInt } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Actor } from '../core/kernel/actor.ts';
import { delayAfter } from '../core/kernel/back-off.ts';
import type { Clock, Timer } from '../core/kernel/clock.ts';
import type { Inspection } from '../core/kernel/inspection/inspection.ts';
import type { InspectionListener } from '../core/kernel/inspection/records.ts';
import type { OperatorLog } from '../core/kernel/operator-log.ts';
import { ErrorCode, ProtocolError } from '../core/protocol/errors.ts';
import { EVENTS_EXTENSION, settingsIn } from '../core/protocol/extensions.ts';
import { describe, isJsonObject, isObject, type JsonObject, type JsonValue, messageOf } from '../core/protocol/json.ts';
import { isRequestId } from '../core/protocol/jsonrpc.ts';
import { META } from '../core/protocol/meta.ts';
import { isToolResult } from '../core/protocol/result-shape.ts';
import { SKILLS_EXTENSION, type SkillEntry } from '../core/protocol/skills.ts';
import type {
  CallToolResult,
  ClientCapabilities,
  CompleteResult,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Tool,
} from '../core/protocol/types.ts';
import type { CompiledSchema } from '../core/schema/schema.ts';
import type { Authorization } from './authorization.ts';
import { CachedList } from './cached-list.ts';
import type { CallbackSubscription, SubscribeOptions } from './callback-subscription.ts';
import type { Channel } from './channels/channel.ts';
import { ownId } from './client-codec.ts';
import {
  type ClientConnectionOptions,
  type ClientEvent,
  type ClientMail,
  type ConnectedServer,
  type ServerNotification,
  spawnClientConnection,
} from './client-connection.actor.ts';
import { type CallFailure, type CarriedOut, ClientError, ErrorResponse, type FailureReason } from './client-errors.ts';
import type { Client, CompletionReference } from './client-interface.ts';
import {
  type CallOptions,
  checkCall,
  checkCallOptions,
  checkList,
  type ListOptions,
  NO_OPTIONS,
} from './client-options.ts';
import { ClientTask, createdTask } from './client-task.ts';
import { type MirroredParameter, mirroredParameters, parameterHeaders } from './mirrored-parameters.ts';
import type { OutgoingRequest } from './outgoing-requests.ts';
import {
  type Repaired,
  readCompletion,
  readPrompt,
  readResource,
  readResult,
  readTemplate,
  readTool,
} from './received.ts';
import type { AnswerAsked, RelayedRequest, UnansweredRequest } from './relayed-request.ts';
import {
  Changes,
  type ChangesFilter,
  changeOf,
  isEmpty,
  listenParams,
  notGranted,
  type ServerChange,
} from './server-changes.ts';
import {
  type EventsOptions,
  type RelayedEventsOptions,
  readEventType,
  ServerEvents,
  type ServerEventType,
} from './server-events.ts';
import { readSkillEntry, Skill } from './server-skills.ts';

/** The parts of a client, as `connect` makes them. */
interface ClientParts extends Omit<ClientConnectionOptions, 'address' | 'client' | 'random' | 'log'> {
  readonly log: OperatorLog;
  /** The log for messages about a peer, which can cause them as often as it likes. */
  readonly throttled: OperatorLog;
}

/** A tool's definition, and what follows from it. */
interface KnownTool {
  readonly tool: Tool;
  readonly mirrored: readonly MirroredParameter[];
  /** The check of `structuredContent`; undefined before the first result, null if the schema cannot be compiled. */
  output: CompiledSchema | null | undefined;
}

/** Code of 2025-11-25 for a call that needs the user to open a page first (elicitation, "URL Elicitation Required Error"). */
const URL_ELICITATION_REQUIRED = -32042;
/** Delays in milliseconds before a subscription is opened again: doubled each time that it ends sooner than it was waited for. */
const LISTEN_BACK_OFF = { fromMs: 1_000, toMs: 30_000 } as const;
const RANDOM_STEPS = 1_000_000;
let count = 0;
/** Milliseconds for stdin, TERM and KILL of a child, and for the end of a session. */
const CLOSE_MS = 10_000;

/** The client on its connection. The interface describes its methods; others are internal. */
export class ConnectedClient implements Client {
  readonly #parts: ClientParts;
  readonly #target: string;
  readonly #clock: Clock;
  readonly #address: string;
  readonly #connection: Actor<ClientMail>;
  /** The channel of the last attempt to connect. */
  #channel: Channel | undefined;
  readonly #tools: CachedList<Tool>;
  readonly #resources: CachedList<Resource>;
  readonly #templates: CachedList<ResourceTemplate>;
  readonly #prompts: CachedList<Prompt>;
  readonly #skills: CachedList<SkillEntry>;
  readonly #eventTypes: CachedList<ServerEventType>;
  /** From the last listing, fresh or not. */
  #known = new Map<string, KnownTool>();
  #server: ConnectedServer | undefined;
  #opened: { resolve(): void; reject(error: Error): void } | undefined;
  readonly #subscriptions = new Map<Changes, OpenSubscription>();
  readonly #streams = new Set<EventStream>();
  /** The ends of the iterables of events. */
  readonly #followed = new Set<() => void>();
  /** The number of iterables that watch each resource of a legacy server. */
  readonly #watched = new Map<string, number>();
  /** The repairs of answers of the server that were logged. */
  readonly #repairs = new Set<string>();
  #operations = 0;
  /** Those of them that wait for a change. */
  #readers = 0;
  #hold: Timer | undefined;
  #closing: Promise<void> | undefined;
  #closed: (() => void) | undefined;
  /** The connection has ended. */
  #ended = false;

  /** @internal Use `connect`. */
  constructor(parts: ClientParts) {
    const { reach, system, throttled } = parts;
    this.#parts = parts;
    this.#target = reach.name;
    this.#clock = system.clock;
    count += 1;
    this.#address = `client/${count}`;
    this.#connection = spawnClientConnection({
      ...parts,
      address: this.#address,
      log: throttled,
      reach: {
        ...reach,
        channel: (kind) => {
          this.#channel = reach.channel(kind);
          return this.#channel;
        },
      },
      client: { address: 'client', send: (event) => this.#event(event) },
      random: () => randomInt(RANDOM_STEPS) / RANDOM_STEPS,
    });
    this.#tools = this.#listed('tools/list', 'tools', (element, note) => this.#readTool(element, note));
    this.#resources = this.#listed('resources/list', 'resources', readResource);
    this.#templates = this.#listed('resources/templates/list', 'resourceTemplates', readTemplate, 'resources');
    this.#prompts = this.#listed('prompts/list', 'prompts', readPrompt);
    this.#skills = this.#listed('skills/list', 'skills', (element) => this.#readSkill(element));
    this.#eventTypes = this.#listed('events/list', 'events', readEventType);
  }

  /** @internal Called when the user has completed a page (2025-11-25 elicitation, "Completion Notifications"). */
  pageCompleted: ((elicitationId: string) => void) | undefined;

  /** @internal Resolves when the server can be called. @throws {ClientError} if the first attempt fails */
  open(): Promise<void> {
    return this.#operation(() => {
      const opened = new Promise<void>((resolve, reject) => {
        this.#opened = { resolve, reject };
      });
      this.#tell({ type: 'need' });
      return opened;
    });
  }

  get server(): ConnectedServer {
    if (!this.#server) throw new Error(`${this.#target}: not connected yet`);
    return this.#server;
  }

  get state(): string {
    return this.#parts.system.inspection.live(this.#address)?.state() ?? 'closed';
  }

  /** @internal Leaves the session to another process. Close the client afterwards. */
  leave(): void {
    this.#tell({ type: 'leave' });
  }

  /** @internal True while a call or a listing is under way. Reading changes is no work of the server. */
  get busy(): boolean {
    return this.#operations > this.#readers;
  }

  get stderr(): string {
    return this.#channel?.stderr?.() ?? '';
  }

  // Lists

  tools(options?: ListOptions): Promise<readonly Tool[]> {
    return this.#list('tools', this.#tools, options);
  }

  resources(options?: ListOptions): Promise<readonly Resource[]> {
    return this.#list('resources', this.#resources, options);
  }

  templates(options?: ListOptions): Promise<readonly ResourceTemplate[]> {
    return this.#list('resources', this.#templates, options);
  }

  prompts(options?: ListOptions): Promise<readonly Prompt[]> {
    return this.#list('prompts', this.#prompts, options);
  }

  skills(options: ListOptions = NO_OPTIONS): Promise<readonly SkillEntry[]> {
    return this.#operation(async () => {
      checkList('skills', options);
      return this.#hasSkills ? await this.#skills.get(options) : [];
    });
  }

  /** @internal How long the last listings stay fresh, and which of them shared caches may keep. */
  get listHints(): {
    readonly freshForMs: number;
    readonly isPublic: Readonly<Record<'tools' | 'resources' | 'prompts', boolean>>;
  } {
    const { capabilities } = this.server;
    const listed = [
      ...(capabilities.tools === undefined ? [] : [this.#tools]),
      ...(capabilities.resources === undefined ? [] : [this.#resources, this.#templates]),
      ...(capabilities.prompts === undefined ? [] : [this.#prompts]),
    ];
    return {
      freshForMs: Math.min(...listed.map(({ freshForMs }) => freshForMs)),
      isPublic: {
        tools: this.#tools.isPublic,
        resources: this.#resources.isPublic && this.#templates.isPublic,
        prompts: this.#prompts.isPublic,
      },
    };
  }

  // Calls

  async call(name: string, args: JsonObject = {}, options: CallOptions = NO_OPTIONS): Promise<CallToolResult> {
    checkCall('call', name, args, options);
    this.#begin();
    try {
      const result = await this.#callTool(name, args, options, false);
      const created = createdTask(result);
      const task = created && this.#newTask(created);
      if (task) options.onTask?.(task.id);
      const final = task ? await task.result(options.signal) : result;
      if (!isToolResult(final)) throw this.#malformed(`tools/call ${name}: expected a result with content`);
      const { structuredContent, isError } = final;
      if (structuredContent !== undefined && isError !== true) await this.#checkOutput(name, structuredContent);
      return final;
    } finally {
      this.#end();
    }
  }

  start(name: string, args: JsonObject = {}, options: CallOptions = NO_OPTIONS): Promise<ClientTask> {
    return this.#operation(async () => {
      checkCall('start', name, args, options);
      const result = await this.#callTool(name, args, options, true);
      const created = createdTask(result);
      if (created) return this.#newTask(created);
      throw this.#error(
        'refused',
        `tools/call ${name}: the server carried out the call without a task. Use \`call\` for this tool`,
        'yes',
        { cause: result },
      );
    });
  }

  async data(name: string, args: JsonObject = {}, options: CallOptions = NO_OPTIONS): Promise<JsonValue> {
    const result = await this.call(name, args, options);
    const { content, structuredContent, isError } = result;
    const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
    if (isError === true) throw this.#error('tool error', `tools/call ${name}: ${text}`, 'yes', { cause: result });
    if (structuredContent !== undefined) return structuredContent;
    throw this.#error(
      'malformed',
      `tools/call ${name}: expected structured content, got ${text === '' ? 'none' : `the text "${text.slice(0, 200)}"`}. Use \`call\` for this tool`,
      'yes',
      { cause: result },
    );
  }

  task(id: string): ClientTask {
    return this.#newTask({ id });
  }

  read(uri: string, options: CallOptions = NO_OPTIONS): Promise<ReadResourceResult> {
    return this.#operation(async () => {
      checkCall('read', uri, undefined, options);
      const result = await this.#rounds('resources/read', { uri }, options, { repeatable: true });
      if (hasContents(result)) return result;
      throw this.#malformed(`resources/read ${uri}: expected a result with contents`);
    });
  }

  skill(skill: string | SkillEntry, options: CallOptions = NO_OPTIONS): Promise<Skill> {
    return this.#operation(async () => {
      const limits = this.#parts.settings;
      const entry = typeof skill === 'string' ? await this.#skillEntry(skill, options) : skill;
      const checked = readSkillEntry(entry, limits);
      if (typeof checked === 'string') throw this.#malformed(`the skill is not loaded: ${checked}`);
      const read = (uri: string, given: CallOptions): Promise<ReadResourceResult> => this.read(uri, given);
      return Skill.load(checked, { server: this.#target, limits, read }, options);
    });
  }

  prompt(
    name: string,
    args: Readonly<Record<string, string>> = {},
    options: CallOptions = NO_OPTIONS,
  ): Promise<GetPromptResult> {
    return this.#operation(async () => {
      checkCall('prompt', name, args, options);
      const result = await this.#rounds('prompts/get', { name, arguments: args }, options, { repeatable: true });
      if (hasMessages(result)) return result;
      throw this.#malformed(`prompts/get ${name}: expected a result with messages`);
    });
  }

  complete(
    reference: CompletionReference,
    argument: { readonly name: string; readonly value: string },
    known?: Readonly<Record<string, string>>,
    options: CallOptions = NO_OPTIONS,
  ): Promise<CompleteResult['completion']> {
    return this.#operation(async () => {
      if (!isObject(reference) || !('prompt' in reference || 'resource' in reference))
        throw new TypeError(`complete: expected { prompt } or { resource } first, got ${describe(reference)}`);
      if (!isObject(argument))
        throw new TypeError(`complete: expected { name, value } of an argument, got ${describe(argument)}`);
      const ref =
        'prompt' in reference
          ? { type: 'ref/prompt', name: reference.prompt }
          : { type: 'ref/resource', uri: reference.resource };
      const params = { ref, argument: { ...argument }, ...(known ? { context: { arguments: known } } : {}) };
      checkCallOptions('complete', options);
      const result = await this.#send('completion/complete', params, options, { repeatable: true });
      const completion = readCompletion(result);
      if (completion) return completion;
      throw this.#malformed('completion/complete: expected a result with completion.values');
    });
  }

  request(method: string, params?: JsonObject, options: CallOptions = NO_OPTIONS): Promise<JsonValue> {
    return this.#operation(async () => {
      checkCall('request', method, params, options);
      const result = await this.#send(method, params, options, { repeatable: false });
      return isJsonObject(result) ? result : {};
    });
  }

  /**
   * @internal Passes a request on for a client of a gateway.
   *
   * @returns the result as it came: complete, `input_required` or a task
   * @throws {ErrorResponse | ClientError}
   */
  relay(relayed: RelayedRequest): Promise<JsonObject> {
    return this.#operation(async () => {
      const { method, params, logLevel } = relayed;
      if (logLevel !== undefined && this.server.era === 'legacy') this.#tell({ type: 'log level', level: logLevel });
      const asking: AskingCall = {};
      const ask = relayed.ask && askWhile(asking, relayed.ask.bind(relayed));
      const { capabilities, authorization } = relayed;
      // A further round continues a request that has begun.
      const first = params.requestState === undefined && params.inputResponses === undefined;
      const repeatable = first && (READS.has(method) || relayed.repeatable === true);
      const { resumes } = relayed;
      const how = {
        repeatable: repeatable && !resumes,
        ...{ capabilities, authorization, ask },
        resumesAfter: resumes?.position.lastEventId,
        // The connection receives the questions right after the request that they belong to.
        following: resumes?.open,
      };
      try {
        const { name } = params;
        const result =
          method === 'tools/call' && typeof name === 'string'
            ? await this.#mirrored(name, params.arguments, (headers) =>
                this.#send(method, params, relayed, { ...how, headers }),
              )
            : await this.#send(method, params, relayed, how);
        if (isJsonObject(result)) return result;
        throw this.#malformed(`${method}: expected a result that is an object`);
      } finally {
        // The call that asks needs the answers, although this one has ended.
        if (asking.doubtful) await Promise.race([Promise.allSettled(asking.doubtful), whenAborted(relayed.signal)]);
        asking.ended?.abort();
      }
    });
  }

  changes(filter: ChangesFilter): Changes {
    return new Changes(filter, {
      start: (changes) => {
        this.#subscriptions.set(changes, { request: undefined, failures: 0, grantedAt: undefined, timer: undefined });
        this.#subscribe(changes);
      },
      stop: (changes) => this.#unsubscribe(changes),
      hold: async (work) => {
        this.#readers += 1;
        try {
          return await this.#operation(work);
        } finally {
          this.#readers -= 1;
        }
      },
    });
  }

  eventTypes(options?: ListOptions): Promise<readonly ServerEventType[]> {
    return this.#list('events', this.#eventTypes, options);
  }

  events(name: string, args: JsonObject = {}, options: EventsOptions = {}): ServerEvents {
    return this.relayedEvents(name, args, options);
  }

  /** @internal The same for a gateway, which has an authorization of its own. */
  relayedEvents(name: string, args: JsonObject, options: RelayedEventsOptions): ServerEvents {
    const { authorization } = options;
    return new ServerEvents(name, args, options, {
      clock: this.#clock,
      positioned: (cursor, more) => options.positioned?.(cursor, more),
      failed: (error) => options.failed?.(error),
      streams: () => this.server.era === 'modern',
      poll: (params) =>
        this.#send('events/poll', params, {}, { repeatable: true, capabilities: WITH_EVENTS, authorization }),
      stream: (params, receive, ended) => this.#stream(params, authorization, receive, ended),
      hold: async (work) => {
        this.#readers += 1;
        try {
          return await this.#operation(work);
        } finally {
          this.#readers -= 1;
        }
      },
      closes: (end) => {
        this.#followed.add(end);
        return () => this.#followed.delete(end);
      },
    });
  }

  async subscribe(name: string, args: JsonObject = {}, options: SubscribeOptions): Promise<CallbackSubscription> {
    const { CallbackSubscription } = await import('./callback-subscription.ts');
    const subscription = new CallbackSubscription(name, args, options, {
      clock: this.#clock,
      send: (method, params) =>
        this.#operation(() =>
          // Each of the two may be sent twice.
          this.#send(method, params, { timeoutMs: SUBSCRIBE_MS }, { repeatable: true, capabilities: WITH_EVENTS }),
        ),
      closes: (end) => {
        this.#followed.add(end);
        return () => this.#followed.delete(end);
      },
      report: (error) => this.#parts.log('error', `subscribe: a callback of ${name} threw: ${messageOf(error)}`),
    });
    return subscription.begin();
  }

  /** Opens a stream of events. @returns ends it */
  #stream(
    params: JsonObject,
    authorization: Authorization | undefined,
    receive: (method: string, params: JsonObject) => void,
    ended: (error?: Error) => void,
  ): () => void {
    const stream: EventStream = { request: undefined, receive };
    this.#streams.add(stream);
    const end = (error?: Error): void => {
      if (this.#streams.delete(stream)) ended(error);
    };
    const sent = (request: OutgoingRequest): void => {
      stream.request = request;
    };
    void this.#send(
      'events/stream',
      params,
      {},
      { repeatable: false, open: true, capabilities: WITH_EVENTS, authorization, sent },
    ).then(
      () => end(),
      (error: unknown) => end(error instanceof Error ? error : new Error(messageOf(error))),
    );
    return () => {
      const { request } = stream;
      if (!this.#streams.delete(stream) || !request) return;
      const error = this.#error('cancelled', 'the stream ended', 'yes');
      this.#tell({ type: 'cancel', request, error, why: 'the stream is not needed any more' });
    };
  }

  rootsChanged(): void {
    if (this.#server?.era === 'legacy')
      this.#tell({ type: 'notify', method: 'notifications/roots/list_changed', params: undefined });
  }

  inspect(listener: InspectionListener): () => void {
    return this.#parts.system.inspection.listen(listener);
  }

  /** @internal For the inspector. */
  get inside(): { readonly inspection: Inspection; readonly clock: Clock; readonly log: OperatorLog } {
    const { log, system } = this.#parts;
    return { inspection: system.inspection, clock: this.#clock, log };
  }

  /**
   * Lets calls in flight finish within `drainMs`, cancels the rest, ends the session and the server's process. Resolves
   * when all of that is done. Idempotent.
   *
   * @param drainMs milliseconds for the calls in flight. Default: that of the options
   */
  close(drainMs?: number): Promise<void> {
    this.#closing ??= this.#operation(async () => {
      for (const changes of [...this.#subscriptions.keys()]) changes.end();
      for (const end of [...this.#followed]) end();
      await new Promise<void>((resolve) => {
        const late = this.#clock.after(CLOSE_MS + (drainMs ?? this.#parts.settings.drainMs), resolve);
        this.#closed = () => {
          late.cancel();
          resolve();
        };
        this.#tell({ type: 'drain', ms: drainMs });
      });
    });
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Requests

  async #callTool(name: string, args: JsonObject, options: CallOptions, asTask: boolean): Promise<unknown> {
    const { era, revision, capabilities } = this.server;
    const taskCapable = era === 'legacy' && isObject(capabilities.tasks);
    // A required task is part of the definition.
    if (taskCapable && !this.#known.has(name)) await this.#learnTools();
    const known = this.#known.get(name);
    const task = taskCapable && (asTask || known?.tool.execution?.taskSupport === 'required');
    const params = { name, arguments: args, ...(task ? { task: {} } : {}) };
    const send = (): Promise<unknown> =>
      this.#mirrored(name, args, (headers) =>
        this.#rounds('tools/call', params, options, { repeatable: false, headers }),
      );
    if (asTask && era === 'legacy' && !taskCapable)
      throw this.#error('refused', `the server has no tasks in revision ${revision}`, 'no');
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof ErrorResponse)) throw error;
      if (error.code === URL_ELICITATION_REQUIRED && (await this.#openPages(error, name, options))) return send();
      throw error;
    }
  }

  /** Calls a tool with the headers that mirror arguments, of modern servers. */
  async #mirrored(
    name: string,
    args: JsonValue | undefined,
    send: (headers: Readonly<Record<string, string>> | undefined) => Promise<unknown>,
  ): Promise<unknown> {
    // Only HTTP has headers (2026-07-28 streamable-http, "Schema Extension").
    if (this.server.era === 'legacy' || this.#channel?.kind !== 'http') return send(undefined);
    if (!this.#known.has(name)) await this.#learnTools();
    const values = isJsonObject(args) ? args : {};
    const headers = (): Readonly<Record<string, string>> | undefined =>
      parameterHeaders(this.#known.get(name)?.mirrored ?? [], values);
    try {
      return await send(headers());
    } catch (error) {
      if (!(error instanceof ErrorResponse) || error.code !== ErrorCode.HeaderMismatch) throw error;
      // The definition has changed since it was listed (2026-07-28 streamable-http, "Client Behavior").
      this.#tools.invalidate();
      await this.#learnTools();
      return send(headers());
    }
  }

  /** Opens the pages that a call needs first. @returns whether the user agreed to all of them */
  async #openPages({ data }: ErrorResponse, about: string, { signal = NEVER }: CallOptions): Promise<boolean> {
    const pages = isObject(data) && Array.isArray(data.elicitations) ? data.elicitations : [];
    if (pages.length === 0) return false;
    for (const page of pages) {
      if (!isJsonObject(page)) return false;
      const { action } = await this.#parts.serverRequests.answer(
        'elicitation/create',
        { ...page, mode: 'url' },
        { signal, about },
      );
      if (action !== 'accept') return false;
    }
    return true;
  }

  /** Sends a request, and again with the answers while the server requires input (2026-07-28 patterns/mrtr). */
  async #rounds(method: string, params: JsonObject, options: CallOptions, how: SendOptions): Promise<unknown> {
    const { maxRounds } = this.#parts.settings;
    const about =
      typeof params.name === 'string' ? params.name : typeof params.uri === 'string' ? params.uri : undefined;
    let sent = params;
    for (let round = 1; round <= maxRounds; round += 1) {
      const result = await this.#send(method, sent, options, round === 1 ? how : { ...how, repeatable: false });
      if (!isObject(result) || result.resultType !== 'input_required') return result;
      const { inputRequests, requestState } = result;
      const inputResponses = await this.#answerAll(inputRequests, options.signal, about);
      sent = {
        ...params,
        ...(inputRequests === undefined ? {} : { inputResponses }),
        ...(typeof requestState === 'string' ? { requestState } : {}),
      };
    }
    throw this.#error(
      'too many rounds',
      `${method}: the server asked for input ${maxRounds} times. The option is maxRounds`,
      'unknown',
    );
  }

  async #answerAll(
    inputRequests: unknown,
    signal: AbortSignal | undefined,
    about: string | undefined,
  ): Promise<JsonObject> {
    try {
      return await this.#parts.serverRequests.answerAll(inputRequests, { signal: signal ?? NEVER, about });
    } catch (error) {
      throw this.#error('refused', `the server asks for input that was not given: ${messageOf(error)}`, 'unknown', {
        cause: error,
      });
    }
  }

  #send(
    method: string,
    params: JsonObject | undefined,
    options: CallOptions | RelayedRequest,
    how: SendOptions,
  ): Promise<unknown> {
    const { settings } = this.#parts;
    const { signal, meta } = options;
    const idempotencyKey = 'idempotencyKey' in options ? options.idempotencyKey : undefined;
    if (signal?.aborted) return Promise.reject(this.#cancelled(signal.reason, 'no'));
    return new Promise((resolve, reject) => {
      const abort = (): void =>
        this.#tell({
          type: 'cancel',
          request,
          error: this.#cancelled(signal?.reason, request.attempts === 0 ? 'no' : 'unknown'),
          why: messageOf(signal?.reason).slice(0, 200),
        });
      const release = (): void => signal?.removeEventListener('abort', abort);
      const request: OutgoingRequest = {
        method,
        params,
        meta: idempotencyKey === undefined ? meta : { ...meta, [META.idempotencyKey]: idempotencyKey },
        headers: how.headers,
        logLevel: options.logLevel,
        timeoutMs: how.open ? undefined : (options.timeoutMs ?? settings.timeoutMs),
        maxTimeoutMs: how.open
          ? undefined
          : Math.max(options.maxTimeoutMs ?? settings.maxTimeoutMs, options.timeoutMs ?? 0),
        repeatable: how.repeatable,
        onProgress: options.onProgress?.bind(options),
        onLog: options.onLog?.bind(options),
        capabilities: how.capabilities,
        authorization: how.authorization,
        resumesAfter: how.resumesAfter,
        ask: how.ask,
        resolve: (result) => {
          release();
          resolve(readResult(method, result, (what) => this.#repaired(method, what)));
        },
        reject: (error) => {
          release();
          reject(error);
        },
        id: 0,
        attempts: 0,
        due: 0,
        lastDue: 0,
        sentAt: 0,
        doubtful: false,
      };
      how.sent?.(request);
      signal?.addEventListener('abort', abort, { once: true });
      this.#tell({ type: 'request', request });
      for (const asked of how.following ?? []) this.#tell({ type: 'asked before', about: request, asked });
    });
  }

  // Lists and definitions

  #listed<T>(
    method: string,
    member: string,
    read: (element: unknown, note: Repaired) => T | undefined,
    capability = member,
  ): CachedList<T> {
    const { settings } = this.#parts;
    const clock = this.#clock;
    const note = (what: string): void => this.#repaired(method, what);
    return new CachedList<T>({
      clock,
      method,
      member,
      read: (element) => read(element, note),
      note,
      maxPages: settings.maxListPages,
      maxElements: settings.maxListed,
      page: async (cursor, options) => {
        try {
          return await this.#send(method, cursor === undefined ? undefined : { cursor }, options, { repeatable: true });
        } catch (error) {
          // A server that declares resources need not have templates: the list is empty, and takes no other with it.
          if (!(error instanceof ErrorResponse) || error.code !== ErrorCode.MethodNotFound) throw error;
          note('the method, which the server does not have');
          return { [member]: [] };
        }
      },
      announced: () => {
        const declared = this.#server?.capabilities[capability];
        return this.#server?.era === 'legacy' && isObject(declared) && declared.listChanged === true;
      },
      malformed: (message) => this.#malformed(message),
    });
  }

  /** Tells the operator once what the client repairs in the answers of a server. */
  #repaired(method: string, what: string): void {
    const key = `${method}: ${what}`;
    if (this.#repairs.has(key) || this.#repairs.size >= MAX_REPAIRS) return;
    this.#repairs.add(key);
    this.#parts.log('info', `${this.#target}: repaired in ${key}. It is not as the specification demands`);
  }

  #list<T>(capability: string, listed: CachedList<T>, options: ListOptions = NO_OPTIONS): Promise<readonly T[]> {
    return this.#operation(async () => {
      checkList(capability, options);
      // A server without the capability has none, and need not know the method.
      const { capabilities } = this.#server ?? {};
      const isExtension = capability === 'events' && settingsIn(capabilities?.extensions, EVENTS_EXTENSION);
      if (capabilities && capabilities[capability] === undefined && !isExtension) return [];
      const elements = await listed.get(options);
      return elements;
    });
  }

  async #learnTools(): Promise<void> {
    if (this.server.capabilities.tools === undefined || this.state === 'closed' || this.state === 'draining') return;
    try {
      await this.#tools.get();
    } catch (error) {
      this.#parts.log(
        'warning',
        `${this.#target}: tools/list failed, so that calls mirror no arguments in headers: ${messageOf(error)}`,
      );
    }
  }

  get #hasSkills(): boolean {
    const { extensions } = this.server.capabilities;
    return isObject(extensions) && extensions[SKILLS_EXTENSION] !== undefined;
  }

  /** One malformed entry must not hide the other skills. */
  #readSkill(element: unknown): SkillEntry | undefined {
    const entry = readSkillEntry(element, this.#parts.settings);
    if (typeof entry !== 'string') return entry;
    this.#parts.log('warning', `${this.#target}: a skill is left out: ${entry}`);
    return undefined;
  }

  /** The fresh entry of the listing, else that of `skills/get`, which also knows skills that are not listed. */
  async #skillEntry(uri: string, options: CallOptions): Promise<unknown> {
    if (!this.#hasSkills) throw this.#error('refused', `${uri}: the server has no skills`, 'no');
    const known = this.#skills.fresh?.find((entry) => entry.uri === uri);
    if (known) return known;
    const result = await this.#send('skills/get', { uri }, options, { repeatable: true });
    const entry = isObject(result) ? result.skill : undefined;
    if (!isObject(entry) || entry.uri !== uri) throw this.#malformed(`skills/get: expected the entry of ${uri}`);
    return entry;
  }

  #readTool(element: unknown, note: Repaired): Tool | undefined {
    const tool = readTool(element, note);
    if (!tool) {
      note('a tool without a name or a schema of an object, which is left out');
      return undefined;
    }
    const before = this.#known.get(tool.name);
    const mirrored = mirroredParameters(tool.inputSchema);
    if (typeof mirrored === 'string') {
      // One malformed definition must not hide the others (2026-07-28 streamable-http, "Schema Extension").
      this.#parts.log('warning', `${this.#target}: the tool "${tool.name}" is left out: ${mirrored}`);
      this.#known.delete(tool.name);
      return undefined;
    }
    const same = before && isDeepStrictEqual(before.tool.outputSchema, tool.outputSchema);
    this.#known.set(tool.name, { tool, mirrored, output: same ? before.output : undefined });
    if (this.#known.size > this.#parts.settings.maxListed) this.#known.delete([...this.#known.keys()][0] ?? '');
    return tool;
  }

  /** Checks structured content against the tool's schema (MCP tools, "Output Schema": clients should validate). */
  async #checkOutput(name: string, structured: JsonValue): Promise<void> {
    const known = this.#known.get(name);
    if (!this.#parts.settings.validate || !known?.tool.outputSchema) return;
    if (known.output === undefined) {
      const { compileOutput } = await import('../core/schema/compile-schema.ts');
      try {
        known.output = compileOutput(known.tool.outputSchema, `tool "${name}": outputSchema`);
      } catch (error) {
        known.output = null;
        this.#parts.log('warning', `${this.#target}: results of "${name}" are not checked: ${messageOf(error)}`);
      }
    }
    const checked = await known.output?.check(structured);
    if (!checked || checked.ok) return;
    const { explain } = await import('../core/schema/problems.ts');
    throw this.#error(
      'malformed',
      `${explain(checked.problems, `structuredContent of "${name}"`)}\nThe option validate: false accepts it`,
      'yes',
    );
  }

  // Tasks

  #newTask({ id, task }: { readonly id: string; readonly task?: Readonly<Record<string, unknown>> }): ClientTask {
    const { settings } = this.#parts;
    return new ClientTask(
      id,
      {
        server: this.#target,
        clock: this.#clock,
        era: () => this.server.era,
        request: (method, params, signal) =>
          this.#operation(() =>
            this.#send(
              method,
              params,
              {
                ...(signal ? { signal } : {}),
                // `tasks/result` responds when the task ends.
                ...(method === 'tasks/result' ? { timeoutMs: settings.maxTimeoutMs } : {}),
              },
              { repeatable: method !== 'tasks/update' },
            ),
          ),
        answerAll: (inputRequests, signal) => this.#answerAll(inputRequests, signal, id),
        busy: (work) => this.#operation(work),
      },
      task,
    );
  }

  // Changes

  #subscribe(changes: Changes): void {
    const subscription = this.#subscriptions.get(changes);
    if (!subscription || !this.#server) return;
    if (this.#server.era === 'legacy') {
      for (const uri of changes.filter.resources ?? []) this.#watch(uri);
      return;
    }
    // A server would end a subscription to nothing at once.
    if (isEmpty(changes.filter)) return;
    void this.#send(
      'subscriptions/listen',
      listenParams(changes.filter),
      {},
      {
        repeatable: false,
        open: true,
        sent: (request) => {
          subscription.request = request;
        },
      },
    ).then(
      () => this.#listenAgain(changes),
      (error: unknown) => {
        // A JSON-RPC error would come again: the server does not offer subscriptions.
        if (
          error instanceof ErrorResponse &&
          error.code !== ErrorCode.Overloaded &&
          error.code !== ErrorCode.ShuttingDown
        )
          return changes.end(error);
        this.#listenAgain(changes);
      },
    );
  }

  /** The subscription ended: changes may be missed until the next one is acknowledged. */
  #listenAgain(changes: Changes): void {
    const subscription = this.#subscriptions.get(changes);
    if (!subscription) return;
    const { failures, grantedAt } = subscription;
    subscription.request = undefined;
    subscription.grantedAt = undefined;
    changes.offer({ type: 'missed' });
    if (this.state === 'closed' || this.state === 'draining') return changes.end();
    const openMs = grantedAt === undefined ? 0 : this.#clock.now() - grantedAt;
    const lasted = openMs >= delayAfter(LISTEN_BACK_OFF, Math.max(1, failures));
    subscription.failures = lasted ? 1 : failures + 1;
    subscription.timer?.cancel();
    subscription.timer = this.#clock.after(delayAfter(LISTEN_BACK_OFF, subscription.failures), () =>
      this.#subscribe(changes),
    );
  }

  /** A subscription is open with a part of its filter (2026-07-28 patterns/subscriptions, "Acknowledgment"). */
  #acknowledged(changes: Changes, subscription: OpenSubscription, granted: unknown): void {
    subscription.grantedAt = this.#clock.now();
    const missing = notGranted(changes.filter, granted);
    if (!missing) return;
    const message = `the server does not report changes of ${missing.what}`;
    if (missing.all) changes.end(this.#error('refused', `${message}: the subscription is granted nothing`, 'yes'));
    else this.#parts.throttled('warning', `${this.#target}: ${message}. Other changes are reported`);
  }

  #unsubscribe(changes: Changes): void {
    const subscription = this.#subscriptions.get(changes);
    this.#subscriptions.delete(changes);
    subscription?.timer?.cancel();
    const request = subscription?.request;
    if (request)
      this.#tell({
        type: 'cancel',
        request,
        error: this.#error('cancelled', 'the subscription ended', 'yes'),
        why: 'the subscription is not needed any more',
      });
    if (this.#server?.era !== 'legacy') return;
    for (const uri of changes.filter.resources ?? []) {
      const count = (this.#watched.get(uri) ?? 0) - 1;
      if (count > 0) this.#watched.set(uri, count);
      else if (this.#watched.delete(uri)) this.#quietly('resources/unsubscribe', { uri });
    }
  }

  #watch(uri: string): void {
    const count = this.#watched.get(uri) ?? 0;
    this.#watched.set(uri, count + 1);
    if (count === 0) this.#quietly('resources/subscribe', { uri });
  }

  /** Sends a request whose failure only the operator needs to know. */
  #quietly(method: string, params: JsonObject): void {
    this.#send(method, params, {}, { repeatable: true }).catch((error: unknown) => {
      if (this.state !== 'closed') this.#parts.log('warning', `${method} failed: ${messageOf(error)}`);
    });
  }

  // Events of the connection

  #event(event: ClientEvent): void {
    switch (event.type) {
      case 'ready':
        return this.#ready(event.server, event.again);
      case 'attempt failed':
      case 'down': {
        const opened = this.#opened;
        this.#opened = undefined;
        return opened?.reject(event.error);
      }
      case 'notification':
        return this.#notified(event.notification);
      case 'gap':
        this.#invalidate();
        for (const changes of this.#subscriptions.keys()) changes.offer({ type: 'missed' });
        return;
      case 'closed':
        // Releases the actor and its timers.
        this.#ended = true;
        this.#connection.stop('the client is closed');
        this.#opened?.reject(this.#error('closed', 'the client was closed', 'no'));
        return this.#closed?.();
    }
  }

  #ready(server: ConnectedServer, again: boolean): void {
    this.#server = server;
    this.#opened?.resolve();
    this.#opened = undefined;
    if (!again) {
      // Changes that the program asked for before the connection was ready.
      for (const changes of this.#subscriptions.keys()) this.#subscribe(changes);
      return;
    }
    this.#invalidate();
    if (server.era === 'legacy')
      // The new session knows nothing of the old one's subscriptions.
      for (const uri of this.#watched.keys()) this.#quietly('resources/subscribe', { uri });
    // A subscription of a modern server has reported its own end.
    for (const changes of this.#subscriptions.keys())
      if (server.era === 'legacy' || isEmpty(changes.filter)) changes.offer({ type: 'missed' });
  }

  #notified({ method, params }: ServerNotification): void {
    const meta = isObject(params._meta) ? params._meta : {};
    const written = meta[META.subscriptionId];
    const subscription = isRequestId(written) ? ownId(written) : written;
    if (method === 'notifications/subscriptions/acknowledged') {
      for (const [changes, each] of this.#subscriptions)
        if (each.request?.id === subscription) this.#acknowledged(changes, each, params.notifications);
      return;
    }
    if (method === 'notifications/elicitation/complete' && typeof params.elicitationId === 'string')
      return this.pageCompleted?.(params.elicitationId);
    if (method.startsWith('notifications/events/')) {
      for (const { request, receive } of [...this.#streams]) if (request?.id === subscription) receive(method, params);
    }
    const change = changeOf(method, params);
    if (!change) return;
    this.#invalidateBy(change);
    for (const [changes, { request }] of this.#subscriptions)
      if (subscription === undefined || request?.id === subscription) changes.offer(change);
  }

  #invalidateBy({ type }: ServerChange): void {
    if (type === 'tools') this.#tools.invalidate();
    else if (type === 'prompts') this.#prompts.invalidate();
    else if (type === 'eventTypes') this.#eventTypes.invalidate();
    else if (type === 'resourceList') {
      this.#resources.invalidate();
      this.#templates.invalidate();
      this.#skills.invalidate();
    }
  }

  #invalidate(): void {
    for (const listed of [this.#tools, this.#resources, this.#templates, this.#prompts, this.#skills, this.#eventTypes])
      listed.invalidate();
  }

  /** Sends mail to the connection, or answers for one that has ended. */
  #tell(mail: ClientMail): void {
    if (!this.#ended) this.#connection.mailbox.send(mail);
    else if (mail.type === 'request') mail.request.reject(this.#error('closed', 'the client is closed', 'no'));
  }

  /** Keeps the process alive while a caller waits: timers and idle sockets do not. */
  async #operation<T>(work: () => Promise<T>): Promise<T> {
    this.#begin();
    try {
      return await work();
    } finally {
      this.#end();
    }
  }

  #begin(): void {
    this.#operations += 1;
    this.#hold ??= this.#clock.hold();
  }

  #end(): void {
    this.#operations -= 1;
    if (this.#operations > 0) return;
    this.#hold?.cancel();
    this.#hold = undefined;
  }

  #error(reason: FailureReason, message: string, carriedOut: CarriedOut, more?: Partial<CallFailure>): ClientError {
    return new ClientError(this.#target, { ...more, reason, message, carriedOut });
  }

  #malformed(message: string): ClientError {
    return this.#error('malformed', message, 'yes');
  }

  #cancelled(reason: unknown, carriedOut: 'no' | 'unknown'): ClientError {
    return this.#error('cancelled', `the call was cancelled: ${messageOf(reason)}`, carriedOut, { cause: reason });
  }
}

/** A stream of events. */
interface EventStream {
  /** Undefined before it is sent. */
  request: OutgoingRequest | undefined;
  readonly receive: (method: string, params: JsonObject) => void;
}

/** Milliseconds for `events/subscribe`, which verifies the endpoint. */
const SUBSCRIBE_MS = 30_000;

/** Declared with the requests of events: the server then speaks the profile of SEP-3415. */
const WITH_EVENTS: ClientCapabilities = { extensions: { [EVENTS_EXTENSION]: {} } };

/** A subscription of an iterable of changes. */
interface OpenSubscription {
  /** Undefined while none is open. */
  request: OutgoingRequest | undefined;
  /** The number of times in a row that it ended soon. */
  failures: number;
  /** The time of its acknowledgement. */
  grantedAt: number | undefined;
  timer: Timer | undefined;
}

interface SendOptions
  extends Pick<OutgoingRequest, 'repeatable' | 'headers' | 'capabilities' | 'authorization' | 'ask' | 'resumesAfter'> {
  /** The request stays open, without a deadline. */
  readonly open?: boolean;
  readonly following?: readonly UnansweredRequest[] | undefined;
  /** Receives the request before it is sent. */
  readonly sent?: (request: OutgoingRequest) => void;
}

/** Methods that only read: a repeat after a lost connection does no harm. */
const READS: ReadonlySet<string> = new Set([
  'completion/complete',
  'prompts/get',
  'prompts/list',
  'resources/list',
  'resources/read',
  'resources/templates/list',
  'tasks/get',
  'tasks/result',
  'tools/list',
]);

/** A relayed call that is asked something. */
interface AskingCall {
  ended?: AbortController;
  /** The answers to questions that may be those of another call. */
  doubtful?: Promise<unknown>[];
}

function whenAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve();
    else signal?.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Answers questions of a call until the call has ended: then the server gets an error for those that are open. */
function askWhile(call: AskingCall, ask: AnswerAsked): AnswerAsked {
  return async (request, signal, position) => {
    call.ended ??= new AbortController();
    const ended = call.ended.signal;
    const answer = ask(request, AbortSignal.any([signal, ended]), position);
    if (request.doubtful) call.doubtful = [...(call.doubtful ?? []), answer];
    try {
      return await answer;
    } catch (error) {
      if (!ended.aborted) throw error;
      throw new ProtocolError(ErrorCode.InvalidRequest, `the call that ${request.method} belongs to has ended`);
    }
  };
}

/** Maximum number of kinds of repairs that are logged. */
const MAX_REPAIRS = 50;

const NEVER: AbortSignal = new AbortController().signal;

function hasContents(value: unknown): value is ReadResourceResult {
  return isObject(value) && Array.isArray(value.contents);
}
function hasMessages(value: unknown): value is GetPromptResult {
  return isObject(value) && Array.isArray(value.messages);
}
