/** Reads an OpenAPI document from a file, an address or an object, and the files that it refers to. */
import { open, realpath } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../core/kernel/clock.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { describe, isJsonObject, type JsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { guardedFetch } from '../../features/oauth/issuers/guarded-fetch.ts';

/** Longest document in bytes, its files included. */
const MAX_BYTES = 33_554_432;
/** Longest YAML in characters: its parser takes a second for some megabytes, and nothing else runs meanwhile. */
const MAX_YAML = 10_485_760;
const MAX_NESTING = 64;
/** Aliases of YAML that may be resolved: more of them can multiply a small text. */
const MAX_ALIASES = 100;
const MAX_FILES = 256;
const TIMEOUT_MS = 30_000;
const BUNDLE = 'Bundle the document into one file, for instance with npx @redocly/cli bundle';

/** A text as a value of JSON, with its references. */
interface ParsedText {
  readonly value: JsonValue;
  readonly references: ReadonlySet<string>;
}

/** The document cannot be read. The message says what was expected. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
}

/** A document with its files, as JSON. */
export interface SourceDocument {
  readonly root: JsonObject;
  /** The other files, by their absolute paths. */
  readonly files: ReadonlyMap<string, JsonValue>;
  /** The absolute path of a document that is a file. */
  readonly path?: string;
  /** The address of a document that was fetched. */
  readonly url?: URL;
  /** Of the response, for the next one. */
  readonly etag?: string;
  /** The digest of its texts; undefined for a document that is an object. */
  readonly digest?: string;
}

/** The marks of an earlier reading. */
export type KnownSource = Pick<SourceDocument, 'etag' | 'digest'>;

interface ReadOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

/**
 * Reads a document. A file may refer to other files below its folder; an address and an object may not.
 *
 * @param source a path, an `https:` address, or the document itself
 * @param known of an earlier reading of the same source
 * @returns undefined if the texts are those of the earlier reading
 * @throws {DocumentError} if it cannot be read, is longer than 32 MiB, nests deeper than 64 levels, or refers to a file outside of
 *   its folder
 * @example await readOpenApi('./openapi.yaml', { clock });
 */
export function readOpenApi(source: string | URL | JsonObject, options: ReadOptions): Promise<SourceDocument>;
export function readOpenApi(
  source: string | URL | JsonObject,
  options: ReadOptions & { readonly known: KnownSource | undefined },
): Promise<SourceDocument | undefined>;
export async function readOpenApi(
  source: string | URL | JsonObject,
  { clock, signal, known }: ReadOptions & { readonly known?: KnownSource | undefined },
): Promise<SourceDocument | undefined> {
  if (typeof source === 'object' && !(source instanceof URL)) {
    const references = new Set<string>();
    checkDocument(source, 'the document', references);
    const outside = [...references].find((each) => fileOfReference(each) !== undefined);
    if (outside !== undefined) throw new DocumentError(`the document refers to ${outside.slice(0, 200)}. ${BUNDLE}`);
    return { root: source, files: new Map() };
  }
  const url = addressOf(source);
  if (url && url.protocol !== 'file:') return fetchDocument(url, clock, signal, known);
  const read = await readFiles(url ? fileURLToPath(url) : resolve(String(source)));
  return known?.digest !== undefined && read.digest === known.digest ? undefined : read;
}

/** The address that a source is; undefined for a path. */
export function addressOf(source: string | URL): URL | undefined {
  if (source instanceof URL) return source;
  return /^(?:https?|file):\/\//i.test(source) && URL.canParse(source) ? new URL(source) : undefined;
}

/** The part of a reference before the fragment, if it names another document. */
export function fileOfReference(reference: string): string | undefined {
  const file = reference.split('#', 1)[0] ?? '';
  return file === '' ? undefined : file;
}

async function fetchDocument(
  url: URL,
  clock: Clock,
  signal: AbortSignal | undefined,
  known: KnownSource | undefined,
): Promise<SourceDocument | undefined> {
  const name = `${url.origin}${url.pathname}`;
  const load = guardedFetch({ clock, trusted: [url], timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES });
  let response: Response;
  try {
    response = await load(url.href, {
      headers: {
        accept: 'application/openapi+json, application/json, application/yaml;q=0.9, */*;q=0.5',
        ...(known?.etag !== undefined && { 'if-none-match': known.etag }),
      },
      signal,
    });
  } catch (error) {
    throw new DocumentError(`the document cannot be fetched: ${messageOf(error)}`, { cause: error });
  }
  if (response.status === 304 && known) return undefined;
  if (response.status !== 200)
    throw new DocumentError(
      `${name}: expected a document, got ${response.status}. A document behind a redirect or a sign-in must be saved as a file`,
    );
  const text = await response.text();
  const digest = sha256(text);
  if (digest === known?.digest) return undefined;
  const { value: root, references } = await parseText(text, name);
  if (!isJsonObject(root)) throw new DocumentError(`${name}: expected an OpenAPI document, got ${describe(root)}`);
  for (const reference of references)
    if (fileOfReference(reference) !== undefined)
      throw new DocumentError(`${name}: it refers to another document, ${reference.slice(0, 200)}. ${BUNDLE}`);
  const etag = response.headers.get('etag');
  return { root, files: new Map(), url, digest, ...(etag !== null && { etag }) };
}

async function readFiles(given: string): Promise<SourceDocument> {
  const files = new Map<string, JsonValue>();
  const digests: string[] = [];
  let path: string;
  let left = MAX_BYTES;
  const read = async (file: string): Promise<ParsedText> => {
    const text = await textOf(file, left);
    left -= text.length;
    digests.push(file, sha256(text));
    return parseText(text, file);
  };
  try {
    path = await realpath(given);
  } catch (error) {
    throw new DocumentError(`${given}: cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const folder = dirname(path);
  const first = await read(path);
  const root = first.value;
  if (!isJsonObject(root)) throw new DocumentError(`${given}: expected an OpenAPI document, got ${describe(root)}`);
  const reading: (readonly [string, ParsedText])[] = [[path, first]];
  for (const [from, { references }] of reading)
    for (const reference of references) {
      const file = fileOfReference(reference);
      if (file === undefined) continue;
      if (/^[a-z][a-z0-9+.-]+:/i.test(file))
        throw new DocumentError(
          `${from}: it refers to ${reference.slice(0, 200)}. References to other servers are not followed. ${BUNDLE}`,
        );
      const target = pathOfReference(from, file);
      if (target === path || files.has(target)) continue;
      const real = await realpath(target).catch(() => target);
      if (!real.startsWith(`${folder}${sep}`))
        throw new DocumentError(`${from}: it refers to ${reference.slice(0, 200)}, which is not below ${folder}`);
      if (files.size >= MAX_FILES) throw new DocumentError(`${path}: it has more than ${MAX_FILES} files`);
      const found = await read(target);
      files.set(target, found.value);
      reading.push([target, found]);
    }
  return { root, files, path, digest: sha256(digests.join('\n')) };
}

/** The absolute path of a file that a file refers to. */
export function pathOfReference(from: string, file: string): string {
  return resolve(dirname(from), decoded(file));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function textOf(file: string, most: number): Promise<string> {
  try {
    const handle = await open(file);
    try {
      const { size } = await handle.stat();
      if (size > most) throw new Error(`expected at most ${MAX_BYTES} bytes in all its files`);
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw new DocumentError(`${file}: cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Parses JSON or YAML. Loads the package `yaml` with the first text that is not JSON.
 *
 * @throws {DocumentError}
 */
async function parseText(text: string, name: string): Promise<ParsedText> {
  const given = text.startsWith('\uFEFF') ? text.slice(1) : text;
  let value: unknown;
  if (/^\s*[{[]/.test(given)) {
    try {
      value = JSON.parse(given);
    } catch (error) {
      // A YAML document may begin with a brace, too.
      value = await parseYaml(given, name, error);
    }
  } else value = await parseYaml(given, name, undefined);
  const references = new Set<string>();
  checkDocument(value, name, references);
  return { value, references };
}

async function parseYaml(text: string, name: string, jsonProblem: unknown): Promise<unknown> {
  if (text.length > MAX_YAML)
    throw new DocumentError(`${name}: expected YAML of at most ${MAX_YAML} characters. Convert the document to JSON`);
  const { parseDocument } = await import('yaml');
  // As OpenAPI requires: the types of JSON only (OpenAPI 3.1, "Format").
  const document = parseDocument(text, { version: '1.2', schema: 'core', logLevel: 'silent', prettyErrors: true });
  const [problem] = document.errors;
  if (problem)
    throw new DocumentError(
      `${name}: expected JSON or YAML: ${jsonProblem === undefined ? problem.message.slice(0, 200) : messageOf(jsonProblem)}`,
    );
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    throw new DocumentError(`${name}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Checks that a value is JSON, and finds all references in it.
 *
 * @param found receives the references
 * @throws {DocumentError} for a value that is no JSON, or nests too deep, as one does that contains itself
 */
function checkDocument(value: unknown, name: string, found: Set<string>): asserts value is JsonValue {
  /** @param ofNames the members are names that the author chose */
  const visit = (at: unknown, depth: number, isData: boolean, ofNames: boolean): void => {
    if (typeof at !== 'object' || at === null) {
      if (typeof at === 'function' || typeof at === 'symbol' || typeof at === 'bigint')
        throw new DocumentError(`${name}: expected values of JSON, got ${describe(at)}`);
      return;
    }
    if (depth > MAX_NESTING)
      throw new DocumentError(`${name}: nested deeper than ${MAX_NESTING} levels. Move inner schemas to components`);
    if (Array.isArray(at)) for (const each of at) visit(each, depth + 1, isData, false);
    else
      for (const [member, each] of Object.entries(at))
        if (member === '$ref' && typeof each === 'string' && !isData) found.add(each);
        else visit(each, depth + 1, isData || (DATA.has(member) && !ofNames), member === 'properties');
  };
  visit(value, 0, false, false);
}

/** Members whose values are data, not parts of the document. */
const DATA: ReadonlySet<string> = new Set(['example', 'examples', 'enum', 'default', 'const']);
