/** Converts results between their internal form and the form that middleware receives and returns. */

import { isContentBlock, sentBlock, sentContents } from '../../core/execution/content.ts';
import { lostData } from '../../core/execution/lost-data.ts';
import { isMessages, sentMessage } from '../../core/execution/prompts.ts';
import { isContentsList } from '../../core/execution/resources.ts';
import type { Outcome, Page, Result, ServerDescription, TaskState } from '../../core/messages/results.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import type { ListMethod } from '../../core/protocol/operations.ts';
import type { SkillEntry } from '../../core/protocol/skills.ts';
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Tool,
} from '../../core/protocol/types.ts';
import type { Introduction, NoResult, RequestMethodName, RequestResult, TaskInfo } from './middleware.ts';

const NO_RESULT: NoResult = Object.freeze({});

/** Returns the result as middleware sees it. Lists and contents are shared with the server, not copied. */
export function shownResult(result: Result): RequestResult {
  switch (result.kind) {
    case 'call':
    case 'read':
    case 'prompt':
    case 'completion':
      return result.result;
    case 'list':
      return shownPage(result.page);
    case 'skill':
      return { skill: result.skill };
    case 'initialize':
    case 'discover':
      return introductionOf(result.introduction);
    case 'input':
      return { resultType: 'input_required', inputRequests: result.requests };
    case 'task created':
      return { resultType: 'task', task: infoOf(result.task) };
    case 'task':
      return { task: infoOf(result.task) };
    case 'tasks':
      return { tasks: result.tasks.map(infoOf), nextCursor: result.nextCursor };
    case 'task result':
      return result.result.kind === 'call' ? result.result.result : NO_RESULT;
    default:
      return NO_RESULT;
  }
}

function introductionOf({ info, capabilities, instructions }: ServerDescription): Introduction {
  return { serverInfo: info, capabilities, instructions };
}

function infoOf({ outcome: _, inputs: __, ...info }: TaskState): TaskInfo {
  return info;
}

function shownPage({ of, items, nextCursor }: Page): RequestResult {
  switch (of) {
    case 'tools':
      return { tools: items, nextCursor };
    case 'resources':
      return { resources: items, nextCursor };
    case 'resourceTemplates':
      return { resourceTemplates: items, nextCursor };
    case 'prompts':
      return { prompts: items, nextCursor };
    case 'skills':
      return { skills: items, nextCursor };
  }
}

/**
 * Converts a result that a middleware made.
 *
 * @throws {TypeError} if the method has no such result, or only the server can make one
 */
export function madeResult(method: RequestMethodName, returned: unknown): Outcome {
  const made = isObject(returned) ? resultOf(method, returned) : undefined;
  if (made === undefined)
    throw new TypeError(
      `expected the middleware to return the result of next(), or ${EXPECTED[method] ?? `nothing else, because only the server can answer ${method}`}, got ${describe(returned)}`,
    );
  const lost = lostData(returned, 'result');
  if (lost !== undefined) throw new TypeError(lost);
  return { ok: true, result: made };
}

/** The results that middleware can make. All others it passes on, or rejects their requests. */
const EXPECTED: { readonly [M in RequestMethodName]?: string } = {
  'tools/call': 'a result such as { content: [{ type: "text", text: "…" }] }',
  'tools/list': '{ tools: [ … ] }',
  'resources/read': '{ contents: [ … ] }',
  'resources/list': '{ resources: [ … ] }',
  'resources/templates/list': '{ resourceTemplates: [ … ] }',
  'prompts/get': '{ messages: [ … ] }',
  'prompts/list': '{ prompts: [ … ] }',
  'skills/list': '{ skills: [ … ] }',
  'skills/get': '{ skill: { uri, frontmatter, resources } }',
  'resources/directory/read': '{ resources: [ … ] }',
  'completion/complete': '{ completion: { values: [ … ] } }',
  initialize: '{ serverInfo, capabilities, instructions }',
  'server/discover': '{ serverInfo, capabilities, instructions }',
  ping: '{}',
};

type Made = Readonly<Record<string, unknown>>;

