/**
 * Answers what servers ask of a client: forms, pages, sampling and roots. Legacy servers send requests; modern servers
 * put input requests into a result.
 */

import type { Clock, Timer } from '../core/kernel/clock.ts';
import { durationOf } from '../core/kernel/duration.ts';
import type { OperatorLog } from '../core/kernel/operator-log.ts';
import type { Mailbox } from '../core/messages/mailbox.ts';
import { ErrorCode, ProtocolError } from '../core/protocol/errors.ts';
import { describe, isJsonObject, isObject, type JsonObject, type JsonValue, messageOf } from '../core/protocol/json.ts';
import type { RequestId } from '../core/protocol/jsonrpc.ts';
import { TASKS_EXTENSION } from '../core/protocol/task-params.ts';
import type { ClientCapabilities } from '../core/protocol/types.ts';
import { isWebPage, WEB_PAGE_RULE } from '../core/protocol/web-page.ts';
import type { ConnectOptions, FormAnswer, ServerRequestContext } from './client-options.ts';
import type { AnswerAsked } from './relayed-request.ts';

/** The functions of the program that answer. */
export type Answerers = Pick<ConnectOptions, 'elicit' | 'elicitUrl' | 'sample' | 'sampling' | 'roots'>;

/** The answer to a request of a server, for the connection to send. */
export type ServerAnswer =
  | { readonly type: 'respond'; readonly id: RequestId; readonly result: JsonObject }
  | {
      readonly type: 'reject';
      readonly id: RequestId;
      readonly code: number;
      readonly message: string;
      readonly data?: JsonValue | undefined;
    };

/** Maximum number of requests of one server that are answered at the same time. */
const MAX_OPEN = 64;
/** Milliseconds until a request of a server is given up: a person may have to answer. */
const ANSWER_MS = 3_600_000;

/** The capabilities that the program's functions declare, with its extensions. */
export function capabilitiesOf({
  elicit,
  elicitUrl,
  sample,
  sampling,
  roots,
  extensions,
}: Answerers & Pick<ConnectOptions, 'extensions'>): ClientCapabilities {
  return {
    ...(elicit || elicitUrl
      ? { elicitation: { ...(elicit ? { form: {} } : {}), ...(elicitUrl ? { url: {} } : {}) } }
      : {}),
    ...(sample
      ? { sampling: { ...(sampling?.tools ? { tools: {} } : {}), ...(sampling?.context ? { context: {} } : {}) } }
      : {}),
    ...(roots ? { roots: { listChanged: true } } : {}),
    extensions: { ...extensions, [TASKS_EXTENSION]: {} },
  };
}

/** True if a server may send requests to a client that declares these capabilities. */
export function canBeAsked({ elicitation, roots, sampling }: ClientCapabilities): boolean {
  return elicitation !== undefined || roots !== undefined || sampling !== undefined;
}

interface OpenRequest {
  readonly abort: AbortController;
  readonly timer: Timer;
  /** The call of the client that it is passed on for, and since when. */
  readonly call: object | undefined;
  readonly since: number;
}

export class ServerRequests {
  readonly #answerers: Answerers;
  readonly #clock: Clock;
  readonly #log: OperatorLog;
  /** The open requests of a legacy server, by their ids as the server wrote them. */
  readonly #open = new Map<RequestId, OpenRequest>();

  constructor(answerers: Answerers, clock: Clock, log: OperatorLog) {
    this.#answerers = answerers;
    this.#clock = clock;
    this.#log = log;
  }

