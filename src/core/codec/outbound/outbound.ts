/** The outbound codec, the only place where messages become text, in the dialect of the request. */

import type { ChangeNotice } from '../../messages/change-notices.ts';
import type { Bytes } from '../../messages/connection-events.ts';
import type { Ask, Notification, ResultMail } from '../../messages/emitter-messages.ts';
import type { RequestView } from '../../messages/request-view.ts';
import type { Page, Result, TaskState } from '../../messages/results.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import { toWireError, type WireError } from '../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../protocol/json.ts';
import { copyNumbers, writeJson } from '../../protocol/json-text.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import { META } from '../../protocol/meta.ts';
import { renderFilter } from '../../protocol/subscription-filter.ts';
import type { CallToolResult, Implementation } from '../../protocol/types.ts';
import { pick, renderError, renderResult } from './render.ts';
import { renderTaskStatus } from './render-task.ts';

/** Length of a page in characters from which its bytes are cached; for shorter pages, writing text is as fast. */
const LONG_PAGE = 16_384;

const utf8 = new TextEncoder();
const END = utf8.encode('}');

interface PageText {
  readonly text: string;
  /** Created when a transport first writes it as bytes. */
  bytes: Uint8Array | undefined;
}

/**
 * Called with a response (its id) or log data that cannot be serialized, so that an operator can fix the handler.
 * @returns the incident's id
 */
type Unwritable = (id: RequestId | undefined, error: unknown) => string;

export class Outbound {
  readonly #info: Implementation;
  readonly #listTtlMs: number;
  readonly #unwritable: Unwritable;
  /** Texts by page and dialect. A page is one object until its registry changes. */
  readonly #pages = new WeakMap<Page, Map<Dialect, PageText>>();
  /**
   * The member of `_meta` that names the server and its version, in dialects whose results contain it (2026-07-28
   * basic/index, "Per-response protocol fields").
   */
  readonly #named: string;

  /** The last announcement as text; the next clients receive the same text. */
  #announced: { readonly mail: Announcement; readonly text: string } | undefined;
  #lastNotice:
    | { readonly notice: ChangeNotice; readonly dialect: Dialect; readonly before: string; readonly after: string }
    | undefined;

  constructor(info: Implementation, listTtlMs: number, unwritable: Unwritable) {
    this.#info = info;
    this.#named = serverInfo(pick(info, ['name', 'version']));
    this.#listTtlMs = listTtlMs;
    this.#unwritable = unwritable;
  }

  /** Serializes a response. A result or error data that is not JSON (a cycle, a BigInt) becomes a -32603. */
  answer(mail: ResultMail): string {
    if (mail.type === 'refusal') return this.#error(mail.id, mail.error, mail.dialect);
    const { id, client } = mail.request;
    try {
      if (!mail.outcome.ok) return this.#error(id, mail.outcome.error, client.dialect);
      return `${resultOf(id)}${this.#result(mail.outcome.result, client.dialect)}}`;
    } catch (error) {
      return this.#error(id, toWireError(error, this.#unwritable(id, error)), client.dialect);
    }
  }

  /**
   * The same response as bytes, if most of it is cached: a long page of a list. The page is encoded as UTF-8 once for
   * all clients; for 1,000 tools that is most of the cost.
   */
  bytes({ id, client }: RequestView, list: Page): Bytes | undefined {
    const page = this.#pages.get(list)?.get(client.dialect);
    if (!page || page.text.length < LONG_PAGE) return undefined;
    return () => {
      page.bytes ??= utf8.encode(page.text);
      return [utf8.encode(resultOf(id)), page.bytes, END];
    };
  }

  /** Serializes a request to the client, or its cancellation (MCP "Cancellation"). */
  ask(mail: Ask): string {
    if (mail.type === 'withdrawn')
      return notify('notifications/cancelled', { requestId: mail.id, reason: mail.reason });
    const { method, params } = mail.input;
    let text: string | undefined;
    try {
      text = writeJson(params);
    } catch (error) {
      // The client is then not asked; the request fails.
      this.#unwritable(mail.id, error);
    }
    return `{"jsonrpc":"2.0","id":${JSON.stringify(mail.id)},"method":"${method}","params":${text ?? '{}'}}`;
  }

  notification(mail: Notification): string {
    switch (mail.type) {
      case 'list changed':
      case 'resource updated':
      case 'task status':
        return this.#announcement(mail);
      case 'page completed':
        return notify('notifications/elicitation/complete', { elicitationId: mail.elicitationId });
      case 'progress':
        return notify(
          'notifications/progress',
          pick(
            { progressToken: mail.token, progress: mail.progress, total: mail.total, message: mail.message },
            mail.dialect.shown.progress,
          ),
        );
      case 'log':
        return this.#log(mail);
      case 'notification':
        return mail.notice.type === 'passed' ? '' : this.#notice(mail.about, mail.notice);
    }
  }

