/** Broken builds: the promises of approvals. */
import type { BrokenBuild } from './broken-build.ts';

export const APPROVALS: readonly BrokenBuild[] = [
  {
    id: 'R-56',
    test: 'test/features/approvals/durable.test.ts',
    in: 'ApprovalTable.recover',
    find: "if (row.status === 'used' && !shared) await this.end(id, 'lose').catch(() => {});",
    replace: "if (row.status === 'used') continue;",
    why: 'a call that a dead process ran counts as running for ever',
    built: true,
  },
  {
    id: 'R-57',
    test: 'test/features/approvals/durable.test.ts',
    in: 'ApprovalTable.#actorOf',
    find: 'pollMs: shared ? POLL_MS : undefined,',
    replace: 'pollMs: undefined,',
    why: 'a node does not learn the decision that another has taken',
  },
  {
    id: 'S-98',
    test: 'test/features/approvals/approvals.test.ts',
    in: 'ApprovalAsking.#ask',
    find: 'core.keys.ring.fingerprint({ approval: id })',
    replace: 'id',
    why: 'an answer in advance, with an id that the model knows, counts as consent',
  },
  {
    id: 'S-99',
    test: 'test/features/approvals/approvals.test.ts',
    in: 'ApprovalAsking.#heldOf',
    find: 'arguments: isJsonObject(call.arguments) ? call.arguments : {},',
    replace: 'arguments: {},',
    why: 'an approval holds for any arguments',
  },
  {
    id: 'S-100',
    test: 'test/features/approvals/approvals.test.ts',
    in: 'approval-policy.ts: fits',
    find: 'if (isCaller && !self) return false;',
    replace: '',
    why: 'a caller with the scope approves its own call',
  },
];
