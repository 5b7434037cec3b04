/** Relays calls of clients to the upstream of a mount, and the upstream's questions and tasks to the client of the call. */

import { ErrorResponse } from '../../client/client-errors.ts';
import { ClientTask, createdTask } from '../../client/client-task.ts';
import type { ConnectedClient } from '../../client/connected-client.ts';
import type {
  AskedRequest,
  CallPosition,
  RelayedRequest,
  ResumedCall,
  UnansweredRequest,
} from '../../client/relayed-request.ts';
import type { Context } from '../../core/execution/context.ts';
import { CannotAsk } from '../../core/execution/input-errors.ts';
import {
  becomeTask,
  type CallOwner,
  earlierSteps,
  isTask,
  logLevelOf,
  ownerOfCall,
} from '../../core/execution/request-context.ts';
import { type Clock, LONGEST_TIMER_MS } from '../../core/kernel/clock.ts';
import type { InputMethod, InputRequest, Reply } from '../../core/messages/client-input.ts';
import {
  ErrorCode,
  type ErrorCodeValue,
  isProtocolError,
  ProtocolError,
  ToolError,
} from '../../core/protocol/errors.ts';
import {
  describe,
  isJsonObject,
  isObject,
  type JsonObject,
  type JsonValue,
  messageOf,
} from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';
import { isRequestId } from '../../core/protocol/jsonrpc.ts';
import { META } from '../../core/protocol/meta.ts';
import { renameInText, wantsNames, withPlaces } from '../../core/protocol/named-tools.ts';
import { declaresTasks, TASKS_EXTENSION, tasksNotDeclared } from '../../core/protocol/task-params.ts';
import type { ClientCapabilities } from '../../core/protocol/types.ts';
import { isWebPage, WEB_PAGE_RULE } from '../../core/protocol/web-page.ts';
import { askVerbatim, checkpointsOf, continuesElsewhere, waitLonger } from '../../features/asking/asking-context.ts';
import { GatheredProgress } from './gathered-progress.ts';
import type { MountSettings } from './mount-options.ts';
import { withoutOwnMeta } from './own-meta.ts';
import type { OwnedRoots } from './owned-roots.ts';
import { saidBy, visibleForm } from './question-text.ts';
import type { ReplaceableUpstream } from './replaceable-upstream.ts';
import { offeredPage } from './uris.ts';

/** The mount whose calls are relayed. */
export interface RelayOptions {
  readonly mount: string;
  readonly upstream: ReplaceableUpstream;
  readonly clock: Clock;
  readonly settings: MountSettings;
  /** The shortest time between two reports of progress. */
  readonly gatherMs: number;
}

/** One call, as the upstream gets it. */
export interface RelayCall {
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read' | 'completion/complete';
  readonly params: JsonObject;
  /** A repeat after a crash does no harm. */
  readonly repeatable: boolean;
  /** When the upstream runs the tool as a task: never, if its caller asks (2025-11-25), or as it decides (the extension). */
  readonly tasks?: 'never' | 'optional' | 'required' | 'unasked';
  /** The name under which a tool of the upstream is offered: a server of Troupe says where its results name tools. */
  readonly offered?: (tool: string) => string | undefined;
}

/** A round of questions, as it is recorded. */
interface Round {
  readonly requests: JsonObject;
  readonly requestState?: string;
  /** The questions are pages that the user must open before the call begins. */
  readonly pages?: true;
  /** The call has ended, and its result was not recorded. */
  readonly ended?: true;
}

/** Code of 2025-11-25 for a call that needs the user to open a page first (elicitation, "URL Elicitation Required Error"). */
const URL_ELICITATION_REQUIRED = -32042;
/** Maximum number of questions of one round. `askVerbatim` has the same limit. */
const MAX_QUESTIONS = 32;
/** Members of `_meta` that describe one hop and not the call. */
const HOP_META: ReadonlySet<string> = new Set([
  META.protocolVersion,
  META.clientInfo,
  META.clientCapabilities,
  META.logLevel,
  META.progressToken,
  META.idempotencyKey,
  META.relatedTask,
  META.names,
]);

