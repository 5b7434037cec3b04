/** Catches errors that a program throws from a timer or an unawaited promise while it starts. Node would print a stack and end the process. */
import { systemClock } from '../../core/kernel/clock.ts';

interface StrayErrors {
  /** Rejects with the first error. */
  readonly thrown: Promise<never>;
  /** Stops catching errors. */
  end(): void;
}

/** Catches errors from now on. They include a rejected `server.listen(…)` that the program does not await. */
export function catchStrayErrors(): StrayErrors {
  let fail = (_: unknown): void => {};
  const thrown = new Promise<never>((_, reject) => {
    fail = reject;
  });
  thrown.catch(() => {});
  const onError = (error: unknown): void => fail(error);
  process.on('uncaughtException', onError).on('unhandledRejection', onError);
  return {
    thrown,
    // Node reports unhandled rejections at the end of the turn, after all promise reactions.
    end: () =>
      systemClock.soon(() => void process.off('uncaughtException', onError).off('unhandledRejection', onError)),
  };
}
