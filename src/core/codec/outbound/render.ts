/** Renders results in a dialect: omits members that the dialect lacks, and converts content that it lacks. Pure. */
import type { Page, Result, ServerDescription } from '../../messages/results.ts';
import type { Dialect } from '../../protocol/dialects/index.ts';
import { ErrorCode, type WireError } from '../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../protocol/json.ts';
import { copyNumbers } from '../../protocol/json-text.ts';
import { META } from '../../protocol/meta.ts';
import { SUPPORTED_REVISIONS } from '../../protocol/revisions.ts';
import { TASKS_EXTENSION } from '../../protocol/task-params.ts';
import type { CacheHints, CallToolResult, ContentBlock, GetPromptResult, Tool } from '../../protocol/types.ts';
import { textOfUnknown } from '../../protocol/unknown-content.ts';
import { renderCreatedTask, renderTask, type TaskRenderer } from './render-task.ts';

/**
 * The `result` member, without what {@link Dialect.selfDescribing} adds.
 * @param listTtlMs milliseconds for which clients may cache lists and discovery
 */
export function renderResult(result: Result, dialect: Dialect, listTtlMs: number): object {
  switch (result.kind) {
    case 'empty':
      return {};
    case 'call':
      return showCall(result.result, dialect);
    case 'list':
      return showPage(result.page, dialect, listTtlMs);
    case 'read':
      // An author's executor may have returned anything.
      if (!Array.isArray(result.result.contents)) throw new TypeError('expected a result with contents, an array');
      return cacheable(result.result, result.result, dialect, 'private');
    case 'skill':
      return cacheable({ skill: result.skill }, result.hints, dialect, 'private');
    case 'prompt':
      return showPrompt(result.result, dialect);
    case 'completion':
      if (!isObject(result.result.completion)) throw new TypeError('expected a result with completion, an object');
      return result.result;
    case 'object':
      return result.result;
    case 'subscription ended':
      return { _meta: { [META.subscriptionId]: result.id } };
    case 'input':
      return { inputRequests: result.requests, requestState: result.state };
    case 'task created':
      return renderCreatedTask(result.task, dialect);
    case 'task':
      return renderTask(result.task, dialect, showsIn(dialect, listTtlMs));
    case 'tasks': {
      const shows = showsIn(dialect, listTtlMs);
      const { tasks, nextCursor } = result;
      return {
        tasks: tasks.map((task) => renderTask(task, dialect, shows)),
        ...(nextCursor === undefined ? {} : { nextCursor }),
      };
    }
    case 'task result': {
      const shown: { readonly _meta?: object } = renderResult(result.result, dialect, listTtlMs);
      return { ...shown, _meta: { ...shown._meta, [META.relatedTask]: { taskId: result.id } } };
    }
    case 'initialize':
      return {
        protocolVersion: dialect.revision,
        capabilities: showCapabilities(result.introduction, dialect),
        serverInfo: pick(result.introduction.info, dialect.shown.implementation),
        ...instructions(result.introduction),
      };
    case 'discover':
      return cacheable(
        {
          supportedVersions: SUPPORTED_REVISIONS,
          capabilities: showCapabilities(result.introduction, dialect),
          ...instructions(result.introduction),
        },
        { ttlMs: listTtlMs },
        dialect,
        result.scope ?? 'public',
      );
  }
}

function showsIn(dialect: Dialect, listTtlMs: number): TaskRenderer {
  return {
    // The result of a task has every member of the call's own result (ext-tasks, "Task Status").
    result: (inner) => ({
      ...(dialect.selfDescribing ? { resultType: 'complete' } : {}),
      ...renderResult(inner, dialect, listTtlMs),
    }),
    error: (error) => renderError(error, dialect),
  };
}

/** Translates error codes: a handler cannot know the code of its client's revision for an unknown resource. */
export function renderError(error: WireError, dialect: Dialect): WireError {
  return error.code === ErrorCode.ResourceNotFound ? { ...error, code: dialect.resourceNotFound } : error;
}

function instructions({ instructions: text }: ServerDescription): { instructions?: string } {
  return text === undefined ? {} : { instructions: text };
}

function showCall(result: CallToolResult, dialect: Dialect): object {
  const content = showBlocks(result.content, dialect);
  const structured = result.structuredContent;
  const shown: Record<string, unknown> = { content };
  if (
    structured !== undefined &&
    (dialect.structured === 'any' || (dialect.structured === 'object' && isObject(structured)))
  ) {
    shown.structuredContent = structured;
  }
  if (result.isError) shown.isError = true;
  if (result._meta) shown._meta = result._meta;
  return shown;
}