/** Members of the `_meta` of a question that a client gets (2026-07-28 basic, "_meta"). */
const TRACE_META = ['traceparent', 'tracestate'] as const;

/**
 * Makes one call.
 *
 * @returns the result of the upstream, unread
 * @throws {ErrorResponse | ClientError} as the connection does; {@link ToolError} for a call that cannot be continued
 */
export async function relayCall(
  options: RelayOptions,
  roots: OwnedRoots,
  ctx: Context,
  call: RelayCall,
): Promise<JsonObject> {
  const { upstream, mount } = options;
  const caller = ownerOfCall(ctx);
  const modern = caller.session === undefined;
  // A modern client declares what it takes (ext-tasks, "Capability Negotiation"). For others, the relay waits.
  if (call.tasks === 'required' && modern && !declaresTasks(caller.capabilities))
    throw tasksNotDeclared(`${mount}: tool "${String(call.params.name)}"`);
  const owner = upstreamOwner(caller);
  let relayed: RelayedCall | undefined;
  try {
    const client = await upstream.current.authorized(ctx, () => upstream.current.for(owner));
    relayed = new RelayedCall(options, roots, client, owner, ctx, call);
    return await relayed.run();
  } finally {
    relayed?.end();
  }
}

class RelayedCall {
  readonly #options: RelayOptions;
  readonly #roots: OwnedRoots;
  #client: ConnectedClient;
  readonly #owner: CallOwner;
  readonly #ctx: Context;
  readonly #call: RelayCall;
  /** The steps of earlier runs; undefined in the first run. */
  readonly #earlier: JsonObject | undefined;
  #samplings = 0;
  /** Requests of a legacy upstream during this call. */
  #asked = 0;
  /** Another process can continue the call in its session. */
  #recordedPosition = false;
  /** Those without an answer: requests that are open at the same time are one round. */
  #open = 0;
  #rounds = 0;
  /** The announced changes of roots when the client was last asked for them. */
  #rootsChanges = 0;
  #progress = 0;
  /** Made with the first report of progress. */
  #reports: GatheredProgress | undefined;

  constructor(
    options: RelayOptions,
    roots: OwnedRoots,
    client: ConnectedClient,
    owner: CallOwner,
    ctx: Context,
    call: RelayCall,
  ) {
    this.#options = options;
    this.#roots = roots;
    this.#client = client;
    this.#owner = owner;
    this.#ctx = ctx;
    this.#call = call;
    this.#earlier = earlierSteps(ctx);
  }

