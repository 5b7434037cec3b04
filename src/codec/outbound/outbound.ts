/** The only place where mail becomes text, in the dialect of the revision that asked. */

import type { ActiveRequest } from '../../messages/active-request.ts';
import type { Bytes } from '../../messages/connection-events.ts';
import type { Ask, Notification, ResultMail } from '../../messages/emitter-messages.ts';
import type { Page, Result } from '../../messages/results.ts';
import type { ChangeNotice } from '../../messages/subscription-messages.ts';
import type { TaskState } from '../../messages/task-messages.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import { toWireError, type WireError } from '../../protocol/errors.ts';
import { isObject } from '../../protocol/json.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import { META } from '../../protocol/meta.ts';
import { renderFilter } from '../../protocol/subscription-filter.ts';
import type { CallToolResult, Implementation } from '../../protocol/types.ts';
import { pick, renderError, renderResult } from './render.ts';
import { renderTaskStatus } from './render-task.ts';

/** Characters of a page from which its bytes are kept too: below, writing text is as fast. */
const LONG_PAGE = 16_384;

const utf8 = new TextEncoder();
const END = utf8.encode('}');

interface PageText {
  readonly text: string;
  /** Made when a transport first writes it as bytes. */
  bytes: Uint8Array | undefined;
}

/** Told about an answer (by its id) or log data that could not be put into text, so that an operator can mend the handler. Gives the incident's name. */
export type Unwritable = (id: RequestId | undefined, error: unknown) => string;

export class Outbound {
  readonly #info: Implementation;
  readonly #listTtlMs: number;
  readonly #unwritable: Unwritable;
  /** A page is one object for as long as its registry does not change: its text is made once for each dialect. */
  readonly #pages = new WeakMap<Page, Map<Dialect, PageText>>();
  /** The server's name and version as a member of `_meta`. */
  readonly #named: string;

  /** What was announced last, to sessions and to subscriptions, as text: the next client is told the same. */
  #announced: { readonly mail: Announcement; readonly text: string } | undefined;
  #toldLast:
    | { readonly told: ChangeNotice; readonly dialect: Dialect; readonly before: string; readonly after: string }
    | undefined;

  constructor(info: Implementation, listTtlMs: number, unwritable: Unwritable) {
    this.#info = info;
    this.#named = serverInfo(pick(info, ['name', 'version']));
    this.#listTtlMs = listTtlMs;
    this.#unwritable = unwritable;
  }

  /** An answer, as text. What JSON cannot hold (a cycle, a BigInt), in a result or in an error's data, becomes a -32603. */
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
   * The same answer as bytes, where most of it was made before: a long page of a list. What a hundred clients are told word for word
   * is put into UTF-8 once; for 1,000 tools that is most of what their answer costs.
   */
  bytes({ request, outcome }: Extract<ResultMail, { type: 'answer' }>): Bytes | undefined {
    if (!outcome.ok || outcome.result.kind !== 'list') return undefined;
    const page = this.#pages.get(outcome.result.page)?.get(request.client.dialect);
    if (!page || page.text.length < LONG_PAGE) return undefined;
    const { id } = request;
    return () => {
      page.bytes ??= utf8.encode(page.text);
      return [utf8.encode(resultOf(id)), page.bytes, END];
    };
  }

  /** A request to the client, or that its answer is no longer wanted (MCP "Cancellation"). */
  ask(mail: Ask): string {
    if (mail.type === 'withdrawn')
      return notify('notifications/cancelled', { requestId: mail.id, reason: mail.reason });
    const { method, params } = mail.input;
    let text: string | undefined;
    try {
      text = JSON.stringify(params);
    } catch (error) {
      // Its client is asked nothing then, and answers so.
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
      case 'told':
        return this.#told(mail.about, mail.told);
    }
  }

  /** What sessions are told. It is one object for all of them: its text is made for the first. */
  #announcement(mail: Announcement): string {
    if (this.#announced?.mail !== mail) this.#announced = { mail, text: announcement(mail) };
    return this.#announced.text;
  }

  /**
   * What a subscription is told names it: by the id of the request that opened it (2026-07-28 subscriptions, "Receiving
   * Notifications"). The rest of the text is made for the first of those that are told of one change in one dialect.
   */
  #told({ id, client }: ActiveRequest, told: ChangeNotice): string {
    const { dialect } = client;
    let last = this.#toldLast;
    if (last?.told !== told || last.dialect !== dialect) {
      last = { told, dialect, ...this.#toldText(told, dialect) };
      this.#toldLast = last;
    }
    return `${last.before}${JSON.stringify(id)}${last.after}`;
  }

