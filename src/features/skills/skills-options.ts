/** The options of `server.skills`, and what it returns. */
import type { Guarded } from '../../core/messages/authorization-rule.ts';
import { checkOptionNames, describe } from '../../core/protocol/json.ts';
import type { CacheHints } from '../../core/protocol/types.ts';

export interface SkillsOptions extends Guarded, CacheHints {
  /**
   * Begins the address of each skill: with `acme/office`, the folder `pdf` is `skill://acme/office/pdf/SKILL.md`. Default:
   * no prefix.
   */
  readonly prefix?: string | undefined;
  /** Watch the folder, and serve changed files without a restart. Default true. */
  readonly watch?: boolean | undefined;
  /** Reject an invalid skill instead of leaving it out with a warning in the log. Default false. */
  readonly strict?: boolean | undefined;
}

/** A rule that a skill breaks. */
export interface SkillProblem {
  /** The path of the file or folder. */
  readonly file: string;
  /** The line in the file, from 1; undefined if the problem is not in a line. */
  readonly line: number | undefined;
  readonly message: string;
}

/** A folder of skills that a server offers. */
export interface RegisteredSkills {
  /** The skills that are served now. */
  readonly skills: readonly { readonly name: string; readonly uri: string }[];
  /** The reasons why other skills of the folder are left out. */
  readonly problems: readonly SkillProblem[];
  /** Reads the folder again, for a server that does not watch it. */
  reload(): Promise<void>;
  /** Withdraws the skills. */
  remove(): void;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof SkillsOptions>([
  'prefix',
  'watch',
  'strict',
  'ttlMs',
  'cacheScope',
  'scopes',
  'allow',
]);

/** The first segment of an address takes the place of a host name, so all segments are names of hosts (RFC 3986 section 3.2.2). */
const PREFIX = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

/** @throws {TypeError | RangeError} if an option is unknown or invalid */
export function checkSkillsOptions(options: SkillsOptions): void {
  checkOptionNames('server.skills: ', options, OPTIONS);
  const { prefix, watch, strict, ttlMs, cacheScope, scopes, allow } = options;
  const fail = (name: string, expected: string, got: unknown): never => {
    throw new TypeError(`server.skills: ${name}: expected ${expected}, got ${describe(got)}`);
  };
  if (prefix !== undefined && !(typeof prefix === 'string' && PREFIX.test(prefix)))
    fail('prefix', 'names of letters, digits, "_", "-" and "." between single slashes, such as "acme/office"', prefix);
  if (watch !== undefined && typeof watch !== 'boolean') fail('watch', 'true or false', watch);
  if (strict !== undefined && typeof strict !== 'boolean') fail('strict', 'true or false', strict);
  if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs >= 0))
    throw new RangeError(`server.skills: ttlMs: expected whole milliseconds, at least 0, got ${describe(ttlMs)}`);
  if (cacheScope !== undefined && cacheScope !== 'public' && cacheScope !== 'private')
    fail('cacheScope', '"public" or "private"', cacheScope);
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === 'string')))
    fail('scopes', 'a list of strings', scopes);
  if (allow !== undefined && typeof allow !== 'function') fail('allow', 'a function', allow);
}