  async run(): Promise<JsonObject> {
    const task = this.#recorded('task');
    if (task) return this.#follow(String(task.id));
    const { params } = this.#call;
    let sent = params;
    for (let round = 1; round <= this.#options.settings.maxRounds; round += 1) {
      const begins = round === 1 && !this.#earlier;
      const result = await (begins ? this.#exchange(sent) : this.#round(round, sent));
      if ('final' in result) return this.#final(result.final);
      if (begins && this.#resumable) await this.#ctx.step('round 1', () => result);
      const { requests, requestState, pages } = result;
      if (pages) {
        await this.#openPages(requests, round);
        continue;
      }
      const responses = Object.keys(requests).length === 0 ? undefined : await this.#ask(requests);
      sent = {
        ...params,
        ...(responses && { inputResponses: responses }),
        ...(requestState !== undefined && { requestState }),
      };
    }
    throw new ToolError(
      `${this.#options.mount}: the server asked for input ${this.#options.settings.maxRounds} times, which is too often. It is not known whether the call was carried out.`,
    );
  }

  /** Returns the step of an earlier run. */
  #recorded(name: string): JsonObject | undefined {
    const result = this.#earlier?.[name];
    const [value] = Array.isArray(result) ? result : [];
    return isJsonObject(value) ? value : undefined;
  }

  /** True if another process may continue the call. */
  get #resumable(): boolean {
    return checkpointsOf(this.#ctx) !== undefined;
  }

  /**
   * Sends one round, unless an earlier run has recorded its questions. A later round is recorded before it is sent: if the
   * process ends before the answer, nothing is sent twice.
   */
  async #round(round: number, sent: JsonObject): Promise<Round | { readonly final: JsonObject }> {
    const known = this.#recorded(`round ${round}`);
    if (known) return asRound(known);
    const begun = this.#begun();
    if (begun) return { final: await this.#resume(sent, begun) };
    if (round === 1) {
      if (this.#earlier && !this.#call.repeatable) await this.#sendOnce(this.#earlier);
      const result = await this.#exchange(sent);
      if ('final' in result || !this.#resumable) return result;
      return this.#ctx.step(`round ${round}`, () => result);
    }
    if (!this.#resumable) return this.#exchange(sent);
    let final: JsonObject | undefined;
    const kept = await this.#ctx.step(`round ${round}`, async (): Promise<Round> => {
      let first = false;
      await this.#ctx.step(`sent ${round}`, () => {
        first = true;
        return true;
      });
      if (!first && !this.#call.repeatable) throw this.#unknown();
      const result = await this.#exchange(sent);
      if (!('final' in result)) return result;
      final = result.final;
      return ENDED;
    });
    if (final) return { final };
    if (kept.ended) throw this.#unknown();
    return kept;
  }

  /**
   * Records that the call is sent now, if the earlier run had not sent it: its caller was signing in.
   *
   * @throws {ToolError} if the call may have been carried out
   */
  async #sendOnce(earlier: JsonObject): Promise<void> {
    let first = false;
    if (this.#options.upstream.current.signingIn(earlier))
      await this.#ctx.step('sent 1', () => {
        first = true;
        return true;
      });
    if (!first) throw this.#unknown();
  }

  async #exchange(sent: JsonObject): Promise<Round | { readonly final: JsonObject }> {
    const { method, tasks } = this.#call;
    const asTask = tasks === 'required' || (tasks === 'optional' && isTask(this.#ctx));
    const params = asTask ? { ...sent, task: {} } : sent;
    try {
      const result = await this.#send(method, params, method === 'completion/complete' ? undefined : this.#answer);
      if (result.resultType !== 'input_required') return { final: result };
      const { inputRequests, requestState } = result;
      return {
        requests: isJsonObject(inputRequests) ? inputRequests : {},
        ...(typeof requestState === 'string' && { requestState }),
      };
    } catch (error) {
      const pages = error instanceof ErrorResponse && error.code === URL_ELICITATION_REQUIRED && pagesIn(error.data);
      if (!pages) throw error;
      return { requests: pages, pages: true };
    }
  }

  /** The call that an earlier process has begun in a session over HTTP, with the questions that it has recorded. */
  #begun(): ResumedCall | undefined {
    const open: UnansweredRequest[] = [];
    let position: CallPosition | undefined;
    for (let at = 1; ; at += 1) {
      const asked = this.#recorded(`asked ${at}`);
      if (!asked) break;
      if (!isPosition(asked)) return undefined;
      const { asked: id, method, params } = asked;
      position = asked;
      open.push({ id, method: String(method), params: isJsonObject(params) ? params : {} });
    }
    return position && { position, open };
  }

  /** Continues that call: answers its questions, and waits for the rest of its stream. */
  async #resume(sent: JsonObject, begun: ResumedCall): Promise<JsonObject> {
    const { client, release } = await this.#options.upstream.current.resume(this.#owner, begun.position);
    this.#client = client;
    try {
      return await this.#send(this.#call.method, sent, this.#answer, begun);
    } finally {
      release();
    }
  }

  /** If this process ends and the next one continues the call, the upstream keeps the session and the question. */
  #leaveOnEnd(): void {
    const client = this.#client;
    // Before the client's own listener, which cancels the call.
    this.#ctx.signal.addEventListener('abort', () => {
      if (this.#recordedPosition && continuesElsewhere(this.#ctx)) client.leave();
    });
  }

  #send(
    method: string,
    params: JsonObject,
    ask: RelayedRequest['ask'],
    resumes?: ResumedCall | undefined,
  ): Promise<JsonObject> {
    const ctx = this.#ctx;
    const { clock, gatherMs, mount, upstream } = this.#options;
    const logLevel = logLevelOf(ctx);
    if (ask && this.#resumable && this.#client.server.era === 'legacy') this.#leaveOnEnd();
    // The deadline of the call is that of its handler, which aborts the signal.
    const timeoutMs = method.startsWith('tasks/') && method !== 'tasks/result' ? undefined : LONGEST_TIMER_MS;
    return upstream.current.authorized(ctx, (authorization) =>
      this.#client.relay({
        authorization,
        method,
        params,
        signal: ctx.signal,
        meta: passedMeta(ctx.meta, this.#call.offered !== undefined),
        capabilities: this.#owner.capabilities,
        ask,
        resumes,
        repeatable: method === this.#call.method && this.#call.repeatable,
        timeoutMs,
        onProgress: (progress) => {
          this.#reports ??= new GatheredProgress(clock, gatherMs, (latest) =>
            ctx.progress(latest.progress, latest.total, latest.message),
          );
          this.#reports.add(progress);
        },
        ...(logLevel && {
          logLevel,
          onLog: ({ level, data, logger }) => ctx.log(level, data, logger === undefined ? mount : `${mount}/${logger}`),
        }),
      }),
    );
  }

  /** Reports the last progress: the call has ended. */
  end(): void {
    this.#reports?.end();
  }

  // Questions

  /** Asks the client the questions of a modern upstream. @returns the responses by the upstream's keys */
  async #ask(requests: JsonObject): Promise<JsonObject> {
    const entries = Object.entries(requests);
    if (entries.length > MAX_QUESTIONS)
      throw this.#cannot(`asks ${entries.length} questions at once. At most ${MAX_QUESTIONS} are possible`);
    const responses: Record<string, JsonValue> = {};
    const asked: Record<string, InputRequest> = {};
    for (const [key, request] of entries) {
      if (key === '__proto__') throw this.#cannot('asks a question with the name "__proto__", which nobody can answer');
      const { method, params } = isJsonObject(request) ? request : {};
      if (!isInputMethod(method)) throw this.#cannot('asks a question of an unknown kind');
      const kept = method === 'roots/list' ? this.#roots.get(this.#owner.key) : undefined;
      if (kept) responses[key] = kept;
      else asked[key] = this.#translated(method, isJsonObject(params) ? params : {});
    }
    if (Object.keys(asked).length === 0) return responses;
    const replies = await askVerbatim(this.#ctx, asked);
    for (const [key, reply] of Object.entries(replies))
      responses[key] = this.#response(asked[key]?.method ?? 'elicitation/create', reply);
    return responses;
  }

  #response(method: InputMethod, reply: Reply | undefined): JsonObject {
    if (reply?.ok && isJsonObject(reply.result)) {
      if (method === 'roots/list') {
        this.#roots.set(this.#owner, this.#rootsChanges, reply.result);
        this.#options.upstream.keepRoots(this.#owner, reply.result);
      }
      return reply.result;
    }
    if (reply?.ok)
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `the response to ${method}: expected an object, got ${describe(reply.result)}`,
      );
    // A modern upstream gets results only (2026-07-28 patterns/mrtr).
    if (method === 'elicitation/create') return { action: 'cancel' };
    throw new ToolError(
      `${this.#options.mount}: the client did not answer ${method}${!reply ? '' : `: ${reply.error.message}`}. The call was not completed.`,
    );
  }

  /** Answers a request of a legacy upstream during this call. */
  readonly #answer = async (
    { method, params }: AskedRequest,
    signal: AbortSignal,
    position?: CallPosition,
  ): Promise<JsonObject> => {
    if (!isInputMethod(method))
      throw new ProtocolError(ErrorCode.MethodNotFound, `this client does not serve ${method.slice(0, 100)}`);
    const kept = method === 'roots/list' ? this.#roots.get(this.#owner.key) : undefined;
    if (kept) return kept;
    const { maxRounds } = this.#options.settings;
    if (this.#open === 0) this.#rounds += 1;
    if (this.#rounds > maxRounds || this.#asked >= maxRounds * MAX_QUESTIONS)
      throw new ProtocolError(ErrorCode.Overloaded, `one call may ask in at most ${maxRounds} rounds`);
    this.#asked += 1;
    this.#open += 1;
    const step = `asked ${this.#asked}`;
    try {
      if (position && this.#resumable) {
        await this.#ctx.step(step, () => ({ ...position, method, params }));
        this.#recordedPosition = true;
      }
      const replies = await askVerbatim(this.#ctx, { [NAMES[method]]: this.#translated(method, params) }, signal);
      const reply = replies[NAMES[method]];
      if (reply && !reply.ok && isCode(reply.error.code))
        throw new ProtocolError(reply.error.code, reply.error.message);
      return this.#response(method, reply);
    } catch (error) {
      if (error instanceof CannotAsk) throw new ProtocolError(ErrorCode.MethodNotFound, error.message);
      throw isProtocolError(error) ? error : new ProtocolError(ErrorCode.InternalError, messageOf(error));
    } finally {
      this.#open -= 1;
    }
  };

  /** The question as the client gets it: it learns which server asks (MCP elicitation, "Security Considerations"). */
  #translated(method: InputMethod, given: JsonObject): InputRequest {
    const params = withoutServerMeta(given);
    const { mount, settings } = this.#options;
    const { maxSamplingPerCall } = settings;
    if (method === 'elicitation/create') {
      const { message, elicitationId, mode, url } = params;
      if (mode === 'url' && !isWebPage(url)) throw this.#cannot(`asks to open an address that is not ${WEB_PAGE_RULE}`);
      return {
        method,
        params: {
          ...params,
          message: saidBy(mount, typeof message === 'string' ? message : ''),
          ...(isJsonObject(params.requestedSchema) && { requestedSchema: visibleForm(params.requestedSchema) }),
          ...(typeof elicitationId === 'string' && { elicitationId: offeredPage(mount, elicitationId) }),
        },
      };
    }
    if (method === 'roots/list') {
      this.#rootsChanges = this.#owner.session?.rootsChanges ?? 0;
      return { method, params };
    }
    this.#samplings += 1;
    if (this.#samplings > maxSamplingPerCall)
      throw this.#cannot(`asks for more than ${maxSamplingPerCall} samplings in one call`);
    // The context of this client is not the upstream's to see.
    const { includeContext, ...rest } = params;
    return { method, params: includeContext === 'none' ? params : rest };
  }

  /** Asks the user to open the pages without which a legacy upstream does not begin the call. */
  async #openPages(requests: JsonObject, round: number): Promise<void> {
    const urls = Object.values(requests)
      .map((request) => (isJsonObject(request) && isJsonObject(request.params) ? String(request.params.url) : ''))
      .join(', ');
    const { mount } = this.#options;
    if (round > 1)
      throw new ToolError(`${mount}: this call needs a page to be completed first: ${urls}. Call again afterwards.`);
    let responses: JsonObject;
    try {
      responses = await this.#ask(requests);
    } catch (error) {
      if (!(error instanceof CannotAsk)) throw error;
      throw new ToolError(`${mount}: this call needs the user to open ${urls} first. Call again afterwards.`);
    }
    const agreed = Object.values(responses).every((reply) => isObject(reply) && reply.action === 'accept');
    if (!agreed) throw new ToolError(`${mount}: the user did not open ${urls}. The call was not carried out.`);
  }

  // Tasks

  /** Passes a result on, or follows the task that the call has become. */
  async #final(result: JsonObject): Promise<JsonObject> {
    const created = createdTask(result);
    if (!created) return this.#passedOn(result);
    becomeTask(this.#ctx);
    if (this.#resumable) await this.#ctx.step('task', () => ({ id: created.id }));
    return this.#follow(created.id, created.task);
  }

  /** A result as the client gets it: without what the upstream says of its hop, and with the names of this server in its text. */
  #passedOn(given: JsonObject): JsonObject {
    const { offered } = this.#call;
    if (!offered) return withoutHop(given);
    const { result, places } = renameInText(given, offered);
    const passed = withoutHop(result);
    // The client may be a gateway, too.
    return wantsNames(this.#ctx.meta) ? withPlaces(passed, places) : passed;
  }

  async #follow(id: string, created?: Readonly<Record<string, unknown>>): Promise<JsonObject> {
    const ctx = this.#ctx;
    waitLonger(ctx);
    const task = new ClientTask(
      id,
      {
        server: this.#options.mount,
        clock: this.#options.clock,
        era: () => this.#client.server.era,
        request: async (method, params) => {
          if (method !== 'tasks/get') return this.#send(method, params, this.#answer);
          const result = await this.#send(method, params, undefined).catch((error: unknown) => {
            // A legacy upstream may know the task only in the session that another process had.
            throw this.#earlier && error instanceof ErrorResponse ? this.#unknown() : error;
          });
          this.#report(result.statusMessage);
          return result;
        },
        answerAll: (requests) => {
          this.#rounds += 1;
          if (this.#rounds > this.#options.settings.maxRounds)
            throw this.#cannot(`asks for input more than ${this.#options.settings.maxRounds} times in one call`);
          return this.#ask(isJsonObject(requests) ? requests : {});
        },
        busy: (work) => work(),
      },
      created,
    );
    this.#report(created?.statusMessage);
    try {
      const result: unknown = await task.result(ctx.signal);
      return isJsonObject(result) ? this.#passedOn(result) : {};
    } catch (error) {
      // The next process follows the task.
      if (ctx.signal.aborted && !continuesElsewhere(ctx))
        this.#options.upstream.current
          .authorized(ctx, (authorization) =>
            this.#client.relay({
              method: 'tasks/cancel',
              params: { taskId: id },
              capabilities: this.#owner.capabilities,
              authorization,
            }),
          )
          .catch(() => {});
      throw error;
    }
  }

  #report(message: unknown): void {
    if (typeof message !== 'string') return;
    this.#progress += 1;
    this.#ctx.progress(this.#progress, undefined, message);
  }

  // Failures

  #cannot(why: string): ToolError {
    return new ToolError(
      `${this.#options.mount}: the server ${why}. It is not known whether the call was carried out completely.`,
    );
  }

  #unknown(): ToolError {
    return new ToolError(
      `${this.#options.mount}: the gateway restarted during this call, and it is not known whether the call was carried out. Find out before you call again.`,
    );
  }
}

