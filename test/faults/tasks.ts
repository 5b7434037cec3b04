/** Builds that are broken on purpose: what tasks, questions and steps promise. */
import type { BrokenBuild } from './broken-build.ts';

export const TASKS: readonly BrokenBuild[] = [
  {
    id: 'R-29',
    test: 'test/durable-tasks/tasks.test.ts',
    file: 'src/hosting/task-records.ts',
    find: 'return this.#options.store.commit([...this.#writes(record, task), call, ...more]);',
    replace:
      'this.#options.store.commit([...this.#writes(record, task), call, ...more]).catch(() => {}); return Promise.resolve();',
    why: 'a client is told of a task before it is durable',
  },
  {
    id: 'R-29',
    test: 'test/durable-tasks/tasks.test.ts',
    file: 'src/actors/task.ts',
    find: 'if (was) this.#snapshot = taskMachine.resolveState({ value: was.status });',
    replace: '',
    why: 'a task that had ended works again after a restart',
  },
  {
    id: 'R-29',
    test: 'test/durable-tasks/tasks.test.ts',
    file: 'src/actors/task-questions.ts',
    find: 'this.#keys = new Set(was?.keys);',
    replace: 'this.#keys = new Set();',
    why: 'the keys of questions are used again after a restart',
  },
  {
    id: 'S-12',
    test: 'test/durable-tasks/questions.test.ts',
    file: 'src/hosting/ledger.ts',
    find: "if (round < last) return 'yes';",
    replace: "if (round < last) return 'no';",
    why: 'an older state is taken again after a restart',
  },
  {
    id: 'S-12',
    test: 'test/durable-tasks/questions.test.ts',
    file: 'src/hosting/ledger.ts',
    find: "if (!stored || round > last) return 'no';",
    replace: "if (!stored || round >= 0) return 'no';",
    why: 'an answered state runs its request again after a restart',
  },
  {
    id: 'R-18',
    test: 'test/durable-tasks/questions.test.ts',
    file: 'src/actors/conversation.ts',
    find: 'if (error === undefined && ends) return this.#finish(outcome);',
    replace: 'if (ends) return this.#finish(outcome);',
    why: 'a client is answered what could not be kept',
  },
  {
    id: 'R-18',
    test: 'test/durable-tasks/tasks.test.ts',
    file: 'src/actors/task-keeping.ts',
    find: 'settle(request, error === undefined ? outcome() : unkept(error))',
    replace: 'settle(request, outcome())',
    why: 'a task is acknowledged that could not be kept',
  },
  {
    id: 'R-01',
    test: 'test/durable-tasks/questions.test.ts',
    file: 'src/execution/steps.ts',
    find: 'await journal.record(name, kept);',
    replace: 'void journal.record(name, kept).catch(() => {});',
    why: 'what a step gave is used before it is durable',
  },
];
