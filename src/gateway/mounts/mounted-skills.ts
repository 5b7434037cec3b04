/** The skills of an upstream as a source of this server's skills: their entries. Their files are resources of the mount. */
import type { SkillEntry } from '../../core/protocol/skills.ts';
import type { ResourceContents } from '../../core/protocol/types.ts';
import type { ServedSkill, SkillSource } from '../../features/skills/skill-source.ts';

/** The part of a server that serves skills. */
export interface SkillsOfMounts {
  /** Offers the skills of a mount in place of those before. None: withdraws them. */
  mounted(source: SkillSource): void;
  /** Announces that skills may come later. */
  announce(): void;
}

export class MountedSkills implements SkillSource {
  readonly name: string;
  readonly options: SkillSource['options'];
  readonly skills: readonly ServedSkill[];

  /** @param entries with the URIs of the mount */
  constructor(mount: string, entries: readonly SkillEntry[]) {
    this.name = `skills of mount ${mount}`;
    // The lists of an upstream may change at any time, and its catalogue may be one of a person.
    this.options = { ttlMs: 0, cacheScope: 'private' };
    this.skills = entries.map((entry) => ({ entry, files: [] }));
  }

  /** @throws {Error} always: the mount reads the files, which it offers as resources */
  read(uri: string): ResourceContents {
    throw new Error(`${uri}: the mount reads the files of its skills`);
  }

  /** A mount that lists its upstream again offers another source. */
  onChange(): void {}

  close(): void {}
}