/** Recorded in place of the result of a later round. */
const ENDED: Round = { requests: {}, ended: true };

const NAMES = { 'elicitation/create': 'elicit', 'sampling/createMessage': 'sample', 'roots/list': 'roots' } as const;

/** The owner of a call with the capabilities that an upstream learns. */
export function upstreamOwner(owner: CallOwner): CallOwner {
  return { ...owner, capabilities: declaredUpstream(owner.capabilities, owner.session === undefined) };
}

/**
 * The capabilities to declare upstream: those of the client that the call can serve, and for the client of a session tasks,
 * which the relay follows for clients that do not take them.
 */
function declaredUpstream(capabilities: ClientCapabilities, modern: boolean): ClientCapabilities {
  // The client of a session has declared them once, and a modern one declares them with each request.
  const known = modern ? undefined : DECLARED.get(capabilities);
  if (known) return known;
  const { elicitation, sampling, roots, extensions } = capabilities;
  const declared = {
    ...(elicitation && { elicitation }),
    ...(sampling && { sampling }),
    ...(roots && { roots }),
    ...(modern ? extensions && { extensions } : { extensions: { ...extensions, [TASKS_EXTENSION]: {} } }),
  };
  if (!modern) DECLARED.set(capabilities, declared);
  return declared;
}

