/** The option `code` of `createServer`, and its check. */
import * as option from '../../core/protocol/option-rows.ts';

/** Options of scripts (docs/code-mode.md). */
export interface CodeOptions {
  /**
   * Calls of functions that may change something: `approve` (default) asks the caller, unless a rule allows the call; `allow` runs
   * them; `deny` rejects them.
   */
  readonly effects?: 'approve' | 'allow' | 'deny' | undefined;
}

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /** Options of the scripts that call the tools of mounts (`expose: 'code'`). See docs/code-mode.md. */
    readonly code?: CodeOptions | undefined;
  }
}

export const CODE_OPTIONS: { readonly code: option.Check } = {
  code: option.group('{ effects }', { effects: option.oneOf('approve', 'allow', 'deny') }),
};
