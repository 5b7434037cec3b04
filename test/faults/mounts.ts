/** Broken builds of mounts. */
import type { BrokenBuild } from './broken-build.ts';

const SEARCH = 'test/mounts/search.test.ts';
const MOUNTS = 'test/mounts/mount.test.ts';
const UPSTREAMS = 'test/mounts/upstream-faults.test.ts';

export const MOUNT_FAULTS: readonly BrokenBuild[] = [
  {
    id: 'U-09',
    test: UPSTREAMS,
    file: 'src/mounts/mount-actor.ts',
    find: 'this.#offer(stored);',
    replace: '',
    why: 'a catalogue is offered only after its upstream has answered',
    built: true,
  },
  {
    id: 'U-09',
    test: UPSTREAMS,
    file: 'src/mounts/open-mount.ts',
    find: 'const timer = system.clock.after(present.settings.firstListMs, resolve);',
    replace: 'const timer = system.clock.after(present.settings.listMs, resolve);',
    why: 'a server without a catalogue delays the opening of all for as long as its listing may take',
    built: true,
  },
  {
    id: 'U-10',
    test: UPSTREAMS,
    file: 'src/mounts/mount-actor.ts',
    find: 'if (this.#snapshot.context.failures === 0)',
    replace: '',
    why: 'each failed listing of a server that flaps is reported',
    built: true,
  },
  {
    id: 'U-11',
    test: UPSTREAMS,
    file: 'src/mounts/upstream-catalogue.ts',
    find: 'if (jsonLength(catalogue, maxLength) > maxLength)',
    replace: 'if (tools.length < 0)',
    why: 'a catalogue may take all memory',
    built: true,
  },
  {
    id: 'S-72',
    test: SEARCH,
    file: 'src/mounts/search-tools.ts',
    find: 'return (key) => view?.hides.has(key) !== true;',
    replace: 'return () => view === undefined || view.id.length > 0;',
    why: 'the search shows tools that a rule hides from its caller',
    built: true,
  },
  {
    id: 'S-72',
    test: SEARCH,
    file: 'src/mounts/search-tools.ts',
    find: 'if (!request.hidden) return admitted(mail);',
    replace: 'if (admitted) return admitted(mail);',
    why: 'the answer to a call tells the name of a hidden tool from an unknown one',
    built: true,
  },
  {
    id: 'S-73',
    test: MOUNTS,
    file: 'src/mounts/name-claims.ts',
    find: 'if (claimant === of) return undefined;',
    replace: "if (claimant.mount !== '') return undefined;",
    why: 'a server that answers quickly takes the names of a mount before it',
    built: true,
  },
  {
    id: 'S-73',
    test: MOUNTS,
    file: 'src/mounts/mounted-elements.ts',
    find: '...(settings.trust ? {} : { untrusted: true }),',
    replace: '',
    why: 'a claim of a mounted server lets a call run twice',
    built: true,
  },
];
