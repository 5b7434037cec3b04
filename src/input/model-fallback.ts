/** Asking through the model that has called, where its client cannot ask: what the model is told, and what it answers with a tool. */

import type { Client } from '../messages/client-facts.ts';
import type { InputRequest, Question, Reply } from '../messages/input-messages.ts';
import { DIALECTS } from '../protocol/dialects/index.ts';
import { describe, isObject } from '../protocol/json.ts';
import { LATEST_MODERN } from '../protocol/revisions.ts';
import type { CallToolResult, ContentBlock } from '../protocol/types.ts';

/** The tool by which a model answers. */
export const ANSWER_TOOL = 'troupe_answer';

const ANSWER = {
  type: 'object',
  properties: {
    action: {
      type: 'string',
      enum: ['accept', 'decline', 'cancel'],
      description: '"accept" with an answer, "decline" where the user refuses, "cancel" where they leave it',
    },
    content: { type: 'object', description: 'The answer, as the question wants it; with "accept" only' },
  },
  required: ['action'],
};

/** How it is offered. Its calls are served before any handler. */
export const ANSWER_DEFINITION = {
  name: ANSWER_TOOL,
  title: 'Answer a question',
  description:
    'Answers what another tool of this server has asked, so that its call goes on. Call it only after a result has told you to, with the id from that result.',
  input: {
    type: 'object',
    properties: {
      id: { type: 'string', description: 'The id from the result that asked' },
      answers: {
        type: 'object',
        additionalProperties: ANSWER,
        description: 'The answer to each question, by its name',
      },
    },
    required: ['id', 'answers'],
  },
};

/** A question, as it is put to a model. */
export type AskedThroughModel = Pick<Question, 'key' | 'request' | 'model'>;

/** What `prepare` may ask a model: everything, as the newest revision shows it. */
export function modelFor(client: Client): Client {
  return {
    ...client,
    dialect: DIALECTS[LATEST_MODERN],
    capabilities: { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} },
  };
}

/**
 * The result that asks a model.
 *
 * @param id by which the answers find the call again
 * @param ms for which the call waits
 */
export function toModel(questions: readonly AskedThroughModel[], id: string, ms: number): CallToolResult {
  const told = questions.map(({ key, request }) => `Question ${JSON.stringify(key)}: ${tell(request)}`);
  const example = JSON.stringify({
    id,
    answers: Object.fromEntries(questions.map(({ key, request }) => [key, exampleFor(request)])),
  });
  const text = [
    'This call is not done: it waits for answers, and this client has no other way to ask for them.',
    ...told,
    `Put to the user what is for the user, in your own words; wait for what they say, and do not answer in their place. Then call the tool "${ANSWER_TOOL}" with arguments of this shape: ${example}. Where the user refuses, the action is "decline"; where they leave a question unanswered, "cancel"; neither has content.`,
    `The id is good for one call, within ${Math.ceil(ms / 1_000)} seconds. Do not call the first tool again: that would begin anew.`,
  ].join('\n\n');
  const content = [{ type: 'text', text } as const, ...questions.flatMap(({ request }) => mediaOf(request))];
  // A result that is no error must have what the tool's output schema promises (MCP tools, "Output Schema").
  return questions.some(({ model }) => model?.structured) ? { content, isError: true } : { content };
}