const DECLARED = new WeakMap<ClientCapabilities, ClientCapabilities>();

/**
 * The members of `_meta` that belong to the call, such as `traceparent`.
 *
 * @param named asks for the places of names in the result
 */
function passedMeta(meta: JsonObject, named: boolean): JsonObject | undefined {
  let passed: Record<string, JsonValue> | undefined = named ? { [META.names]: true } : undefined;
  for (const [member, value] of Object.entries(meta)) {
    if (HOP_META.has(member) || value === undefined) continue;
    passed ??= {};
    passed[member] = value;
  }
  return passed && copyNumbers(meta, passed);
}

/** Removes what a result says of its hop alone (2026-07-28 basic, "Results"): this server says it of itself. */
function withoutHop({ resultType: _, ...given }: JsonObject): JsonObject {
  // Only this server says how it failed to reach an upstream, and when to retry.
  const result = withoutOwnMeta(given);
  if (!isJsonObject(result._meta)) return result;
  const { [META.serverInfo]: _server, [META.relatedTask]: _task, ...meta } = result._meta;
  const { _meta: _all, ...others } = result;
  return Object.keys(meta).length === 0 ? others : { ...others, _meta: copyNumbers(result._meta, meta) };
}

/**
 * The params of a question without its `task`, because a mount declares no tasks of clients, and with no more of its `_meta` than the
 * trace. The other members would speak to the client in the name of this server: a token of progress that it does not relay, the
 * id of a task that it does not have, the vendor's word that a user need not be asked. `baggage` would reach other servers.
 */
