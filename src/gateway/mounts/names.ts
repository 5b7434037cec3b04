/** The names under which a mount offers the tools or prompts of its upstream. */
import { sha256 } from '../../core/kernel/sha256.ts';
import { describe } from '../../core/protocol/json.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';

/** The longest name that a mount offers: several hosts accept no longer one. */
const LONGEST_NAME = 64;

const MOUNT_NAME = /^[a-z][a-z0-9-]{0,23}$/;
const PREFIX = /^[A-Za-z0-9_.-]{1,32}$/;
/** The rule for names of tools (MCP 2025-11-25 tools, "Tool Names"), with our length. */
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
/** Length of the readable part of a mapped name. `_` and 8 hexadecimal digits follow it. */
const STEM = 55;

/** The options that decide which names a mount offers. */
export interface NameOptions {
  /** Text before each name, at most 32 letters, digits, `_`, `.` and `-`. Default: the mount's name and `_`. `false`: none. */
  readonly prefix?: string | false;
  /** The upstream's name of a tool or prompt → the whole name that is offered; no prefix is added to it. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Offers only the upstream's names that match one of these patterns. `*` matches any text, `?` one character. */
  readonly only?: readonly string[];
  /** Leaves out the upstream's names that match one of these patterns. */
  readonly except?: readonly string[];
}

/**
 * Checks the name of a mount. It becomes a prefix of names and the start of URI schemes.
 *
 * @throws {DefinitionError} if it is not 1 to 24 lower-case letters, digits and `-`, the first of them a letter, or if it is
 *   `ui` or `skill`
 * @example checkMountName('gh') // 'gh'
 */
export function checkMountName(name: string): string {
  if (name === 'ui' || name === 'skill')
    throw new DefinitionError(
      `mount "${name}": expected another name: URIs of this scheme name views or skills of other mounts`,
    );
  if (typeof name === 'string' && MOUNT_NAME.test(name)) return name;
  throw new DefinitionError(
    `mount ${describe(name)}: a name has 1 to 24 lower-case letters, digits and "-", and starts with a letter, such as "gh"`,
  );
}

/**
 * The names of one mount, for its tools or for its prompts. The offered name depends on the options and the
 * upstream's name alone, so that it is the same after each restart. A name that is too long or contains a character that
 * names must not have is mapped: its first 55 characters, `_`, and 8 hexadecimal digits of its SHA-256.
 *
 * @example
 * const names = new OfferedNames('gh', { except: ['delete_*'] });
 * names.offered('search'); // 'gh_search'
 * names.offered('delete_repo'); // undefined
 */
export class OfferedNames {
  readonly #prefix: string;
  readonly #renamed = new Map<string, string>();
  /** The new name → the upstream's. */
  readonly #originals = new Map<string, string>();
  readonly #only: readonly string[] | undefined;
  readonly #except: readonly string[];

  /**
   * @param mount a checked name
   * @throws {DefinitionError} for a prefix, new name or pattern that no name can have, or two equal new names
   */
  constructor(mount: string, { prefix = `${mount}_`, rename = {}, only, except = [] }: NameOptions) {
    const label = `mount "${mount}"`;
    if (prefix !== false && (typeof prefix !== 'string' || !PREFIX.test(prefix)))
      throw new DefinitionError(
        `${label}: prefix: expected false, or 1 to 32 letters, digits, "_", "." and "-", such as "${mount}_", got ${describe(prefix)}`,
      );
    this.#prefix = prefix === false ? '' : prefix;
    for (const [from, to] of Object.entries(rename)) {
      if (typeof to !== 'string' || !NAME.test(to))
        throw new DefinitionError(
          `${label}: rename: "${from}": expected the whole new name, to which no prefix is added: 1 to ${LONGEST_NAME} letters, digits, "_", "." and "-", got ${describe(to)}`,
        );
      const other = this.#originals.get(to);
      if (other !== undefined)
        throw new DefinitionError(
          `${label}: rename: expected each new name once, got "${to}" for "${other}" and "${from}"`,
        );
      this.#renamed.set(from, to);
      this.#originals.set(to, from);
    }
    this.#only = only === undefined ? undefined : patterns(`${label}: only`, only);
    this.#except = patterns(`${label}: except`, except);
  }

  /** The names that are offered for a name that is none of them: the upstream's name, or one with a prefix that its tool has not. */
  meantBy(name: string): readonly string[] {
    const bare = this.#prefix !== '' && name.startsWith(this.#prefix) ? [name.slice(this.#prefix.length)] : [];
    const names = [name, ...bare].flatMap((each) => (this.#originals.has(each) ? each : (this.offered(each) ?? [])));
    return names.filter((each) => each !== name);
  }

  /** The name that is offered; undefined if the options leave the upstream's name out. */
  offered(upstream: string): string | undefined {
    if (this.#only && !this.#only.some((pattern) => matches(pattern, upstream))) return undefined;
    if (this.#except.some((pattern) => matches(pattern, upstream))) return undefined;
    const renamed = this.#renamed.get(upstream);
    if (renamed !== undefined) return renamed;
    const regular = this.#prefix + upstream;
    if (upstream !== '' && NAME.test(regular) && !this.#originals.has(regular)) return regular;
    return shortened(regular);
  }
}

function shortened(name: string): string {
  const digest = sha256(name, 'hex').slice(0, 8);
  return `${name.replace(/[^A-Za-z0-9_.-]/gu, '_').slice(0, STEM)}_${digest}`;
}

function patterns(where: string, given: readonly string[]): readonly string[] {
  if (Array.isArray(given) && given.every((pattern) => typeof pattern === 'string' && pattern !== '')) return given;
  throw new DefinitionError(
    `${where}: expected a list of names or patterns, such as ["search_*"], got ${describe(given)}`,
  );
}

/** Matches a whole name in time proportional to pattern times name: an upstream chooses the names. */
export function matches(pattern: string, name: string): boolean {
  let at = 0;
  let star = -1;
  let resumed = 0;
  let next = 0;
  while (next < name.length) {
    if (pattern[at] === '*') {
      star = at++;
      resumed = next;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === name[next])) {
      at += 1;
      next += 1;
    } else if (star !== -1) {
      at = star + 1;
      next = ++resumed;
    } else return false;
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
