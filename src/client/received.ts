/**
 * Reads the elements and results of servers leniently: optional members that are null or of another type are as if they were missing,
 * and what the specification demands is added where its meaning is certain. All other members stay as they came (SEP-1613). A
 * gateway passes on what is read here, so one element that strict clients reject takes no others with it.
 */

import { isResourceContents, sentBlock, sentContents } from '../core/execution/content.ts';
import { isObject } from '../core/protocol/json.ts';
import { writeJson } from '../core/protocol/json-text.ts';
import type { CompleteResult, Prompt, Resource, ResourceTemplate, Tool } from '../core/protocol/types.ts';
import { withoutDangling } from './local-references.ts';

type Members = Readonly<Record<string, unknown>>;
/** Reads a member. @returns undefined to leave it out; the value itself if it is fine */
type Reader = (value: unknown) => unknown;
type Shape = Readonly<Record<string, Reader>>;

/** Reports what was repaired, such as `description`. */
export type Repaired = (member: string) => void;

const text: Reader = (value) => (typeof value === 'string' ? value : undefined);
const flag: Reader = (value) => (typeof value === 'boolean' ? value : undefined);
/** A failure that is reported as text or as a number is a failure. */
const failed: Reader = (value) => (typeof value === 'boolean' ? value : value === 'true' || value === 1 || undefined);
const number: Reader = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);
const object: Reader = (value) => (isObject(value) && !Array.isArray(value) ? value : undefined);
const members =
  (shape: Shape): Reader =>
  (value) =>
    isObject(value) && !Array.isArray(value) ? repaired(value, shape) : undefined;
/** A list without the elements that cannot be read. */
const listOf =
  (read: Reader): Reader =>
  (value) => {
    if (!Array.isArray(value)) return undefined;
    const fine = value.map(read);
    return fine.every((each, index) => each === value[index]) ? value : fine.filter((each) => each !== undefined);
  };
const oneOf =
  (...values: readonly unknown[]): Reader =>
  (value) =>
    values.includes(value) ? value : undefined;
/** An object with a text of this name, which it must have. */
const named =
  (name: string, shape: Shape): Reader =>
  (value) =>
    isObject(value) && typeof value[name] === 'string' ? repaired(value, shape) : undefined;

/** The keywords of a schema in which null has a meaning. */
const NULL_VALUES: ReadonlySet<string> = new Set(['default', 'const', 'example', 'examples']);

/** A schema of an object, without keywords that are null, and without references to nothing. */
const schema: Reader = (value) => {
  if (!isObject(value) || Array.isArray(value)) return undefined;
  const nulls = Object.keys(value).filter((key) => value[key] === null && !NULL_VALUES.has(key));
  const typed = value.type === 'object';
  const isOther = !typed && value.type !== undefined && value.type !== null && !isObjectType(value.type);
  // A schema of another type cannot be repaired.
  if (isOther) return undefined;
  if (nulls.length === 0 && typed) return withoutDangling(value);
  const kept = Object.entries(value).filter(([key]) => !nulls.includes(key) && key !== 'type');
  return withoutDangling({ type: 'object', ...Object.fromEntries(kept) });
};

function isObjectType(type: unknown): boolean {
  return Array.isArray(type) && type.includes('object');
}

const ICONS = listOf(named('src', { mimeType: text, sizes: listOf(text), theme: oneOf('light', 'dark') }));
const ANNOTATIONS = members({ audience: listOf(oneOf('user', 'assistant')), priority: number, lastModified: text });
const COMMON: Shape = { title: text, description: text, icons: ICONS, _meta: object };

const TOOL: Shape = {
  ...COMMON,
  outputSchema: schema,
  annotations: members({
    title: text,
    readOnlyHint: flag,
    destructiveHint: flag,
    idempotentHint: flag,
    openWorldHint: flag,
  }),
  execution: members({ taskSupport: oneOf('forbidden', 'optional', 'required') }),
};
const RESOURCE: Shape = { ...COMMON, mimeType: text, size: number, annotations: ANNOTATIONS };
const PROMPT: Shape = {
  ...COMMON,
  arguments: listOf(named('name', { title: text, description: text, required: flag })),
};

/**
 * The contents of a resource. Strict clients reject a blob that is not base64, and the result with it: a `data:` URI gives its bytes,
 * and any other text, such as an address, stays as text. Contents without a text and a blob cannot be read.
 */
