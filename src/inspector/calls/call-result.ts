/** Converts a result for the page: blocks of text, images, sounds and links, within bounds and without secrets. */
import { Buffer, isUtf8 } from 'node:buffer';
import { isObject } from '../../core/protocol/json.ts';
import type { Plain } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import { type Bounds, plainOf, type SecretFinder } from '../redaction/plain-data.ts';
import type { CallResult, ResultBlock } from './call-messages.ts';

/** Maximum number of characters of one text, and of all texts of a result. */
const MAX_TEXT = 200_000;
const MAX_TEXTS = 1_000_000;
/** Maximum number of characters of base64 of one block, and of all blocks of a result. */
const MAX_DATA = 4_000_000;
const MAX_ALL_DATA = 8_000_000;
const MAX_BLOCKS = 500;
const STRUCTURED: Bounds = { depth: 32, members: 1_000, text: 20_000, all: 400_000 };
const RAW: Bounds = { depth: 32, members: 500, text: 4_000, all: 200_000 };
/** An SVG is no image here: it is a document. */
const IMAGES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);
const SOUNDS: ReadonlySet<string> = new Set([
  ...['audio/wav', 'audio/x-wav', 'audio/wave', 'audio/mpeg', 'audio/mp3'],
  ...['audio/ogg', 'audio/flac', 'audio/mp4', 'audio/aac', 'audio/webm'],
]);
/** The marks of omitted parts (`redaction/plain-data.ts`). */
const CUT = /«(?:…|more|\d+ more)»|… \(\d+ characters\)/;

type Placed = CallResult['blocks'][number];

export function callResult(id: number, result: unknown, finder: SecretFinder): CallResult {
  return new ResultReader(finder).read(id, isObject(result) ? result : {});
}

class ResultReader {
  readonly #finder: SecretFinder;
  #texts = MAX_TEXTS;
  #data = MAX_ALL_DATA;
  #cut = false;

  constructor(finder: SecretFinder) {
    this.#finder = finder;
  }

  read(id: number, result: Readonly<Record<string, unknown>>): CallResult {
    const { description, structuredContent } = result;
    const blocks = this.#blocks(result);
    const structured =
      structuredContent === undefined
        ? undefined
        : plainOf(structuredContent, this.#finder, { bounds: STRUCTURED, parsed: true });
    if (structured !== undefined && CUT.test(jsonTextOf(structured))) this.#cut = true;
    return {
      id,
      ...(typeof description === 'string' ? { description: this.#text(description) } : {}),
      blocks,
      ...(structured === undefined ? {} : { structured }),
      raw: plainOf(result, this.#finder, { bounds: RAW, parsed: true }),
      cut: this.#cut,
    };
  }

  /** The blocks of a tool's result, of a resource, or of a prompt. */
  #blocks({ content, contents, messages }: Readonly<Record<string, unknown>>): readonly Placed[] {
    const list: readonly unknown[] = [content, contents, messages].find(Array.isArray) ?? [];
    if (list.length > MAX_BLOCKS) this.#cut = true;
    return list.slice(0, MAX_BLOCKS).flatMap((item): Placed[] => {
      if (list === contents) return [{ block: this.#resource(item) }];
      if (list !== messages) return [this.#placed(item)];
      const { role, content: said } = isObject(item) ? item : {};
      const parts: readonly unknown[] = Array.isArray(said) ? said : [said];
      return parts.map((part) => ({ ...this.#placed(part), role: this.#text(String(role)) }));
    });
  }

  #placed(item: unknown): Placed {
    const annotations = isObject(item) && isObject(item.annotations) ? Object.entries(item.annotations) : [];
    const note = annotations.map(([name, value]) => `${name}: ${String(value)}`).join(' · ');
    return { ...(note === '' ? {} : { note: this.#text(note) }), block: this.#block(item) };
  }

  #block(item: unknown): ResultBlock {
    const { type, text, data, mimeType, uri, name, description, resource } = isObject(item) ? item : {};
    switch (type) {
      case 'text':
        return { type, text: this.#text(String(text)) };
      case 'image':
      case 'audio':
        return this.#bytes(data, mimeType);
      case 'resource_link':
        return {
          type: 'link',
          uri: this.#text(String(uri)),
          ...(typeof name === 'string' ? { name: this.#text(name) } : {}),
          ...(typeof description === 'string' ? { description: this.#text(description) } : {}),
        };
      case 'resource':
        return this.#resource(resource);
      default:
        return { type: 'other', value: this.#plain(item) };
    }
  }

  #resource(item: unknown): ResultBlock {
    const { uri, text, blob, mimeType } = isObject(item) ? item : {};
    const kind = typeof mimeType === 'string' ? { mimeType: this.#text(mimeType) } : {};
    const inside: ResultBlock =
      typeof text === 'string'
        ? { type: 'text', text: this.#text(text), ...kind }
        : typeof blob === 'string'
          ? this.#bytes(blob, mimeType)
          : { type: 'other', value: this.#plain(item) };
    return { type: 'resource', uri: this.#text(String(uri)), inside };
  }

  #bytes(given: unknown, type: unknown): ResultBlock {
    const data = typeof given === 'string' ? given : '';
    const mimeType = typeof type === 'string' ? this.#text(type) : 'application/octet-stream';
    const bytes = Buffer.byteLength(data, 'base64');
    if (data.length > Math.min(MAX_DATA, this.#data)) {
      this.#cut = true;
      return { type: 'binary', mimeType, bytes };
    }
    const kind = IMAGES.has(mimeType) ? 'image' : SOUNDS.has(mimeType) ? 'audio' : undefined;
    const decoded = Buffer.from(data, 'base64');
    // A text in base64 may have secrets, like any text.
    if (!kind && isUtf8(decoded) && !decoded.includes(0))
      return { type: 'text', text: this.#text(decoded.toString('utf8')), mimeType };
    this.#data -= data.length;
    return { type: kind ?? 'binary', mimeType, data: decoded.toString('base64'), bytes };
  }

  #plain(value: unknown): Plain {
    const plain = plainOf(value, this.#finder, { bounds: RAW, parsed: true });
    if (CUT.test(jsonTextOf(plain))) this.#cut = true;
    return plain;
  }

  #text(text: string): string {
    const most = Math.max(0, Math.min(MAX_TEXT, this.#texts));
    const bounds = { depth: 32, members: 10_000, text: most, all: most };
    const plain = plainOf(text, this.#finder, { bounds });
    const shown = typeof plain === 'string' ? plain : '';
    this.#texts -= Math.min(shown.length, most);
    if (text.length > most) this.#cut = true;
    return shown;
  }
}