function showPage(page: Page, dialect: Dialect, ttlMs: number): object {
  return cacheable(
    { [page.of]: showItems(page, dialect), ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }) },
    { ttlMs: page.ttlMs ?? ttlMs },
    dialect,
    page.scope ?? 'public',
  );
}

function showItems(page: Page, { shown, structured }: Dialect): readonly object[] {
  switch (page.of) {
    case 'tools':
      return page.items.map((tool) => pick(structured === 'any' ? tool : ofObjects(tool), shown.tool));
    case 'prompts':
      return page.items.map((prompt) =>
        pick(
          { ...prompt, arguments: prompt.arguments?.map((argument) => pick(argument, shown.promptArgument)) },
          shown.prompt,
        ),
      );
    case 'resources':
      return page.items.map((resource) => pick(resource, shown.resource));
    case 'resourceTemplates':
      return page.items.map((template) => pick(template, shown.resourceTemplate));
    case 'skills':
      return page.items;
  }
}

/**
 * Up to 2025-11-25 an output schema describes an object, and each property's schema is an object; 2026-07-28 allows any
 * (SEP-2106).
 */
function ofObjects(tool: Tool): object {
  const { inputSchema, outputSchema } = tool;
  const output = outputSchema?.type === 'object' ? withoutBooleans(outputSchema) : undefined;
  return { ...tool, inputSchema: withoutBooleans(inputSchema), outputSchema: output };
}

/**
 * Replaces the schemas `true` and `false` of properties by equivalent objects: clients of those revisions would
 * otherwise reject the whole list.
 */
function withoutBooleans(schema: JsonObject): JsonObject {
  const { properties } = schema;
  if (!isObject(properties)) return schema;
  const shown = Object.entries(properties).map(([name, property]) => [
    name,
    typeof property === 'boolean' ? (property ? {} : { not: {} }) : property,
  ]);
  return { ...schema, properties: Object.fromEntries(shown) };
}

function showPrompt(result: GetPromptResult, dialect: Dialect): object {
  return {
    ...result,
    messages: result.messages.map((message) => ({ ...message, content: showBlock(message.content, dialect) })),
  };
}

function showCapabilities({ capabilities }: ServerDescription, dialect: Dialect): object {
  const { extensions } = capabilities;
  if (dialect.tasks === 'extension' || extensions?.[TASKS_EXTENSION] === undefined)
    return pick(capabilities, dialect.shown.capabilities);
  // The tasks of this revision are another protocol, or do not exist.
  const { [TASKS_EXTENSION]: _, ...others } = extensions;
  const shown = Object.keys(others).length === 0 ? undefined : others;
  return pick({ ...capabilities, extensions: shown }, dialect.shown.capabilities);
}

/** Adds caching hints in dialects that have them (2026-07-28 "Caching"), and removes them in others. */
function cacheable(result: object, hints: CacheHints, dialect: Dialect, scope: 'public' | 'private'): object {
  const { ttlMs = 0, cacheScope = scope } = hints;
  return {
    ...result,
    ttlMs: dialect.selfDescribing ? ttlMs : undefined,
    cacheScope: dialect.selfDescribing ? cacheScope : undefined,
  };
}

function showBlocks(blocks: readonly ContentBlock[], dialect: Dialect): readonly ContentBlock[] {
  for (const block of blocks) {
    if (!dialect.content.includes(block.type)) return blocks.map((each) => showBlock(each, dialect));
  }
  return blocks;
}

function showBlock(block: ContentBlock, dialect: Dialect): ContentBlock {
  if (dialect.content.includes(block.type)) return block;
  switch (block.type) {
    case 'audio':
      return {
        type: 'resource',
        resource: { uri: 'troupe://content/audio', mimeType: block.mimeType, blob: block.data },
      };
    case 'resource_link':
      return {
        type: 'text',
        text: [block.title ?? block.name, block.uri, block.description].filter((part) => part !== undefined).join('\n'),
      };
    default: {
      const { annotations, _meta } = block;
      const text =
        textOfUnknown(block) ?? `[${block.type} content, which protocol revision ${dialect.revision} does not have]`;
      return {
        type: 'text',
        text,
        ...(annotations === undefined ? {} : { annotations }),
        ...(_meta === undefined ? {} : { _meta }),
      };
    }
  }
}

/** The members of `from` that are named and defined, in the order of the names. */
export function pick(from: object, names: readonly string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  const source: Readonly<Record<string, unknown>> = { ...from };
  for (const name of names) {
    if (source[name] !== undefined) picked[name] = source[name];
  }
  return copyNumbers(from, picked);
}
