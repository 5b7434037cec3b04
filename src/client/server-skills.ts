/** The skills of a server (SEP-2640): entries as they are listed, and files that are read on demand and verified. */
import { Buffer } from 'node:buffer';
import { sha256 } from '../core/kernel/sha256.ts';
import { describe, isObject, messageOf } from '../core/protocol/json.ts';
import { type ListedSkillFile, SKILL_NAME, type SkillEntry } from '../core/protocol/skills.ts';
import type { ReadResourceResult } from '../core/protocol/types.ts';
import { ClientError } from './client-errors.ts';
import type { CallOptions, ClientSettings } from './client-options.ts';

/** A file of a loaded skill. */
export interface SkillFile {
  readonly uri: string;
  /** The path below the skill's folder, as the address spells it. */
  readonly path: string;
  readonly mimeType: string | undefined;
  readonly bytes: Uint8Array;
  /** The file as text; undefined if its bytes are not UTF-8. */
  readonly text: string | undefined;
  /** True if size and digest are those of the entry; false only for a `dynamic` skill. */
  readonly verified: boolean;
}

type SkillLimits = Pick<ClientSettings, 'maxSkillFiles' | 'maxSkillBytes' | 'maxMessageBytes'>;

/** The connection of a skill to its server. */
interface SkillClient {
  /** The server as the caller named it. */
  readonly server: string;
  readonly limits: SkillLimits;
  readonly read: (uri: string, options: CallOptions) => Promise<ReadResourceResult>;
}

const MANIFEST = '/SKILL.md';
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_DIFFERENCES = 5;

/**
 * Reads one entry of a listing.
 *
 * @returns the entry as it came, or the rule that it breaks
 */
export function readSkillEntry(value: unknown, limits: SkillLimits): SkillEntry | string {
  if (!isObject(value) || typeof value.uri !== 'string') return 'expected an entry with a uri';
  const { uri, frontmatter, resources } = value;
  const root = rootOf(uri);
  if (root === undefined) return `${excerpt(uri)}: expected the address of a SKILL.md in a folder`;
  if (!isObject(frontmatter)) return `${excerpt(uri)}: frontmatter: expected an object, got ${describe(frontmatter)}`;
  const { name, description } = frontmatter;
  if (typeof name !== 'string' || !SKILL_NAME.test(name))
    return `${excerpt(uri)}: frontmatter.name: expected 1 to 64 of a-z, 0-9 and single hyphens, got ${describe(name)}`;
  if (!root.endsWith(`/${name}`))
    return `${excerpt(uri)}: frontmatter.name: expected the name of the folder, got ${describe(name)}`;
  if (typeof description !== 'string' || description === '')
    return `${excerpt(uri)}: frontmatter.description: expected text, got ${describe(description)}`;
  const wrong = resources === 'dynamic' ? undefined : filesProblem(resources, uri, root, limits);
  if (wrong !== undefined) return `${excerpt(uri)}: ${wrong}`;
  return hasEntry(value) ? value : 'expected an entry';
}

function filesProblem(resources: unknown, manifest: string, root: string, limits: SkillLimits): string | undefined {
  if (!Array.isArray(resources)) return `resources: expected an array or "dynamic", got ${describe(resources)}`;
  const { maxSkillFiles, maxSkillBytes } = limits;
  if (resources.length > maxSkillFiles)
    return `resources: expected at most ${maxSkillFiles} files, got ${resources.length}. The option is maxSkillFiles`;
  const seen = new Set<string>();
  let bytes = 0;
  for (const file of resources) {
    if (!isObject(file) || typeof file.uri !== 'string') return 'resources: expected files with a uri';
    const { uri, digest, size } = file;
    if (!isInside(root, uri)) return `resources: ${excerpt(uri)} is not in the skill's folder`;
    if (seen.has(uri)) return `resources: ${excerpt(uri)} is listed twice`;
    if (typeof digest !== 'string' || !DIGEST.test(digest))
      return `resources: ${excerpt(uri)}: digest: expected "sha256:" and 64 hexadecimal digits, got ${describe(digest)}`;
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0)
      return `resources: ${excerpt(uri)}: size: expected a number of bytes, got ${describe(size)}`;
    seen.add(uri);
    bytes += size;
  }
  if (!seen.has(manifest)) return 'resources: expected SKILL.md among the files';
  return bytes > maxSkillBytes
    ? `resources: expected at most ${maxSkillBytes} bytes, got ${bytes}. The option is maxSkillBytes`
    : undefined;
}

