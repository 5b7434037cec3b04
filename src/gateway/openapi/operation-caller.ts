/** Makes the requests of the operations of one document, for the callers of their tools. */
import { randomUUID } from 'node:crypto';
import { ClientError } from '../../client/client-errors.ts';
import type { Context } from '../../core/execution/context.ts';
import { becomeTask, earlierSteps, requestContextOf } from '../../core/execution/request-context.ts';
import { type Clock, pause } from '../../core/kernel/clock.ts';
import type { LogFields, RuntimeLog } from '../../core/kernel/operator-log.ts';
import { throttledLog } from '../../core/kernel/throttled-log.ts';
import { ToolError } from '../../core/protocol/errors.ts';
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';
import { META } from '../../core/protocol/meta.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import { digest } from '../../core/store/seal.ts';
import { checkpointsOf, waitLonger } from '../../features/asking/asking-context.ts';
import { isHeaderValue, readHeaders } from '../../features/oauth/issuers/header-text.ts';
import type { DirectHost } from '../mounts/direct-target.ts';
import { isAsking, type SignIns } from '../mounts/sign-ins.ts';
import { answerFailure } from '../mounts/upstream-error.ts';
import { type AcceptedWork, acceptedWork, hasFailed, workState } from './accepted-work.ts';
import type { ApiAuth } from './api-auth.ts';
import { ApiConnection, type ApiResponse, retryAfter } from './api-connection.ts';
import { ApiCredentials, type AppliedCredentials } from './api-credentials.ts';
import { type AnsweredCall, apiResult } from './api-result.ts';
import { inlineText } from './argument-text.ts';
import type { ApiOperation, CompiledDocument, OperationCaller, OperationRequest } from './operation.ts';
import { requestAddress } from './request-address.ts';
import { requestBody, withResources } from './request-body.ts';
import { NO_SECRETS } from './sent-secrets.ts';

export interface OperationCallerOptions {
  readonly mount: string;
  readonly clock: Clock;
  readonly log: RuntimeLog;
  readonly signIns: SignIns;
  /**
   * The addresses that the operator named: the base of the configuration, or the address of the document. Their hosts may be private,
   * and reached by plain http. The bases of a document that the operator has as a file count as named.
   */
  readonly trusted: readonly [URL, ...URL[]];
  readonly auth?: ApiAuth | undefined;
  /** Headers of each request, in place of arguments of the same names. They may be secret. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** True: a 202 becomes a task where its client takes tasks. Default true. */
  readonly async?: boolean | undefined;
  /** Longest response in bytes, decoded. Default 8,388,608. */
  readonly maxResponseBytes?: number | undefined;
  /** Reads a resource of this server for a caller. @throws {ToolError} */
  readonly readResource: DirectHost['readResource'];
  /** Longest data of a result, in characters of JSON (`limits.maxResultLength`). */
  readonly maxResultLength: number;
}

const MAX_RESPONSE_BYTES = 8_388_608;
const MOUNT_EVENT: LogFields = { event: 'mount' };
/** Milliseconds between two looks at accepted work, where the API names none. */
const POLL = { fromMs: 2_000, toMs: 60_000, factor: 1.5 };
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY']);
/** Maximum number of addresses that accepted work moves to. */
const MAX_MOVES = 4;
/** Failed polls in a row after which the work is given up. */
const MAX_FAILED_POLLS = 5;
/** Headers of a request that its arguments never set: they belong to the connection, to the credentials, or to the body. */
const NO_ARGUMENTS =
  /^(?:accept-encoding|authorization|connection|content-(?:encoding|length|type)|cookie|expect|forwarded|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|via)$/i;
const MAY_BE_SECRET = /auth|cookie|key|pass|secret|signature|token/i;
/** Steps of a call that another process may continue. */
const STEP = { sent: 'sent', key: 'idempotency key', work: 'accepted work' } as const;

/**
 * Opens the caller of one mount.
 *
 * @throws {TypeError} for headers that cannot be sent
 */
export function openOperationCaller(options: OperationCallerOptions): OperationCaller {
  const { mount, clock, trusted, maxResponseBytes = MAX_RESPONSE_BYTES, auth, signIns } = options;
  const headers = readHeaders(`mount "${mount}": headers`, options.headers ?? {});
  const connection = new ApiConnection({ mount, clock, trusted, maxBytes: maxResponseBytes });
  const secrets = Object.entries(headers).flatMap(([name, value]) => (MAY_BE_SECRET.test(name) ? [value] : []));
  const credentials = new ApiCredentials({ mount, auth, signIns, secrets });
  const parts = { ...options, headers, connection, credentials };
  const logFailure = throttledLog(options.log, clock);
  return {
    async call(document, operation, args, ctx) {
      const call = new OperationCall(parts, document, operation, args, ctx);
      try {
        return await call.run();
      } catch (error) {
        // The client has cancelled the call, or its deadline has passed.
        if (ctx.signal.aborted) throw ctx.signal.reason;
        if (!(error instanceof ClientError)) throw error;
        logFailure(
          'warning',
          `mount "${mount}": ${operation.request.method} of ${call.tool} failed: ${error.message}`,
          MOUNT_EVENT,
        );
        if (error.reason === 'too long') return call.tooLong(maxResponseBytes);
        const result = answerFailure({ mount, method: 'tools/call', about: call.tool }, error);
        return { content: [], ...result };
      }
    },
    close() {
      credentials.close();
      return Promise.resolve();
    },
  };
}

