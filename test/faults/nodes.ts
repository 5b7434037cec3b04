/** Broken builds: the promises of many nodes. */
import type { BrokenBuild } from './broken-build.ts';

export const NODES: readonly BrokenBuild[] = [
  {
    id: 'D-06',
    test: 'test/store/postgres/membership.test.ts',
    file: 'src/store/postgres/cluster-tables.ts',
    find: 'WHERE o.id = c.node AND o.fenced))',
    replace: 'WHERE o.id = c.node))',
    why: 'a node takes a cell from an owner that is alive (claim_without_cas)',
  },
  {
    id: 'D-12',
    test: 'test/store/postgres/membership.test.ts',
    file: 'src/store/postgres/cluster-tables.ts',
    find: 'WHERE b.node = n.id AND',
    replace: 'WHERE b.node = n.id OR',
    why: 'a node is fenced because another one asks for it (fence_without_database)',
  },
];
