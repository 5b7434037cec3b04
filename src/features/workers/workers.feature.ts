/** Threads: tools that compute for long run in them, and one watches the event loop. Calls that blocked it are supervised. */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { Pool } from './pool.ts';
import { Supervision } from './supervision.ts';
import { problemOfWatchdog } from './watchdog-option.ts';

export const workers: Feature<Supervision> = {
  name: 'workers',
  options: { watchdog: problemOfWatchdog },
  open({ system, bus, limits, store, stages, options, elements }) {
    const supervision = new Supervision({ system, bus, store, stages });
    const pool = new Lazy(() => new Pool({ system, limits }));
    elements.threadHandler = (label, source) => pool.value.runner(label, source);
    return {
      service: supervision,
      restore: supervision.restore,
      begin: () => supervision.begin(options.watchdog),
      end() {
        supervision.end();
        pool.created?.end();
      },
    };
  },
};
