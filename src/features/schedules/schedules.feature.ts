/** Schedules: handlers that the server calls at dates, once in the cluster. */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { ServerSchedules } from './server-schedules.ts';

export const schedules: Feature<ServerSchedules> = {
  name: 'schedules',
  open(core) {
    const cells = new Set<number>();
    let serves = false;
    let ownsAll = false;
    const runs = (cell: number): boolean => serves && (ownsAll || cells.has(cell));
    const opened = new Lazy(() => new ServerSchedules(core, { runs }));
    return {
      get service() {
        return opened.value;
      },
      holds: {
        async take(taken) {
          ownsAll = !taken;
          for (const cell of taken ?? []) cells.add(cell);
          opened.created?.begin();
        },
        async drop(dropped, flush) {
          for (const cell of dropped) cells.delete(cell);
          await opened.created?.leave(dropped, flush);
        },
        working: () => opened.created?.working() ?? [],
      },
      started() {
        serves = true;
        opened.created?.begin();
      },
      facts: () => (opened.created ? { schedules: opened.created.facts() } : {}),
      async finish() {
        serves = false;
        await opened.created?.leave(undefined, true);
      },
    };
  },
};