function withoutServerMeta({ _meta: meta, task: _task, ...params }: JsonObject): JsonObject {
  if (!isJsonObject(meta)) return params;
  const trace = Object.fromEntries(
    TRACE_META.flatMap((member) => (typeof meta[member] === 'string' ? [[member, meta[member]]] : [])),
  );
  return Object.keys(trace).length === 0 ? params : { ...params, _meta: trace };
}

function isPosition(value: JsonObject): value is JsonObject & CallPosition {
  const { session, revision, id, lastEventId, asked } = value;
  const texts = [session, revision, lastEventId].every((each) => typeof each === 'string');
  return texts && typeof id === 'number' && isRequestId(asked);
}

function isInputMethod(method: unknown): method is InputMethod {
  return typeof method === 'string' && Object.hasOwn(NAMES, method);
}

function asRound({ requests, requestState, pages }: JsonObject): Round {
  return {
    requests: isJsonObject(requests) ? requests : {},
    ...(typeof requestState === 'string' && { requestState }),
    ...(pages === true && { pages }),
  };
}

/** The pages in the error of a 2025-11-25 upstream, as questions; undefined if it names none. */
function pagesIn(data: JsonValue | undefined): JsonObject | undefined {
  const pages = isJsonObject(data) && Array.isArray(data.elicitations) ? data.elicitations.filter(isJsonObject) : [];
  if (pages.length === 0) return undefined;
  const asked = pages
    .slice(0, MAX_QUESTIONS)
    .map((page, index) => [`page-${index + 1}`, { method: 'elicitation/create', params: { ...page, mode: 'url' } }]);
  return Object.fromEntries(asked);
}

/** The codes of another server are not in our list. */
function isCode(code: number): code is ErrorCodeValue {
  return Number.isSafeInteger(code);
}
