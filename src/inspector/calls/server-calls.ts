/**
 * The calls that viewers make: an ordinary client of the server in memory, a bounded history, and the requests of the
 * server that a viewer answers. No session is opened before the first call.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallOptions, ServerLogMessage } from '../../client/client-options.ts';
import type { ConnectedClient } from '../../client/connected-client.ts';
import type { Changes } from '../../client/server-changes.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import { ErrorCode } from '../../core/protocol/errors.ts';
import { VIEWS_EXTENSION } from '../../core/protocol/extensions.ts';
import { isJsonObject, isObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { isLegacyRevision } from '../../core/protocol/revisions.ts';
import { isLogLevel } from '../../core/protocol/types.ts';
import { parseTemplate } from '../../core/protocol/uri-template.ts';
import { PAGE_TYPE } from '../../core/protocol/views.ts';
import { type MemoryClient, type MemoryPeer, memory } from '../../core/transports/memory.ts';
import type { Internals } from '../../features/server/internals.ts';
import type { Plain } from '../frames.ts';
import { InputError } from '../http/viewer-input.ts';
import { jsonTextOf } from '../inspector-json.ts';
import { type Bounds, plainOf } from '../redaction/plain-data.ts';
import type { Redactor } from '../redaction/redact.ts';
import type {
  CallerOptions,
  CallNotice,
  CallRequest,
  CallResult,
  CallStatus,
  CallsState,
  ViewAnswer,
  ViewerCall,
  ViewMethod,
} from './call-messages.ts';
import { callResult } from './call-result.ts';
import { ViewerQuestions } from './viewer-questions.ts';

/** Maximum number of running calls, completions included. */
const MAX_RUNNING = 64;
/** Longest wait for the result of a call. The server's own deadlines expire earlier. */
const CALL_MS = 600_000;
/** A call waits for its viewer, who may have to answer. */
const LONGEST_CALL_MS = 3_600_000;
/** Maximum number of ended calls in the history, and of bytes of their results together. */
const MAX_HISTORY = 50;
const MAX_RESULTS = 32_000_000;
const MAX_LOGS = 100;
const MAX_NOTICES = 100;
/** Maximum number of sessions. The one that was unused longest is closed for another. */
const MAX_SESSIONS = 4;
const MAX_WATCHED = 32;
/** Longest message of the server, in bytes. The page receives a part of a long result. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** Milliseconds that a viewer waits for a change, and between two answers to it. */
const WAIT_MS = 20_000;
const GATHER_MS = 60;
const MAX_WAITING = 32;
/** Bounds of a request, and of the parameters of a question, as the page shows them. */
const SHOWN: Bounds = { depth: 24, members: 500, text: 8_000, all: 64_000 };

interface ServerCallsOptions {
  readonly inside: Pick<Internals, 'clock' | 'inspection' | 'log'>;
  readonly reach: ServerReach;
  readonly redactor: Redactor;
  readonly version: string;
}

/** The way to the server: a transport in memory, or a client that is connected already. */
export type ServerReach = Pick<Internals, 'open' | 'localClient'> | ConnectedReach;

/** A client that makes all calls, whatever their {@link CallerOptions}. The caller of the inspector closes it. */
export interface ConnectedReach {
  readonly client: ConnectedClient;
  /** The requests of the server that the client passes on to viewers. */
  readonly questions: ViewerQuestions;
}

interface CallEntry {
  readonly id: number;
  readonly request: CallRequest;
  readonly caller: CallerOptions;
  readonly at: number;
  readonly record: number;
  readonly abort: AbortController;
  readonly done: Promise<void>;
  status: CallStatus;
  isError: boolean;
  endedAt: number | undefined;
  progress: ViewerCall['progress'];
  readonly logs: CallNotice[];
  task: string | undefined;
  error: string | undefined;
  result: CallResult | undefined;
  bytes: number;
}

interface Session {
  readonly caller: CallerOptions;
  readonly client: Promise<ConnectedClient>;
  /** The client once it is open. */
  opened: ConnectedClient | undefined;
  running: number;
}

