/** The names and shapes of the extension Skills (SEP-2640, stable text of 2026-09): entries of skills, their files and addresses. */
import type { JsonObject } from './json.ts';

/** The identifier of the extension. */
export const SKILLS_EXTENSION = 'io.modelcontextprotocol/skills';

/** A file of a skill, as the skill's entry lists it. */
export interface ListedSkillFile {
  readonly uri: string;
  /** `sha256:` and 64 hexadecimal digits: the digest of the file's bytes. */
  readonly digest: string;
  /** The length of the file in bytes. */
  readonly size: number;
}

/** A skill as `skills/list` describes it. */
export interface SkillEntry {
  /** The address of the skill's SKILL.md. */
  readonly uri: string;
  /** The frontmatter of SKILL.md as JSON. */
  readonly frontmatter: JsonObject & { readonly name: string; readonly description: string };
  /** Every file of the skill; `dynamic` if the server makes the files when they are read, so that none can be verified. */
  readonly resources: readonly ListedSkillFile[] | 'dynamic';
}

/** The file that makes a folder a skill. */
export const SKILL_FILE = 'SKILL.md';

/** The name of a skill (Agent Skills, "name field"). */
export const SKILL_NAME = /^(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** The name of a skill that is made from another name; undefined if that has no letter and no digit. */
export function skillNameOf(name: string): string | undefined {
  const words = name.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.join('-').slice(0, 64).replace(/-$/, '') || undefined;
}

/** The type of a directory in a listing of files. */
export const DIRECTORY_TYPE = 'inode/directory';

/** The sizes that a host must accept, and that no skill should exceed (SEP-2640, "Limits"). */
export const SKILL_LIMITS = { files: 512, bytes: 16_777_216 } as const;