/**
 * A loaded skill: its SKILL.md has been read, and is what the entry lists. Other files are read when they are needed.
 *
 * @example
 * const skill = await client.skill('skill://pdf-processing/SKILL.md');
 * const forms = await skill.read('references/FORMS.md');
 */
export class Skill {
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly frontmatter: SkillEntry['frontmatter'];
  readonly files: SkillEntry['resources'];
  readonly #client: SkillClient;
  readonly #root: string;
  #instructions = '';

  private constructor(entry: SkillEntry, client: SkillClient) {
    this.uri = entry.uri;
    this.name = entry.frontmatter.name;
    this.description = entry.frontmatter.description;
    this.frontmatter = entry.frontmatter;
    this.files = entry.resources;
    this.#client = client;
    this.#root = rootOf(entry.uri) ?? '';
  }

  /**
   * @internal Use `client.skill`. Reads the SKILL.md, and nothing else.
   *
   * @throws {ClientError} `malformed` if size, digest or a field of the frontmatter is not that of the entry
   */
  static async load(entry: SkillEntry, client: SkillClient, options: CallOptions): Promise<Skill> {
    const skill = new Skill(entry, client);
    const { text } = await skill.read(entry.uri, options);
    if (text === undefined) throw skill.#malformed(`${entry.uri}: expected text in UTF-8`);
    const { readFrontmatter } = await import('../features/skills/frontmatter.ts');
    const { frontmatter, body } = await readFrontmatter(text).catch((error: unknown) => {
      throw skill.#malformed(`${entry.uri}: ${messageOf(error)}`, error);
    });
    const different = differences(entry.frontmatter, frontmatter, '').slice(0, MAX_DIFFERENCES);
    if (different.length > 0)
      throw skill.#malformed(
        `${entry.uri}: the frontmatter is not that of the skill's entry, so the skill is not loaded: ${different.join('; ')}`,
      );
    skill.#instructions = body;
    return skill;
  }

  /** The text of SKILL.md below its frontmatter. */
  get instructions(): string {
    return this.#instructions;
  }

  /**
   * Reads a file of the skill and verifies it.
   *
   * @param path the path below the skill's folder (`references/FORMS.md`), or the full address
   * @throws {ClientError} `refused` for a file that the skill does not list; `malformed` for a file that is not the listed one
   */
  async read(path: string, options: CallOptions = {}): Promise<SkillFile> {
    const { uri, listed } = this.#find(path);
    if (listed && listed.size > this.#client.limits.maxMessageBytes)
      throw new ClientError(this.#client.server, {
        reason: 'too long',
        message: `${uri}: ${listed.size} bytes are more than one message may have. The option is maxMessageBytes`,
        carriedOut: 'no',
      });
    const { contents } = await this.#client.read(uri, options);
    const [content] = contents;
    if (contents.length !== 1 || content?.uri !== uri)
      throw this.#malformed(
        `${uri}: expected the contents of this file, got ${contents.length === 1 ? describe(content?.uri) : `${contents.length} contents`}`,
      );
    const bytes = bytesOf(content);
    if (!bytes) throw this.#malformed(`${uri}: expected contents with text or blob`);
    if (listed) this.#verify(listed, bytes);
    return {
      uri,
      path: uri.slice(this.#root.length + 1),
      mimeType: typeof content.mimeType === 'string' ? content.mimeType : undefined,
      bytes,
      text: textOf(bytes),
      verified: listed !== undefined,
    };
  }

  /** A wrong size is a failure, whether or not the digest is computed (SEP-2640, "Integrity and Verification"). */
  #verify({ uri, size, digest }: ListedSkillFile, bytes: Uint8Array): void {
    if (bytes.length !== size)
      throw this.#malformed(
        `${uri}: expected ${size} bytes as the skill's entry lists, got ${bytes.length}. The file is not used`,
      );
    const found = `sha256:${sha256(bytes, 'hex')}`;
    if (found !== digest)
      throw this.#malformed(
        `${uri}: expected the digest ${digest} of the skill's entry, got ${found}. The file is not used`,
      );
  }

  /** Finds a file by its text: no address is made from the path, except for a dynamic skill, below its folder. */
  #find(path: string): { readonly uri: string; readonly listed: ListedSkillFile | undefined } {
    const resources = this.files;
    const uri = path.startsWith(`${this.#root}/`) ? path : `${this.#root}/${path.replace(/^\.\//, '')}`;
    if (resources === 'dynamic') {
      if (isInside(this.#root, uri)) return { uri, listed: undefined };
      throw this.#notListed(path, 'it is not in the skill’s folder');
    }
    const listed =
      resources.find((file) => file.uri === uri) ?? resources.find((file) => decoded(file.uri) === decoded(uri));
    if (listed) return { uri: listed.uri, listed };
    const names = resources.map((file) => file.uri.slice(this.#root.length + 1));
    throw this.#notListed(
      path,
      `the entry of ${this.uri} lists ${names.slice(0, 20).join(', ')}${names.length > 20 ? ' and others' : ''}`,
    );
  }

  #malformed(message: string, cause?: unknown): ClientError {
    return new ClientError(this.#client.server, { reason: 'malformed', message, carriedOut: 'yes', cause });
  }

  #notListed(path: string, why: string): ClientError {
    return new ClientError(this.#client.server, {
      reason: 'refused',
      message: `${excerpt(path)} is no file of this skill: ${why}`,
      carriedOut: 'no',
    });
  }
}