  /** Serializes an announcement to sessions. It is one object for all of them: its text is made for the first. */
  #announcement(mail: Announcement): string {
    if (this.#announced?.mail !== mail) this.#announced = { mail, text: announcement(mail) };
    return this.#announced.text;
  }

  /**
   * Serializes a notification for a subscription. It contains the id of the request that opened the subscription
   * (2026-07-28 subscriptions, "Receiving Notifications"). The rest of the text is made once for each change and
   * dialect.
   */
  #notice({ id, client }: RequestView, notice: Exclude<ChangeNotice, { type: 'passed' }>): string {
    const { dialect } = client;
    let last = this.#lastNotice;
    if (last?.notice !== notice || last.dialect !== dialect) {
      last = { notice, dialect, ...this.#noticeText(notice, dialect) };
      this.#lastNotice = last;
    }
    return `${last.before}${JSON.stringify(id)}${last.after}`;
  }

  #noticeText(
    notice: Exclude<ChangeNotice, { type: 'passed' }>,
    dialect: Dialect,
  ): { readonly before: string; readonly after: string } {
    const [method, more] = notice.type === 'task changed' ? this.#task(notice.task, dialect) : renderNotice(notice);
    return {
      before: `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${META.subscriptionId}":`,
      after: `}${more === '{}' ? '' : `,${more.slice(1, -1)}`}}}`,
    };
  }

  /** Serializes a task. If its result is not JSON, `tasks/get` reports an error. */
  #task(task: TaskState, dialect: Dialect): readonly [method: string, members: string] {
    const shown = (now: TaskState): string =>
      objectText(renderResult(withTexts({ kind: 'task', task: now }), dialect, 0));
    try {
      return ['notifications/tasks', shown(task)];
    } catch (error) {
      this.#unwritable(undefined, error);
      return ['notifications/tasks', shown({ ...task, outcome: undefined })];
    }
  }

  /** Serializes log data from a handler; replaces data that is not JSON. */
  #log({ level, logger, data }: Extract<Notification, { type: 'log' }>): string {
    const about = writeJson(logger === undefined ? { level } : { level, logger: String(logger) }).slice(0, -1);
    let text: string | undefined;
    try {
      text = writeJson(data);
    } catch (error) {
      this.#unwritable(undefined, error);
      text = '"log data that is not JSON"';
    }
    return `{"jsonrpc":"2.0","method":"notifications/message","params":${about},"data":${text ?? 'null'}}}`;
  }

  /**
   * Serializes an error without a request: for input that never became a message and has no id, or for a request whose
   * message is gone.
   */
  refusal(error: WireError, id?: RequestId): string {
    return `{"jsonrpc":"2.0",${id === undefined ? '' : `"id":${JSON.stringify(id)},`}"error":${writeJson(error)}}`;
  }

  /** Serializes a document that a transport serves beside the messages. */
  document(value: JsonObject): string {
    return writeJson(value);
  }

  /** Joins the responses of one batch (2025-03-26). */
  batch(answers: readonly string[]): string {
    return `[${answers.join(',')}]`;
  }

  #result(result: Result, dialect: Dialect): string {
    switch (result.kind) {
      case 'list':
        return this.#page(result, dialect);
      case 'call': {
        const only = onlyText(result.result);
        if (only !== undefined)
          return sign(
            `{"content":[{"type":"text","text":${writeJson(only)}}]}`,
            dialect.selfDescribing ? this.#named : undefined,
          );
        return this.#show(withTexts(result), dialect);
      }
      default:
        return this.#show(withTexts(result), dialect);
    }
  }

  #page(result: Extract<Result, { kind: 'list' }>, dialect: Dialect): string {
    let texts = this.#pages.get(result.page);
    if (!texts) {
      texts = new Map();
      this.#pages.set(result.page, texts);
    }
    let page = texts.get(dialect);
    if (!page) {
      page = { text: this.#show(result, dialect), bytes: undefined };
      texts.set(dialect, page);
    }
    return page.text;
  }

  #show(result: Result, dialect: Dialect): string {
    const shown: object & { readonly _meta?: unknown } = renderResult(result, dialect, this.#listTtlMs);
    // Clients look for title and icons in discovery. In every result, icons could be longer than the result.
    const info = result.kind === 'discover' ? serverInfo(pick(this.#info, dialect.shown.implementation)) : this.#named;
    const own = dialect.selfDescribing ? info : undefined;
    const type = RESULT_TYPES[result.kind] ?? 'complete';
    if (own === undefined || !isObject(shown._meta)) return sign(objectText(shown), own, type);
    const { [META.serverInfo]: _, ...meta } = shown._meta;
    const members = objectText(copyNumbers(shown._meta, meta)).slice(1, -1);
    return sign(objectText({ ...shown, _meta: undefined }), members === '' ? own : `${own},${members}`);
  }

  #error(id: RequestId | undefined, error: WireError, dialect: Dialect): string {
    const unknown = dialect.errorWithoutId === 'null' ? '"id":null,' : '';
    return `{"jsonrpc":"2.0",${id === undefined ? unknown : `"id":${JSON.stringify(id)},`}"error":${writeJson(renderError(error, dialect))}}`;
  }
}

