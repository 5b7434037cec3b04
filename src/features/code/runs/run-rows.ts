/** The rows of runs in the store: their ids and their statuses. */

/** The states from which a run continues without its client. */
const ALONE: ReadonlySet<string> = new Set(['waiting for approval', 'waiting for task', 'waiting for clock']);
const OVER: ReadonlySet<string> = new Set(['returned', 'failed', 'stopped', 'cancelled']);
/** Begins the status of a run for which no request waits. */
const PAUSED = 'paused, ';
const PREFIX = 'run/';

/** The status of a run in its row. */
export interface RunStatus {
  readonly state: string;
  /** No request waited for it. */
  readonly paused: boolean;
}

/** The id of the row of a run. */
export function actorOfRun(run: string): string {
  return PREFIX + run;
}

/** The run of a row. */
export function runOf(actor: string): string {
  return actor.slice(PREFIX.length);
}

/** The template of the resources with the whole results of runs. Nodes find the cell of a run in such a URI. */
export const RESULT_URI = 'troupe://run_code/{run}/result';

export function resultUri(run: string): string {
  return RESULT_URI.replace('{run}', run);
}

export function statusOfRow({ state, paused }: RunStatus): string {
  return `${paused ? PAUSED : ''}${state}`;
}

export function statusInRow(text: string): RunStatus {
  const paused = text.startsWith(PAUSED);
  return { state: paused ? text.slice(PAUSED.length) : text, paused };
}

export function isOver({ state }: Pick<RunStatus, 'state'>): boolean {
  return OVER.has(state);
}

/** True for a run that the next process continues without a request. */
export function runsAlone({ state, paused }: RunStatus): boolean {
  return !OVER.has(state) && (paused || ALONE.has(state));
}
