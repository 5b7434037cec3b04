/** Hears what a program throws from a timer, or from a promise that it does not await, while it starts: Node would print its stack, and end the process. */
import { systemClock } from '../../clock.ts';

export interface StrayErrors {
  /** Rejects with the first error. */
  readonly thrown: Promise<never>;
  /** Leaves later errors to others. */
  end(): void;
}

/** The promise of a `server.listen(…)` that is not awaited may be among them: whoever listens has its error already. */
export function hearStrayErrors(): StrayErrors {
  let fail = (_: unknown): void => {};
  const thrown = new Promise<never>((_, reject) => {
    fail = reject;
  });
  thrown.catch(() => {});
  const hear = (error: unknown): void => fail(error);
  process.on('uncaughtException', hear).on('unhandledRejection', hear);
  return {
    thrown,
    // Node tells of a rejection when everything that waited for it has run: later in the same turn.
    end: () => systemClock.soon(() => void process.off('uncaughtException', hear).off('unhandledRejection', hear)),
  };
}
