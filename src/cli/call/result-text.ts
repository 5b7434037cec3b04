/** Formats results for a person, and saves images, sounds and files. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { makeDirectory } from '../../core/kernel/files/make-directory.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import type { JsonValue } from '../../core/protocol/json.ts';
import { writeJson } from '../../core/protocol/json-text.ts';
import type {
  CallToolResult,
  ContentBlock,
  GetPromptResult,
  ReadResourceResult,
  ResourceContents,
} from '../../core/protocol/types.ts';
import { textOfUnknown } from '../../core/protocol/unknown-content.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';

export interface ResultTextOptions {
  /** The directory for images, sounds and files. */
  readonly out: string | undefined;
  /** True if a terminal shows the text, so that it must not contain control characters. */
  readonly terminal: boolean;
}

/** Formats one result. */
export class ResultText {
  readonly #options: ResultTextOptions;
  #saved = 0;

  constructor(options: ResultTextOptions) {
    this.#options = options;
  }

  ofCall({ content, structuredContent }: CallToolResult): string {
    // A server that returns structured content repeats it as text, for clients that do not know it.
    const blocks = content.filter((block) => structuredContent === undefined || !isTextOf(block, structuredContent));
    const lines = blocks.map((block) => this.#block(block));
    if (structuredContent !== undefined) lines.push(this.#text(writeJson(structuredContent, 2)));
    return lines.map((line) => `${line}\n`).join('');
  }

  ofPrompt({ messages }: GetPromptResult): string {
    return messages.map(({ role, content }) => `${role}:\n${this.#block(content)}\n`).join('\n');
  }

  /** One text is printed as it is, without a line break at its end. */
  ofRead({ contents }: ReadResourceResult): string {
    const [only, ...more] = contents;
    if (only && more.length === 0 && 'text' in only) return this.#text(only.text);
    return contents.map((each) => `${this.#contents(each)}\n`).join('');
  }

  #block(block: ContentBlock): string {
    switch (block.type) {
      case 'text':
        return this.#text(block.text);
      case 'image':
      case 'audio':
        return this.#binary(block.type, block.mimeType, block.data);
      case 'resource_link':
        return `[resource ${visibleLine(block.uri)} ${visibleLine(block.name)}]`;
      case 'resource':
        return this.#contents(block.resource);
      default:
        return this.#text(textOfUnknown(block) ?? '[content of an unknown type]');
    }
  }

  #contents(contents: ResourceContents): string {
    if ('text' in contents) return this.#text(contents.text);
    return this.#binary(`resource ${contents.uri}`, contents.mimeType ?? 'application/octet-stream', contents.blob);
  }

  #binary(what: string, mimeType: string, data: string): string {
    const bytes = Buffer.from(data, 'base64');
    const { out } = this.#options;
    const size = `${bytes.length.toLocaleString('en')} bytes`;
    if (out === undefined) return `[${visibleLine(what)} ${visibleLine(mimeType)}, ${size}; --out DIR saves it]`;
    this.#saved += 1;
    makeDirectory(out);
    const path = join(out, `${this.#saved}.${extensionOf(mimeType)}`);
    replaceFile(path, bytes);
    return `[${visibleLine(what)} ${visibleLine(mimeType)}, ${size}, in ${path}]`;
  }

  /** Lines and tabs stay; what else could control a terminal does not. */
  #text(text: string): string {
    if (!this.#options.terminal) return text;
    const parts = text.replaceAll('\r\n', '\n').split(/([\n\t])/);
    return parts.map((part) => (part === '\n' || part === '\t' ? part : visibleLine(part))).join('');
  }
}

function isTextOf(block: ContentBlock, structured: JsonValue): boolean {
  if (block.type !== 'text' || !/^\s*["\d[{tfn-]/.test(block.text)) return false;
  try {
    return isDeepStrictEqual(JSON.parse(block.text), structured);
  } catch {
    return false;
  }
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/svg+xml': 'svg',
  'audio/mpeg': 'mp3',
  'audio/x-wav': 'wav',
  'text/plain': 'txt',
  'application/octet-stream': 'bin',
};

/** A server chooses the type, never the name or the directory of a file. */
function extensionOf(mimeType: string): string {
  const [type = ''] = mimeType.toLowerCase().split(';');
  const known = EXTENSIONS[type.trim()];
  if (known !== undefined) return known;
  const [, sub] = /^[a-z]+\/([a-z0-9]{1,10})$/.exec(type.trim()) ?? [];
  return sub ?? 'bin';
}
