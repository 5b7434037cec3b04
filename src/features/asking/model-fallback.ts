/** Asks the model that called if its client cannot be asked: the text for the model, and the tool for its answers. */

import { durationOf } from '../../core/kernel/duration.ts';
import type { InputRequest, Question, Reply } from '../../core/messages/client-input.ts';
import { DIALECTS } from '../../core/protocol/dialects/index.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import { withPlaces } from '../../core/protocol/named-tools.ts';
import { LATEST_MODERN } from '../../core/protocol/revisions.ts';
import type { CallToolResult, ContentBlock } from '../../core/protocol/types.ts';
import { ANSWER_TOOL } from '../../core/protocol/views.ts';
import type { AskedClient } from './prepare.ts';

const ANSWER = {
  type: 'object',
  properties: {
    action: {
      type: 'string',
      enum: ['accept', 'decline', 'cancel'],
      description: '"accept" with an answer, "decline" if the user refuses, "cancel" if the user gives no answer',
    },
    content: { type: 'object', description: 'The answer in the form that the question requires; only with "accept"' },
  },
  required: ['action'],
};

/** The definition of that tool. The answers to calls of tools are served before any handler. */
export const ANSWER_DEFINITION = {
  name: ANSWER_TOOL,
  title: 'Answer a question',
  description:
    'Answers the questions of another tool of this server, so that its call continues. Call it only when a result tells you to, with the id from that result.',
  input: {
    type: 'object',
    properties: {
      id: { type: 'string', description: 'The id from the result with the questions' },
      answers: {
        type: 'object',
        additionalProperties: ANSWER,
        description: 'The answer to each question, by its name',
      },
    },
    required: ['id', 'answers'],
  },
};

/** A question in the form for a model. */
export type AskedThroughModel = Pick<Question, 'key' | 'request' | 'model'>;

/** A client for `prepare` that can be asked everything, in the newest revision. */
export const ANY_CLIENT: AskedClient = {
  dialect: DIALECTS[LATEST_MODERN],
  capabilities: { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} },
};

/**
 * Creates the result that asks a model.
 *
 * @param id identifies the call in the answer
 * @param ms milliseconds that the call waits
 */
export function toModel(questions: readonly AskedThroughModel[], id: string, ms: number): CallToolResult {
  const lines = questions.map(({ key, request }) => `Question ${JSON.stringify(key)}: ${tell(request)}`);
  const example = JSON.stringify({
    id,
    answers: Object.fromEntries(questions.map(({ key, request }) => [key, exampleFor(request)])),
  });
  const text = [
    'This call is not finished. It waits for answers, and this client has no other way to ask for them.',
    ...lines,
    `Ask the user the questions that are for the user, in your own words. Wait for their answers; do not answer for them. Then call the tool "${ANSWER_TOOL}" with arguments of this shape: ${example}. If the user refuses, the action is "decline"; if they leave a question unanswered, "cancel"; neither has content.`,
    `The id is good for one call, within ${durationOf(Math.ceil(ms / 1_000) * 1_000)}. Do not call the first tool again: that would start a new call.`,
  ].join('\n\n');
  const content = [{ type: 'text', text } as const, ...questions.flatMap(({ request }) => mediaOf(request))];
  const start = text.lastIndexOf(`"${ANSWER_TOOL}" with arguments`) + 1;
  const result = withPlaces<CallToolResult>({ content }, [[start, start + ANSWER_TOOL.length]]);
  // A result that is not an error must match the tool's output schema (MCP tools, "Output Schema").
  return questions.some(({ model }) => model?.structured) ? { ...result, isError: true } : result;
}

/** The replies in a model's answers, or a description of the faults for the model to correct. */
type ModelAnswerTable =
  | { readonly ok: true; readonly replies: readonly (readonly [key: string, reply: Reply])[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Reads the answers to some of the questions; missing ones are asked again. */
export function fromModel(answers: unknown, questions: readonly AskedThroughModel[]): ModelAnswerTable {
  const names = questions.map(({ key }) => JSON.stringify(key)).join(', ');
  if (!isObject(answers) || Object.keys(answers).length === 0)
    return { ok: false, problems: [`answers: expected an object with ${names}, got ${describe(answers)}`] };
  const problems: string[] = [];
  const replies: [string, Reply][] = [];
  for (const [key, answer] of Object.entries(answers)) {
    const question = questions.find((each) => each.key === key);
    const read = question ? readAnswer(answer, question.request) : `unknown question; expected ${names}`;
    if (typeof read === 'string') problems.push(`answers.${key}: ${read}`);
    else replies.push([key, read]);
  }
  return problems.length === 0 ? { ok: true, replies } : { ok: false, problems };
}

/** @returns a description of the fault for an invalid answer */
function readAnswer(answer: unknown, { method }: InputRequest): Reply | string {
  const { action, content } = isObject(answer) ? answer : {};
  if (action !== 'accept' && action !== 'decline' && action !== 'cancel')
    return `expected an object whose "action" is "accept", "decline" or "cancel", got ${describe(isObject(answer) ? action : answer)}`;
  if (method === 'elicitation/create') {
    if (action !== 'accept') return { ok: true, result: { action } };
    if (content !== undefined && !isObject(content)) return `content: expected an object, got ${describe(content)}`;
    return { ok: true, result: { action, ...(content ? { content } : {}) } };
  }
  // The error with which clients report a rejection (MCP sampling, "Error Handling").
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
        ? `${params.message}\nFor the user, who must open ${params.url} themselves. Show them the whole address. "accept" means that they agree to open it, and has no content.`
        : `${params.message}\nFor the user. The content of the answer must match this JSON Schema: ${JSON.stringify(params.requestedSchema)}`;
    case 'sampling/createMessage':
      return `For you. Reply to the following. The content of the answer is {"text": your reply}.\n${said(params)}`;
    case 'roots/list':
      return 'In which directories does the user work? For the user, unless you already know. The content of the answer is {"uris": [a file:// URI for each]}.';
  }
}

function exampleFor({ method, params }: InputRequest): object {
  if (method === 'sampling/createMessage') return { action: 'accept', content: { text: '…' } };
  if (method === 'roots/list') return { action: 'accept', content: { uris: ['file:///…'] } };
  return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: {} };
}

/** Formats a sampling conversation as text. */
function said({ systemPrompt, messages }: InputRequest['params']): string {
  const lines = blocksOf(messages).map(([role, block]) =>
    block.type === 'text' ? `${role}: ${String(block.text)}` : `${role}: (${String(block.type)}, see below)`,
  );
  return [...(typeof systemPrompt === 'string' ? [`system: ${systemPrompt}`] : []), ...lines].join('\n');
}

/** Returns the images and sounds of a question, which are sent with it. */
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