function resultOf(method: RequestMethodName, made: Made): Result | undefined {
  switch (method) {
    case 'tools/call':
      return isCallResult(made)
        ? { kind: 'call', result: { ...made, content: made.content.map(sentBlock) } }
        : undefined;
    case 'resources/read':
      return isReadResult(made)
        ? { kind: 'read', result: { ...made, contents: made.contents.map(sentContents) } }
        : undefined;
    case 'prompts/get':
      return isPromptResult(made)
        ? { kind: 'prompt', result: { ...made, messages: made.messages.map(sentMessage) } }
        : undefined;
    case 'completion/complete':
      return isCompletion(made) ? { kind: 'completion', result: made } : undefined;
    case 'tools/list':
    case 'resources/list':
    case 'resources/templates/list':
    case 'prompts/list':
    case 'skills/list':
    case 'resources/directory/read': {
      const page = pageOf(method, made);
      // A middleware may have made it for this client.
      return page && { kind: 'list', page: { ...page, scope: 'private' } };
    }
    case 'skills/get':
      // A middleware may have made it for this client.
      return isSkill(made.skill) ? { kind: 'skill', skill: made.skill, hints: { cacheScope: 'private' } } : undefined;
    case 'initialize':
      return isIntroduction(made) ? { kind: 'initialize', introduction: described(made) } : undefined;
    case 'server/discover':
      return isIntroduction(made) ? { kind: 'discover', introduction: described(made), scope: 'private' } : undefined;
    case 'ping':
      return { kind: 'empty' };
    default:
      return undefined;
  }
}

function pageOf(method: ListMethod | 'resources/directory/read', made: Made): Page | undefined {
  const { tools, resources, resourceTemplates, prompts, skills, nextCursor } = made;
  if (nextCursor !== undefined && typeof nextCursor !== 'string') return undefined;
  switch (method) {
    case 'tools/list':
      return isListOf<Tool>(tools) ? { of: 'tools', items: tools, nextCursor } : undefined;
    case 'resources/list':
    case 'resources/directory/read':
      return isListOf<Resource>(resources) ? { of: 'resources', items: resources, nextCursor } : undefined;
    case 'resources/templates/list':
      return isListOf<ResourceTemplate>(resourceTemplates)
        ? { of: 'resourceTemplates', items: resourceTemplates, nextCursor }
        : undefined;
    case 'prompts/list':
      return isListOf<Prompt>(prompts) ? { of: 'prompts', items: prompts, nextCursor } : undefined;
    case 'skills/list':
      return Array.isArray(skills) && skills.every(isSkill) ? { of: 'skills', items: skills, nextCursor } : undefined;
  }
}

function isSkill(made: unknown): made is SkillEntry {
  if (!isObject(made) || typeof made.uri !== 'string' || !isObject(made.frontmatter)) return false;
  const { name, description } = made.frontmatter;
  return (
    typeof name === 'string' &&
    typeof description === 'string' &&
    (made.resources === 'dynamic' || Array.isArray(made.resources))
  );
}

/** Each element needs a name; everything else about it is its author's. */
function isListOf<T>(items: unknown): items is readonly T[] {
  return Array.isArray(items) && items.every((item) => isObject(item) && typeof item.name === 'string');
}

function isCallResult(made: object): made is CallToolResult {
  return 'content' in made && Array.isArray(made.content) && made.content.every(isContentBlock);
}

function isReadResult(made: object): made is ReadResourceResult {
  return 'contents' in made && isContentsList(made.contents);
}

function isPromptResult(made: object): made is GetPromptResult {
  return 'messages' in made && isMessages(made.messages);
}

function isCompletion(made: Made): made is Made & CompleteResult {
  const { completion } = made;
  if (!isObject(completion) || !Array.isArray(completion.values)) return false;
  return completion.values.every((value) => typeof value === 'string');
}

function isIntroduction(made: Made): made is Made & Introduction {
  const { serverInfo, capabilities, instructions } = made;
  const named = isObject(serverInfo) && typeof serverInfo.name === 'string' && typeof serverInfo.version === 'string';
  return named && isObject(capabilities) && (instructions === undefined || typeof instructions === 'string');
}

function described({ serverInfo, capabilities, instructions }: Introduction): ServerDescription {
  return { info: serverInfo, capabilities, instructions };
}
