/** A source of skills: a folder, or the manual of a machine. Types only. */
import type { ElementAccess } from '../../core/messages/authorization-rule.ts';
import type { SkillEntry } from '../../core/protocol/skills.ts';
import type { ResourceContents } from '../../core/protocol/types.ts';
import type { SkillsOptions } from './skills-options.ts';

/** One file of a skill. */
export interface ServedFile {
  readonly uri: string;
  /** Its name in its folder. */
  readonly name: string;
  readonly mimeType: string;
  readonly digest: string;
  readonly size: number;
}

export interface ServedSkill {
  readonly entry: SkillEntry;
  /** Every file, also those of a skill in one of its folders. */
  readonly files: readonly ServedFile[];
}

export interface SkillSource {
  /** Names the source in messages, such as `skills in ./skills`. */
  readonly name: string;
  readonly options: Pick<SkillsOptions, 'ttlMs' | 'cacheScope' | 'scopes' | 'allow'> & Pick<ElementAccess, 'machine'>;
  /** The skills now. */
  readonly skills: readonly ServedSkill[];
  /**
   * Reads a file whose bytes have the digest of the current entry.
   *
   * @throws {ProtocolError} if the file does not exist any more
   */
  read(uri: string): Promise<ResourceContents> | ResourceContents;
  /** Calls the listener after each change of the skills. */
  onChange(listener: () => void): void;
  /** Stops watching. */
  close(): void;
}
