/** Broken builds: the promises of messages between instances. */
import type { BrokenBuild } from './broken-build.ts';

const TEST = 'test/features/machines/messages/tell.test.ts';

export const MESSAGES: readonly BrokenBuild[] = [
  {
    id: 'R-58',
    test: TEST,
    in: 'InstanceMessages.hasTaken',
    find: 'return seq <= (this.#inbox.get(sender) ?? 0);',
    replace: 'return seq < 0 && sender !== undefined;',
    why: 'a message that arrives twice takes effect twice',
  },
  {
    id: 'R-58',
    test: TEST,
    in: 'HandleDirectory.#found',
    find: 'if (timer === OUT_TIMER) return this.#host.outboxes.resume(entry);',
    replace: 'if (timer === OUT_TIMER) return;',
    why: 'messages of a process that has died are never delivered',
  },
  {
    id: 'R-58',
    test: TEST,
    in: 'InstanceMessages.taken',
    find: 'this.#inbox.set(sender, seq);',
    replace: '',
    why: 'an instance does not remember what it has taken',
  },
  {
    id: 'R-59',
    test: TEST,
    in: 'Outboxes.#failed',
    find: "await (notify(message, { type: 'tell.failed', data }, writes) ?? store.commit(writes));",
    replace: 'await store.commit(writes);',
    why: 'the sender does not learn that its message was not delivered',
  },
  {
    id: 'R-60',
    test: TEST,
    in: 'Outboxes.reserve',
    find: 'if (outbox.count + all.length > maxOutMessages || outbox.length + length > maxOutLength)',
    replace: 'if (all.length > 1e9)',
    why: 'an outbox grows without a limit',
  },
];
