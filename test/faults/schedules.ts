/** Broken builds: the promises of schedules. */
import type { BrokenBuild } from './broken-build.ts';

export const SCHEDULES: readonly BrokenBuild[] = [
  {
    id: 'R-81',
    test: 'test/features/schedules/server-schedules.test.ts',
    in: 'Schedule.#claim',
    find: 'this.#write({ ...this.#stored, running: slot });',
    replace: 'this.#write({ ...this.#stored, running: undefined });',
    why: 'a slot is not stored before its handler begins',
  },
  {
    id: 'R-82',
    test: 'test/features/schedules/server-schedules.test.ts',
    in: 'Schedule.#loaded',
    find: 'this.#stored = { ...found, ...continuedFrom(found, now) };',
    replace: 'this.#stored = { ...found, last: now };',
    why: 'slots that passed while the process was down are lost',
  },
  {
    id: 'R-98',
    test: 'test/inspector/event-traffic.test.ts',
    in: 'Schedule.#begin',
    find: 'if (!due) return this.#claim(',
    replace: 'this.#stored = { ...this.#stored, last: now + 86_400_000 };\n    if (!due) return this.#claim(',
    why: 'a run by hand takes the place of the next slot',
  },
  {
    id: 'R-83',
    test: 'test/features/schedules/schedule-slots.test.ts',
    in: 'schedule-slots.ts: continuedFrom',
    find: 'progress.last > now + CORRECTED_MS',
    replace: 'progress.last > now',
    why: 'a clock that is set back by an hour repeats the slots of that hour',
  },
];
