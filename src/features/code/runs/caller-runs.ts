/** Finds the runs of one caller, who may not know their ids: the one of a script whose request was lost, and a list for its model. */
import { isoOf } from '../../../core/kernel/clock.ts';
import { shortened } from '../../../core/protocol/json.ts';
import { ANONYMOUS } from '../../../core/protocol/principals.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import { visibleLine } from '../../../core/protocol/visible-text.ts';
import type { Core } from '../../../core/server/feature.ts';
import type { Script } from '../sandbox/script.ts';
import { RunJournal, type StoredCaller } from './run-journal.ts';
import { isOver, type RunStatus, runOf, statusInRow } from './run-rows.ts';
import type { ScriptRun } from './script-run.actor.ts';

/** A run that its caller can continue, or whose result it can read. */
interface FoundRun extends Pick<RunStatus, 'state'> {
  readonly id: string;
  readonly code: string;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** A request waits for it. */
  readonly attended: boolean;
}

export interface CallerRunsOptions {
  readonly core: Core;
  /** The name of the rows of its runs. */
  readonly name: string;
  readonly live: ReadonlyMap<
    string,
    { readonly run: ScriptRun; readonly caller: StoredCaller; readonly script: Script }
  >;
}

/** Rows of one caller that are read. */
const MAX_ROWS = 1_000;
/** Runs whose beginnings are read from the store, the newest. */
const MAX_READ = 100;
const MAX_LISTED = 20;
/** Characters of a script in the list. */
const MAX_CODE = 100;

export class CallerRuns {
  readonly #options: CallerRunsOptions;

  constructor(options: CallerRunsOptions) {
    this.#options = options;
  }

  /** The newest run of a script that has not ended and for which no request waits; undefined if there is none. */
  async withScript(caller: StoredCaller, code: string): Promise<FoundRun | undefined> {
    const runs = await this.#of(caller, (status) => !isOver(status));
    return runs.find((run) => !run.attended && run.code === code);
  }

  /** The newest runs, for the model of their caller. */
  async list(caller: StoredCaller): Promise<CallToolResult> {
    const runs = await this.#of(caller, () => true);
    const lines = runs.slice(0, MAX_LISTED).map(({ id, state, created, code }) => {
      const script = shortened(
        visibleLine(
          code
            .slice(0, 2 * MAX_CODE)
            .replace(/\s+/g, ' ')
            .trim(),
        ),
        MAX_CODE,
      );
      return `${id}: ${state}, begun ${isoOf(created)}: ${script}`;
    });
    const text =
      lines.length === 0
        ? 'This caller has no runs.'
        : ['To continue one, or to get its result, pass its id as resume.', ...lines].join('\n');
    return { content: [{ type: 'text', text }] };
  }

  /** The runs of a caller, the newest first. Callers who have not signed in have those of their session. */
  async #of(caller: StoredCaller, wanted: (status: RunStatus) => boolean): Promise<readonly FoundRun[]> {
    if (caller.principal === ANONYMOUS && caller.session === undefined) return [];
    const { core, live, name } = this.#options;
    const { store, system } = core;
    const found: FoundRun[] = [];
    for (const [id, { run, caller: owner, script }] of live) {
      const [state, attended] = [run.state(), run.attended()];
      if (isSameCaller(owner, caller) && wanted({ state, paused: !attended }))
        found.push({ id, state, code: script.code, created: script.startedAt, attended });
    }
    if (store.durable) {
      const rows = await store.list({ kind: 'run', name, principal: caller.principal, limit: MAX_ROWS });
      const others = rows.filter((row) => !live.has(runOf(row.id)) && wanted(statusInRow(row.status)));
      for (const { id: actor, status, created } of others.slice(-MAX_READ)) {
        const begun = await RunJournal.begun(store, actor);
        if (!begun || !isSameCaller(begun.caller, caller)) continue;
        const [id, { state, paused }] = [runOf(actor), statusInRow(status)];
        // Only another node may have a request that waits for it.
        found.push({ id, state, code: begun.code, created, attended: !paused && !system.ids.owns(id) });
      }
    }
    return found.sort((one, other) => other.created - one.created);
  }
}

/** True if limits count both as one caller. Of callers who have not signed in, only the session distinguishes them. */
export function isSameCaller(one: StoredCaller, { principal, session }: StoredCaller): boolean {
  return one.principal === principal && one.session === session;
}
