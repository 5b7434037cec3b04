/** The option `code` of `createServer`. */
import type * as option from '../../core/protocol/option-rows.ts';
import { problemOfCode } from './code-settings.ts';

/** Options of scripts (docs/code-mode.md). */
export interface CodeOptions {
  /**
   * Calls that may change something. `approve` (default): the user of the caller approves each, unless a rule or the tool demands an
   * approval itself. `allow`: they run. `deny`: scripts have only the functions that read.
   */
  readonly effects?: 'approve' | 'allow' | 'deny' | undefined;
  /** The number of threads that run scripts, 1 to 64. Default 2. */
  readonly threads?: number | undefined;
  /** Milliseconds for which a request waits for a run that needs no client. Then it is answered, and the run continues. Default 20,000. */
  readonly waitMs?: number | undefined;
  /** Milliseconds of processor time of a script between two results of calls, and in all. Default 1,000 and 10,000. */
  readonly sliceMs?: number | undefined;
  readonly runMs?: number | undefined;
  /** Bytes of memory of one script. Default 33,554,432. */
  readonly memoryBytes?: number | undefined;
}

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /** Options of the scripts that call the tools of mounts (`expose: 'code'`). See docs/code-mode.md. */
    readonly code?: CodeOptions | undefined;
  }
}

export const CODE_OPTIONS: { readonly code: option.Check } = { code: (value) => problemOfCode(value) };