const CONTENTS: Reader = (value) => {
  const contents = named('uri', { mimeType: text, text, blob: text, _meta: object })(value);
  if (!isResourceContents(contents)) return undefined;
  if (!('blob' in contents)) return contents;
  const { blob, ...rest } = contents;
  return inBase64(() => sentContents(contents)) ?? { text: blob, ...rest };
};
/** The member that a block of a known type must have. Strict clients reject a block without it, and the result with it. */
const NEEDED: Readonly<Record<string, string>> = {
  text: 'text',
  image: 'data',
  audio: 'data',
  resource_link: 'uri',
};
const BLOCK: Reader = (value) => {
  if (!isObject(value) || typeof value.type !== 'string') return undefined;
  // A number or an object in place of a text is what the tool has to say.
  if (value.type === 'text' && typeof (value.text ?? '') !== 'string')
    return BLOCK({ ...value, text: writeJson(value.text) });
  const needed = Object.hasOwn(NEEDED, value.type) ? NEEDED[value.type] : undefined;
  if (needed !== undefined && typeof value[needed] !== 'string') return undefined;
  const block = repaired(value, {
    annotations: ANNOTATIONS,
    _meta: object,
    ...(value.type === 'resource_link' ? RESOURCE : {}),
    ...(value.type === 'resource' ? { resource: CONTENTS } : {}),
  });
  const { type, data, annotations, _meta } = block;
  if (type === 'resource' && block.resource === undefined) return undefined;
  if (type === 'resource_link' && typeof block.name !== 'string') return { ...block, name: block.uri };
  if ((type !== 'image' && type !== 'audio') || typeof data !== 'string') return block;
  return (
    inBase64(() => sentBlock(block)) ?? {
      type: 'text',
      text: data,
      ...(annotations === undefined ? {} : { annotations }),
      ...(_meta === undefined ? {} : { _meta }),
    }
  );
};

/**
 * The messages of a prompt, one for each block: as in other protocols, servers write a text, or a list of blocks. A role that is not
 * of MCP, such as `system`, becomes that of the user.
 */
function readMessages(value: unknown): readonly unknown[] | undefined {
  const list = Array.isArray(value) ? value : isObject(value) || typeof value === 'string' ? [value] : undefined;
  if (!list) return undefined;
  const read = list.flatMap((each): readonly unknown[] => {
    const message: Members =
      isObject(each) && !Array.isArray(each) && each.content !== undefined ? each : { content: each };
    const role = message.role === 'user' || message.role === 'assistant' ? message.role : 'user';
    const blocks = (Array.isArray(message.content) ? message.content : [message.content]).flatMap((content) => {
      const block = typeof content === 'string' ? { type: 'text', text: content } : BLOCK(content);
      return block === undefined ? [] : [block];
    });
    const [only] = blocks;
    if (blocks.length === 1 && only === message.content && role === message.role) return [each];
    return blocks.map((content) => ({ ...message, role, content }));
  });
  return read.length === list.length && Array.isArray(value) && read.every((each, at) => each === value[at])
    ? value
    : read;
}

/** @returns undefined for data that is not base64 */
function inBase64<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Reads a tool. @returns undefined if it has no name, or a schema that describes no object */
export function readTool(element: unknown, note: Repaired): Tool | undefined {
  if (!isObject(element) || typeof element.name !== 'string') return undefined;
  const given = element.inputSchema;
  const inputSchema = given === undefined || given === null ? { type: 'object' } : schema(given);
  if (inputSchema === undefined) return undefined;
  if (inputSchema !== given) note('inputSchema');
  const tool = repaired(element, TOOL, note);
  const read = inputSchema === given ? tool : { ...tool, inputSchema };
  return isTool(read) ? read : undefined;
}

export function readResource(element: unknown, note: Repaired): Resource | undefined {
  const read = readAddressed(element, 'uri', note);
  return isResource(read) ? read : undefined;
}

export function readTemplate(element: unknown, note: Repaired): ResourceTemplate | undefined {
  const read = readAddressed(element, 'uriTemplate', note);
  return isTemplate(read) ? read : undefined;
}

/** Reads a resource or a template: `uri` is the name of its address. */
function readAddressed(element: unknown, uri: 'uri' | 'uriTemplate', note: Repaired): Members | undefined {
  if (!isObject(element) || typeof element[uri] !== 'string') return undefined;
  const read = repaired(element, RESOURCE, note);
  if (typeof element.name === 'string') return read;
  // The specification demands a name. The address names the resource, too.
  note('name');
  return { ...read, name: element[uri] };
}

