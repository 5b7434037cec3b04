/** The settings and limits of runs of scripts. */
import type { LimitRows } from '../../../core/kernel/limits.ts';

/** The settings of runs. */
export interface RunSettings {
  /**
   * The calls of scripts that may change something. `approve` (default): the user of the caller approves each, unless a rule or the
   * tool demands an approval itself. `allow`: they run. `deny`: they fail.
   */
  readonly effects?: 'approve' | 'allow' | 'deny' | undefined;
  /** Milliseconds for which a request waits for a run that needs no client. Then it is answered, and the run continues. Default 20 s. */
  readonly waitMs?: number | undefined;
}

declare module '../../../core/kernel/limits.ts' {
  interface Limits {
    /** Maximum number of runs of scripts that compute or call, for each principal. */
    readonly codeLiveRuns: number;
    /** Maximum number of runs that have not ended, for each principal. */
    readonly codeOpenRuns: number;
    /** Maximum number of calls of one run that are in flight. Further ones wait. */
    readonly codeCallsInFlight: number;
    /** Maximum number of calls of one run. */
    readonly codeCalls: number;
    /** Denials after which a run ends. */
    readonly codeDenials: number;
    /** Longest script, in characters. */
    readonly codeLength: number;
    /** Longest result of a script that is sent whole, in characters. */
    readonly codeResultLength: number;
    /** Maximum number of characters of all events in the journal of one run. */
    readonly codeJournalLength: number;
    /** Milliseconds until a run ends that has not ended by itself. */
    readonly codeOpenMs: number;
    /** Milliseconds for which a script can sleep at most, in one call. */
    readonly codeSleepMs: number;
  }
}

export const CODE_LIMITS: LimitRows = {
  codeLiveRuns: { default: 4, unit: 'runs' },
  codeOpenRuns: { default: 100, unit: 'runs' },
  codeCallsInFlight: { default: 32, unit: 'calls' },
  codeCalls: { default: 1_000, unit: 'calls', max: 4_000 },
  codeDenials: { default: 20, unit: 'denials' },
  codeLength: { default: 65_536, unit: 'characters' },
  codeResultLength: { default: 20_000, unit: 'characters' },
  codeJournalLength: { default: 8 * 1024 * 1024, unit: 'characters' },
  codeOpenMs: { default: 86_400_000, unit: 'milliseconds' },
  codeSleepMs: { default: 7 * 86_400_000, unit: 'milliseconds' },
};