/** What a model's answers are to the questions; or what is wrong with them, for the model to mend. */
export type ModelAnswerTable =
  | { readonly ok: true; readonly replies: readonly (readonly [key: string, reply: Reply])[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Reads the answers to some of the questions; those that are missing are asked for again. */
export function fromModel(answers: unknown, questions: readonly AskedThroughModel[]): ModelAnswerTable {
  const names = questions.map(({ key }) => JSON.stringify(key)).join(', ');
  if (!isObject(answers) || Object.keys(answers).length === 0)
    return { ok: false, problems: [`answers: expected an object with ${names}, got ${describe(answers)}`] };
  const problems: string[] = [];
  const replies: [string, Reply][] = [];
  for (const [key, answer] of Object.entries(answers)) {
    const question = questions.find((each) => each.key === key);
    const read = question ? readAnswer(answer, question.request) : `no such question; there are ${names}`;
    if (typeof read === 'string') problems.push(`answers.${key}: ${read}`);
    else replies.push([key, read]);
  }
  return problems.length === 0 ? { ok: true, replies } : { ok: false, problems };
}

/** @returns why it is no answer, in words */
function readAnswer(answer: unknown, { method }: InputRequest): Reply | string {
  const { action, content } = isObject(answer) ? answer : {};
  if (action !== 'accept' && action !== 'decline' && action !== 'cancel')
    return `expected an object whose "action" is "accept", "decline" or "cancel", got ${describe(isObject(answer) ? action : answer)}`;
  if (method === 'elicitation/create') {
    if (action !== 'accept') return { ok: true, result: { action } };
    if (content !== undefined && !isObject(content)) return `content: expected an object, got ${describe(content)}`;
    return { ok: true, result: { action, ...(content ? { content } : {}) } };
  }
  // As clients say that somebody refused (MCP sampling, "Error Handling").
  if (action !== 'accept') return { ok: false, error: { code: -1, message: `${method} was refused (${action})` } };
  const { text, uris } = isObject(content) ? content : {};
  if (method === 'sampling/createMessage')
    return typeof text === 'string'
      ? { ok: true, result: { role: 'assistant', content: { type: 'text', text }, model: 'the model that called' } }
      : `content: expected an object with "text", a string, got ${describe(isObject(content) ? text : content)}`;
  return Array.isArray(uris) && uris.every((uri) => typeof uri === 'string')
    ? { ok: true, result: { roots: uris.map((uri: string) => ({ uri })) } }
    : `content: expected an object with "uris", a list of strings, got ${describe(isObject(content) ? uris : content)}`;
}

function tell({ method, params }: InputRequest): string {
  switch (method) {
    case 'elicitation/create':
      return params.mode === 'url'
        ? `${params.message}\nFor the user: they are to open ${params.url} themselves. Show them the whole address; "accept" says that they agree to, and has no content.`
        : `${params.message}\nFor the user. The content of the answer fits this JSON Schema: ${JSON.stringify(params.requestedSchema)}`;
    case 'sampling/createMessage':
      return `For you: what do you reply to the following? The content of the answer is {"text": your reply}.\n${said(params)}`;
    case 'roots/list':
      return 'In which directories does the user work? For the user, unless you know. The content of the answer is {"uris": [a file:// URI for each]}.';
  }
}

function exampleFor({ method, params }: InputRequest): object {
  if (method === 'sampling/createMessage') return { action: 'accept', content: { text: '…' } };
  if (method === 'roots/list') return { action: 'accept', content: { uris: ['file:///…'] } };
  return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: {} };
}

/** The conversation that is to be gone on with, as text. */
function said({ systemPrompt, messages }: InputRequest['params']): string {
  const lines = blocksOf(messages).map(([role, block]) =>
    block.type === 'text' ? `${role}: ${String(block.text)}` : `${role}: (${String(block.type)}, see below)`,
  );
  return [...(typeof systemPrompt === 'string' ? [`system: ${systemPrompt}`] : []), ...lines].join('\n');
}

/** Pictures and sounds of the question: they go along. */
function mediaOf({ method, params }: InputRequest): readonly ContentBlock[] {
  if (method !== 'sampling/createMessage') return [];
  return blocksOf(params.messages).flatMap(([, { type, data, mimeType }]) =>
    (type === 'image' || type === 'audio') && typeof data === 'string' && typeof mimeType === 'string'
      ? [{ type, data, mimeType }]
      : [],
  );
}

type Block = Readonly<Record<string, unknown>>;

function blocksOf(messages: unknown): readonly (readonly [role: string, block: Block])[] {
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message: unknown) => {
    if (!isObject(message)) return [];
    const blocks: readonly unknown[] = Array.isArray(message.content) ? message.content : [message.content];
    return blocks.filter(isObject).map((block) => [String(message.role), block] as const);
  });
}