export class ServerCalls {
  readonly #options: ServerCallsOptions;
  /** By id, the oldest first. */
  readonly #entries = new Map<number, CallEntry>();
  /** By their options, the one that was used last at the end. */
  readonly #sessions = new Map<string, Session>();
  readonly #questions: ViewerQuestions;
  readonly #watched = new Map<string, Changes>();
  readonly #notices: CallNotice[] = [];
  /** The call whose code runs: its messages on the wire have its record as their cause. */
  readonly #current = new AsyncLocalStorage<{ readonly call: number | undefined; readonly record: number }>();
  readonly #waiting = new Set<() => void>();
  #transport: Promise<(as?: MemoryClient) => MemoryPeer> | undefined;
  #gathering: Timer | undefined;
  #version = 1;
  #last = 0;
  /** Completions and other requests without an entry. */
  #asides = 0;
  #closed = false;

  constructor(options: ServerCallsOptions) {
    this.#options = options;
    const { inside, reach } = options;
    this.#questions = 'client' in reach ? reach.questions : new ViewerQuestions(inside.clock);
    this.#questions.attach({
      callOf: (about) => this.#current.getStore()?.call ?? this.#runningOf(about),
      changed: () => this.#changed(),
    });
  }

  /** The options with the principal that they leave out: who has control could call as that client by stdio, too. */
  named(caller: CallerOptions): CallerOptions {
    const principal = this.#local?.principal;
    return principal === undefined ? caller : { principal, ...caller };
  }

  /** The client on stdio or on a socket; undefined if the server serves neither. */
  get #local(): MemoryClient | undefined {
    const { reach } = this.#options;
    return 'client' in reach ? undefined : reach.localClient();
  }

  // State

  state(): CallsState {
    const principal = this.#local?.principal;
    return {
      version: this.#version,
      ...(principal === undefined ? {} : { principal }),
      calls: [...this.#entries.values()].reverse().map((entry) => this.#shown(entry)),
      questions: this.#questions.all.map(({ call, params, ...rest }) => ({
        ...rest,
        ...(call === undefined ? {} : { call }),
        params: this.#schema(params),
      })),
      notices: this.#notices,
      watched: [...this.#watched.keys()],
      sessions: [...this.#sessions.values()].flatMap(({ caller, opened }) =>
        opened ? [{ caller, revision: opened.server.revision, state: opened.state }] : [],
      ),
    };
  }

  /** Resolves with the state when it is newer than `since`, or after a while. */
  async stateAfter(since: number): Promise<CallsState> {
    if (this.#version <= since && !this.#closed && this.#waiting.size < MAX_WAITING)
      await new Promise<void>((resolve) => {
        const done = (): void => {
          timer.cancel();
          this.#waiting.delete(done);
          resolve();
        };
        const timer = this.#options.inside.clock.after(WAIT_MS, done);
        this.#waiting.add(done);
      });
    return this.state();
  }

  /** The result of a call. @throws {InputError} */
  result(id: number): CallResult {
    const result = this.#entries.get(id)?.result;
    if (!result) throw new InputError(404, 'call: it has no result, or its result was dropped for newer ones');
    return result;
  }

  // Actions

  /**
   * Sends a request. @param record its `control` record
   *
   * @throws {InputError} if too many calls are running, or the arguments cannot be sent
   */
  start(request: CallRequest, caller: CallerOptions, record: number): number {
    this.#admit();
    checkSendable(request);
    this.#last += 1;
    const id = this.#last;
    let finish = (): void => {};
    const entry: CallEntry = {
      id,
      request,
      caller,
      record,
      at: this.#options.inside.clock.now(),
      abort: new AbortController(),
      done: new Promise((resolve) => {
        finish = resolve;
      }),
      status: 'running',
      isError: false,
      endedAt: undefined,
      progress: undefined,
      logs: [],
      task: undefined,
      error: undefined,
      result: undefined,
      bytes: 0,
    };
    this.#entries.set(id, entry);
    this.#changed();
    void this.#current.run({ call: id, record }, () =>
      this.#run(entry).finally(() => {
        entry.endedAt = this.#options.inside.clock.now();
        this.#questions.end(id);
        this.#trim();
        this.#changed();
        finish();
      }),
    );
    return id;
  }

  /** Sends the request of an earlier call again. @throws {InputError} */
  again(id: unknown, record: number): number {
    const { request, caller } = this.#entry(id);
    return this.start(request, caller, record);
  }

  /** Cancels a call, and the task that runs it. @throws {InputError} */
  cancel(id: unknown): void {
    const entry = this.#entry(id);
    if (entry.status !== 'running') throw new InputError(409, 'call: it has ended');
    const { task } = entry;
    entry.abort.abort(new Error('cancelled in the inspector'));
    if (task !== undefined) void this.#cancelTask(task, entry.caller);
  }

  async #cancelTask(task: string, caller: CallerOptions): Promise<void> {
    try {
      await this.#with(caller, (client) => client.task(task).cancel());
    } catch (error) {
      this.#note({ type: 'log', text: `the task ${task} was not cancelled: ${messageOf(error)}` });
    }
  }

  /** Waits for a call to end. @returns its outcome as a text */
  async outcome(id: number): Promise<string> {
    const entry = this.#entry(id);
    await entry.done;
    const name = entry.request.kind === 'tool' ? entry.request.name : entry.request.kind;
    if (entry.status !== 'done') return `"${name}" was rejected: ${entry.error ?? entry.status}`;
    return `"${name}" ${entry.isError ? 'failed' : 'answered'}: ${jsonTextOf(entry.result?.raw ?? null)}`;
  }

  answer(id: unknown, answer: JsonObject): void {
    this.#questions.answer(id, answer);
  }

  /** Completes an argument of a prompt, or a variable of a template. @throws {InputError} */
  async complete(
    reference: { readonly prompt: string } | { readonly resource: string },
    argument: { readonly name: string; readonly value: string },
    known: Readonly<Record<string, string>>,
    caller: CallerOptions,
    record: number,
  ): Promise<{ readonly values: readonly string[]; readonly total: number | undefined }> {
    this.#admit();
    this.#asides += 1;
    try {
      const { values, total } = await this.#current.run({ call: undefined, record }, () =>
        this.#with(caller, (client) => client.complete(reference, argument, known)),
      );
      return { values: values.map((value) => this.#options.redactor.words(value)), total };
    } catch (error) {
      if (error instanceof InputError) throw error;
      throw new InputError(409, this.#words(error));
    } finally {
      this.#asides -= 1;
    }
  }

  /** Passes on a request of a view, as a chat client does. @throws {InputError} if too many calls are running */
  async passOn(method: ViewMethod, params: JsonObject, caller: CallerOptions, record: number): Promise<ViewAnswer> {
    this.#admit();
    this.#asides += 1;
    // The client adds its own members.
    const { _meta, ...rest } = params;
    const options = { timeoutMs: CALL_MS, ...(isJsonObject(_meta) ? { meta: _meta } : {}) };
    try {
      const result = await this.#current.run({ call: undefined, record }, () =>
        this.#with(caller, (client) => client.request(method, rest, options)),
      );
      return { result: isJsonObject(result) ? result : {} };
    } catch (error) {
      const code = isObject(error) && typeof error.code === 'number' ? error.code : ErrorCode.InternalError;
      return { error: { code, message: messageOf(error) } };
    } finally {
      this.#asides -= 1;
    }
  }

  /** Watches a resource until {@link unwatch}. @throws {InputError} */
  async watch(uri: string, caller: CallerOptions, record: number): Promise<void> {
    if (this.#watched.has(uri)) return;
    if (this.#watched.size >= MAX_WATCHED)
      throw new InputError(409, `${MAX_WATCHED} resources are watched, which is the limit`);
    await this.#current.run({ call: undefined, record }, () =>
      this.#with(caller, (client) => {
        const changes = client.changes({ resources: [uri] });
        this.#watched.set(uri, changes);
        this.#note({ type: 'subscription', text: `watches ${uri}` });
        void this.#follow(uri, changes);
        return Promise.resolve();
      }),
    );
  }

  unwatch(uri: string): void {
    const changes = this.#watched.get(uri);
    this.#watched.delete(uri);
    changes?.end();
    this.#changed();
  }

  /** Forgets the ended calls and the notices. */
  forget(): void {
    for (const [id, { status }] of this.#entries) if (status !== 'running') this.#entries.delete(id);
    this.#notices.length = 0;
    this.#changed();
  }

  /** Cancels everything and closes the sessions. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#gathering?.cancel();
    for (const done of [...this.#waiting]) done();
    for (const { abort } of this.#entries.values()) abort.abort(new Error('the inspector closed'));
    this.#questions.close();
    for (const changes of this.#watched.values()) changes.end();
    // Until then, Node copies the context to each promise of this process.
    this.#current.disable();
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    if ('client' in this.#options.reach) return;
    // A session that is still opening is closed once it is open.
    for (const { client } of sessions) client.then((open) => open.close()).catch(() => {});
    await Promise.allSettled(sessions.map(({ opened }) => opened?.close()));
  }

  // Calls

  async #run(entry: CallEntry): Promise<void> {
    try {
      const result = await this.#with(entry.caller, (client) => this.#send(client, entry));
      entry.result = callResult(entry.id, result, this.#options.redactor);
      entry.bytes = jsonTextOf({ ...entry.result }).length;
      entry.isError = isObject(result) && result.isError === true;
      entry.status = 'done';
    } catch (error) {
      entry.status = entry.abort.signal.aborted ? 'cancelled' : 'failed';
      entry.error = this.#words(error);
    }
  }

  #send(client: ConnectedClient, entry: CallEntry): Promise<unknown> {
    const { request, caller, abort } = entry;
    const level = caller.logLevel;
    const options: CallOptions = {
      signal: abort.signal,
      timeoutMs: CALL_MS,
      maxTimeoutMs: LONGEST_CALL_MS,
      ...(isLogLevel(level) ? { logLevel: level } : {}),
      onProgress: ({ progress, total, message }) => {
        entry.progress = {
          progress,
          ...(total === undefined ? {} : { total }),
          ...(message === undefined ? {} : { message: this.#options.redactor.words(message, 500) }),
        };
        this.#changed();
      },
      onLog: (message) => {
        push(entry.logs, this.#logged(message), MAX_LOGS);
        this.#changed();
      },
      onTask: (id) => {
        entry.task = id;
        this.#changed();
      },
    };
    switch (request.kind) {
      case 'tool':
        return request.task === true
          ? client.start(request.name, request.arguments, options).then((task) => {
              entry.task = task.id;
              this.#changed();
              return task.result(abort.signal);
            })
          : client.call(request.name, request.arguments, options);
      case 'resource':
        return client.read(request.uri, options);
      case 'template':
        return client.read(parseTemplate(request.template).expand(request.variables), options);
      case 'prompt':
        return client.prompt(request.name, request.arguments, options);
      case 'request':
        return client.request(request.method, request.params, options);
    }
  }

  async #follow(uri: string, changes: Changes): Promise<void> {
    try {
      for await (const change of changes)
        this.#note(
          change.type === 'missed'
            ? { type: 'subscription', text: `changes of ${uri} may have been missed` }
            : { type: 'resource changed', text: uri },
        );
    } catch (error) {
      this.#note({ type: 'subscription', text: `${uri}: ${messageOf(error)}` });
    }
    if (this.#watched.get(uri) === changes) this.#watched.delete(uri);
    this.#changed();
  }

  /** @throws {InputError} if too many calls are running */
  #admit(): void {
    const running = [...this.#entries.values()].filter(({ status }) => status === 'running').length + this.#asides;
    if (this.#closed) throw new InputError(503, 'the inspector is closing');
    if (running >= MAX_RUNNING)
      throw new InputError(409, `${running} calls are pending, which is the limit. Wait for a result.`);
  }

  #entry(id: unknown): CallEntry {
    const entry = typeof id === 'number' ? this.#entries.get(id) : undefined;
    if (!entry) throw new InputError(404, 'call: no such call, or it was dropped for newer ones');
    return entry;
  }

  #runningOf(about: string | undefined): number | undefined {
    const fits = [...this.#entries.values()].filter(({ status, request }) => {
      const name = 'name' in request ? request.name : request.kind === 'resource' ? request.uri : undefined;
      return status === 'running' && (about === undefined || name === about);
    });
    return fits.at(-1)?.id;
  }

  #trim(): void {
    const ended = [...this.#entries.values()].filter(({ status }) => status !== 'running');
    for (const { id } of ended.slice(0, Math.max(0, ended.length - MAX_HISTORY))) this.#entries.delete(id);
    let bytes = 0;
    for (const entry of ended.reverse()) {
      bytes += entry.bytes;
      if (bytes > MAX_RESULTS) entry.result = undefined;
    }
  }

  // Sessions

  /** Runs with the client of these options, which is opened if it is not. */
  async #with<T>(caller: CallerOptions, run: (client: ConnectedClient) => Promise<T>): Promise<T> {
    const session = await this.#session(caller);
    session.running += 1;
    try {
      const client = await session.client;
      return await this.#caused(() => run(client));
    } finally {
      session.running -= 1;
    }
  }

  async #session(given: CallerOptions): Promise<Session> {
    const caller = 'client' in this.#options.reach ? {} : given;
    const key = jsonTextOf({ ...caller });
    let session = this.#sessions.get(key);
    if (session) this.#sessions.delete(key);
    else {
      await this.#makeRoom();
      session = this.#sessions.get(key) ?? this.#open(key, caller);
    }
    this.#sessions.set(key, session);
    return session;
  }

  async #makeRoom(): Promise<void> {
    if (this.#sessions.size < MAX_SESSIONS) return;
    const idle = [...this.#sessions].find(([, { running }]) => running === 0 && this.#watched.size === 0);
    if (!idle) throw new InputError(409, `${MAX_SESSIONS} sessions of the inspector are in use, which is the limit`);
    const [key, { client }] = idle;
    this.#sessions.delete(key);
    await client.then((open) => open.close()).catch(() => {});
  }

  #open(key: string, caller: CallerOptions): Session {
    const session: Session = { caller, client: this.#connect(caller), opened: undefined, running: 0 };
    session.client.then(
      (client) => {
        session.opened = client;
        this.#changed();
      },
      () => {
        if (this.#sessions.get(key) === session) this.#sessions.delete(key);
      },
    );
    return session;
  }

  async #connect(caller: CallerOptions): Promise<ConnectedClient> {
    const { inside, version, reach } = this.#options;
    if ('client' in reach) return reach.client;
    // Most viewers only look: the client is loaded for the first call.
    const { openClient, MemoryChannel } = await import('../../client/open-client.ts');
    const { revision, principal, answers, logLevel = 'info' } = caller;
    const clock = unheld(inside.clock);
    const peer = await this.#peers(reach);
    const local = this.#local;
    const as = principal === undefined ? {} : principal === local?.principal ? local : { principal };
    const legacy = isLegacyRevision(revision);
    return openClient(
      {
        name: 'inspector',
        channel: () => new MemoryChannel({ clock, connect: async () => this.#recorded(peer(as)) }),
        ...(legacy ? { revision } : {}),
      },
      {
        name: 'inspector',
        title: 'Inspector',
        version,
        clock,
        eras: legacy ? 'legacy' : 'modern',
        timeoutMs: CALL_MS,
        maxTimeoutMs: LONGEST_CALL_MS,
        maxMessageBytes: MAX_MESSAGE_BYTES,
        drainMs: 1,
        log: (level, message) => {
          if (level !== 'info') inside.log(level, `inspector: ${message}`);
        },
        onLog: (message) => this.#note(this.#logged(message)),
        ...(isLogLevel(logLevel) ? { logLevel } : {}),
        ...(caller.views === true ? { extensions: { [VIEWS_EXTENSION]: { mimeTypes: [PAGE_TYPE] } } } : {}),
        ...this.#questions.answerers(answers),
      },
    );
  }

  /** One transport serves all sessions. */
  #peers({ open }: Pick<Internals, 'open'>): Promise<(as?: MemoryClient) => MemoryPeer> {
    if (!this.#transport) {
      const { transport, connect } = memory();
      this.#transport = open(transport).then(() => connect);
      this.#transport.catch(() => {
        this.#transport = undefined;
      });
    }
    return this.#transport;
  }

  /** Records what a call sends as its consequence. */
  #recorded(peer: MemoryPeer): Pick<MemoryPeer, 'send' | 'onText' | 'close' | 'closed'> {
    return {
      send: (text) => this.#caused(() => peer.send(text)),
      onText: (listener) => peer.onText(listener),
      close: () => peer.close(),
      closed: peer.closed,
    };
  }

  /** Runs with the record of the current call as the cause. */
  #caused<T>(run: () => T): T {
    return this.#options.inside.inspection.withCause(this.#current.getStore()?.record ?? 0, run);
  }

  // Views for the page

  #shown({
    id,
    request,
    caller,
    status,
    isError,
    at,
    endedAt,
    record,
    progress,
    logs,
    task,
    error,
    result,
  }: CallEntry): ViewerCall {
    return {
      id,
      request: this.#request(request),
      caller,
      status,
      at,
      record,
      logs,
      hasResult: result !== undefined,
      ...(isError ? { isError } : {}),
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(progress === undefined ? {} : { progress }),
      ...(task === undefined ? {} : { task }),
      ...(error === undefined ? {} : { error }),
    };
  }

  /** A request without secrets. It is sent again as it was. */
  #request(request: CallRequest): CallRequest {
    const shown = (members: JsonObject): { readonly [name: string]: Plain } => {
      const plain = this.#plain(members);
      return isObject(plain) && !Array.isArray(plain) ? Object.fromEntries(Object.entries(plain)) : {};
    };
    const texts = (members: { readonly [name: string]: string }): { readonly [name: string]: string } =>
      Object.fromEntries(Object.entries(shown(members)).map(([name, value]) => [name, String(value)]));
    switch (request.kind) {
      case 'tool':
        return { ...request, arguments: shown(request.arguments) };
      case 'prompt':
        return { ...request, arguments: texts(request.arguments) };
      case 'template':
        return { ...request, variables: texts(request.variables) };
      case 'request':
        return { ...request, params: shown(request.params) };
      case 'resource':
        return { ...request, uri: this.#options.redactor.words(request.uri) };
    }
  }

  /** An error without secrets, and without the name by which the client knows this server. */
  #words(error: unknown): string {
    return this.#options.redactor.words(messageOf(error).replace(/^inspector: /, ''));
  }

  #plain(value: unknown): Plain {
    return plainOf(value, this.#options.redactor, { bounds: SHOWN, parsed: true });
  }

  /** A form may ask for a password: the names of its fields are no secrets. */
  #schema({ requestedSchema, ...params }: JsonObject): Plain {
    const plain = this.#plain(params);
    if (!isJsonObject(requestedSchema) || !isJsonObject(plain)) return plain;
    const { redactor } = this.#options;
    const finder = {
      name: (name: string) => ({ shown: redactor.name(name, []).shown, hidden: false }),
      text: (text: string) => redactor.text(text),
    };
    return { ...plain, requestedSchema: plainOf(requestedSchema, finder, { bounds: SHOWN, parsed: true }) };
  }

  #logged({ level, logger, data }: ServerLogMessage): CallNotice {
    const plain = this.#plain(data);
    const text = typeof plain === 'string' ? plain : jsonTextOf(plain);
    return { at: this.#options.inside.clock.now(), type: 'log', level, text: logger ? `${logger}: ${text}` : text };
  }

  #note(notice: Omit<CallNotice, 'at'>): void {
    const { inside, redactor } = this.#options;
    push(this.#notices, { at: inside.clock.now(), ...notice, text: redactor.words(notice.text) }, MAX_NOTICES);
    this.#changed();
  }

  /** Answers the viewers that wait, together with what follows soon: progress may come in a flood. */
  #changed(): void {
    this.#version += 1;
    this.#gathering ??= this.#options.inside.clock.after(GATHER_MS, () => {
      this.#gathering = undefined;
      for (const done of [...this.#waiting]) done();
    });
  }
}

/** The newest first. */
function push(notices: CallNotice[], notice: CallNotice, most: number): void {
  notices.unshift(notice);
  if (notices.length > most) notices.length = most;
}

/** A call of a viewer must not keep the observed process alive. */
function unheld(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    date: () => clock.date(),
    after: (ms, callback) => clock.after(ms, callback),
    soon: (callback) => clock.soon(callback),
    hold: () => ({ cancel() {} }),
  };
}

/** @throws {InputError} for arguments that are nested too deeply for JSON */
function checkSendable(request: CallRequest): void {
  try {
    jsonTextOf({ ...request });
  } catch {
    throw new InputError(400, 'arguments: nested too deeply for JSON');
  }
}
