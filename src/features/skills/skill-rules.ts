/** The rules that a SKILL.md must follow (SEP-2640; Agent Skills, "SKILL.md format"), with the line that breaks one. */

import { describe, isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import { SKILL_NAME, type SkillEntry } from '../../core/protocol/skills.ts';
import { FrontmatterError, readFrontmatter } from './frontmatter.ts';

/** A broken rule. */
export interface BrokenRule {
  /** The line in SKILL.md, from 1. */
  readonly line: number;
  readonly message: string;
}

const MAX_DESCRIPTION = 1_024;
const MAX_COMPATIBILITY = 500;
/** Keys of `metadata` with this prefix belong to extensions of the protocol, of which none defines any (SEP-2640, "Metadata"). */
const RESERVED = 'io.modelcontextprotocol/';

/**
 * Reads the frontmatter of a SKILL.md.
 *
 * @param folder the name of its folder, which is the name of the skill
 * @returns the frontmatter as the skill's entry has it, or the rules that it breaks
 */
export async function readSkillFile(
  text: string,
  folder: string,
): Promise<SkillEntry['frontmatter'] | readonly BrokenRule[]> {
  // Spaces after the dashes are an error for other readers of skills.
  if (!/^\uFEFF?---\r?\n/.test(text))
    return [{ line: 1, message: 'expected a first line "---", then the frontmatter' }];
  try {
    const { frontmatter, lineOf, oddNames } = await readFrontmatter(text);
    if (!isJsonObject(frontmatter))
      return [
        { line: 2, message: `frontmatter: expected fields such as "name: ${folder}", got ${describe(frontmatter)}` },
      ];
    const broken = [
      ...oddNames().map(({ name, line }) => ({
        line,
        message: `frontmatter: expected field names that are text, got ${name.slice(0, 60)}. Put it in quotes`,
      })),
      ...problemsOf(frontmatter, folder).map(([field, problem]) => ({
        line: lineOf(field),
        message: `frontmatter.${field}: ${problem}`,
      })),
    ];
    return hasNames(frontmatter) && broken.length === 0 ? frontmatter : broken;
  } catch (error) {
    if (error instanceof FrontmatterError) return [{ line: error.line, message: error.message }];
    throw error;
  }
}

function hasNames(frontmatter: JsonObject): frontmatter is SkillEntry['frontmatter'] {
  return typeof frontmatter.name === 'string' && typeof frontmatter.description === 'string';
}

/** The fields that break a rule, each with what is expected. */
function problemsOf(frontmatter: JsonObject, folder: string): readonly (readonly [field: string, problem: string])[] {
  const { name, description, compatibility, metadata } = frontmatter;
  const found: (readonly [string, string])[] = [];
  if (typeof name !== 'string' || !SKILL_NAME.test(name))
    found.push(['name', `expected 1 to 64 of a-z, 0-9 and single hyphens, got ${describe(name)}`]);
  else if (name !== folder) found.push(['name', `expected the name of the folder, "${folder}", got ${describe(name)}`]);
  if (!isTextUpTo(description, MAX_DESCRIPTION))
    found.push(['description', `expected 1 to ${MAX_DESCRIPTION} characters, got ${amount(description)}`]);
  if (compatibility !== undefined && !isTextUpTo(compatibility, MAX_COMPATIBILITY))
    found.push(['compatibility', `expected 1 to ${MAX_COMPATIBILITY} characters, got ${amount(compatibility)}`]);
  if (metadata !== undefined) {
    if (!isObject(metadata) || Object.values(metadata).some((value) => typeof value !== 'string'))
      found.push(['metadata', 'expected fields whose values are text. Put numbers, true and false in quotes']);
    else
      for (const key of Object.keys(metadata))
        if (key.startsWith(RESERVED))
          found.push(['metadata', `"${key}": names that begin with ${RESERVED} are reserved`]);
  }
  for (const [field, value] of Object.entries(frontmatter))
    if (!isJson(value)) found.push([field, 'JSON cannot represent this number. Put it in quotes']);
  return found;
}

function isTextUpTo(value: unknown, most: number): boolean {
  // Hosts count characters, not UTF-16 code units.
  return typeof value === 'string' && value !== '' && (value.length <= most || [...value].length <= most);
}

function amount(value: unknown): string {
  return typeof value === 'string' ? `${[...value].length}` : describe(value);
}

function isJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(isJson);
}
