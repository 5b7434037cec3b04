/** Broken builds of the skills of a server. */
import type { BrokenBuild } from './broken-build.ts';

export const CLIENT_SKILLS: readonly BrokenBuild[] = [
  {
    id: 'U-21',
    test: 'test/client/skills.test.ts',
    in: 'Skill.#verify',
    find: 'if (found !== digest)',
    replace: "if (!found.startsWith('sha256:'))",
    why: 'a file of the right size and with other text is used',
    built: true,
  },
  {
    id: 'U-22',
    test: 'test/client/skills.test.ts',
    in: 'server-skills.ts: differences',
    find: 'new Set([...Object.keys(listed), ...Object.keys(read)])',
    replace: 'new Set(Object.keys(listed))',
    why: 'a field that only the file has goes unnoticed',
    built: true,
  },
];
