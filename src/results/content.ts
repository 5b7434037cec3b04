/** Content blocks and helpers that create them. */
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

/** An image, from bytes or base64. @example image(await readFile('chart.png'), 'image/png') */
export function image(data: Uint8Array | string, mimeType: string, annotations?: Annotations): ImageContent {
  return { type: 'image', data: base64(data), mimeType, ...noted(annotations) };
}

/**
 * A sound, from bytes or base64. Clients of 2024-11-05 receive it as an embedded resource. @example audio(bytes,
 * 'audio/wav')
 */
export function audio(data: Uint8Array | string, mimeType: string, annotations?: Annotations): AudioContent {
  return { type: 'audio', data: base64(data), mimeType, ...noted(annotations) };
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
  return typeof contents === 'string' ? { ...about, text: contents } : { ...about, blob: base64(contents) };
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

function base64(data: Uint8Array | string): string {
  return typeof data === 'string'
    ? data
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

function noted(annotations: Annotations | undefined): { annotations?: Annotations } {
  return annotations === undefined ? {} : { annotations };
}