/** Reads a prompt. */
export function readPrompt(element: unknown, note: Repaired): Prompt | undefined {
  const read = isPrompt(element) ? repaired(element, PROMPT, note) : undefined;
  return isPrompt(read) ? read : undefined;
}

// Elements of lists: the outer shape is checked, and members are passed on verbatim (SEP-1613: schemas are not changed).

export function isTool(element: unknown): element is Tool & Members {
  return isObject(element) && typeof element.name === 'string' && isObject(element.inputSchema);
}
export function isPrompt(element: unknown): element is Prompt & Members {
  return isObject(element) && typeof element.name === 'string';
}
function isResource(element: unknown): element is Resource {
  return isObject(element) && typeof element.uri === 'string' && typeof element.name === 'string';
}
function isTemplate(element: unknown): element is ResourceTemplate {
  return isObject(element) && typeof element.uriTemplate === 'string' && typeof element.name === 'string';
}

/** Reads the result of `completion/complete`. @returns undefined without a list of values */
export function readCompletion(result: unknown): CompleteResult['completion'] | undefined {
  const completion = isObject(result) ? result.completion : undefined;
  if (!isObject(completion) || !Array.isArray(completion.values)) return undefined;
  const { values, total, hasMore } = completion;
  return {
    values: values.filter((value) => typeof value === 'string'),
    ...(typeof total === 'number' ? { total } : {}),
    ...(typeof hasMore === 'boolean' ? { hasMore } : {}),
  };
}

const TOOL_RESULT: Shape = { structuredContent: (value) => value ?? undefined, isError: failed, _meta: object };

/**
 * Reads the result of a request, if its method has one that servers write in their own way.
 *
 * @returns the result itself if nothing is to be repaired, or nothing is known of it
 */
export function readResult(method: string, result: unknown, note: Repaired): unknown {
  if (!isObject(result) || Array.isArray(result)) return result;
  switch (method) {
    case 'tools/call':
    case 'tasks/result':
      return readToolResult(result, note);
    case 'tasks/get':
      // A task of 2026-07-28 has the result of its tool.
      return repaired(result, { result: (own) => (object(own) ? readToolResult(own as Members, note) : own) }, note);
    case 'resources/read':
      return withList(
        repaired(
          result,
          { _meta: object, contents: (contents) => (Array.isArray(contents) ? contents : [contents]) },
          note,
        ),
        'contents',
        CONTENTS,
        note,
      );
    case 'prompts/get':
      return repaired(result, { description: text, _meta: object, messages: readMessages }, note);
    default:
      return result;
  }
}

function readToolResult(result: Members, note: Repaired): Members {
  // A task, or a question of the server.
  if (isObject(result.task) || (result.resultType !== undefined && result.resultType !== 'complete')) return result;
  const read = repaired(result, TOOL_RESULT, note);
  const { content } = read;
  // SDKs default it to an empty list.
  const blocks =
    typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : isObject(content) && !Array.isArray(content)
        ? [content]
        : (content ?? []);
  if (blocks !== content) note('content');
  return withList(blocks === content ? read : { ...read, content: blocks }, 'content', BLOCK, note);
}

/** Reads the elements of a list. */
function withList(value: Members, name: string, read: Reader, note: Repaired): Members {
  const list = value[name];
  if (!Array.isArray(list)) return value;
  const fine = listOf(read)(list);
  if (fine === list) return value;
  note(name);
  return { ...value, [name]: fine };
}

/** The members of an object, without those that are null, or that their reader does not accept. */
function repaired(value: Members, shape: Shape, note: Repaired = () => {}): Members {
  let copy: Record<string, unknown> | undefined;
  for (const [name, read] of Object.entries(shape)) {
    const member = value[name];
    if (member === undefined) continue;
    const fine = member === null ? undefined : read(member);
    if (fine === member) continue;
    note(name);
    copy ??= { ...value };
    if (fine === undefined) delete copy[name];
    else copy[name] = fine;
  }
  return copy ?? value;
}

/** The capabilities that a server declares. One that is null is not declared. */
export function readCapabilities(declared: unknown): Members {
  if (!isObject(declared) || Array.isArray(declared)) return {};
  return Object.fromEntries(Object.entries(declared).filter(([, value]) => value !== null));
}
