/** What the wire says of skills, held against the official schemas of the extension (SEP-2640). */
import {
  GetSkillResultSchema,
  ListSkillsResultSchema,
  ReadResourceDirectoryResultSchema,
} from '@modelcontextprotocol/core/ext/skills';
import { isModernRevision, type Revision } from '../../src/core/protocol/revisions.ts';

/** Only 2026-07-28 has caching hints. */
const UNCACHED = { ttlMs: true, cacheScope: true } as const;

/** For each method, the schema of its result, and the same of a legacy revision. */
const RESULTS = {
  'skills/list': [ListSkillsResultSchema, ListSkillsResultSchema.partial(UNCACHED)],
  'skills/get': [GetSkillResultSchema, GetSkillResultSchema.partial(UNCACHED)],
  'resources/directory/read': [ReadResourceDirectoryResultSchema, ReadResourceDirectoryResultSchema.partial(UNCACHED)],
} as const;

function isAboutSkills(method: string): method is keyof typeof RESULTS {
  return Object.hasOwn(RESULTS, method);
}

/** The faults of a result about skills; undefined for one that is not. */
export function skillResultFaults(method: string, result: unknown, revision: Revision): readonly string[] | undefined {
  if (!isAboutSkills(method)) return undefined;
  const { error } = RESULTS[method][isModernRevision(revision) ? 0 : 1].safeParse(result);
  return error?.issues.map(({ path, message }) => `${method}: ${path.join('.')}: ${message}`) ?? [];
}
