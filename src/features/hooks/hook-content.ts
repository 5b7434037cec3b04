/** Reads the body of a verified delivery by its media type: JSON, a form, a text, or bytes. */
import { isUtf8 } from 'node:buffer';
import type { JsonValue } from '../../core/protocol/json.ts';
import { readExact } from '../../core/protocol/json-text.ts';

/** The kinds of bodies that are read. */
export type HookContent = 'json' | 'form' | 'text' | 'bytes';

/** Deepest nesting of a body, in levels. */
const MAX_DEPTH = 128;
const MAX_FIELDS = 1_000;

/** A body that is not what its media type says. Its sender learns why: the signature is right. */
export class HookBodyError extends Error {
  override readonly name = 'HookBodyError';
}

/** The kind of a body by the header `Content-Type`. Without one it is JSON if it begins like an object or a list. */
export function contentOf(type: string | undefined, body: Uint8Array): HookContent {
  const media = (type ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (media === 'application/json' || media.endsWith('+json')) return 'json';
  if (media === 'application/x-www-form-urlencoded') return 'form';
  if (media.startsWith('text/')) return 'text';
  const [first] = body;
  return media === '' && (first === 0x7b || first === 0x5b) ? 'json' : 'bytes';
}

/** @throws {HookBodyError} */
export function readContent(content: HookContent, body: Uint8Array): JsonValue | undefined {
  if (content === 'bytes') return undefined;
  if (!isUtf8(body)) throw new HookBodyError('body: expected UTF-8, got other bytes');
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString('utf8')
    .replace(/^\uFEFF/, '');
  if (content === 'text') return text;
  return content === 'form' ? readForm(text) : readJson(text);
}

function readJson(text: string): JsonValue {
  let value: unknown;
  try {
    value = readExact(text);
  } catch {
    throw new HookBodyError('body: expected JSON, got other text');
  }
  checkPlain(value);
  return value as JsonValue;
}

/** Later code may walk a body recursively, and may copy its members. Without recursion itself. */
function checkPlain(value: unknown): void {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) throw new HookBodyError(`body: expected at most ${MAX_DEPTH} levels of nesting`);
    const next: unknown[] = [];
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue;
      if (Object.hasOwn(each, '__proto__')) throw new HookBodyError('body: a member is called "__proto__"');
      for (const member of Object.values(each)) if (typeof member === 'object') next.push(member);
    }
    level = next;
  }
}

/** A form whose only field is `payload` contains JSON, as those of GitHub and Slack do. */
function readForm(text: string): JsonValue {
  const fields: Record<string, string> = Object.create(null);
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > MAX_FIELDS) throw new HookBodyError(`body: expected at most ${MAX_FIELDS} fields`);
    fields[name] ??= value;
  }
  const { payload } = fields;
  if (payload !== undefined && count === 1) return readJson(payload);
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name !== '__proto__'));
}

/** A body as JSON, or the JSON in a form; undefined if it is neither. Never throws. */
export function jsonIn(content: HookContent, body: Uint8Array): JsonValue | undefined {
  if (content === 'text' || content === 'bytes') return undefined;
  try {
    return readContent(content, body);
  } catch {
    return undefined;
  }
}
