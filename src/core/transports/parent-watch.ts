/** Detects that the parent process has exited, even if its pipes stay open. */
import type { Clock, Timer } from '../kernel/clock.ts';

/** Information about the parent process. */
export interface Parent {
  /** The current id of the parent process. */
  id(): number;
  /** True if a process with this id runs. @throws if that cannot be determined */
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
      // The process runs, as another user.
      if (code === 'EPERM') return true;
      throw error;
    }
  },
};

interface ParentWatchOptions {
  readonly clock: Clock;
  /** Interval of the checks, in milliseconds, 1 to 2^31-1. */
  readonly everyMs: number;
  /** The parent has exited. Called once, and ends the watch. */
  onGone(): void;
  /** The system does not tell this process whether the parent runs. Called once, and ends the watch. */
  onUnable(why: string): void;
  /** Default: the real parent. */
  readonly parent?: Parent;
}

/**
 * Checks the parent every `everyMs` milliseconds. POSIX gives an orphan a new parent, so its parent id changes. Windows
 * keeps the old id, so the watch also checks that process.
 *
 * @returns a function that ends the watch
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
