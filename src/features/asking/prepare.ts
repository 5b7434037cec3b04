/** Converts an author's question to a request for the client, and the reply to an answer. Rejects questions that this client cannot be asked. */

import { sentBlock } from '../../core/execution/content.ts';
import { Unanswered } from '../../core/execution/input-errors.ts';
import { findLostData } from '../../core/execution/lost-data.ts';
import type {
  AnyQuestion,
  Elicitation,
  Root,
  Sampled,
  Sampling,
  SamplingContent,
  SamplingMessage,
  UrlElicitation,
} from '../../core/execution/questions.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { ByModel, InputRequest } from '../../core/messages/client-input.ts';
import { describe, isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import type { ClientCapabilities } from '../../core/protocol/types.ts';
import { inOneLine } from '../../core/schema/problems.ts';
import { cannotAsk } from './declared-capabilities.ts';
import { compileForm } from './form.ts';

/** An answer, or the reason why the reply is invalid. */
type ReadAnswer = { readonly ok: true; readonly answer: unknown } | { readonly ok: false; readonly why: string };

export interface Prepared {
  readonly request: InputRequest;
  /** Set if the model that called is asked instead of its client. */
  readonly model?: ByModel;
  /** True if the client supports no context, so that the request has no `includeContext`. */
  readonly contextDropped?: boolean;
  /** Checks the client's reply. */
  read(result: unknown): ReadAnswer | Promise<ReadAnswer>;
}

/** The parts of a client that decide which questions it can be asked. */
export type AskedClient = Pick<ClientFacts, 'capabilities' | 'dialect'>;

/** @throws {CannotAsk | SchemaError | TypeError} for a question that cannot be asked */
export function prepare(question: AnyQuestion, client: AskedClient): Prepared {
  if (!isObject(question)) throw noQuestion(describe(question));
  if ('elicit' in question) return prepareForm(required('elicit', question.elicit), client);
  if ('elicitUrl' in question) return prepareUrl(required('elicitUrl', question.elicitUrl), client);
  if ('sample' in question) return prepareSampling(required('sample', question.sample), client);
  if ('roots' in question) return prepareRoots(client);
  throw noQuestion(Object.keys(question).join(', ') || 'none of them');
}

function noQuestion(got: string): TypeError {
  return new TypeError(
    `ctx.ask: expected each question to be an object with "elicit", "elicitUrl", "sample" or "roots", got ${got}`,
  );
}

/** Authors without a type checker may omit the argument. */
function required<T>(method: string, given: T): T {
  if (isObject(given)) return given;
  throw new TypeError(`ctx.${method}: expected an object with the question, got ${describe(given)}`);
}

/** Repeats a question with the reason why the last answer was invalid. */
export function askAgain(prepared: Prepared, why: string): Prepared {
  const { method, params } = prepared.request;
  if (method !== 'elicitation/create') return prepared;
  return {
    ...prepared,
    request: { method, params: { ...params, message: `${params.message}\n\nThe last answer does not fit: ${why}` } },
  };
}

function prepareForm({ message, schema }: Elicitation, { capabilities, dialect }: AskedClient): Prepared {
  const form = compileForm(schema, 'ctx.elicit: schema');
  demand({ method: 'elicitation/create', params: {} }, capabilities);
  const requestedSchema = form.shown(dialect);
  if (requestedSchema === undefined)
    throw new Unanswered(`this client does not support this form: ${form.obstacle(dialect)}`);
  return {
    request: {
      method: 'elicitation/create',
      params: { message: textOf(message, 'elicit'), requestedSchema },
    },
    async read(result) {
      const action = actionOf(result);
      if (action !== 'accept') return readAction(action, result);
      const checked = await form.check(isObject(result) ? (result.content ?? {}) : {});
      return checked.ok
        ? { ok: true, answer: { status: 'accepted', content: checked.value } }
        : { ok: false, why: inOneLine(checked.problems) };
    },
  };
}

function prepareUrl({ message, url, elicitationId }: UrlElicitation, { capabilities, dialect }: AskedClient): Prepared {
  if (!URL.canParse(url)) throw new TypeError(`ctx.elicitUrl: url: expected an absolute URL, got ${describe(url)}`);
  if (elicitationId !== undefined) textOf(elicitationId, 'elicitUrl', 'elicitationId');
  demand({ method: 'elicitation/create', params: { mode: 'url' } }, capabilities);
  return {
    request: {
      method: 'elicitation/create',
      params: {
        mode: 'url',
        message: textOf(message, 'elicitUrl'),
        url,
        ...(dialect.elicitationIds ? { elicitationId: elicitationId ?? randomId() } : {}),
      },
    },
    read(result) {
      const action = actionOf(result);
      return action === 'accept' ? { ok: true, answer: { status: 'accepted' } } : readAction(action, result);
    },
  };
}

function prepareSampling(sampling: Sampling, { capabilities, dialect }: AskedClient): Prepared {
  const { includeContext, ...withoutContext } = sampling;
  const { messages: written, maxTokens } = sampling;
  if (!Array.isArray(written) || written.length === 0)
    throw new TypeError(`ctx.sample: messages: expected at least one, got ${describe(written)}`);
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1)
    throw new TypeError(`ctx.sample: maxTokens: expected a whole number of at least 1, got ${describe(maxTokens)}`);
  const messages = written.map(sentMessage);
  const contextDropped = !supportsContext(includeContext, { capabilities, dialect });
  const request = {
    method: 'sampling/createMessage',
    params: jsonOf({
      ...(contextDropped ? withoutContext : sampling),
      messages: dialect.sampledBlocks === 'one' ? messages.flatMap(apart) : messages,
    }),
  } as const;
  demand(request, capabilities);
  const lost = findLostData(sampling, 'ctx.sample');
  if (lost !== undefined) throw new TypeError(lost);
  return {
    request,
    contextDropped,
    read(result) {
      return isSampled(result)
        ? { ok: true, answer: result }
        : { ok: false, why: 'expected a message with role, content and model' };
    },
  };
}