interface CallParts extends OperationCallerOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly connection: ApiConnection;
  readonly credentials: ApiCredentials;
}

class OperationCall {
  readonly #parts: CallParts;
  readonly #document: CompiledDocument;
  readonly #operation: ApiOperation;
  readonly #args: JsonObject;
  readonly #ctx: Context;
  /** The steps of earlier runs; undefined in the first run. */
  readonly #earlier: JsonObject | undefined;
  /** As the client knows it. */
  readonly tool: string;

  constructor(parts: CallParts, document: CompiledDocument, operation: ApiOperation, args: JsonObject, ctx: Context) {
    this.#parts = parts;
    this.#document = document;
    this.#operation = operation;
    const defaults = Object.entries(operation.defaults).filter(([name]) => args[name] === undefined);
    this.#args = copyNumbers(args, { ...args, ...Object.fromEntries(defaults) });
    this.#ctx = ctx;
    this.#earlier = earlierSteps(ctx);
    const { operation: called } = requestContextOf(ctx).current;
    this.tool = called.method === 'tools/call' ? called.name : operation.tool.name;
  }

  get #request(): OperationRequest {
    return this.#operation.request;
  }

  /** The request has no effects. */
  get #reads(): boolean {
    return READS.has(this.#request.method);
  }

  /** True if another process may continue the call. */
  get #resumable(): boolean {
    return checkpointsOf(this.#ctx) !== undefined;
  }

  async run(): Promise<CallToolResult> {
    const { mount } = this.#parts;
    const work = this.#recordedWork();
    if (work) return this.#follow(work);
    const request = this.#request;
    const url = requestAddress(mount, request, this.#args);
    const key = await this.#idempotencyKey();
    const headers = this.#headers(key);
    const { readResource } = this.#parts;
    const args = await withResources(mount, request.body, this.#args, (uri) => readResource(this.#ctx, uri));
    const body = requestBody(mount, request.body, args);
    const repeatable = this.#reads || key !== undefined;
    const typed = body ? { ...headers, 'content-type': body.type } : headers;
    let secrets: AppliedCredentials['secrets'] | undefined;
    const response = await this.#authorized(async (credentials) => {
      if (!repeatable) await this.#sendOnce();
      secrets = credentials.secrets;
      return this.#send(credentials, { method: request.method, url, headers: typed, body: body?.bytes, repeatable });
    });
    const answered = this.#answered(secrets);
    const begun = this.#parts.async === false ? undefined : acceptedWork(response, url);
    if (begun && becomeTask(this.#ctx)) {
      if (this.#resumable) await this.#ctx.step(STEP.work, () => ({ ...begun }));
      return this.#follow(begun);
    }
    return apiResult(answered, response);
  }

  /** The result for a response that is longer than this gateway reads. */
  tooLong(maxBytes: number): CallToolResult {
    const done = this.#reads ? '' : ` "${this.tool}" was carried out, but its result is lost.`;
    return {
      content: [
        {
          type: 'text',
          text: `${this.#parts.mount}: the response is longer than ${maxBytes} bytes (the option is maxResponseBytes).${done} Ask for less, or for a page of it.`,
        },
      ],
      isError: true,
    };
  }

  // The request

  #authorized(send: (credentials: AppliedCredentials) => Promise<ApiResponse>): Promise<ApiResponse> {
    const { securitySchemes: schemes } = this.#document;
    return this.#parts.credentials.run({ ctx: this.#ctx, request: this.#request, schemes }, send);
  }

  #send(
    { headers: authorization, query, client }: AppliedCredentials,
    request: {
      readonly method: string;
      readonly url: URL;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Buffer | undefined;
      readonly repeatable: boolean;
    },
  ): Promise<ApiResponse> {
    const url = new URL(request.url);
    for (const [name, value] of query)
      url.search += `${url.search === '' ? '?' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
    const { cookie } = authorization;
    const cookies = [request.headers.cookie, cookie].filter((each) => each !== undefined).join('; ');
    return this.#parts.connection.send({
      ...request,
      url,
      headers: { ...request.headers, ...authorization, ...(cookies !== '' && { cookie: cookies }) },
      client,
      reads: READS.has(request.method),
      signal: this.#ctx.signal,
    });
  }

  /** @throws {ToolError} for a value that no header can carry */
  #headers(key: string | undefined): Record<string, string> {
    const { mount, headers: configured } = this.#parts;
    const { parameters, accept, idempotencyHeader } = this.#request;
    const headers: Record<string, string> = {
      accept,
      'accept-encoding': 'gzip, deflate, br',
      'user-agent': 'troupe',
      ...(idempotencyHeader !== undefined && key !== undefined && { [idempotencyHeader.toLowerCase()]: key }),
    };
    for (const parameter of parameters) {
      const { argument, name } = parameter;
      const value = this.#args[argument];
      if (parameter.in !== 'header' || value === undefined || value === null || NO_ARGUMENTS.test(name)) continue;
      const text = inlineText(name, parameter, this.#args, argument, (each) => each);
      if (!isHeaderValue(text))
        throw new ToolError(
          `${mount}: the argument "${argument}": expected text without line breaks, control characters and characters above U+00FF, because it is sent as a header. Nothing was sent`,
        );
      headers[name.toLowerCase()] = text.trim();
    }
    return { ...headers, ...configured };
  }

  /** The key of the call, the same in each of its runs; undefined if the operation takes none. */
  async #idempotencyKey(): Promise<string | undefined> {
    if (this.#request.idempotencyHeader === undefined) return undefined;
    const given = this.#ctx.meta[META.idempotencyKey];
    // Callers share the account at the API, and may choose the same key.
    if (typeof given === 'string')
      return digest([this.#parts.mount, this.#ctx.principal, this.tool, given]).slice(0, 36);
    return this.#resumable ? this.#ctx.step(STEP.key, () => randomUUID()) : randomUUID();
  }

  /**
   * Records that the call is sent now, if an earlier run ended while its caller was asked for credentials.
   *
   * @throws {ToolError} if an earlier run may have sent it
   */
  async #sendOnce(): Promise<void> {
    const earlier = this.#earlier;
    if (!earlier) return;
    let first = false;
    if (isAsking(earlier))
      await this.#ctx.step(STEP.sent, () => {
        first = true;
        return true;
      });
    if (first || this.#sentHere) {
      this.#sentHere = true;
      return;
    }
    throw new ToolError(
      `${this.#parts.mount}: the gateway restarted during this call, and it is not known whether "${this.tool}" was carried out. Find out before you call again.`,
    );
  }

  /** This run has sent the request, and the API has rejected its credentials. */
  #sentHere = false;

  // Accepted work

  #recordedWork(): AcceptedWork | undefined {
    const result = this.#earlier?.[STEP.work];
    const [work] = Array.isArray(result) ? result : [];
    if (!isJsonObject(work) || typeof work.url !== 'string' || !URL.canParse(work.url)) return undefined;
    return { url: work.url, by: work.by === 'operation' ? 'operation' : 'location' };
  }

  /** Polls until the work has ended. */
  async #follow(work: AcceptedWork): Promise<CallToolResult> {
    const ctx = this.#ctx;
    const { clock } = this.#parts;
    waitLonger(ctx);
    let url = new URL(work.url);
    let waitMs = POLL.fromMs;
    let failures = 0;
    let moves = 0;
    for (let poll = 1; ; poll += 1) {
      await pause(clock, waitMs, ctx.signal);
      if (ctx.signal.aborted) throw ctx.signal.reason;
      let secrets: AppliedCredentials['secrets'] | undefined;
      let response: ApiResponse;
      try {
        response = await this.#authorized((credentials) => {
          secrets = credentials.secrets;
          const headers = { accept: 'application/json, */*;q=0.1', 'user-agent': 'troupe', ...this.#parts.headers };
          return this.#send(credentials, { method: 'GET', url, headers, body: undefined, repeatable: true });
        });
        failures = 0;
      } catch (error) {
        failures += 1;
        if (ctx.signal.aborted || !(error instanceof ClientError) || failures >= MAX_FAILED_POLLS) throw error;
        continue;
      }
      const state = workState(work, response);
      if (state.state === 'ended') {
        const result = apiResult(this.#answered(secrets), response);
        return hasFailed(response) ? { ...result, isError: true } : result;
      }
      if (state.state === 'moved') {
        // The next response is the result, unless it is a redirect again.
        url = state.to;
        waitMs = 0;
        moves += 1;
        if (moves > MAX_MOVES) return apiResult(this.#answered(secrets), response);
        continue;
      }
      ctx.progress(poll, undefined, state.status);
      const demanded = retryAfter(response, clock);
      const longer = Math.max(POLL.fromMs, waitMs) * POLL.factor;
      waitMs = Math.min(POLL.toMs, Math.max(POLL.fromMs, demanded ?? longer));
    }
  }

  #answered(secrets: AppliedCredentials['secrets'] | undefined): AnsweredCall {
    const { mount, clock, maxResultLength, credentials } = this.#parts;
    const { securitySchemes: schemes } = this.#document;
    return {
      ...{ mount, tool: this.tool, method: this.#request.method, reads: this.#reads, clock, maxResultLength },
      pick: this.#operation.pick,
      secrets: secrets ?? NO_SECRETS,
      unauthorized: credentials.describe({ request: this.#request, schemes }),
    };
  }
}