  #toldText(told: ChangeNotice, dialect: Dialect): { readonly before: string; readonly after: string } {
    const [method, more] = told.type === 'task changed' ? this.#task(told.task, dialect) : shownTold(told);
    return {
      before: `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${META.subscriptionId}":`,
      after: `}${more === '{}' ? '' : `,${more.slice(1, -1)}`}}}`,
    };
  }

  /** What JSON cannot hold in its result is told by `tasks/get`, as an error. */
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

  /** Log data is the author's: what JSON cannot hold is told in place of it. */
  #log({ level, logger, data }: Extract<Notification, { type: 'log' }>): string {
    const about = JSON.stringify(logger === undefined ? { level } : { level, logger: String(logger) }).slice(0, -1);
    let text: string | undefined;
    try {
      text = JSON.stringify(data);
    } catch (error) {
      this.#unwritable(undefined, error);
      text = '"log data that could not be written as JSON"';
    }
    return `{"jsonrpc":"2.0","method":"notifications/message","params":${about},"data":${text ?? 'null'}}}`;
  }

  /** An error for what never became a message, and has no id; or for a request whose message is gone. */
  refusal(error: WireError, id?: RequestId): string {
    return `{"jsonrpc":"2.0",${id === undefined ? '' : `"id":${JSON.stringify(id)},`}"error":${JSON.stringify(error)}}`;
  }

  /** The answers of one batch (2025-03-26). */
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
          return sign(`{"content":[{"type":"text","text":${JSON.stringify(only)}}]}`, this.#own(dialect));
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
    const own = result.kind === 'discover' ? this.#fullInfo(dialect) : this.#own(dialect);
    const type = RESULT_TYPES[result.kind] ?? 'complete';
    if (own === undefined || !isObject(shown._meta)) return sign(objectText(shown), own, type);
    const { [META.serverInfo]: _, ...meta } = shown._meta;
    const members = objectText(meta).slice(1, -1);
    return sign(objectText({ ...shown, _meta: undefined }), members === '' ? own : `${own},${members}`);
  }

  /**
   * The member of `_meta` that names the server, in dialects whose results name it (2026-07-28 basic/index, "Per-response protocol
   * fields"): name and version only, because icons in every result can be longer than the result.
   */
  #own(dialect: Dialect): string | undefined {
    return dialect.selfDescribing ? this.#named : undefined;
  }

  /** The same member with everything that the dialect knows of an implementation: discovery is where clients look for title and icons. */
  #fullInfo(dialect: Dialect): string | undefined {
    return dialect.selfDescribing ? serverInfo(pick(this.#info, dialect.shown.implementation)) : undefined;
  }

  #error(id: RequestId | undefined, error: WireError, dialect: Dialect): string {
    const unknown = dialect.errorWithoutId === 'null' ? '"id":null,' : '';
    return `{"jsonrpc":"2.0",${id === undefined ? unknown : `"id":${JSON.stringify(id)},`}"error":${JSON.stringify(renderError(error, dialect))}}`;
  }
}

function serverInfo(info: object): string {
  return `"${META.serverInfo}":${JSON.stringify(info)}`;
}

/** How an answer with a result begins. */
function resultOf(id: RequestId): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
}

/** What results are called that do not complete their requests. */
const RESULT_TYPES: Readonly<Partial<Record<Result['kind'], string>>> = {
  input: 'input_required',
  'task created': 'task',
};

/** Adds `resultType` and `_meta` to the text of a result, where there are members of `_meta` to add (2026-07-28 basic/index, "ResultType"). */
function sign(body: string, meta: string | undefined, type = 'complete'): string {
  if (meta === undefined) return body;
  return `{"resultType":"${type}","_meta":{${meta}}${body === '{}' ? '}' : `,${body.slice(1)}`}`;
}

/** The text of a result that is one text and nothing more: the commonest, and worth half a microsecond. */
function onlyText({ content, structuredContent, isError, _meta }: CallToolResult): string | undefined {
  const [block] = content;
  if (content.length !== 1 || block?.type !== 'text' || block.annotations || block._meta) return undefined;
  return structuredContent === undefined && !isError && !_meta ? block.text : undefined;
}

/** Structured content is told as text too, for clients that read only that (2025-06-18 tools, "Structured Content"). */
function withText(result: CallToolResult): CallToolResult {
  if (result.structuredContent === undefined || result.content.length > 0) return result;
  const text: string | undefined = JSON.stringify(result.structuredContent);
  if (text === undefined) throw new TypeError('expected structured content that JSON can hold');
  return { ...result, content: [{ type: 'text', text }] };
}

/** The same for what is inside of a result. */
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

/** An object as text. @throws {TypeError} for one of which JSON makes something else, because it has a `toJSON` */
function objectText(value: object): string {
  const text: string | undefined = JSON.stringify(value);
  if (!text?.startsWith('{')) throw new TypeError(`expected a result that JSON writes as an object, got ${text}`);
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

/** What a subscription is told, but for its own id. */
function shownTold(told: Exclude<ChangeNotice, { type: 'task changed' }>): readonly [method: string, members: string] {
  switch (told.type) {
    case 'acknowledged':
      return ['notifications/subscriptions/acknowledged', objectText({ notifications: renderFilter(told.filter) })];
    case 'list changed':
      return [`notifications/${told.what}/list_changed`, '{}'];
    case 'resource updated':
      return ['notifications/resources/updated', objectText({ uri: told.uri })];
  }
}

function notify(method: string, params?: object): string {
  return params === undefined
    ? `{"jsonrpc":"2.0","method":"${method}"}`
    : `{"jsonrpc":"2.0","method":"${method}","params":${JSON.stringify(params)}}`;
}