/** The fields that differ, both ways; lists compare in order. */
function differences(listed: unknown, read: unknown, field: string): readonly string[] {
  if (isObject(listed) && isObject(read)) {
    const names = new Set([...Object.keys(listed), ...Object.keys(read)]);
    return [...names].flatMap((name) =>
      differences(own(listed, name), own(read, name), field === '' ? name : `${field}.${name}`),
    );
  }
  if (Array.isArray(listed) && Array.isArray(read) && listed.length === read.length)
    return listed.flatMap((element, at) => differences(element, read[at], `${field}[${at}]`));
  if (listed === read) return [];
  const where = field === '' ? 'the whole' : field.slice(0, 100);
  return [`${where}: the entry has ${describe(listed)}, SKILL.md has ${describe(read)}`];
}

function own(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** The address of the skill's folder, without a slash at its end. */
function rootOf(uri: string): string | undefined {
  return /^[a-z][a-z0-9+.-]*:\/\/[^?#]+\/SKILL\.md$/i.test(uri) ? uri.slice(0, -MANIFEST.length) : undefined;
}

/** True for an address below the folder in which no segment is empty, leads upwards, or contains a separator when decoded. */
function isInside(root: string, uri: string): boolean {
  if (!uri.startsWith(`${root}/`) || /[?#]/.test(uri)) return false;
  return uri
    .slice(root.length + 1)
    .split('/')
    .every((segment) => {
      const name = decoded(segment);
      return name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name);
    });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function bytesOf(content: Readonly<Record<string, unknown>> | object): Uint8Array | undefined {
  if ('text' in content && typeof content.text === 'string') return Buffer.from(content.text, 'utf8');
  if ('blob' in content && typeof content.blob === 'string') return Buffer.from(content.blob, 'base64');
  return undefined;
}

/** @returns undefined for bytes that are not UTF-8 */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function hasEntry(value: Readonly<Record<string, unknown>>): value is Readonly<Record<string, unknown>> & SkillEntry {
  return typeof value.uri === 'string' && isObject(value.frontmatter) && value.resources !== undefined;
}

function excerpt(text: string): string {
  return text.slice(0, 200);
}
