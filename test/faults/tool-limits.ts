/** Broken builds: limits of tools. */
import type { BrokenBuild } from './broken-build.ts';

const test = 'test/features/guard/limits/limits.test.ts';

export const TOOL_LIMITS: readonly BrokenBuild[] = [
  {
    id: 'G-10',
    test,
    in: 'DailyUses.#failed',
    find: 'if (this.#reported) return;',
    replace: '',
    why: 'each call logs that the store fails',
  },
  {
    id: 'G-10',
    test,
    in: 'LimitedCalls.#excess',
    find: 'use.used + cost > perDay',
    replace: 'use.used > perDay',
    why: 'one call more than the daily limit runs',
  },
  {
    id: 'G-10',
    test,
    in: 'DailyUses.count',
    find: 'if (use.unstored >= STORE_AT) this.keep(use);',
    replace: '',
    why: 'a crash returns all calls of the day',
  },
  {
    id: 'G-10',
    test,
    in: 'DailyUses.#load',
    find: 'use.used += stored.used;',
    replace: 'use.used += 0 * stored.used;',
    why: 'a restart returns all calls of the day',
  },
  {
    id: 'G-10',
    test,
    in: 'DailyUses.mustWait',
    find: 'today < use.day - 1',
    replace: 'today < use.day',
    why: 'a clock that is set back over midnight returns all calls of the day',
  },
  {
    id: 'G-10',
    test,
    in: 'LimitedCalls.#evict',
    find: 'entry.running > 0 || entry.use?.waits',
    replace: 'entry.running > 0',
    why: 'the calls of a day are forgotten while the store writes them',
  },
  {
    id: 'G-10',
    test,
    in: 'ReplyCache.#answered',
    find: 'request.turnedAway || isUnrecorded(outcome)',
    replace: 'isUnrecorded(outcome)',
    why: 'a client that retries with its key gets the refusal for ever',
  },
  {
    id: 'G-10',
    test,
    in: 'LimitedCalls.#enter',
    find: 'entry.queue.splice(entry.queue.indexOf(waiting), 1);',
    replace: '',
    why: 'a cancelled call keeps its place in the queue',
  },
  {
    id: 'G-10',
    test,
    in: 'LimitedCalls.#entryOf',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file
    find: 'const key = `${tool}\\n${principal}`;',
    replace: 'const key = tool;',
    why: 'one principal uses up the limit of all others',
  },
  {
    id: 'G-10',
    test,
    in: 'LimitedCalls.#entryOf',
    find: 'if (this.#entries.size > MAX_ENTRIES) this.#evict();',
    replace: '',
    why: 'each principal that ever called a tool stays in memory',
  },
];