/** Without the capability, a server only sends `none` or omits the member (2025-11-25 and 2026-07-28 sampling). */
function supportsContext(
  includeContext: Sampling['includeContext'],
  { capabilities: { sampling }, dialect }: AskedClient,
): boolean {
  if (includeContext === undefined || includeContext === 'none') return true;
  return dialect.samplingContext === 'all' || isObject(sampling?.context);
}

function prepareRoots({ capabilities }: AskedClient): Prepared {
  const request = { method: 'roots/list', params: {} } as const;
  demand(request, capabilities);
  return {
    request,
    read(result) {
      const roots = isObject(result) ? result.roots : undefined;
      return Array.isArray(roots) && roots.every(isRoot)
        ? { ok: true, answer: roots }
        : { ok: false, why: 'expected roots, each with a uri' };
    },
  };
}

/**
 * Prepares a question of another server. Only what the client's revision cannot represent is changed.
 *
 * @throws {CannotAsk} if the client has not declared the capability
 */
export function prepareVerbatim(asked: InputRequest, { capabilities, dialect }: AskedClient): Prepared {
  demand(asked, capabilities);
  const { method, params } = asked;
  const read = (answer: unknown): ReadAnswer => ({ ok: true, answer });
  if (method === 'elicitation/create' && params.mode === 'url') {
    const { elicitationId = randomId(), ...page } = params;
    return { request: { method, params: dialect.elicitationIds ? { elicitationId, ...page } : page }, read };
  }
  if (method === 'sampling/createMessage' && dialect.sampledBlocks === 'one' && Array.isArray(params.messages))
    return { request: { method, params: { ...params, messages: params.messages.flatMap(blocksApart) } }, read };
  return { request: asked, read };
}

function demand(request: InputRequest, capabilities: ClientCapabilities): void {
  const problem = cannotAsk(request, capabilities);
  if (problem) throw problem;
}

function actionOf(result: unknown): unknown {
  return isObject(result) ? result.action : undefined;
}

function readAction(action: unknown, result: unknown): ReadAnswer {
  if (action === 'decline') return { ok: true, answer: { status: 'declined' } };
  if (action === 'cancel') return { ok: true, answer: { status: 'cancelled' } };
  return {
    ok: false,
    why: `expected action "accept", "decline" or "cancel", got ${describe(isObject(result) ? action : result)}`,
  };
}

function isSampled(value: unknown): value is Sampled {
  if (!isObject(value)) return false;
  const { role, content, model } = value;
  return (
    (role === 'user' || role === 'assistant') &&
    (Array.isArray(content) ? content : [content]).every(isBlock) &&
    typeof model === 'string'
  );
}

function isBlock(value: unknown): boolean {
  return isObject(value) && typeof value.type === 'string' && (value.type !== 'text' || typeof value.text === 'string');
}

function isRoot(value: unknown): value is Root {
  return (
    isObject(value) && typeof value.uri === 'string' && (value.name === undefined || typeof value.name === 'string')
  );
}

function sentMessage(message: SamplingMessage): SamplingMessage {
  const { content } = message;
  if (isList(content)) return { ...message, content: content.map(sentBlock) };
  return isObject(content) ? { ...message, content: sentBlock(content) } : message;
}

function isList(content: SamplingMessage['content']): content is readonly SamplingContent[] {
  return Array.isArray(content);
}

/** Until 2025-06-18 a message has one block, so a message with several blocks becomes several messages. */
function apart({ role, content }: SamplingMessage): readonly SamplingMessage[] {
  return Array.isArray(content) ? content.map((block) => ({ role, content: block })) : [{ role, content }];
}

function blocksApart(message: JsonValue): readonly JsonValue[] {
  if (!isJsonObject(message) || !Array.isArray(message.content)) return [message];
  return message.content.map((content) => ({ ...message, content }));
}

function textOf(text: unknown, method: string, member = 'message'): string {
  if (typeof text === 'string') return text;
  throw new TypeError(`ctx.${method}: ${member}: expected a string, got ${describe(text)}`);
}

/** Returns the members that are defined. */
function jsonOf(value: object): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}
