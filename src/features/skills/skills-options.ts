/** The options of `server.skills`, and what it returns. */
import type { Guarded } from '../../core/messages/authorization-rule.ts';
import * as option from '../../core/protocol/option-rows.ts';
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

/** The first segment of an address takes the place of a host name, so all segments are names of hosts (RFC 3986 section 3.2.2). */
const PREFIX = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

const ROWS: option.Rows<SkillsOptions> = {
  prefix: option.expected(
    'names of letters, digits, "_", "-" and "." between single slashes, such as "acme/office"',
    (value) => typeof value === 'string' && PREFIX.test(value),
  ),
  watch: option.flag,
  strict: option.flag,
  ttlMs: option.expected('whole milliseconds, at least 0', (value) => option.isWhole(value, 0)),
  cacheScope: option.oneOf('public', 'private'),
  scopes: option.strings,
  allow: option.functional,
};

/** @throws {TypeError | RangeError} if an option is unknown or invalid */
export function checkSkillsOptions(options: SkillsOptions): void {
  option.check('server.skills: ', options, ROWS);
}
