/** The settings of runs of scripts. Types only. */

export interface RunSettings {
  /**
   * The calls of scripts that may change something. `approve` (default): the user of the caller approves each, unless a rule or the
   * tool demands an approval itself. `allow`: they run. `deny`: they fail.
   */
  readonly effects?: 'approve' | 'allow' | 'deny' | undefined;
  /** Milliseconds for which a request waits for a run that needs no client. Then it is answered, and the run continues. Default 20 s. */
  readonly waitMs?: number | undefined;
}
