/** The option `code` of `createServer`, and its check. */
import * as option from '../../core/protocol/option-rows.ts';

/** Options of scripts (docs/code-mode.md). */
export interface CodeOptions {
  /**
   * Calls of functions that may change something: `approve` (default) asks the caller, unless a rule allows the call; `allow` runs
   * them; `deny` rejects them.
   */
  readonly effects?: 'approve' | 'allow' | 'deny' | undefined;
  /** The number of threads that run scripts, 1 to 64. Default 2. */
  readonly threads?: number | undefined;
  /** Milliseconds for which a request waits for a run that needs no client. Then it is answered, and the run continues. Default 20,000. */
  readonly waitMs?: number | undefined;
}

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /** Options of the scripts that call the tools of mounts (`expose: 'code'`). See docs/code-mode.md. */
    readonly code?: CodeOptions | undefined;
  }
}

/** The name of the rows of runs in the store. */
export const RUNS = 'run_code';

export const CODE_OPTIONS: { readonly code: option.Check } = {
  code: option.group('an object such as { effects: "approve", threads: 2 }', {
    effects: option.oneOf('approve', 'allow', 'deny'),
    threads: option.expected('a whole number from 1 to 64', (value) => option.isWhole(value, 1, 64)),
    waitMs: option.duration,
  }),
};
