/** Broken builds: the promises of many nodes. */
import type { BrokenBuild } from './broken-build.ts';

export const NODES: readonly BrokenBuild[] = [
  {
    id: 'D-03',
    test: 'test/store/postgres/postgres.test.ts',
    file: 'src/store/postgres/reconnecting-connection.ts',
    find: 'this.#owner.down(reason);\n    this.#again();',
    replace: 'this.#owner.down(reason);',
    why: 'a store never returns to a database that was away',
  },
  {
    id: 'D-11',
    test: 'test/store/contract.test.ts',
    file: 'src/store/postgres/group-fold.ts',
    find: 'if (!head || to <= head.purged) return;',
    replace: 'if (head) return;',
    why: 'trims are ignored',
  },
  {
    id: 'D-12',
    test: 'test/store/postgres/postgres.test.ts',
    file: 'src/store/postgres/layer-statement.ts',
    find: 'WHERE id = $1 AND NOT fenced FOR SHARE',
    replace: 'WHERE id = $1 FOR SHARE',
    why: 'a fenced node commits (no_fence)',
  },
  {
    id: 'D-12',
    test: 'test/store/postgres/postgres.test.ts',
    file: 'src/store/postgres/postgres-store.ts',
    find: 'await this.#writer.commit(writes);',
    replace: 'this.#writer.commit(writes).catch(() => {});',
    why: 'a batch is acknowledged before it is durable (ack_before_commit)',
  },
  {
    id: 'D-21',
    test: 'test/durable/database.test.ts',
    file: 'src/store/postgres/store-session.ts',
    find: 'SET enable_seqscan = off;',
    replace: 'SET synchronous_commit = off; SET enable_seqscan = off;',
    why: 'the database acknowledges what it has not written',
  },
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
