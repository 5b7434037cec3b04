/** The methods of the extension Skills, which every revision may use (SEP-2640). */
import { BOTH_ERAS, type RequestMethod } from '../../core/protocol/methods.ts';
import { cursorOf, type Params, readList, textMember } from '../../core/protocol/operations.ts';
import { SKILLS_EXTENSION } from '../../core/protocol/skills.ts';

type GetSkill = { readonly method: 'skills/get'; readonly uri: string };

/** Lists the direct children of a directory. */
type ReadDirectory = {
  readonly method: 'resources/directory/read';
  readonly uri: string;
  readonly cursor: string | undefined;
};

declare module '../../core/protocol/operations.ts' {
  interface Operations {
    readonly skills: GetSkill | ReadDirectory;
  }
}

const readGetSkill = (params: Params): GetSkill => ({ method: 'skills/get', uri: textMember(params, 'uri') });

function readReadDirectory(params: Params): ReadDirectory {
  return { method: 'resources/directory/read', uri: textMember(params, 'uri'), cursor: cursorOf(params) };
}

const SKILL = { kind: 'request', eras: BOTH_ERAS, extension: SKILLS_EXTENSION } as const;

export const SKILL_METHODS = {
  'skills/list': { ...SKILL, served: { by: 'skills', read: readList('skills/list') } },
  'skills/get': { ...SKILL, served: { by: 'skills', read: readGetSkill } },
  'resources/directory/read': { ...SKILL, served: { by: 'skills', read: readReadDirectory } },
} as const satisfies Readonly<Record<string, RequestMethod>>;
