/** The body of a request: JSON, a form, parts with files, text or bytes, from the argument `body`. */
import { randomBytes } from 'node:crypto';
import { ToolError } from '../../core/protocol/errors.ts';
import { describe, isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';
import { isJsonList, memberJson, queryPairs, scalarText } from './argument-text.ts';
import type { BodyEncoding, OperationBody } from './operation.ts';

/** The bytes of a file, with its type and name as the caller states them. */
interface UploadedFile {
  readonly bytes: Buffer;
  readonly type?: string | undefined;
  readonly name?: string | undefined;
}

export interface RequestBody {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Longest file, and longest body of parts, in bytes. */
export const MAX_FILE_BYTES = 8_388_608;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
/** A media type without parameters that a header can carry. */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:;\s*[\w-]+=[\w.-]+)*$/;

/**
 * Builds the body.
 *
 * @param mount its name, for errors
 * @returns undefined without an argument `body`
 * @throws {ToolError} for a file that is no base64, or is too long
 */
export function requestBody(mount: string, body: OperationBody | undefined, args: JsonObject): RequestBody | undefined {
  const value = args.body;
  if (!body || value === undefined) return undefined;
  const { type, kind } = body;
  switch (kind) {
    case 'json':
      return { type, bytes: Buffer.from(memberJson(args, 'body', value)) };
    case 'form':
      return { type, bytes: Buffer.from(formText(mount, body, value)) };
    case 'multipart':
      return partsOf(mount, body, value);
    case 'text':
      return { type, bytes: Buffer.from(scalarText(args, 'body', value)) };
    case 'binary': {
      const file = fileOf(mount, 'body', value);
      return {
        type: type.includes('*') ? (mediaTypeOf(file.type) ?? 'application/octet-stream') : type,
        bytes: file.bytes,
      };
    }
  }
}

function membersOf(mount: string, value: JsonValue): JsonObject {
  if (isJsonObject(value)) return value;
  throw new ToolError(`${mount}: the argument "body": expected an object, got ${describe(value)}. Nothing was sent`);
}

/** `application/x-www-form-urlencoded`. Objects without a style are JSON (OpenAPI 3.1, "Encoding Object"). */
function formText(mount: string, { encoding }: OperationBody, value: JsonValue): string {
  const members = membersOf(mount, value);
  return Object.keys(members)
    .flatMap((name) => queryPairs(name, layoutOf(encoding[name], members[name]), members, name))
    .map(([name, text]) => `${name}=${text}`)
    .join('&');
}

function layoutOf(encoding: BodyEncoding | undefined, value: JsonValue | undefined): Parameters<typeof queryPairs>[1] {
  const {
    style = 'form',
    explode = style === 'form' || style === 'deepObject',
    allowReserved = false,
  } = encoding ?? {};
  const styled = encoding?.style !== undefined || encoding?.explode !== undefined;
  const json = encoding?.contentType === undefined ? !styled && isJsonObject(value) : isJsonType(encoding.contentType);
  // In a form, only `%` escapes are safe: a `;` separates pairs for some parsers.
  return { style, explode, allowReserved: allowReserved && styled, json };
}

function isJsonType(type: string): boolean {
  return /[/+]json\b/i.test(type);
}

/** `multipart/form-data` (RFC 7578): one part for each value, and for each element of a list. */
function partsOf(mount: string, body: OperationBody, value: JsonValue): RequestBody {
  const members = membersOf(mount, value);
  // Random, so that no value contains it.
  const boundary = `troupe-${randomBytes(18).toString('base64url')}`;
  const chunks: Buffer[] = [];
  let length = 0;
  const add = (...pieces: readonly (string | Buffer)[]): void => {
    for (const piece of pieces) {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
      length += bytes.length;
      if (length > MAX_FILE_BYTES + 65_536) throw tooLong(mount, 'body', length);
      chunks.push(bytes);
    }
  };
  for (const [name, member] of Object.entries(members)) {
    if (member === undefined || member === null) continue;
    const items = isJsonList(member) ? member : [member];
    for (const [index, item] of items.entries()) {
      const disposition = `--${boundary}\r\nContent-Disposition: form-data; name="${quotable(name)}"`;
      if (body.files.includes(name)) {
        const file = fileOf(mount, `body.${name}`, item);
        const type = mediaTypeOf(file.type ?? body.encoding[name]?.contentType) ?? 'application/octet-stream';
        const head = `${disposition}; filename="${quotable(file.name ?? name)}"\r\nContent-Type: ${type}\r\n\r\n`;
        add(head, file.bytes, '\r\n');
        continue;
      }
      const isJson = typeof item === 'object' && item !== null;
      const type = mediaTypeOf(body.encoding[name]?.contentType) ?? (isJson ? 'application/json' : undefined);
      const write = type !== undefined && isJsonType(type) ? memberJson : scalarText;
      const text = isJsonList(member) ? write(member, String(index), item) : write(members, name, item);
      add(`${disposition}${type === undefined ? '' : `\r\nContent-Type: ${type}`}\r\n\r\n`, text, '\r\n');
    }
  }
  add(`--${boundary}--\r\n`);
  const type = body.type.startsWith('multipart/') && !body.type.includes('*') ? body.type : 'multipart/form-data';
  return { type: `${type}; boundary=${boundary}`, bytes: Buffer.concat(chunks) };
}

/** Of several types, the first one (OpenAPI 3.1, "Encoding Object"). */
function mediaTypeOf(type: string | undefined): string | undefined {
  const first = type?.split(',')[0]?.trim();
  return first !== undefined && MEDIA_TYPE.test(first) ? first : undefined;
}

/** A name as browsers write it, so that it ends neither its quotes nor its line (HTML, "multipart/form-data"). */
function quotable(name: string): string {
  return name.toWellFormed().replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

/** Reads a resource for the caller. @throws {ToolError} */
export type ReadFile = (uri: string) => Promise<{ readonly bytes: Buffer; readonly type: string | undefined }>;

/** The arguments with the bytes of the resources that files of the body name. @throws {ToolError} */
export async function withResources(
  mount: string,
  body: OperationBody | undefined,
  args: JsonObject,
  read: ReadFile,
): Promise<JsonObject> {
  const value = args.body;
  if (!body || value === undefined || (body.kind !== 'binary' && body.kind !== 'multipart')) return args;
  if (body.kind === 'binary') {
    const file = await loaded(mount, 'body', value, read);
    return file === value ? args : copyNumbers(args, { ...args, body: file });
  }
  if (!isJsonObject(value)) return args;
  const members: Record<string, JsonValue | undefined> = { ...value };
  for (const name of body.files) {
    const file = members[name];
    if (file === undefined || file === null) continue;
    const load = (each: JsonValue): Promise<JsonValue> => loaded(mount, `body.${name}`, each, read);
    members[name] = isJsonList(file) ? await Promise.all(file.map(load)) : await load(file);
  }
  return copyNumbers(args, { ...args, body: copyNumbers(value, members) });
}

/** A file with its bytes, in place of one that names a resource. */
async function loaded(mount: string, where: string, value: JsonValue, read: ReadFile): Promise<JsonValue> {
  if (!isJsonObject(value) || value.uri === undefined) return value;
  const { uri, data, type, name } = value;
  if (typeof uri !== 'string' || data !== undefined)
    throw new ToolError(
      `${mount}: the argument "${where}": expected a file with data in base64, or with the uri of a resource, got ${data === undefined ? describe(uri) : 'both'}. Nothing was sent`,
    );
  const found = await read(uri);
  if (found.bytes.length > MAX_FILE_BYTES) throw tooLong(mount, where, found.bytes.length);
  const [last = ''] = uri.split(/[?#]/, 1)[0]?.split('/').slice(-1) ?? [];
  const named = name ?? (last === '' ? undefined : last);
  const typed = type ?? found.type;
  return {
    data: found.bytes.toString('base64'),
    ...(typed !== undefined && { type: typed }),
    ...(named !== undefined && { name: named }),
  };
}

/** The bytes of a file: `{ data: base64, type?, name? }`. A path of this machine is none. */
function fileOf(mount: string, where: string, value: JsonValue): UploadedFile {
  const { data, type, name } = isJsonObject(value) ? value : {};
  if (typeof data !== 'string' || !BASE64.test(data))
    throw new ToolError(
      `${mount}: the argument "${where}": expected a file as { data: base64, type?, name? } or { uri }, got ${describe(value)}. Nothing was sent`,
    );
  const bytes = Buffer.from(data, 'base64');
  if (bytes.length > MAX_FILE_BYTES) throw tooLong(mount, where, bytes.length);
  return { bytes, ...(typeof type === 'string' && { type }), ...(typeof name === 'string' && { name }) };
}

function tooLong(mount: string, where: string, length: number): ToolError {
  return new ToolError(
    `${mount}: the argument "${where}": expected at most ${MAX_FILE_BYTES} bytes, got ${length}. Nothing was sent`,
  );
}
