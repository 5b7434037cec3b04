/** Content blocks, helpers that create them, and the check of those that authors write. */
import { isObject } from '../protocol/json.ts';
import type {
  Annotations,
  AudioContent,
  ContentBlock,
  EmbeddedResource,
  ImageContent,
  ResourceContents,
  ResourceLink,
  TextContent,
} from '../protocol/types.ts';

/** Text for the model. @example text('It is raining.') */
export function text(value: string, annotations?: Annotations): TextContent {
  return { type: 'text', text: value, ...noted(annotations) };
}

/**
 * An image, from bytes, base64 or a `data:` URI, whose type replaces `mimeType`.
 *
 * @throws {TypeError} for any other text, such as the address of an image
 * @example image(await readFile('chart.png'), 'image/png')
 */
export function image(data: Uint8Array | string, mimeType: string, annotations?: Annotations): ImageContent {
  return { type: 'image', mimeType, ...mediaOf(data, 'image'), ...noted(annotations) };
}

/**
 * A sound, from bytes, base64 or a `data:` URI, whose type replaces `mimeType`. Clients of 2024-11-05 receive it as an
 * embedded resource.
 *
 * @throws {TypeError} for any other text, such as the address of a sound
 * @example audio(bytes, 'audio/wav')
 */
export function audio(data: Uint8Array | string, mimeType: string, annotations?: Annotations): AudioContent {
  return { type: 'audio', mimeType, ...mediaOf(data, 'audio'), ...noted(annotations) };
}

/** A resource that is embedded in the result. @example embedded('file:///a.md', '# A', 'text/markdown') */
export function embedded(
  uri: string,
  contents: Uint8Array | string,
  mimeType?: string,
  annotations?: Annotations,
): EmbeddedResource {
  return { type: 'resource', resource: resourceContents(uri, contents, mimeType), ...noted(annotations) };
}

/** A link to a resource. Clients before 2025-06-18 receive its URI as text. @example link('file:///a.md', 'a.md') */
export function link(uri: string, name: string, more: Omit<ResourceLink, 'type' | 'uri' | 'name'> = {}): ResourceLink {
  return { type: 'resource_link', uri, name, ...more };
}

/** The contents of a resource: text from a string, a blob from bytes. */
export function resourceContents(uri: string, contents: Uint8Array | string, mimeType?: string): ResourceContents {
  const about = { uri, ...(mimeType === undefined ? {} : { mimeType }) };
  return typeof contents === 'string' ? { ...about, text: contents } : { ...about, blob: encoded(contents) };
}

/** True if the value has the shape of a content block. */
export function isContentBlock(value: unknown): value is ContentBlock {
  if (!isObject(value)) return false;
  switch (value.type) {
    case 'text':
      return typeof value.text === 'string';
    case 'image':
    case 'audio':
      return typeof value.data === 'string' && typeof value.mimeType === 'string';
    case 'resource_link':
      return typeof value.uri === 'string' && typeof value.name === 'string';
    case 'resource':
      return isResourceContents(value.resource);
    default:
      return false;
  }
}

export function isResourceContents(value: unknown): value is ResourceContents {
  return (
    isObject(value) &&
    typeof value.uri === 'string' &&
    (typeof value.text === 'string' || typeof value.blob === 'string')
  );
}

/**
 * Returns a content block that an author wrote as clients accept it: with base64 in place of a `data:` URI or another spelling
 * of base64. Strict clients reject the whole message otherwise (MCP schema, `@format byte`).
 *
 * @throws {TypeError} for data that is neither
 */
export function sentBlock<T extends object>(block: T): T {
  if (isMedia(block)) {
    const sent = mediaOf(block.data, block.type);
    return sent.data === block.data ? block : { ...block, ...sent };
  }
  if (!isEmbedded(block)) return block;
  const resource = sentContents(block.resource);
  return resource === block.resource ? block : { ...block, resource };
}

/** {@link sentBlock} for the contents of a resource. */
export function sentContents(contents: ResourceContents): ResourceContents {
  if (!('blob' in contents) || typeof contents.blob !== 'string') return contents;
  const { data: blob, ...type } = mediaOf(contents.blob, 'blob');
  return blob === contents.blob ? contents : { ...contents, blob, ...type };
}

function isMedia(block: unknown): block is ImageContent | AudioContent {
  return isObject(block) && (block.type === 'image' || block.type === 'audio') && typeof block.data === 'string';
}

function isEmbedded(block: unknown): block is EmbeddedResource {
  return isObject(block) && block.type === 'resource' && isResourceContents(block.resource);
}

/** RFC 2397, as browsers read it: a type with its parameters, a mark for base64, and the data after the first comma. */
const DATA_URI = /^data:([^,]*?)(;\s*base64)?,/i;
const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;
const NOT_BASE64 = /[^A-Za-z0-9+/]/;

/**
 * The base64 of bytes or text, and the type that a `data:` URI names.
 *
 * @param what the kind of data in messages, such as `image`
 */
function mediaOf(given: Uint8Array | string, what: string): { readonly data: string; readonly mimeType?: string } {
  if (typeof given !== 'string') return { data: encoded(given) };
  const [before, mimeType = '', isBase64] = DATA_URI.exec(given) ?? [];
  if (before === undefined) return { data: base64Of(given, what) };
  const body = bytesOf(given.slice(before.length));
  const data = isBase64 === undefined ? encoded(body) : base64Of(body.toString('latin1'), what);
  return mimeType === '' || mimeType.startsWith(';') ? { data } : { data, mimeType };
}

/** Standard base64 with padding (RFC 4648 section 4) from any spelling of it: with line breaks, for URLs, without padding. */
function base64Of(text: string, what: string): string {
  const written = text.length % 4 === 0 ? text.replace(/={1,2}$/, '') : text;
  if (!NOT_BASE64.test(written) && text.length % 4 === 0) return text;
  const plain = text
    // Spaces stay: words without them may look like base64.
    .replace(/[\r\n]+/g, '')
    .replace(/={1,2}$/, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/');
  if (!NOT_BASE64.test(plain) && plain.length % 4 !== 1) return plain.padEnd(Math.ceil(plain.length / 4) * 4, '=');
  const start = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  const got = ADDRESS.test(text) ? 'an address' : 'text';
  const advice = ADDRESS.test(text) ? 'Read it and pass its bytes, or return link(uri, name)' : 'Pass the bytes';
  throw new TypeError(
    `${what}: expected bytes, base64 or a data: URI, got ${got} (${JSON.stringify(start)}). ${advice}`,
  );
}

/** The bytes of percent-encoded text. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (!text.includes('%')) return bytes;
  return Buffer.from(
    bytes
      .toString('latin1')
      .replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number(`0x${digits}`))),
    'latin1',
  );
}

function encoded(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function noted(annotations: Annotations | undefined): { annotations?: Annotations } {
  return annotations === undefined ? {} : { annotations };
}
