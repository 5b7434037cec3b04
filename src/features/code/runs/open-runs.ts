/** Opens the runs of scripts of one server, with the sandboxes that run them. Loaded with the first script. */
import { within } from '../../../core/kernel/clock.ts';
import { restoredAuth } from '../../../core/messages/auth.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import { DIALECTS } from '../../../core/protocol/dialects/index.ts';
import * as option from '../../../core/protocol/option-rows.ts';
import { LATEST_MODERN } from '../../../core/protocol/revisions.ts';
import { IncomingRequest, oneOutcome } from '../../../core/requests/active-request.ts';
import type { Core } from '../../../core/server/feature.ts';
import type { CodeOptions } from '../code-options.ts';
import type { CallableFunctions } from '../functions/code-functions.ts';
import { Sandboxes } from '../sandbox/sandboxes.ts';
import { CodeRuns } from './code-runs.ts';
import type { StoredCaller } from './run-journal.ts';

/** Milliseconds in which the lists of mounts must be there for a run that continues without a request. */
const LISTS_MS = 60_000;

export interface OpenRuns {
  readonly runs: CodeRuns;
  /** The server stops: first the runs, then their threads. */
  stop(reason: string): void;
}

/** @param functionsOf the functions that the caller of a request may call, once its lists are there */
export function openRuns(
  core: Core,
  settings: CodeOptions,
  functionsOf: (request: RequestView) => CallableFunctions,
): OpenRuns {
  const { effects: _, waitMs: __, ...bounds } = settings;
  const { system } = core;
  const { codeCalls } = core.limits;
  const engine = new Sandboxes({ system, maxCalls: codeCalls + 1, ...option.withoutUndefined(bounds) });
  const runs = new CodeRuns({
    ...{ core, engine, settings, name: core.info.name },
    functionsOf: async (caller) => functionsOf(await listed(core, caller)),
  });
  return {
    runs,
    stop(reason) {
      runs.stop(reason);
      engine.end();
    },
  };
}

/** Lists the tools as a caller whose request has ended: waits for the lists of mounts, and asks the rules what it sees. */
async function listed({ stages, system }: Core, { principal, auth }: StoredCaller): Promise<RequestView> {
  const { clock } = system;
  const capabilities = {};
  const client = {
    ...{ dialect: DIALECTS[LATEST_MODERN], info: undefined, capabilities, logLevel: undefined },
    ...{ principal, session: undefined },
  };
  let request: RequestView | undefined;
  const answered = new Promise<RequestView | undefined>((resolve) => {
    request = new IncomingRequest(
      'run/functions',
      { method: 'tools/list', cursor: undefined },
      'tools',
      client,
      undefined,
      undefined,
      undefined,
      oneOutcome('run/functions', () => resolve(request)),
      0,
      undefined,
      'run/functions',
      0,
      auth && restoredAuth(auth),
    );
    stages.route({ type: 'request', request });
  });
  const late = (): Error => new Error(`the lists of its functions took longer than ${LISTS_MS} ms`);
  const found = await within(answered, clock, LISTS_MS, late);
  if (!found) throw late();
  return found;
}