  /** The number of open requests of a legacy server. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Serves one request of a legacy server: its response goes to the mailbox.
   *
   * @param about the call that it belongs to, for the program's functions
   * @param passedOn the call that it is passed on for, with what answers it in place of the program's functions
   */
  serve(
    id: RequestId,
    method: string,
    params: JsonObject,
    about: string | undefined,
    to: Mailbox<ServerAnswer>,
    passedOn?: { readonly call: object; readonly ask: AnswerAsked },
  ): void {
    if (method === 'ping') return to.send({ type: 'respond', id, result: {} });
    const reject = (code: number, message: string, data?: JsonValue): void =>
      to.send({ type: 'reject', id, code, message, data });
    if (this.#open.has(id)) return reject(ErrorCode.InvalidRequest, `the id ${String(id)} is in use`);
    if (this.#open.size >= MAX_OPEN)
      return reject(ErrorCode.Overloaded, `this client answers at most ${MAX_OPEN} requests at a time`);
    const abort = new AbortController();
    const timer = this.#clock.after(ANSWER_MS, () => {
      // The function may ignore its signal, and calls of the client wait as long as the request is open.
      this.#end(id);
      abort.abort(new Error(`no answer within ${durationOf(ANSWER_MS)}`));
      reject(ErrorCode.InternalError, 'the client could not answer in time');
    });
    this.#open.set(id, { abort, timer, call: passedOn?.call, since: this.#clock.now() });
    const answer = passedOn
      ? passedOn.ask({ method, params }, abort.signal)
      : this.answer(method, params, { signal: abort.signal, about });
    void answer.then(
      (result) => {
        if (this.#end(id)) to.send({ type: 'respond', id, result });
      },
      (error: unknown) => {
        if (!this.#end(id)) return;
        if (error instanceof ProtocolError) return reject(error.code, error.message, error.data);
        this.#log('error', `the client's answer to ${method} failed: ${messageOf(error)}`);
        reject(ErrorCode.InternalError, 'the client could not answer');
      },
    );
  }

  /**
   * Answers one request of a server.
   *
   * @throws {ProtocolError} for a request that this client does not support; whatever the program's function throws
   */
  async answer(method: string, params: JsonObject, context: ServerRequestContext): Promise<JsonObject> {
    const { elicit, elicitUrl, sample, sampling, roots } = this.#answerers;
    switch (method) {
      case 'elicitation/create': {
        const { mode, url, elicitationId } = params;
        const message = textOf(params.message) ?? '';
        if (mode === 'url') {
          if (!elicitUrl) throw unsupported('elicitation/create with the mode "url"', 'elicitUrl');
          if (!isWebPage(url)) throw invalid(`params.url: expected ${WEB_PAGE_RULE}, got ${describe(url)}`);
          const page = await elicitUrl({ url, message, elicitationId: textOf(elicitationId) }, context);
          const action = actionIn(page, {});
          if (action) return { action };
          throw new TypeError(`elicitUrl: expected 'accept', 'decline' or 'cancel', got ${describe(page)}`);
        }
        if (!elicit) throw unsupported('elicitation/create', 'elicit');
        const requestedSchema = isJsonObject(params.requestedSchema) ? params.requestedSchema : {};
        return formResult(await elicit({ message, requestedSchema }, context), requestedSchema);
      }
      case 'sampling/createMessage':
        if (!sample) throw unsupported(method, 'sample');
        // The specification demands an error: the model would not see the tools.
        if ((params.tools ?? params.toolChoice) !== undefined && !sampling?.tools)
          throw invalid(
            'params.tools: this client does not declare sampling.tools (its option is sampling: { tools: true })',
          );
        return sample(params, context);
      case 'roots/list': {
        if (!roots) throw unsupported(method, 'roots');
        const listed = await roots();
        return { roots: listed.map(({ uri, name }) => (name === undefined ? { uri } : { uri, name })) };
      }
      default:
        throw new ProtocolError(ErrorCode.MethodNotFound, `this client does not serve ${method.slice(0, 100)}`);
    }
  }

  /**
   * Answers the input requests in a result (2026-07-28 patterns/mrtr), all at once: the user may see them together.
   *
   * @throws the error of the first that cannot be answered
   */
  async answerAll(inputRequests: unknown, context: ServerRequestContext): Promise<JsonObject> {
    if (!isObject(inputRequests)) return {};
    const entries = Object.entries(inputRequests);
    if (entries.length > MAX_OPEN)
      throw new ProtocolError(
        ErrorCode.Overloaded,
        `the server asks for ${entries.length} inputs at once, and this client answers at most ${MAX_OPEN}`,
      );
    const answers = await Promise.all(
      entries.map(async ([key, request]): Promise<[string, JsonObject]> => {
        if (!isObject(request) || typeof request.method !== 'string')
          throw invalid(`inputRequests.${key}: expected a request, got ${describe(request)}`);
        return [key, await this.answer(request.method, isJsonObject(request.params) ? request.params : {}, context)];
      }),
    );
    return Object.fromEntries(answers);
  }

  /** The time of the clock at which the newest open request was passed on for a call; undefined if none is open. */
  askedAt(call: object): number | undefined {
    let newest: number | undefined;
    for (const open of this.#open.values()) if (open.call === call) newest = Math.max(newest ?? 0, open.since);
    return newest;
  }

  /** The server has cancelled its request. */
  cancelled(id: RequestId): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#end(id);
    open.abort.abort(new Error('the server cancelled its request'));
  }

  /** Cancels all open requests: the connection has ended. */
  close(): void {
    for (const id of [...this.#open.keys()]) this.cancelled(id);
  }

  /** @returns false if the request was cancelled */
  #end(id: RequestId): boolean {
    this.#open.get(id)?.timer.cancel();
    return this.#open.delete(id);
  }
}

/** The result of a form. Fields that the answer leaves out get the schema's defaults (SEP-1034). @throws {TypeError} for no answer */
function formResult(answer: FormAnswer, schema: JsonObject): JsonObject {
  const fields = isObject(schema.properties) ? schema.properties : {};
  const action = actionIn(answer, fields);
  if (action === 'decline' || action === 'cancel') return { action };
  if (!action && !isJsonObject(answer))
    throw new TypeError(`elicit: expected the fields as an object, 'decline' or 'cancel', got ${describe(answer)}`);
  const given = action && isJsonObject(answer) ? answer.content : answer;
  const content: Record<string, JsonObject[string]> = {};
  if (isJsonObject(schema.properties))
    for (const [name, field] of Object.entries(schema.properties))
      if (isJsonObject(field) && field.default !== undefined) content[name] = field.default;
  return { action: 'accept', content: { ...content, ...(isJsonObject(given) ? given : {}) } };
}

/**
 * The action of an answer: a word, or the member of a result as the protocol has it, which programs for other clients return.
 *
 * @param fields those of the form: one of them may be called `action`
 */
function actionIn(answer: unknown, fields: object): 'accept' | 'decline' | 'cancel' | undefined {
  const action = isObject(answer) && !Object.hasOwn(fields, 'action') ? answer.action : answer;
  return action === 'accept' || action === 'decline' || action === 'cancel' ? action : undefined;
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function invalid(problem: string): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, problem);
}

function unsupported(what: string, option: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.MethodNotFound,
    `this client does not support ${what} (its option ${option} is not set)`,
  );
}