function serverInfo(info: object): string {
  return `"${META.serverInfo}":${writeJson(info)}`;
}

/** The beginning of a response with a result. */
function resultOf(id: RequestId): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
}

/** The `resultType` of results that do not complete their requests. */
const RESULT_TYPES: Readonly<Partial<Record<Result['kind'], string>>> = {
  input: 'input_required',
  'task created': 'task',
};

/**
 * Adds `resultType` and `_meta` to the text of a result if there are members of `_meta` to add (2026-07-28 basic/index,
 * "ResultType").
 */
function sign(body: string, meta: string | undefined, type = 'complete'): string {
  if (meta === undefined) return body;
  return `{"resultType":"${type}","_meta":{${meta}}${body === '{}' ? '}' : `,${body.slice(1)}`}`;
}

/** The text of a result that is a single text: the most common result; this shortcut saves half a microsecond. */
function onlyText({ content, structuredContent, isError, _meta }: CallToolResult): string | undefined {
  const [block] = content;
  if (content.length !== 1 || block?.type !== 'text' || block.annotations || block._meta) return undefined;
  return structuredContent === undefined && !isError && !_meta ? block.text : undefined;
}

/** Repeats structured content as text, for clients that only read text (2025-06-18 tools, "Structured Content"). */
function withText(result: CallToolResult): CallToolResult {
  if (result.structuredContent === undefined || result.content.length > 0) return result;
  const text: string | undefined = writeJson(result.structuredContent);
  if (text === undefined) throw new TypeError('expected structured content that is JSON');
  return { ...result, content: [{ type: 'text', text }] };
}

/** The same for a result that contains another result. */
function withTexts(result: Result): Result {
  switch (result.kind) {
    case 'call':
      return { kind: 'call', result: withText(result.result) };
    case 'task result':
      return { ...result, result: withTexts(result.result) };
    case 'task': {
      const { outcome } = result.task;
      return outcome?.ok
        ? { kind: 'task', task: { ...result.task, outcome: { ok: true, result: withTexts(outcome.result) } } }
        : result;
    }
    default:
      return result;
  }
}

/** Serializes an object. @throws {TypeError} if its `toJSON` returns something that is not an object */
function objectText(value: object): string {
  const text: string | undefined = writeJson(value);
  if (!text?.startsWith('{')) throw new TypeError(`expected a result that serializes as a JSON object, got ${text}`);
  return text;
}

type Announcement = Extract<Notification, { type: 'list changed' | 'resource updated' | 'task status' }>;

function announcement(mail: Announcement): string {
  switch (mail.type) {
    case 'list changed':
      return notify(`notifications/${mail.what}/list_changed`);
    case 'resource updated':
      return notify('notifications/resources/updated', { uri: mail.uri });
    case 'task status':
      return notify('notifications/tasks/status', renderTaskStatus(mail.task));
  }
}

/** A notification for a subscription, without the subscription's id. */
function renderNotice(
  notice: Exclude<ChangeNotice, { type: 'task changed' | 'passed' }>,
): readonly [method: string, members: string] {
  switch (notice.type) {
    case 'acknowledged':
      return ['notifications/subscriptions/acknowledged', objectText({ notifications: renderFilter(notice.filter) })];
    case 'list changed':
      return [`notifications/${notice.what}/list_changed`, '{}'];
    case 'resource updated':
      return ['notifications/resources/updated', objectText({ uri: notice.uri })];
    case 'streamed':
      return [notice.method, objectText(notice.params)];
  }
}

function notify(method: string, params?: object): string {
  return params === undefined
    ? `{"jsonrpc":"2.0","method":"${method}"}`
    : `{"jsonrpc":"2.0","method":"${method}","params":${writeJson(params)}}`;
}
