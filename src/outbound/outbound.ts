/** The only place where mail becomes text, in the dialect of the revision that asked. */
import type { Page, Result } from '../messages/answers.ts';
import type { Answer, Notification } from '../messages/emitter.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import { ErrorCode, type WireError, wireError } from '../protocol/errors.ts';
import { isObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import { META } from '../protocol/meta.ts';
import type { CallToolResult, Implementation } from '../protocol/types.ts';
import { pick, showResult } from './show.ts';

/** Told about an answer (by its id) or log data that could not be put into text, so that an operator can mend the handler. */
export type Unwritable = (id: RequestId | undefined, error: unknown) => void;

export class Outbound {
  readonly #info: Implementation;
  readonly #listTtlMs: number;
  readonly #unwritable: Unwritable;
  /** A page is one object for as long as its registry does not change: its text is made once for each dialect. */
  readonly #pages = new WeakMap<Page, Map<Dialect, string>>();
  /** How the server names itself in a self-describing dialect. */
  readonly #infos = new Map<Dialect, string>();

  constructor(info: Implementation, listTtlMs: number, unwritable: Unwritable) {
    this.#info = info;
    this.#listTtlMs = listTtlMs;
    this.#unwritable = unwritable;
  }

  /** An answer, as text. A result that JSON cannot hold (a cycle, a BigInt) becomes a -32603. */
  answer(mail: Answer): string {
    if (mail.type === 'refusal') return this.#error(mail.id, mail.error, mail.dialect);
    const { id, client } = mail.request;
    if (!mail.outcome.ok) return this.#error(id, mail.outcome.error, client.dialect);
    try {
      return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${this.#result(mail.outcome.result, client.dialect)}}`;
    } catch (error) {
      this.#unwritable(id, error);
      return this.#error(
        id,
        wireError(ErrorCode.InternalError, 'The result could not be written as JSON'),
        client.dialect,
      );
    }
  }

  notification(mail: Notification): string {
    switch (mail.type) {
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
      case 'list changed':
        return notify(`notifications/${mail.what}/list_changed`);
      case 'resource updated':
        return notify('notifications/resources/updated', { uri: mail.uri });
    }
  }

  /** Log data is the author's: what JSON cannot hold is told in place of it. */
  #log({ level, logger, data }: Extract<Notification, { type: 'log' }>): string {
    const about = logger === undefined ? { level } : { level, logger };
    try {
      return notify('notifications/message', { ...about, data: data ?? null });
    } catch (error) {
      this.#unwritable(undefined, error);
      return notify('notifications/message', { ...about, data: 'log data that could not be written as JSON' });
    }
  }

  /** The answers of one batch (2025-03-26). */
  batch(answers: readonly string[]): string {
    return `[${answers.join(',')}]`;
  }

  #result(result: Result, dialect: Dialect): string {
    if (result.kind === 'list') return this.#page(result, dialect);
    return this.#sign(
      showResult(
        result.kind === 'call' ? { kind: 'call', result: withText(result.result) } : result,
        dialect,
        this.#listTtlMs,
      ),
      dialect,
    );
  }

  #page(result: Extract<Result, { kind: 'list' }>, dialect: Dialect): string {
    let texts = this.#pages.get(result.page);
    if (!texts) {
      texts = new Map();
      this.#pages.set(result.page, texts);
    }
    let text = texts.get(dialect);
    if (text === undefined) {
      text = this.#sign(showResult(result, dialect, this.#listTtlMs), dialect);
      texts.set(dialect, text);
    }
    return text;
  }

  /** Writes a result, with `resultType` and the server's name where the dialect has them (2026-07-28 basic/index "Responses", "Per-response protocol fields"). */
  #sign(shown: object & { readonly _meta?: unknown }, dialect: Dialect): string {
    if (!dialect.selfDescribing) return JSON.stringify(shown);
    let info = this.#infos.get(dialect);
    if (info === undefined) {
      info = JSON.stringify(pick(this.#info, dialect.shown.implementation));
      this.#infos.set(dialect, info);
    }
    const meta = shown._meta;
    const own = isObject(meta) ? `,${JSON.stringify({ ...meta, [META.serverInfo]: undefined }).slice(1, -1)}` : '';
    const body = JSON.stringify(meta === undefined ? shown : { ...shown, _meta: undefined });
    return `{"resultType":"complete","_meta":{"${META.serverInfo}":${info}${own === ',' ? '' : own}}${body === '{}' ? '}' : `,${body.slice(1)}`}`;
  }

  #error(id: RequestId | undefined, error: WireError, dialect: Dialect): string {
    const unknown = dialect.errorWithoutId === 'null' ? '"id":null,' : '';
    // A handler cannot know which code its client's revision has for a resource that is not there.
    const shown = error.code === ErrorCode.ResourceNotFound ? { ...error, code: dialect.resourceNotFound } : error;
    return `{"jsonrpc":"2.0",${id === undefined ? unknown : `"id":${JSON.stringify(id)},`}"error":${JSON.stringify(shown)}}`;
  }
}

/** Structured content is told as text too, for clients that read only that (2025-06-18 tools, "Structured Content"). */
function withText(result: CallToolResult): CallToolResult {
  if (result.structuredContent === undefined || result.content.length > 0) return result;
  return { ...result, content: [{ type: 'text', text: JSON.stringify(result.structuredContent) }] };
}

function notify(method: string, params?: object): string {
  return params === undefined
    ? `{"jsonrpc":"2.0","method":"${method}"}`
    : `{"jsonrpc":"2.0","method":"${method}","params":${JSON.stringify(params)}}`;
}
