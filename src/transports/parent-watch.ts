/** Notices that the parent process has vanished, though the pipes that it left behind stay open. */
import type { Clock, Timer } from '../clock.ts';

/** What can be known of the parent process. */
export interface Parent {
  /** The id of the parent process now. */
  id(): number;
  /** Whether a process with this id runs. @throws when that cannot be known. */
  runs(id: number): boolean;
}

export const realParent: Parent = {
  id: () => process.ppid,
  runs(id) {
    try {
      return process.kill(id, 0);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'ESRCH') return false;
      // It runs, as another user.
      if (code === 'EPERM') return true;
      throw error;
    }
  },
};

export interface ParentWatchOptions {
  readonly clock: Clock;
  /** Time between two looks, in milliseconds, 1 to 2^31-1. */
  readonly everyMs: number;
  /** The parent is gone. Said once; the watch is over then. */
  onGone(): void;
  /** It cannot be known here whether the parent runs. Said once; the watch is over then. */
  onUnable(why: string): void;
  /** Default: the real one. */
  readonly parent?: Parent;
}

/**
 * Looks at the parent every `everyMs` milliseconds. POSIX hands an orphan to another parent, so its parent id changes;
 * Windows keeps the old id, so the process behind it is looked for as well.
 *
 * @returns a function that ends the watch.
 */
export function watchParent(options: ParentWatchOptions): () => void {
  const { clock, everyMs, onGone, onUnable, parent = realParent } = options;
  const first = parent.id();
  if (first === 0) {
    onUnable('the parent process is outside this container');
    return () => {};
  }
  let timer: Timer;
  const look = (): void => {
    let here: boolean;
    try {
      here = parent.id() === first && parent.runs(first);
    } catch (error) {
      onUnable(error instanceof Error ? error.message : String(error));
      return;
    }
    if (here) timer = clock.after(everyMs, look);
    else onGone();
  };
  timer = clock.after(everyMs, look);
  return () => timer.cancel();
}
