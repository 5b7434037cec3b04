/** Broken builds of the skills that a server offers. */
import type { BrokenBuild } from './broken-build.ts';

const SKILLS = 'test/features/skills/skills.test.ts';

export const SKILLS_OF_SERVER: readonly BrokenBuild[] = [
  {
    id: 'S-60',
    test: SKILLS,
    in: 'skill-scan.ts: readBytes',
    find: 'if (place !== path && place',
    replace: "if (path === '' && place",
    why: 'a link in the place of a folder leads out of the folder of skills',
  },
  {
    id: 'S-60',
    test: SKILLS,
    in: 'readFolder',
    find: ".filter((entry) => !entry.name.startsWith('.'))",
    replace: '',
    why: 'hidden files are published',
  },
  {
    id: 'S-61',
    test: SKILLS,
    in: 'SkillFolder.read',
    find: '(await digestOf(found.bytes)) === file.digest',
    replace: 'found.bytes.length === file.size',
    why: 'a changed file of the same length is served under the digest of the earlier one',
  },
  {
    id: 'S-62',
    test: SKILLS,
    in: 'SkillRegistry.#serving',
    find: 'request.hidden ? undefined : catalogue.get(operation.uri)?.definition',
    replace: 'catalogue.get(operation.uri)?.definition',
    why: 'a caller who guesses the address of a hidden skill gets its entry',
  },
  {
    id: 'S-62',
    test: SKILLS,
    in: 'treeOf',
    find: 'if (view?.hides.has(uri)) continue;',
    replace: '',
    why: 'the directories of a hidden skill show its files',
  },
];
